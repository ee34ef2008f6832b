//! Credentials for a registry, and their file formats: the one that `docker login` writes, and those in Secrets of both docker types.
//! **Pure**. No text of this module, nor any `Debug`, shows a secret.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// Secrets for one registry.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Credentials {
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

/// Credentials by the registry that they are for, as written.
pub type Entries = BTreeMap<String, Entry>;

/// Entry of one registry.
#[derive(Deserialize)]
pub struct Entry {
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

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").finish_non_exhaustive()
    }
}

impl Entry {
    /// Its credentials; an entry without any, as `docker login` writes for a credential helper, is [`Credentials::Anonymous`].
    pub fn credentials(&self) -> Result<Credentials, String> {
        if !self.registrytoken.is_empty() {
            return Ok(Credentials::Token(self.registrytoken.clone()));
        }
        if !self.identitytoken.is_empty() {
            return Ok(Credentials::Identity(self.identitytoken.clone()));
        }
        if self.auth.is_empty() && !self.username.is_empty() {
            return Ok(Credentials::Password(self.username.clone(), self.password.clone()));
        }
        if self.auth.is_empty() {
            return Ok(Credentials::Anonymous);
        }
        let bad = || "is not user:password in base64".to_owned();
        let auth = self.auth.trim();
        let decoded = if auth.ends_with('=') { STANDARD.decode(auth) } else { STANDARD_NO_PAD.decode(auth) };
        let decoded = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(bad)?;
        let (username, password) = decoded.split_once(':').filter(|(username, _)| !username.is_empty()).ok_or_else(bad)?;
        Ok(Credentials::Password(username.to_owned(), password.trim_end_matches('\0').to_owned()))
    }
}

/// Reads a `config.json`: entries under `auths`.
pub fn parse_config(content: &[u8]) -> Result<Entries, String> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        auths: Entries,
    }
    serde_json::from_slice::<File>(content).map(|file| file.auths).map_err(|error| explain(&error))
}

/// A `config.json` of Docker or an `auth.json` of podman: entries, and the helpers that have others.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthFile {
    /// Entries by registry or, in files of podman, by the beginning of an image name.
    #[serde(default)]
    pub auths: Entries,
    /// Names of credential helpers by registry.
    #[serde(default)]
    pub cred_helpers: BTreeMap<String, String>,
    /// Name of the helper for all registries without another entry.
    #[serde(default)]
    pub creds_store: String,
}

impl AuthFile {
    /// Reads a file.
    pub fn parse(content: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(content).map_err(|error| explain(&error))
    }

    /// Reads the older `.dockercfg`: the entries alone.
    pub fn parse_legacy(content: &[u8]) -> Result<Self, String> {
        Ok(Self { auths: parse_legacy(content)?, ..Self::default() })
    }
}

/// Reads the older `.dockercfg`: the entries alone.
pub(crate) fn parse_legacy(content: &[u8]) -> Result<Entries, String> {
    serde_json::from_slice(content).map_err(|error| explain(&error))
}

/// The parser's own words repeat what it found, which may be a password.
fn explain(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Eof => "truncated JSON",
        serde_json::error::Category::Io | serde_json::error::Category::Syntax => "not JSON",
        serde_json::error::Category::Data => "JSON of an unexpected structure",
    };
    format!("is {what} (line {}, column {})", error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Result<Credentials, String> {
        serde_json::from_str::<Entry>(text).unwrap().credentials()
    }

    fn password(username: &str, password: &str) -> Result<Credentials, String> {
        Ok(Credentials::Password(username.into(), password.into()))
    }

    #[test]
    fn an_entry_is_read_as_docker_and_the_kubelet_read_it() {
        assert_eq!(entry(&format!(r#"{{"auth":"{}"}}"#, STANDARD.encode("me:pa:ss"))), password("me", "pa:ss"));
        assert_eq!(entry(&format!(r#"{{"auth":"{}"}}"#, STANDARD_NO_PAD.encode("me:pass"))), password("me", "pass"));
        assert_eq!(entry(r#"{"username":"u","password":"p","email":"x@y"}"#), password("u", "p"));
        let both = format!(r#"{{"auth":"{}","username":"u","password":"p"}}"#, STANDARD.encode("me:pass"));
        assert_eq!(entry(&both), password("me", "pass"), "auth decides");
        assert_eq!(entry(r#"{"identitytoken":"i"}"#), Ok(Credentials::Identity("i".into())));
        assert_eq!(entry(r#"{"registrytoken":"t","auth":""}"#), Ok(Credentials::Token("t".into())));
        assert_eq!(entry("{}"), Ok(Credentials::Anonymous));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_secrets() {
        for text in [r#"{"auth":"%hunter2"}"#, r#"{"auth":"aHVudGVyMg=="}"#] {
            let error = entry(text).unwrap_err();
            assert!(error.contains("user:password") && !error.contains("hunter2"), "{error}");
        }
        for (text, reason) in [
            ("{\"auths\":", "truncated JSON"),
            ("{\"auths\":{\"r\":\"hunter2\"}}", "an unexpected structure (line 1, column 23)"),
            ("{\"auths\":{\"r\":{\"auth\":hunter2", "not JSON"),
        ] {
            let error = parse_config(text.as_bytes()).err().unwrap();
            assert!(error.contains(reason) && !error.contains("hunter2"), "{error}");
        }
        assert!(parse_legacy(b"{\"r\":{}}").is_ok());
        assert_eq!(format!("{:?}", Credentials::Password("u".into(), "hunter2".into())), "Password");
    }
}
