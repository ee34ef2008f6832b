//! Configuration of registries. **Pure**.

use super::mirror_config::MirrorConfig;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Longest name of a credential helper.
pub(crate) const HELPER_NAME_MAX: usize = 64;

/// Access to one registry. A registry without an entry is accessed over https, without credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegistryConfig {
    /// Host as in image references, with the port if there is one: `docker.io`, `registry.lan:5000`.
    pub host: String,
    /// Use plain http. Tags are not protected against manipulation then; content is still verified against its digest.
    #[serde(default)]
    pub http: bool,
    /// PEM file with further certificate authorities for this registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// User name; needs `passwordFile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// File with the password or token; a final newline is ignored. Read at each pull.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// A `config.json` as `docker login` writes it, or an `auth.json` of `podman login`, with an entry for this host. Read at each pull.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_file: Option<PathBuf>,
    /// Name of a credential helper: `ecr-login` for the program `docker-credential-ecr-login` in `/usr/libexec/podstead`, `/usr/local/bin` or `/usr/bin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_helper: Option<String>,
    /// Further hosts that may get this registry's credentials to issue tokens, with the port unless it is 443: `auth.lan`, `auth.lan:5001`. The
    /// registry's own host is always allowed, and so are the known hosts of Docker Hub and other public registries. With `http: true` they may be accessed
    /// over plain http, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub token_servers: Vec<String>,
    /// Hosts that are asked before the registry, in this order. With mirrors or `upstream`, the entry of the registry in `registriesDirectory` is not
    /// used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<MirrorConfig>,
    /// False: only the mirrors are asked, and never the registry itself. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<bool>,
}

/// Most mirrors of a registry.
const MIRRORS_MAX: usize = 16;

impl RegistryConfig {
    /// Returns true if the entry has credentials.
    pub(crate) fn has_credentials(&self) -> bool {
        self.username.is_some() || self.auth_file.is_some() || self.credential_helper.is_some()
    }

    /// The problem of the entry, or `None`.
    pub fn problem(&self) -> Option<String> {
        let Self { host, http, ca_file, username, password_file, auth_file, credential_helper, token_servers, mirrors, upstream } =
            self;
        let as_reference = format!("{host}/x").parse::<podstead_container::reference::Reference>();
        if !as_reference.is_ok_and(|reference| reference.host() == host) {
            return Some(format!(
                "registry host {host:?} is not a host as written in image references (docker.io, registry.lan:5000)"
            ));
        }
        if username.is_some() != password_file.is_some() {
            return Some(format!("registry {host}: username and passwordFile must be set together"));
        }
        if username.is_some() && auth_file.is_some() {
            return Some(format!("registry {host}: username and authFile must not both be set"));
        }
        if let Some(name) = credential_helper {
            if username.is_some() || auth_file.is_some() {
                return Some(format!("registry {host}: credentialHelper cannot be set with username or authFile"));
            }
            if !is_helper_name(name) {
                return Some(format!(
                    "registry {host}: credentialHelper {name:?} is not a name of lower-case letters, digits and - (ecr-login for \
                     docker-credential-ecr-login)"
                ));
            }
        }
        if *http && ca_file.is_some() {
            return Some(format!("registry {host}: caFile cannot be used with http"));
        }
        if let Some(entry) = token_servers.iter().find(|entry| !is_host(entry)) {
            return Some(format!(
                "registry {host}: token server {entry:?} is not a host, or a host and a port (auth.lan, auth.lan:5001)"
            ));
        }
        if let Some(problem) = mirrors.iter().find_map(MirrorConfig::problem) {
            return Some(format!("registry {host}: {problem}"));
        }
        if mirrors.len() > MIRRORS_MAX {
            return Some(format!("registry {host}: more than {MIRRORS_MAX} mirrors"));
        }
        if *upstream == Some(false) && mirrors.is_empty() {
            return Some(format!("registry {host}: upstream: false without mirrors leaves no host to ask"));
        }
        let relative = [ca_file, password_file, auth_file].into_iter().flatten().find(|path| !path.is_absolute());
        relative.map(|path| format!("registry {host}: path {path:?} is not absolute"))
    }
}

/// Reports whether the text can be the name of a credential helper.
pub(crate) fn is_helper_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= HELPER_NAME_MAX && name.chars().all(is_part)
}

/// Reports whether the text is a host with or without a port, and nothing else.
fn is_host(text: &str) -> bool {
    let is_whole = |url: &Url| url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    !text.contains(['/', '@', '?', '#', '\\'])
        && Url::parse(&format!("https://{text}/")).is_ok_and(|url| is_whole(&url) && url.has_host())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictions_are_named() {
        let parse = |text: &str| serde_json::from_str::<RegistryConfig>(text).unwrap().problem();
        assert_eq!(parse(r#"{"host":"docker.io"}"#), None);
        assert_eq!(parse(r#"{"host":"docker.io","mirrors":[{"url":"https://m.lan"}],"upstream":false}"#), None);
        assert_eq!(parse(r#"{"host":"[::1]:5000","http":true}"#), None);
        assert_eq!(parse(r#"{"host":"r.lan","username":"u","passwordFile":"/p"}"#), None);
        assert_eq!(parse(r#"{"host":"r.lan","tokenServers":["auth.lan","auth.lan:5001","[::1]:5001"]}"#), None);
        for (text, problem) in [
            (r#"{"host":"https://r.lan"}"#, "is not a host"),
            (r#"{"host":"nodots"}"#, "is not a host"),
            (r#"{"host":"r.lan/path"}"#, "is not a host"),
            (r#"{"host":"r.lan","username":"u"}"#, "must be set together"),
            (r#"{"host":"r.lan","username":"u","passwordFile":"/p","authFile":"/a"}"#, "must not both be set"),
            (r#"{"host":"r.lan","credentialHelper":"../x"}"#, "is not a name of"),
            (r#"{"host":"r.lan","credentialHelper":"x","authFile":"/a"}"#, "cannot be set with"),
            (r#"{"host":"r.lan","http":true,"caFile":"/c"}"#, "cannot be used with http"),
            (r#"{"host":"r.lan","caFile":"c"}"#, "not absolute"),
            (r#"{"host":"r.lan","upstream":false}"#, "leaves no host to ask"),
            (r#"{"host":"r.lan","mirrors":[{"url":"m.lan"}]}"#, "registry r.lan: mirror \"m.lan\" is not a URL"),
            (r#"{"host":"r.lan","tokenServers":["https://auth.lan"]}"#, "token server"),
            (r#"{"host":"r.lan","tokenServers":["auth.lan/token"]}"#, "token server"),
            (r#"{"host":"r.lan","tokenServers":[""]}"#, "token server"),
            (r#"{"host":"r.lan","tokenServers":["me@auth.lan"]}"#, "token server"),
        ] {
            assert!(parse(text).is_some_and(|found| found.contains(problem)), "{text}");
        }
        assert!(serde_json::from_str::<RegistryConfig>(r#"{"host":"r.lan","insecure":true}"#).is_err());
    }
}
