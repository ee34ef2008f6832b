//! Server access of http and git sources: credentials, headers, proxy, TLS. Pure.

use super::written::{WrittenAuth, WrittenHeader};
use podstead_settings::ConfigError;
use podstead_settings::check::Check;
use podstead_source::credentials::{AuthFiles, CredentialFiles, Username, header_problem};
use podstead_source::http_client::HttpAccess;
use reqwest::Url;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Common fields of http and git.
pub(super) struct AccessFields<'a> {
    pub(super) auth: Option<&'a WrittenAuth>,
    pub(super) headers: &'a BTreeMap<String, WrittenHeader>,
    pub(super) headers_file: Option<&'a PathBuf>,
    pub(super) proxy: Option<&'a str>,
    pub(super) proxy_auth: Option<&'a WrittenAuth>,
    pub(super) ca_file: Option<&'a PathBuf>,
    pub(super) client_cert_file: Option<&'a PathBuf>,
    pub(super) client_key_file: Option<&'a PathBuf>,
}

impl AccessFields<'_> {
    pub(super) fn first_written(&self) -> Option<&'static str> {
        let Self { auth, headers, headers_file, proxy, proxy_auth, ca_file, client_cert_file, client_key_file } = self;
        let written = [
            ("auth", auth.is_some()),
            ("headers", !headers.is_empty()),
            ("headersFile", headers_file.is_some()),
            ("proxy", proxy.is_some()),
            ("proxyAuth", proxy_auth.is_some()),
            ("caFile", ca_file.is_some()),
            ("clientCertFile", client_cert_file.is_some()),
            ("clientKeyFile", client_key_file.is_some()),
        ];
        written.into_iter().find(|(_, written)| *written).map(|(name, _)| name)
    }

    pub(super) fn resolve(&self, check: &Check<'_>, field: &str, secure: bool) -> Result<HttpAccess, ConfigError> {
        let file = |name: &str, path: Option<&PathBuf>| path.map(|path| check.file(&format!("{field}.{name}"), path)).transpose();
        let tls = [("caFile", self.ca_file), ("clientCertFile", self.client_cert_file), ("clientKeyFile", self.client_key_file)];
        if let Some((name, _)) = tls.iter().find(|(_, path)| !secure && path.is_some()) {
            return Err(check.invalid(&format!("{field}.{name}"), "requires https".into()));
        }
        let certificate = file("clientCertFile", self.client_cert_file)?;
        let key = file("clientKeyFile", self.client_key_file)?;
        if certificate.is_none() && key.is_some() {
            return Err(check.invalid(&format!("{field}.clientKeyFile"), "requires clientCertFile".into()));
        }
        let proxy = self.proxy.map(|proxy| web_url(check, &format!("{field}.proxy"), proxy)).transpose()?;
        if proxy.is_none() && self.proxy_auth.is_some() {
            return Err(check.invalid(&format!("{field}.proxyAuth"), "requires proxy".into()));
        }
        let named = |name: &str, written: &WrittenAuth| auth(check, &format!("{field}.{name}"), written);
        Ok(HttpAccess {
            credentials: CredentialFiles {
                auth: self.auth.map(|written| named("auth", written)).transpose()?,
                headers: self.headers(check, field)?,
                headers_file: file("headersFile", self.headers_file)?,
            },
            proxy,
            proxy_auth: self.proxy_auth.map(|written| named("proxyAuth", written)).transpose()?,
            ca_file: file("caFile", self.ca_file)?,
            client_certificate: certificate.map(|certificate| (certificate.clone(), key.unwrap_or(certificate))),
        })
    }

    fn headers(&self, check: &Check<'_>, field: &str) -> Result<Vec<(String, String)>, ConfigError> {
        let mut headers = Vec::new();
        for (name, written) in self.headers {
            let values = match written {
                WrittenHeader::One(value) => std::slice::from_ref(value),
                WrittenHeader::Several(values) => values,
            };
            for value in values {
                if let Some(problem) = header_problem(name, value) {
                    return Err(check.invalid(&format!("{field}.headers.{name}"), problem));
                }
                headers.push((name.clone(), value.clone()));
            }
        }
        Ok(headers)
    }
}

fn auth(check: &Check<'_>, field: &str, written: &WrittenAuth) -> Result<AuthFiles, ConfigError> {
    let WrittenAuth { token_file, username, username_file, password_file } = written;
    let file = |name: &str, path: &Path| check.file(&format!("{field}.{name}"), path);
    match (token_file, username, username_file, password_file) {
        (Some(token), None, None, None) => Ok(AuthFiles::Token(file("tokenFile", token)?)),
        (None, Some(name), None, Some(password)) => {
            if name.is_empty() || name.contains([':', '\n']) {
                return Err(
                    check.invalid(&format!("{field}.username"), "must not be empty or contain a colon or a line break".into())
                );
            }
            let password_file = file("passwordFile", password)?;
            Ok(AuthFiles::Password { username: Username::Written(name.clone()), password_file })
        }
        (None, None, Some(name), Some(password)) => Ok(AuthFiles::Password {
            username: Username::File(file("usernameFile", name)?),
            password_file: file("passwordFile", password)?,
        }),
        _ => Err(check.invalid(field, "must have either tokenFile, or passwordFile and one of username and usernameFile".into())),
    }
}

/// Parses an http or https URL without credentials.
pub(super) fn web_url(check: &Check<'_>, field: &str, text: &str) -> Result<Url, ConfigError> {
    let bad = |message: String| check.invalid(field, message);
    let url: Url = text.parse().map_err(|error| bad(format!("is not a URL: {error}")))?;
    match url.scheme() {
        "http" | "https" => {}
        other => return Err(bad(format!("has scheme {other:?}, must be http or https"))),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("must not contain credentials; put them into files and name these in auth or proxyAuth".into()));
    }
    if url.fragment().is_some() {
        return Err(bad("must not have a fragment".into()));
    }
    Ok(url)
}
