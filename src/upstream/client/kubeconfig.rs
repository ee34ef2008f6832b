//! Parser of kubeconfigs: server, certificate authorities, credentials.
//!
//! The format is kubectl's, so fields that do not matter here are passed over; a field that says something about the connection and that
//! podstead does not do is an error, so that it never connects in another way than intended.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use podstead_outbound::Secret;
use reqwest::Url;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Largest size of a kubeconfig.
const MAX_BYTES: u64 = 1 << 20;

/// Reason why a kubeconfig cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// It cannot be read.
    #[error("read kubeconfig {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
    /// It is not valid.
    #[error("kubeconfig {}: {message}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
}

/// Data in a separate file, or in the kubeconfig itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Material {
    /// Path of the file.
    File(PathBuf),
    /// The data.
    Inline(Secret),
}

/// Command that returns credentials for this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecPlugin {
    /// `client.authentication.k8s.io/v1` or `v1beta1`.
    pub api_version: String,
    /// The command; without a slash it is looked for in the `PATH`.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables beside those of the daemon.
    pub environment: BTreeMap<String, String>,
}

/// One context of a kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubeconfig {
    /// The API server.
    pub server: Url,
    /// Authorities to trust; `None` for those of the host.
    pub authorities: Option<Material>,
    /// Client certificate and its key.
    pub certificate: Option<(Material, Material)>,
    /// Bearer token.
    pub token: Option<Material>,
    /// Command that gives a token or a certificate.
    pub exec: Option<ExecPlugin>,
    /// Proxy for the connection.
    pub proxy: Option<Url>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Written {
    #[serde(default)]
    current_context: String,
    #[serde(default)]
    contexts: Vec<Named>,
    #[serde(default)]
    clusters: Vec<NamedCluster>,
    #[serde(default)]
    users: Vec<NamedUser>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    context: WrittenContext,
}

