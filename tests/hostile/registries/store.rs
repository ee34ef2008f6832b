//! A private image store.

use super::image::REPOSITORY;
use super::server::{Server, authority};
use podstead::telemetry::events::NoEvents;
use podstead::{
    container::ResolvedImage,
    image::{ImageStore, ImageStoreConfig, JobSettings, RegistryConfig},
    pod::containers::PullPolicy,
    runtime::{ImageService, PullSecrets},
};
use std::sync::Arc;
use std::time::Duration;

/// User name and password of the registry under attack.
pub(super) const USER: &str = "me";
pub(super) const PASSWORD: &str = "open sesame";

/// A healthy pull of these cases takes a second; the machine may be busy.
pub(super) const PATIENCE: Duration = Duration::from_secs(40);

/// A store below a directory of its own.
pub(super) struct Store {
    _directory: tempfile::TempDir,
    pub(super) images: Arc<ImageStore>,
}

impl Store {
    pub(super) fn new(registries: Vec<Written>) -> Self {
        Self::with(registries, ImageStoreConfig::default())
    }

    pub(super) fn with(registries: Vec<Written>, config: ImageStoreConfig) -> Self {
        assert!(nix::unistd::geteuid().is_root(), "layers have files of all owners: these cases need root");
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("ca.pem"), &authority().ca).unwrap();
        std::fs::write(at("password"), PASSWORD).unwrap();
        let registries = registries.into_iter().map(|written| written.resolve(directory.path())).collect();
        let jobs = JobSettings { program: crate::support::binary("podstead"), ..config.jobs };
        let config = ImageStoreConfig { registries, jobs, ..config };
        let images = ImageStore::open(&at("images"), config, Arc::new(NoEvents)).unwrap();
        Self { _directory: directory, images }
    }

    /// Begins to pull the image of a server.
    pub(super) fn begin(&self, server: &Server) -> tokio::task::JoinHandle<Result<ResolvedImage, String>> {
        self.begin_repository(server, REPOSITORY)
    }

    /// Begins to pull `:1` of a repository.
    pub(super) fn begin_repository(
        &self,
        server: &Server,
        repository: &str,
    ) -> tokio::task::JoinHandle<Result<ResolvedImage, String>> {
        let (images, reference) = (Arc::clone(&self.images), format!("{}/{repository}:1", server.host()));
        tokio::spawn(async move {
            let pulled = images.ensure(&reference, PullPolicy::IfNotPresent, &PullSecrets::none()).await;
            pulled.map_err(|error| error.to_string())
        })
    }

    /// Pulls the image of a server in good time.
    pub(super) async fn pull(&self, server: &Server) -> Result<ResolvedImage, String> {
        let pull = self.begin(server);
        let stop = pull.abort_handle();
        match tokio::time::timeout(PATIENCE, pull).await {
            Ok(done) => done.unwrap(),
            Err(_) => {
                stop.abort();
                panic!("the pull did not end within {PATIENCE:?}")
            }
        }
    }

    /// The reason why the image of a server cannot be pulled.
    pub(super) async fn refusal(&self, server: &Server) -> String {
        self.pull(server).await.expect_err("the pull has to fail")
    }
}

/// An entry of `registries`, as an administrator writes it.
#[derive(Default)]
pub(super) struct Written {
    host: String,
    http: bool,
    login: bool,
    token_servers: Vec<String>,
}

/// Reached over https, with the cases' certificate authority.
pub(super) fn secure(host: impl Into<String>) -> Written {
    Written { host: host.into(), ..Written::default() }
}

/// Reached over http.
pub(super) fn plain(host: impl Into<String>) -> Written {
    Written { host: host.into(), http: true, ..Written::default() }
}

impl Written {
    /// With user name and password.
    pub(super) fn login(mut self) -> Self {
        self.login = true;
        self
    }

    pub(super) fn token_server(mut self, host: impl Into<String>) -> Self {
        self.token_servers.push(host.into());
        self
    }

    fn resolve(self, directory: &std::path::Path) -> RegistryConfig {
        let mut written = serde_json::json!({"host": self.host, "http": self.http});
        if !self.http {
            written["caFile"] = directory.join("ca.pem").to_str().unwrap().into();
        }
        if self.login {
            written["username"] = USER.into();
            written["passwordFile"] = directory.join("password").to_str().unwrap().into();
        }
        if !self.token_servers.is_empty() {
            written["tokenServers"] = self.token_servers.into();
        }
        serde_json::from_value(written).unwrap()
    }
}

/// The value of `Authorization` that has the password.
pub(super) fn basic() -> String {
    use base64::Engine;
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{USER}:{PASSWORD}")))
}
