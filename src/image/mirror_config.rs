//! Configuration of mirrors of a registry. **Pure**.

use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A host that has images of a registry, and is asked before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MirrorConfig {
    /// URL of the mirror, with https or http: `https://mirror.lan:5000`. With a path, repositories are below it: `https://mirror.lan/hub` has
    /// `docker.io/library/nginx` as `hub/library/nginx`.
    pub url: String,
    /// The mirror may also decide which image a tag names. Without it, only content with a digest comes from the mirror, so that an outdated or malicious
    /// mirror cannot choose the image.
    #[serde(default)]
    pub resolve: bool,
    /// PEM file with further certificate authorities for this mirror.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// PEM file with the client certificate for this mirror; needs `clientKeyFile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cert_file: Option<PathBuf>,
    /// PEM file with the private key of the client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_key_file: Option<PathBuf>,
    /// A `config.json` as `docker login` writes it, or an `auth.json` of `podman login`, with an entry for the mirror's host. Read at each pull.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_file: Option<PathBuf>,
    /// Name the registry in each request (`?ns=docker.io`), for a mirror that serves several registries.
    #[serde(default)]
    pub proxy_namespace: bool,
}

impl MirrorConfig {
    /// The URL, if it is one of a mirror.
    pub(crate) fn parsed(&self) -> Option<Url> {
        let url = Url::parse(&self.url).ok()?;
        let is_plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
        let path = url.path().trim_matches('/');
        let is_path = |part: &str| {
            let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
            part.chars().all(is_part) && part.starts_with(|c: char| c.is_ascii_alphanumeric())
        };
        let has_path = path.is_empty() || (path.split('/').all(is_path) && path != "v2" && !path.starts_with("v2/"));
        (matches!(url.scheme(), "http" | "https") && url.has_host() && is_plain && has_path).then_some(url)
    }

    /// The problem of the entry, or `None`.
    pub(crate) fn problem(&self) -> Option<String> {
        let Self { url, resolve: _, ca_file, client_cert_file, client_key_file, auth_file, proxy_namespace: _ } = self;
        let Some(parsed) = self.parsed() else {
            return Some(format!("mirror {url:?} is not a URL such as https://mirror.lan:5000 or https://mirror.lan/hub"));
        };
        if client_cert_file.is_some() != client_key_file.is_some() {
            return Some(format!("mirror {url}: clientCertFile and clientKeyFile must be set together"));
        }
        if parsed.scheme() == "http" && (ca_file.is_some() || client_cert_file.is_some()) {
            return Some(format!("mirror {url}: caFile and clientCertFile cannot be used with http"));
        }
        let paths = [ca_file, client_cert_file, client_key_file, auth_file];
        let relative = paths.into_iter().flatten().find(|path| !path.is_absolute());
        relative.map(|path| format!("mirror {url}: path {path:?} is not absolute"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictions_are_named() {
        let parse = |text: &str| serde_json::from_str::<MirrorConfig>(text).unwrap().problem();
        for text in [
            r#"{"url":"https://mirror.lan:5000"}"#,
            r#"{"url":"http://[::1]:5000/","resolve":true}"#,
            r#"{"url":"https://mirror.lan/hub/two","proxyNamespace":true,"authFile":"/a"}"#,
            r#"{"url":"https://mirror.lan","clientCertFile":"/c","clientKeyFile":"/k"}"#,
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        for (text, problem) in [
            (r#"{"url":"mirror.lan"}"#, "is not a URL"),
            (r#"{"url":"ftp://mirror.lan"}"#, "is not a URL"),
            (r#"{"url":"https://me@mirror.lan"}"#, "is not a URL"),
            (r#"{"url":"https://mirror.lan/?a=b"}"#, "is not a URL"),
            (r#"{"url":"https://mirror.lan/v2"}"#, "is not a URL"),
            (r#"{"url":"https://mirror.lan/a//b"}"#, "is not a URL"),
            (r#"{"url":"https://mirror.lan","clientCertFile":"/c"}"#, "must be set together"),
            (r#"{"url":"http://mirror.lan","caFile":"/c"}"#, "cannot be used with http"),
            (r#"{"url":"https://mirror.lan","authFile":"a"}"#, "not absolute"),
        ] {
            assert!(parse(text).is_some_and(|found| found.contains(problem)), "{text}");
        }
        assert!(serde_json::from_str::<MirrorConfig>(r#"{"url":"https://m.lan","skipVerify":true}"#).is_err());
    }
}