#[derive(Deserialize)]
struct WrittenContext {
    cluster: String,
    #[serde(default)]
    user: String,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: WrittenCluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct WrittenCluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    #[serde(default)]
    insecure_skip_tls_verify: bool,
    tls_server_name: Option<String>,
    proxy_url: Option<String>,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    user: WrittenUser,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct WrittenUser {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    exec: Option<WrittenExec>,
    username: Option<String>,
    auth_provider: Option<serde_yaml::Value>,
    #[serde(rename = "as")]
    impersonated: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenExec {
    api_version: String,
    command: String,
    args: Option<Vec<String>>,
    env: Option<Vec<WrittenVariable>>,
    interactive_mode: Option<String>,
}

#[derive(Deserialize)]
struct WrittenVariable {
    name: String,
    value: String,
}

impl Kubeconfig {
    /// Reads `path`; `context` is the one to use, else the file's current one.
    pub fn load(path: &Path, context: Option<&str>) -> Result<Self, KubeconfigError> {
        let failed = |source| KubeconfigError::Read { path: path.to_owned(), source };
        let size = std::fs::metadata(path).map_err(failed)?.len();
        if size > MAX_BYTES {
            return Err(unusable(path, format!("has more than {MAX_BYTES} bytes")));
        }
        Self::parse(&std::fs::read(path).map_err(failed)?, path, context)
    }

    /// From the bytes of `path`; paths in it are relative to its directory.
    pub fn parse(bytes: &[u8], path: &Path, context: Option<&str>) -> Result<Self, KubeconfigError> {
        let bad = |message: String| unusable(path, message);
        // What the parser says may quote a value, and values here are secrets: only the place is told.
        let written: Written = serde_yaml::from_slice(bytes).map_err(|error| match error.location() {
            Some(at) => bad(format!("is not valid at line {}, column {}", at.line(), at.column())),
            None => bad("is not valid".to_owned()),
        })?;
        let wanted = context.unwrap_or(&written.current_context);
        if wanted.is_empty() {
            return Err(bad("has no current-context".to_owned()));
        }
        let context = written.contexts.into_iter().find(|named| named.name == wanted);
        let context = context.ok_or_else(|| bad(format!("has no context {wanted:?}")))?.context;
        let cluster = written.clusters.into_iter().find(|named| named.name == context.cluster);
        let cluster = cluster.ok_or_else(|| bad(format!("has no cluster {:?}", context.cluster)))?.cluster;
        let user = match context.user.as_str() {
            "" => WrittenUser::default(),
            name => {
                let user = written.users.into_iter().find(|named| named.name == name);
                user.ok_or_else(|| bad(format!("has no user {name:?}")))?.user
            }
        };
        Self::of(cluster, user, path.parent().unwrap_or(Path::new("/"))).map_err(bad)
    }

    fn of(cluster: WrittenCluster, user: WrittenUser, directory: &Path) -> Result<Self, String> {
        let WrittenCluster {
            server,
            certificate_authority,
            certificate_authority_data,
            insecure_skip_tls_verify,
            tls_server_name,
            proxy_url,
        } = cluster;
        if insecure_skip_tls_verify {
            return Err("insecure-skip-tls-verify is not supported; set certificate-authority".to_owned());
        }
        if tls_server_name.is_some() {
            return Err("tls-server-name is not supported; set server to the name in its certificate".to_owned());
        }
        let url = |field: &str, text: &str| text.parse::<Url>().map_err(|error| format!("{field} is not a URL: {error}"));
        let server = url("server", &server)?;
        if server.scheme() != "https" {
            return Err(format!("server has scheme {}, must be https", server.scheme()));
        }
        let WrittenUser {
            client_certificate,
            client_certificate_data,
            client_key,
            client_key_data,
            token,
            token_file,
            exec,
            username,
            auth_provider,
            impersonated,
        } = user;
        let unknown = [
            ("username", username.is_some(), "API servers no longer accept passwords"),
            ("auth-provider", auth_provider.is_some(), "use exec"),
            ("as", impersonated.is_some(), "a host cannot impersonate another user"),
        ];
        if let Some((field, _, why)) = unknown.into_iter().find(|(_, is_there, _)| *is_there) {
            return Err(format!("{field} is not supported: {why}"));
        }
        let material = |field: &str, file: Option<PathBuf>, data: Option<String>| match (file, data) {
            // As kubectl: what is inline counts.
            (_, Some(data)) => inline(field, &data).map(Some),
            (Some(file), None) => Ok(Some(Material::File(directory.join(file)))),
            (None, None) => Ok(None),
        };
        let certificate = material("client-certificate-data", client_certificate, client_certificate_data)?;
        let key = material("client-key-data", client_key, client_key_data)?;
        let certificate = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            // kubelets keep both in one file.
            (Some(certificate), None) => Some((certificate.clone(), certificate)),
            (None, Some(_)) => return Err("has client-key without client-certificate".to_owned()),
            (None, None) => None,
        };
        let token =
            token_file.map(|file| Material::File(directory.join(file))).or(token.map(|token| Material::Inline(Secret::new(token))));
        let exec = exec.map(|written| exec_plugin(written, directory)).transpose()?;
        if certificate.is_none() && token.is_none() && exec.is_none() {
            return Err("has no client certificate, token or exec plugin".to_owned());
        }
        Ok(Self {
            server,
            authorities: material("certificate-authority-data", certificate_authority, certificate_authority_data)?,
            certificate,
            token,
            exec,
            proxy: proxy_url.map(|text| url("proxy-url", &text)).transpose()?,
        })
    }

    /// The files with secrets that it names.
    pub fn secret_files(&self) -> Vec<&Path> {
        self.secrets().into_iter().filter_map(Material::file).collect()
    }

    /// Reports whether the kubeconfig itself contains a secret.
    pub fn has_secrets(&self) -> bool {
        let in_proxy = self.proxy.as_ref().is_some_and(|proxy| proxy.password().is_some());
        let of_plugin = self.exec.as_ref().is_some_and(|plugin| !plugin.environment.is_empty());
        in_proxy || of_plugin || self.secrets().into_iter().any(|secret| secret.file().is_none())
    }

    fn secrets(&self) -> Vec<&Material> {
        self.certificate.iter().map(|(_, key)| key).chain(&self.token).collect()
    }

    /// The files that it names.
    pub fn files(&self) -> Vec<&Path> {
        let materials = [
            self.authorities.as_ref(),
            self.certificate.as_ref().map(|(certificate, _)| certificate),
            self.certificate.as_ref().map(|(_, key)| key),
            self.token.as_ref(),
        ];
        materials.into_iter().flatten().filter_map(Material::file).collect()
    }
}

impl Material {
    fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Inline(_) => None,
        }
    }
}

