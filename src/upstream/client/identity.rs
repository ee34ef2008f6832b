//! Credentials of this host for the API server, from files and an exec plugin, and their validity.

use super::exec::{self, ExecError};
use super::kubeconfig::{Kubeconfig, KubeconfigError, Material};
use jiff::Timestamp;
use podstead_outbound::{
    self as outbound, Authorities, ClientIdentity, HostAuthorities, Secret, SecretError, TlsError, TlsFileError,
};
use reqwest::{Client, Proxy, Url};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_IDLE: Duration = Duration::from_secs(60);
/// Time after which a peer that does not answer to the kernel is gone: half-open connections end.
const TCP_SILENCE: Duration = Duration::from_secs(30);
/// Time before the expiry of a plugin's credentials at which they are renewed.
const EARLY: jiff::SignedDuration = jiff::SignedDuration::from_secs(60);

/// Everything that the kernel changes when a file's content changes; `None` for a missing file.
type Stamp = Option<(u64, u64, u64, i64, i64, i64, i64)>;

/// Errors of loading credentials.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The kubeconfig.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// A token.
    #[error(transparent)]
    Token(#[from] SecretError),
    /// A file of TLS.
    #[error(transparent)]
    Tls(#[from] TlsFileError),
    /// Text in the kubeconfig, or from the plugin, that is no certificate.
    #[error("{0} is not valid PEM")]
    Pem(&'static str),
    /// The plugin.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// Certificates that do not fit.
    #[error("prepare TLS to the API server")]
    Prepare(#[from] TlsError),
    /// The client cannot be made.
    #[error("prepare the connection to the API server")]
    Setup(#[source] reqwest::Error),
}

/// One identity, with the client that presents it.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) server: Url,
    pub(super) client: Client,
    pub(super) token: Option<Secret>,
    files: Vec<PathBuf>,
    stamps: Vec<Stamp>,
    expires: Option<Timestamp>,
}

impl Identity {
    /// Reads all files again, and runs the plugin if there is one.
    pub(super) async fn load(path: &Path, context: Option<&str>) -> Result<Self, IdentityError> {
        outbound::install_provider();
        let before = stamp(path);
        let kubeconfig = Kubeconfig::load(path, context)?;
        let files: Vec<PathBuf> = kubeconfig.files().into_iter().map(Path::to_owned).collect();
        // Before they are read: what changes meanwhile is then found to have changed.
        let stamps = std::iter::once(before).chain(files.iter().map(|file| stamp(file))).collect();
        let files = std::iter::once(path.to_owned()).chain(files).collect();
        let Kubeconfig { server, authorities, certificate, token, exec, proxy } = kubeconfig;
        let given = match &exec {
            Some(plugin) => Some(exec::ask(plugin).await?),
            None => None,
        };
        let mut builder = Client::builder()
            .user_agent(concat!("podstead/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(TCP_SILENCE)
            .tcp_user_timeout(TCP_SILENCE)
            .pool_idle_timeout(KEEP_IDLE)
            .pool_max_idle_per_host(2);
        builder = match proxy {
            Some(proxy) => builder.proxy(Proxy::all(proxy).map_err(IdentityError::Setup)?),
            None if is_loopback(&server) => builder.no_proxy(),
            // What the environment names, as for the other connections of the daemon.
            None => builder,
        };
        let authorities = match authorities {
            Some(Material::File(path)) => Authorities::Only(outbound::certificates(&path)?),
            Some(Material::Inline(pem)) => {
                let found = outbound::certificates_of(pem.expose().as_bytes());
                Authorities::Only(found.ok_or(IdentityError::Pem("certificate-authority-data"))?)
            }
            None => Authorities::HostAnd(HostAuthorities::of_this_process(), Vec::new()),
        };
        let pair = match certificate {
            Some((Material::File(certificate), Material::File(key))) => Some(outbound::identity(&certificate, &key)?),
            Some((certificate, key)) => Some(identity_of(&certificate, &key)?),
            None => None,
        };
        let of_plugin = given.as_ref().and_then(|given| given.certificate.as_ref());
        let of_plugin = of_plugin
            .map(|pem| {
                ClientIdentity::from_pem(pem.expose().as_bytes()).ok_or(IdentityError::Pem("the certificate of the exec plugin"))
            })
            .transpose()?;
        builder = builder.tls_backend_preconfigured(outbound::client_config(authorities, of_plugin.or(pair))?);
        let token = match token {
            Some(Material::File(path)) => Some(Secret::read(&path)?),
            Some(Material::Inline(token)) => Some(token),
            None => None,
        };
        let expires = given.as_ref().and_then(|given| given.expires);
        Ok(Self {
            server,
            client: builder.build().map_err(IdentityError::Setup)?,
            token: given.and_then(|given| given.token).or(token),
            files,
            stamps,
            expires,
        })
    }

    /// Neither has a file changed nor is it about to expire.
    pub(super) fn is_current(&self) -> bool {
        let is_fresh = self.expires.is_none_or(|expires| expires.duration_since(Timestamp::now()) > EARLY);
        is_fresh && self.files.iter().zip(&self.stamps).all(|(file, before)| stamp(file) == *before)
    }

    /// It does not count any more.
    pub(super) fn is_expired(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= Timestamp::now())
    }
}

/// Reports whether the server is on a loopback address, which is not reached through a proxy, as in Go's clients.
fn is_loopback(server: &Url) -> bool {
    let host = server.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn stamp(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()))
}

/// Certificate and key, at least one of which is in the kubeconfig itself.
fn identity_of(certificate: &Material, key: &Material) -> Result<ClientIdentity, IdentityError> {
    let text = |material: &Material| match material {
        Material::File(path) => Secret::read(path),
        Material::Inline(text) => Ok(text.clone()),
    };
    let pem = format!("{}\n{}", text(certificate)?.expose(), text(key)?.expose());
    ClientIdentity::from_pem(pem.as_bytes()).ok_or(IdentityError::Pem("client-certificate-data"))
}
