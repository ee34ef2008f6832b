//! An exec plugin: a command that prints an `ExecCredential`.

use super::kubeconfig::ExecPlugin;
use jiff::Timestamp;
use podstead_outbound::Secret;
use serde::Deserialize;
use serde_json::json;
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// A plugin may have to ask a server.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A certificate with its chain and key has less.
const MAX_BYTES: u64 = 256 << 10;

/// Reason why a plugin returned no credentials.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// It cannot be run.
    #[error("run the exec plugin {command}")]
    Run {
        /// The command.
        command: String,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
    /// It did not do what it has to.
    #[error("the exec plugin {command} {what}")]
    Failed {
        /// The command.
        command: String,
        /// The failure, without its output, which may be a secret.
        what: String,
    },
}

/// Credentials of a plugin.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) token: Option<Secret>,
    /// Certificate and key.
    pub(super) certificate: Option<Secret>,
    pub(super) expires: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Credential {
    api_version: String,
    kind: String,
    status: Option<CredentialStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CredentialStatus {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<Timestamp>,
}

/// Runs the plugin once.
pub(super) async fn ask(plugin: &ExecPlugin) -> Result<Given, ExecError> {
    let failed = |what: String| ExecError::Failed { command: plugin.command.clone(), what };
    let cannot_run = |source| ExecError::Run { command: plugin.command.clone(), source };
    let info = json!({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": {"interactive": false}});
    let mut child = Command::new(&plugin.command)
        .args(&plugin.arguments)
        .envs(&plugin.environment)
        .env("KUBERNETES_EXEC_INFO", info.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(cannot_run)?;
    let mut output = Vec::new();
    let work = async {
        if let Some(stdout) = child.stdout.take() {
            stdout.take(MAX_BYTES + 1).read_to_end(&mut output).await?;
        }
        if output.len() as u64 > MAX_BYTES {
            return Ok(None);
        }
        child.wait().await.map(Some)
    };
    let status = tokio::time::timeout(TIMEOUT, work).await.map_err(|_| failed("timed out".to_owned()))?;
    match status.map_err(cannot_run)? {
        None => return Err(failed(format!("printed more than {MAX_BYTES} bytes"))),
        Some(status) if !status.success() => return Err(failed(format!("failed with {status}"))),
        Some(_) => {}
    }
    let credential: Credential =
        serde_json::from_slice(&output).map_err(|_| failed("did not print an ExecCredential".to_owned()))?;
    if credential.kind != "ExecCredential" || credential.api_version != plugin.api_version {
        return Err(failed(format!("did not print an ExecCredential of {}", plugin.api_version)));
    }
    let status = credential.status.ok_or_else(|| failed("printed an ExecCredential without status".to_owned()))?;
    let certificate = match (status.client_certificate_data, status.client_key_data) {
        (Some(certificate), Some(key)) => Some(Secret::new(format!("{certificate}\n{key}"))),
        (None, None) => None,
        _ => return Err(failed("printed only one of certificate and key".to_owned())),
    };
    if status.token.is_none() && certificate.is_none() {
        return Err(failed("printed neither a token nor a certificate".to_owned()));
    }
    Ok(Given { token: status.token.map(Secret::new), certificate, expires: status.expiration_timestamp })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    async fn run(script: &str) -> Result<Given, String> {
        let plugin = ExecPlugin {
            api_version: "client.authentication.k8s.io/v1".into(),
            command: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: BTreeMap::from([("TOKEN".into(), "s3cret".into())]),
        };
        ask(&plugin).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_plugin_gives_a_token_with_its_end() {
        let given = run(r#"echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'$TOKEN'","expirationTimestamp":"2026-01-01T00:00:00Z"}}'"#).await.unwrap();
        assert_eq!(given.token.as_ref().map(Secret::expose), Some("s3cret"));
        assert_eq!(given.expires, Some("2026-01-01T00:00:00Z".parse().unwrap()));
        assert!(!format!("{given:?}").contains("s3cret"));
    }

    #[tokio::test]
    async fn a_plugin_that_fails_is_named_without_what_it_printed() {
        for (script, expected) in [
            ("echo s3cret; exit 3", "failed with exit status: 3"),
            ("echo s3cret", "did not print an ExecCredential"),
            (r#"echo '{"apiVersion":"v9","kind":"ExecCredential"}'"#, "did not print an ExecCredential of"),
            (r#"echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{}}'"#, "neither a token"),
        ] {
            let error = run(script).await.unwrap_err();
            assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
        }
    }
}
