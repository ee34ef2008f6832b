//! Credentials of this host for registries: the configuration's, then those of auth files in their usual places, then none.
//!
//! Everything is read anew at each pull, so that rotated secrets are found. Each is for the host of its entry and for no other.

mod file;
mod helper;

pub(super) use file::read as read_file;
pub(crate) use helper::DIRECTORIES as HELPER_DIRECTORIES;

use super::super::registry_config::RegistryConfig;
use super::RegistryError;
use file::Found;
use helper::Helpers;
use podstead_outbound::Secret;
use podstead_runtime::credentials::Credentials;
use podstead_telemetry::error_chain;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Origin of credentials of this host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HostLogin {
    /// The registry's entry in the configuration.
    Configured,
    /// An auth file in one of its usual places.
    File(Arc<Path>),
    /// No credentials.
    Nobody,
}

impl fmt::Display for HostLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("the configuration"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Nobody => f.write_str("no credentials"),
        }
    }
}

/// Credentials of this host for an image, in the order in which they are tried.
#[derive(Debug, Default)]
pub(crate) struct HostLogins {
    /// Those that exist, without [`HostLogin::Nobody`].
    pub(crate) logins: Vec<HostLogin>,
    /// Reasons why others were passed over.
    pub(crate) problems: Vec<String>,
}

/// Auth files and credential helpers.
#[derive(Debug)]
pub(crate) struct Logins {
    files: Vec<Arc<Path>>,
    helpers: Helpers,
}

/// Returns the usual places of auth files for root, in order of precedence: the systemd credential `registry-auth.json`, podstead's own file, and what
/// `podman login` and `docker login` write.
pub fn default_auth_files() -> Vec<PathBuf> {
    let credential = std::env::var_os("CREDENTIALS_DIRECTORY").map(|directory| PathBuf::from(directory).join("registry-auth.json"));
    let usual = [
        "/etc/podstead/auth.json",
        "/run/containers/0/auth.json",
        "/root/.config/containers/auth.json",
        "/root/.docker/config.json",
        "/root/.dockercfg",
    ];
    credential.into_iter().chain(usual.map(PathBuf::from)).collect()
}

/// Content of a file that must be root's and writable by nobody else; `None` if there is none.
pub(crate) fn guarded_file(path: &Path) -> Result<Option<Vec<u8>>, String> {
    file::read(path, true)
}

impl Logins {
    /// `files` in order of precedence; `helpers` are the directories of credential helpers.
    pub(crate) fn new(files: &[PathBuf], helpers: Vec<PathBuf>) -> Self {
        Self { files: files.iter().map(|path| Arc::from(path.as_path())).collect(), helpers: Helpers::new(helpers) }
    }

    /// Looks for credentials for images of a registry.
    pub(super) async fn find(&self, config: &RegistryConfig, repository: &str) -> HostLogins {
        let mut found = HostLogins::default();
        // A failure of what is configured is the failure of the pull.
        if config.has_credentials() {
            found.logins.push(HostLogin::Configured);
        }
        for path in &self.files {
            match self.of_default_file(path, &config.host, repository).await {
                Ok(Credentials::Anonymous) => {}
                Ok(_) => found.logins.push(HostLogin::File(Arc::clone(path))),
                Err(problem) => {
                    let problem = format!("credentials file {path:?} is passed over: {problem}");
                    tracing::warn!("{problem}");
                    found.problems.push(problem);
                }
            }
        }
        found
    }

    /// Reads credentials.
    pub(super) async fn read(
        &self,
        login: &HostLogin,
        config: &RegistryConfig,
        repository: &str,
    ) -> Result<Credentials, RegistryError> {
        match login {
            HostLogin::Nobody => Ok(Credentials::Anonymous),
            HostLogin::Configured => self.of_configuration(config, repository).await,
            HostLogin::File(path) => {
                self.of_default_file(path, &config.host, repository).await.map_err(|reason| failed(path, reason))
            }
        }
    }

    /// Drops what helpers said: a registry has refused it.
    pub(super) fn forget(&self) {
        self.helpers.forget();
    }

