//! Credentials of the configuration for a registry: read anew at each pull so that rotated secrets are found.

use super::super::registry_config::RegistryConfig;
use super::RegistryError;
use podstead_outbound::Secret;
use podstead_runtime::credentials::{Credentials, parse_config};
use podstead_telemetry::error_chain;
use std::path::Path;

/// Reads the secrets that `config` names.
pub(super) fn read(config: &RegistryConfig) -> Result<Credentials, RegistryError> {
    let failed = |path: &Path, reason: String| RegistryError::Credentials { path: path.to_owned(), reason };
    let content = |path: &Path| std::fs::read(path).map_err(|error| failed(path, error.to_string()));
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
fn from_auth_file(content: &[u8], host: &str) -> Result<Credentials, String> {
    let entries = parse_config(content).map_err(|problem| format!("it {problem}"))?;
    let entry = entries.iter().find(|(key, _)| names(key, host)).map(|(_, entry)| entry);
    let entry = entry.ok_or_else(|| format!("it has no entry for {host} under auths"))?;
    match entry.credentials() {
        Ok(Credentials::Anonymous) => Err(format!("its entry for {host} is empty (credential helpers are not supported)")),
        Ok(credentials) => Ok(credentials),
        Err(problem) => Err(format!("the auth of its entry for {host} {problem}")),
    }
}

/// Returns true if a key of the file stands for `host`; Docker Hub has several names.
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
        let hub = br#"{"auths":{"https://index.docker.io/v1/":{"auth":"bWU6cGE6c3M="}}}"#;
        let password = Credentials::Password("me".into(), "pa:ss".into());
        assert_eq!(from_auth_file(hub, "docker.io"), Ok(password));
        assert!(from_auth_file(hub, "r.lan").unwrap_err().contains("no entry for r.lan"));
        let tokens = br#"{"auths":{"r.lan:5000":{"identitytoken":"i"},"s.lan":{}},"credsStore":"x"}"#;
        assert_eq!(from_auth_file(tokens, "r.lan:5000"), Ok(Credentials::Identity("i".into())));
        assert!(from_auth_file(tokens, "s.lan").unwrap_err().contains("credential helpers"));
        assert!(from_auth_file(b"{", "r").unwrap_err().contains("truncated JSON"));
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
