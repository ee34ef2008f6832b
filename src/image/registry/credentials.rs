//! Who podstead is to a registry: from the configuration, read anew at each pull so that rotated secrets are found.

use super::super::registry_config::RegistryConfig;
use super::RegistryError;
use crate::outbound::Secret;
use crate::telemetry::error_chain;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Secrets for one registry.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Credentials {
    /// None.
    Anonymous,
    /// User name and password.
    Password(String, String),
    /// A token that the token server takes for others.
    Identity(String),
    /// A token that the registry itself takes.
    Token(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::Password(..) => "Password",
            Self::Identity(_) => "Identity",
            Self::Token(_) => "Token",
        })
    }
}

/// Reads the secrets that `config` names.
pub(super) fn read(config: &RegistryConfig) -> Result<Credentials, RegistryError> {
    let failed = |path: &Path, reason: String| RegistryError::Credentials { path: path.to_owned(), reason };
    let content = |path: &Path| std::fs::read_to_string(path).map_err(|error| failed(path, error.to_string()));
    match (&config.username, &config.password_file, &config.auth_file) {
        (Some(username), Some(path), _) => {
            let password = Secret::read(path).map_err(|error| failed(path, error_chain(&error).to_string()))?;
            Ok(Credentials::Password(username.clone(), password.expose().to_owned()))
        }
        (_, _, Some(path)) => from_auth_file(&content(path)?, &config.host).map_err(|reason| failed(path, reason)),
        (_, _, None) => Ok(Credentials::Anonymous),
    }
}

/// The entry for `host` of what `docker login` writes.
fn from_auth_file(content: &str, host: &str) -> Result<Credentials, String> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        auths: BTreeMap<String, Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        #[serde(default)]
        auth: String,
        #[serde(default)]
        username: String,
        #[serde(default)]
        password: String,
        #[serde(default, alias = "identityToken")]
        identitytoken: String,
        #[serde(default, alias = "registryToken")]
        registrytoken: String,
    }
    let file: File = serde_json::from_str(content).map_err(|error| error.to_string())?;
    let entry = file.auths.iter().find(|(key, _)| names(key, host)).map(|(_, entry)| entry);
    let Some(entry) = entry else {
        return Err(format!("it has no entry for {host} under auths (credential helpers are not supported)"));
    };
    if !entry.registrytoken.is_empty() {
        return Ok(Credentials::Token(entry.registrytoken.clone()));
    }
    if !entry.identitytoken.is_empty() {
        return Ok(Credentials::Identity(entry.identitytoken.clone()));
    }
    if !entry.username.is_empty() {
        return Ok(Credentials::Password(entry.username.clone(), entry.password.clone()));
    }
    let bad = || format!("the auth of its entry for {host} is not base64 of user:password");
    let decoded = STANDARD.decode(entry.auth.trim()).map_err(|_| bad())?;
    let decoded = String::from_utf8(decoded).map_err(|_| bad())?;
    let (username, password) = decoded.split_once(':').filter(|(username, _)| !username.is_empty()).ok_or_else(bad)?;
    Ok(Credentials::Password(username.to_owned(), password.trim_end_matches('\0').to_owned()))
}

/// Whether a key of the file means `host`; Docker Hub has several names.
fn names(key: &str, host: &str) -> bool {
    let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let key = key.split('/').next().unwrap_or_default();
    let hub = ["docker.io", "index.docker.io", "registry-1.docker.io"];
    key == host || (hub.contains(&key) && hub.contains(&host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_by_any_spelling_of_its_host() {
        let hub = format!(r#"{{"auths":{{"https://index.docker.io/v1/":{{"auth":"{}"}}}}}}"#, STANDARD.encode("me:pa:ss"));
        let password = Credentials::Password("me".into(), "pa:ss".into());
        assert_eq!(from_auth_file(&hub, "docker.io"), Ok(password));
        assert!(from_auth_file(&hub, "r.lan").unwrap_err().contains("no entry for r.lan"));
        let tokens = r#"{"auths":{"r.lan:5000":{"identitytoken":"i"},"s.lan":{"registrytoken":"t","auth":""}},"credsStore":"x"}"#;
        assert_eq!(from_auth_file(tokens, "r.lan:5000"), Ok(Credentials::Identity("i".into())));
        assert_eq!(from_auth_file(tokens, "s.lan"), Ok(Credentials::Token("t".into())));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_without_its_secrets() {
        for (content, reason) in [
            ("{", "EOF"),
            (r#"{"auths":{"r":{"auth":"%"}}}"#, "base64"),
            (r#"{"auths":{"r":{"auth":"c2VjcmV0"}}}"#, "user:password"),
        ] {
            let error = from_auth_file(content, "r").unwrap_err();
            assert!(error.contains(reason) && !error.contains("secret"), "{error}");
        }
        assert_eq!(format!("{:?}", Credentials::Password("u".into(), "secret".into())), "Password");
    }

    #[test]
    fn a_final_newline_is_not_part_of_a_password() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        std::fs::write(&path, "secret \r\n").unwrap();
        let config = RegistryConfig {
            host: "r".into(),
            username: Some("u".into()),
            password_file: Some(path.clone()),
            ..Default::default()
        };
        assert_eq!(read(&config).unwrap(), Credentials::Password("u".into(), "secret ".into()));
        std::fs::remove_file(path).unwrap();
        assert!(matches!(read(&config), Err(RegistryError::Credentials { .. })));
    }
}
