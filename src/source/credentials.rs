//! Credentials for the servers of a source: the configuration names files, which are read for each poll so that rotated secrets are
//! found. What comes out is headers, marked as sensitive, which no log shows.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use podstead_outbound::{Secret, SecretError};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION};
use std::fmt;
use std::path::{Path, PathBuf};

/// Headers that the client sets itself, or that would change how a response is read.
const RESERVED: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Credentials that are sent with each request to the configured host, and to no other.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CredentialFiles {
    /// Becomes the `Authorization` header.
    pub auth: Option<AuthFiles>,
    /// Additional headers, as configured; a name may occur more than once.
    pub headers: Vec<(String, String)>,
    /// File with additional headers, one `Name: value` per line.
    pub headers_file: Option<PathBuf>,
}

/// Files with the secret of the `Authorization` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthFiles {
    /// File with a bearer token.
    Token(PathBuf),
    /// User name and password.
    Password {
        /// The name.
        username: Username,
        /// File with the password.
        password_file: PathBuf,
    },
}

/// A user name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Username {
    /// As configured.
    Written(String),
    /// File with the name.
    File(PathBuf),
}

impl fmt::Debug for CredentialFiles {
    /// Without the values of headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("CredentialFiles")
            .field("auth", &self.auth)
            .field("headers", &names)
            .field("headers_file", &self.headers_file)
            .finish()
    }
}

/// Reason why there are no credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A file cannot be read.
    #[error("read credentials")]
    Secret(#[source] SecretError),
    /// A secret has bytes that no header can have, or a colon where it cannot have one.
    #[error("credentials file {} cannot be sent in an HTTP header: it has control characters, or a colon in the user name", .0.display())]
    Characters(PathBuf),
    /// A line of the headers file is not valid.
    #[error("headers file {}, line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The reason, without the value.
        reason: String,
    },
    /// A configured header cannot be sent.
    #[error("header {name:?}: {reason}")]
    Header {
        /// Its name.
        name: String,
        /// The reason.
        reason: String,
    },
}

impl CredentialFiles {
    /// Reads all files and returns the headers to send. Blocks.
    pub fn read(&self) -> Result<HeaderMap, CredentialsError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let (header, value) = header(name, value).map_err(|reason| CredentialsError::Header { name: name.clone(), reason })?;
            headers.append(header, value);
        }
        if let Some(path) = &self.headers_file {
            read_headers(path, &mut headers)?;
        }
        if let Some(value) = self.auth.as_ref().map(AuthFiles::read).transpose()? {
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

impl AuthFiles {
    /// Reads the files and returns the value of the header.
    pub(super) fn read(&self) -> Result<HeaderValue, CredentialsError> {
        let (path, text) = match self {
            Self::Token(path) => (path, format!("Bearer {}", secret(path)?.expose().trim())),
            Self::Password { .. } => {
                let (path, username, password) = self.read_password()?;
                (path, format!("Basic {}", STANDARD.encode(format!("{}:{}", username.expose(), password.expose()))))
            }
        };
        let mut value = HeaderValue::try_from(text).map_err(|_| CredentialsError::Characters(path.clone()))?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn read_password(&self) -> Result<(&PathBuf, Secret, Secret), CredentialsError> {
        match self {
            Self::Token(path) => Ok((path, Secret::new(""), secret(path)?)),
            Self::Password { username, password_file } => {
                let (path, username) = match username {
                    Username::Written(name) => (password_file, Secret::new(name)),
                    Username::File(path) => (path, secret(path)?),
                };
                // Basic authentication ends the name at the first colon (RFC 7617).
                if username.expose().contains(':') {
                    return Err(CredentialsError::Characters(path.clone()));
                }
                Ok((password_file, username, secret(password_file)?))
            }
        }
    }
}

fn secret(path: &Path) -> Result<Secret, CredentialsError> {
    Secret::read(path).map_err(CredentialsError::Secret)
}

fn read_headers(path: &Path, headers: &mut HeaderMap) -> Result<(), CredentialsError> {
    let text = secret(path)?;
    for (index, line) in text.expose().lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = |reason: String| CredentialsError::Line { path: path.to_owned(), line: index + 1, reason };
        let (name, value) = line.split_once(':').ok_or_else(|| bad("expected \"Name: value\"".into()))?;
        let (name, value) = header(name, value.trim()).map_err(bad)?;
        headers.append(name, value);
    }
    Ok(())
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let name = HeaderName::try_from(name).map_err(|_| "not a valid header name".to_owned())?;
    if RESERVED.contains(&name.as_str()) {
        return Err("podstead sets this header itself".to_owned());
    }
    if name == PROXY_AUTHORIZATION {
        return Err("this header would be sent to the server, not to the proxy; use proxyAuth instead".to_owned());
    }
    let mut value =
        HeaderValue::from_str(value).map_err(|_| "the value has characters that are not allowed in a header".to_owned())?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Returns the problem with a configured header, if it has one.
pub fn header_problem(name: &str, value: &str) -> Option<String> {
    header(name, value).err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_telemetry::error_chain;

    #[test]
    fn secrets_become_headers_that_debug_does_not_show() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let credentials = CredentialFiles {
            auth: Some(AuthFiles::Password {
                username: Username::File(file("user", "me\n")),
                password_file: file("password", "pa:ss\n"),
            }),
            headers: vec![("X-Site".into(), "hidden-one".into())],
            headers_file: Some(file("headers", "# of the proxy\nX-Token:  hidden-two \n\nx-token: hidden-three\n")),
        };
        let headers = credentials.read().unwrap();
        assert_eq!(headers[AUTHORIZATION], format!("Basic {}", STANDARD.encode("me:pa:ss")));
        assert_eq!(headers["x-site"], "hidden-one");
        assert_eq!(headers.get_all("x-token").iter().collect::<Vec<_>>(), ["hidden-two", "hidden-three"]);
        let shown = format!("{headers:?} {credentials:?}");
        assert!(!shown.contains("hidden") && !shown.contains("Basic "), "{shown}");
    }

    #[test]
    fn a_rotated_token_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let credentials = CredentialFiles { auth: Some(AuthFiles::Token(path.clone())), ..Default::default() };
        assert!(error_chain(&credentials.read().unwrap_err()).to_string().contains("token: No such file"));
        for token in ["one", "two"] {
            std::fs::write(&path, format!(" {token}\n\n")).unwrap();
            assert_eq!(credentials.read().unwrap()[AUTHORIZATION], format!("Bearer {token}"));
        }
    }

    #[test]
    fn what_cannot_be_sent_is_told_without_the_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        let token = CredentialFiles { auth: Some(AuthFiles::Token(path.clone())), ..Default::default() };
        let headers = CredentialFiles { headers_file: Some(path.clone()), ..Default::default() };
        let named = CredentialFiles {
            auth: Some(AuthFiles::Password { username: Username::Written("a:b".into()), password_file: path.clone() }),
            ..Default::default()
        };
        for (content, credentials, word) in [
            ("geheim\u{1}\n", &token, "cannot be sent"),
            ("X-Ok: a\ngeheim\n", &headers, "line 2"),
            ("X Geheim: geheim\n", &headers, "not a valid header name"),
            ("Host: geheim\n", &headers, "podstead sets this header itself"),
            ("geheim", &named, "cannot be sent"),
        ] {
            std::fs::write(&path, content).unwrap();
            let error = error_chain(&credentials.read().unwrap_err()).to_string();
            assert!(error.contains(word) && !error.contains("geheim"), "{error}");
        }
        assert_eq!(header_problem("X-Site", "a"), None);
    }
}