fn exec_plugin(written: WrittenExec, directory: &Path) -> Result<ExecPlugin, String> {
    let WrittenExec { api_version, command, args, env, interactive_mode } = written;
    if !matches!(api_version.as_str(), "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1") {
        return Err(format!("exec.apiVersion is {api_version:?}, must be client.authentication.k8s.io/v1 or v1beta1"));
    }
    if interactive_mode.as_deref() == Some("Always") {
        return Err("exec.interactiveMode Always is not supported".to_owned());
    }
    // As kubectl: a path is relative to the kubeconfig, a bare name is looked for.
    let command = if command.contains('/') { directory.join(&command).display().to_string() } else { command };
    let environment = env.unwrap_or_default().into_iter().map(|variable| (variable.name, variable.value)).collect();
    Ok(ExecPlugin { api_version, command, arguments: args.unwrap_or_default(), environment })
}

fn inline(field: &str, data: &str) -> Result<Material, String> {
    let bytes = BASE64_STANDARD.decode(data.trim()).map_err(|_| format!("{field} is not base64"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{field} is not PEM"))?;
    Ok(Material::Inline(Secret::new(text)))
}

fn unusable(path: &Path, message: String) -> KubeconfigError {
    KubeconfigError::Unusable { path: path.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(cluster: &str, user: &str) -> Result<Kubeconfig, String> {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\npreferences: {{}}\n\
             contexts: [{{name: a, context: {{cluster: c, user: u}}}}, {{name: b, context: {{cluster: none}}}}]\n\
             clusters: [{{name: c, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
        );
        Kubeconfig::parse(text.as_bytes(), Path::new("/etc/podstead/kubeconfig"), None).map_err(|error| error.to_string())
    }

    #[test]
    fn certificates_tokens_and_plugins_are_found_relative_to_the_file() {
        let config = parse(
            "server: 'https://api.lan:6443', certificate-authority: ca.pem",
            "client-certificate: /pki/node.pem, tokenFile: token",
        )
        .unwrap();
        assert_eq!(config.server.as_str(), "https://api.lan:6443/");
        let files: Vec<_> = config.files().into_iter().map(Path::to_owned).collect();
        assert_eq!(files, ["/etc/podstead/ca.pem", "/pki/node.pem", "/pki/node.pem", "/etc/podstead/token"].map(PathBuf::from));
        let plugin = "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./who, args: [a], env: [{name: N, value: v}]}";
        let exec = parse("server: 'https://api.lan'", plugin).unwrap().exec.unwrap();
        assert_eq!(exec.command, "/etc/podstead/./who");
        assert_eq!(exec.environment.get("N").map(String::as_str), Some("v"));
    }

    #[test]
    fn inline_material_is_never_shown() {
        let config = parse("server: 'https://api.lan'", "token: s3cret").unwrap();
        assert!(!format!("{config:?}").contains("s3cret"));
        let error = parse("server: 'https://api.lan'", "token: [s3cret]").unwrap_err();
        assert!(!error.contains("s3cret") && error.contains("line"), "{error}");
    }

    #[test]
    fn what_would_connect_otherwise_than_was_meant_is_refused() {
        let server = "server: 'https://api.lan'";
        for (cluster, user, expected) in [
            ("server: 'http://api.lan'", "token: t", "must be https"),
            ("server: 'https://api.lan', insecure-skip-tls-verify: true", "token: t", "insecure-skip-tls-verify"),
            ("server: 'https://api.lan', tls-server-name: x", "token: t", "tls-server-name"),
            ("server: 'https://api.lan', certificate-authority-data: '%'", "token: t", "certificate-authority-data is not base64"),
            (server, "", "no client certificate, token or exec plugin"),
            (server, "username: a", "username is not supported"),
            (server, "client-key: k", "without client-certificate"),
            (server, "exec: {apiVersion: v2, command: x}", "exec.apiVersion"),
        ] {
            let error = parse(cluster, user).unwrap_err();
            assert!(error.contains(expected) && error.contains("/etc/podstead/kubeconfig"), "{error}");
        }
        let none = Kubeconfig::parse(b"kind: Config\n", Path::new("/k"), None).unwrap_err().to_string();
        assert!(none.contains("no current-context"), "{none}");
    }
}