    async fn of_configuration(&self, config: &RegistryConfig, repository: &str) -> Result<Credentials, RegistryError> {
        if let (Some(username), Some(path)) = (&config.username, &config.password_file) {
            let password = Secret::read(path).map_err(|error| failed(path, error_chain(&error).to_string()))?;
            return Ok(Credentials::Password(username.clone(), password.expose().to_owned()));
        }
        let found = match (&config.auth_file, &config.credential_helper) {
            (Some(path), _) => {
                let content = file::read(path, false).map_err(|reason| failed(path, reason))?;
                let content = content.ok_or_else(|| failed(path, "No such file or directory (os error 2)".to_owned()))?;
                let found = file::find(path, &content, &config.host, repository).map_err(|reason| failed(path, reason))?;
                (found.ok_or_else(|| failed(path, format!("it has no entry for {} under auths", config.host)))?, path.clone())
            }
            (None, Some(name)) => {
                (Found::Helper { name: name.clone(), server: file::server_of(&config.host) }, PathBuf::from(name))
            }
            (None, None) => return Ok(Credentials::Anonymous),
        };
        match self.credentials(found.0).await {
            Ok(Credentials::Anonymous) => Err(failed(&found.1, format!("it has no credentials for {}", config.host))),
            Ok(credentials) => Ok(credentials),
            Err(reason) => Err(failed(&found.1, reason)),
        }
    }

    async fn of_default_file(&self, path: &Path, host: &str, repository: &str) -> Result<Credentials, String> {
        let Some(content) = file::read(path, true)? else { return Ok(Credentials::Anonymous) };
        match file::find(path, &content, host, repository)? {
            Some(found) => self.credentials(found).await,
            None => Ok(Credentials::Anonymous),
        }
    }

    async fn credentials(&self, found: Found) -> Result<Credentials, String> {
        match found {
            Found::Credentials(credentials) => Ok(credentials),
            Found::Helper { name, server } => self.helpers.ask(&name, &server).await,
        }
    }
}

fn failed(path: &Path, reason: String) -> RegistryError {
    RegistryError::Credentials { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn password(user: &str) -> Credentials {
        Credentials::Password(user.into(), "p".into())
    }

    fn write(path: &Path, text: &str, mode: u32) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[tokio::test]
    async fn password_file_is_read_each_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        std::fs::write(&path, "secret \r\n").unwrap();
        let config = RegistryConfig {
            host: "r".into(),
            username: Some("u".into()),
            password_file: Some(path.clone()),
            ..Default::default()
        };
        let logins = Logins::new(&[], Vec::new());
        let read = || logins.read(&HostLogin::Configured, &config, "a");
        assert_eq!(read().await.unwrap(), Credentials::Password("u".into(), "secret ".into()));
        std::fs::remove_file(path).unwrap();
        assert!(matches!(read().await, Err(RegistryError::Credentials { .. })));
    }

    #[tokio::test]
    async fn files_are_tried_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        write(&at("one"), r#"{"auths":{"other.lan":{"username":"a","password":"p"}}}"#, 0o600);
        write(&at("two"), r#"{"auths":{"r.lan":{"username":"b","password":"p"}}}"#, 0o600);
        write(&at("three"), r#"{"auths":{"r.lan":{"username":"c","password":"p"}}}"#, 0o666);
        write(&at("four"), r#"{"auths":{"r.lan/team":{"username":"d","password":"p"}}}"#, 0o644);
        let files = ["none", "one", "two", "three", "four"].map(at);
        let logins = Logins::new(&files, Vec::new());
        let config = RegistryConfig { host: "r.lan".into(), ..Default::default() };
        let found = logins.find(&config, "team/x").await;
        let [two, four] = [&files[2], &files[4]].map(|path| HostLogin::File(Arc::from(path.as_path())));
        assert_eq!(found.logins, [two.clone(), four.clone()]);
        assert!(found.problems[0].contains("three") && found.problems[0].contains("chmod go-w"), "{:?}", found.problems);
        assert_eq!(logins.read(&two, &config, "team/x").await.unwrap(), password("b"));
        assert_eq!(logins.read(&four, &config, "team/x").await.unwrap(), password("d"));
        assert_eq!(logins.find(&config, "x").await.logins, [two]);
    }
}
