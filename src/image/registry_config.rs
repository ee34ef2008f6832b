//! What the configuration says about registries. **Pure**.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How one registry is reached. A registry without an entry is reached over https, without credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegistryConfig {
    /// As in image references, with the port if one is written there: `docker.io`, `registry.lan:5000`.
    pub host: String,
    /// Speak plain http. Nobody vouches for what tags name then; content is still verified against its digest.
    #[serde(default)]
    pub http: bool,
    /// PEM file with further certificate authorities for this registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// User name; needs `passwordFile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// File with the password or token; a final newline does not belong to it. Read at each pull.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// A `config.json` as `docker login` writes it, with an entry for this host. Read at each pull.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_file: Option<PathBuf>,
}

impl RegistryConfig {
    /// What is wrong with the entry, in words, or nothing.
    pub fn problem(&self) -> Option<String> {
        let Self { host, http, ca_file, username, password_file, auth_file } = self;
        let as_reference = format!("{host}/x").parse::<super::reference::Reference>();
        if !as_reference.is_ok_and(|reference| reference.host() == host) {
            return Some(format!(
                "registry host {host:?} is not a host as image references name it (docker.io, registry.lan:5000)"
            ));
        }
        if username.is_some() != password_file.is_some() {
            return Some(format!("registry {host}: username and passwordFile need each other"));
        }
        if username.is_some() && auth_file.is_some() {
            return Some(format!("registry {host}: username and authFile exclude each other"));
        }
        if *http && ca_file.is_some() {
            return Some(format!("registry {host}: caFile has no meaning with http"));
        }
        let relative = [ca_file, password_file, auth_file].into_iter().flatten().find(|path| !path.is_absolute());
        relative.map(|path| format!("registry {host}: path {path:?} is not absolute"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictions_are_named() {
        let parse = |text: &str| serde_json::from_str::<RegistryConfig>(text).unwrap().problem();
        assert_eq!(parse(r#"{"host":"docker.io"}"#), None);
        assert_eq!(parse(r#"{"host":"[::1]:5000","http":true}"#), None);
        assert_eq!(parse(r#"{"host":"r.lan","username":"u","passwordFile":"/p"}"#), None);
        for (text, problem) in [
            (r#"{"host":"https://r.lan"}"#, "is not a host"),
            (r#"{"host":"nodots"}"#, "is not a host"),
            (r#"{"host":"r.lan/path"}"#, "is not a host"),
            (r#"{"host":"r.lan","username":"u"}"#, "need each other"),
            (r#"{"host":"r.lan","username":"u","passwordFile":"/p","authFile":"/a"}"#, "exclude each other"),
            (r#"{"host":"r.lan","http":true,"caFile":"/c"}"#, "no meaning"),
            (r#"{"host":"r.lan","caFile":"c"}"#, "not absolute"),
        ] {
            assert!(parse(text).is_some_and(|found| found.contains(problem)), "{text}");
        }
        assert!(serde_json::from_str::<RegistryConfig>(r#"{"host":"r.lan","insecure":true}"#).is_err());
    }
}
