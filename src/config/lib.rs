//! The daemon's configuration: as written, resolved, defaults.
//!
//! In: one YAML file (`/etc/podstead/config.yaml`) and what this host says of itself. Out: [`Config`], in which every value is set and
//! valid. The file is optional and so is every field in it; an unknown field is an error with its place.

pub mod age_keys;
mod images;
pub mod last_valid;
pub mod notify;
mod pull_windows;
pub mod reload;
mod resolve;
mod source;
mod template;
mod variables;
mod written;

pub use images::ImagesConfig;
pub use resolve::HostFacts;
pub use source::{
    BundlePlace, CommitStatus, GitPlace, HttpPlace, OciPlace, Provider, SourceConfig, SourcePlace, SshAccess, sharing,
};
pub use variables::NODE_NAME;
pub use written::WrittenConfig;

use notify::NotifyConfig;
use podstead_image::RegistryConfig;
use podstead_manifest::locate;
use podstead_pod::security::AllowedSysctls;
use podstead_pod::{AdmitContext, NodeName};
use podstead_settings::{ApiConfig, ConfigError, IdRange, ImagePolicy, NetworkConfig, UpstreamConfig};
use podstead_source::webhook::WebhookOptions;
use podstead_sys::layout::Paths;
use podstead_telemetry::logging::LogFormat;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default path of the configuration.
pub const DEFAULT_PATH: &str = "/etc/podstead/config.yaml";

/// The daemon's configuration, resolved and valid.
///
/// One type because it mirrors the configuration file, and a new configuration takes the place of the old one as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name of this host in Kubernetes' sense.
    pub node_name: NodeName,
    /// Labels of this host, by key.
    pub labels: BTreeMap<String, String>,
    /// Variables of this host, in addition to its name and labels: for paths of sources and for manifests.
    pub variables: BTreeMap<String, String>,
    /// Directories for state, runtime files and logs.
    pub paths: Paths,
    /// Sources of manifests; the first one that has a pod of a name wins. Names are unique.
    pub sources: Vec<SourceConfig>,
    /// Directory whose image archives are imported.
    pub preload: PathBuf,
    /// The `podstead-shim` binary.
    pub shim: PathBuf,
    /// Rotation of container logs.
    pub log_rotation: LogRotation,
    /// Longest pause between restarts of a failing container (kubelet rule D9).
    pub crash_loop_max: Duration,
    /// Most processes and threads in one pod; `None` for no limit of podstead's.
    pub pod_pids_limit: Option<i64>,
    /// Pods that an operator stopped start with the next boot.
    pub start_stopped_pods_at_boot: bool,
    /// Directories with CDI specs; a later one wins.
    pub cdi_directories: Vec<PathBuf>,
    /// Group that may use the API socket; `None` for root alone.
    pub api_socket_group: Option<String>,
    /// TLS port and roles of the API.
    pub api: ApiConfig,
    /// Registries that are not reached the default way; hosts are unique.
    pub registries: Vec<RegistryConfig>,
    /// containerd's directory of hosts, for registries without mirrors in `registries`.
    pub registries_directory: PathBuf,
    /// Credentials in their usual places are used, too.
    pub default_auth_files: bool,
    /// File with age identities, for manifests that SOPS has encrypted.
    pub age_key_file: Option<PathBuf>,
    /// Sysctls that pods may set in addition to the safe ones.
    pub allowed_unsafe_sysctls: AllowedSysctls,
    /// Layers fetched and unpacked at the same time, over all pulls.
    pub max_parallel_layer_pulls: usize,
    /// Bytes per second below which a registry's connection is made again; 0 for no minimum.
    pub minimum_pull_rate: u64,
    /// Limits of images, and the disk space that they leave free.
    pub images: ImagesConfig,
    /// Images that may run.
    pub image_policy: ImagePolicy,
    /// Host ids for the user namespaces of pods with `hostUsers: false`.
    pub user_namespaces: IdRange,
    /// Listener for webhooks of git hosts.
    pub webhook: Option<WebhookOptions>,
    /// Listener for monitoring over TCP.
    pub monitoring: Option<SocketAddr>,
    /// Network of pods that are not on the host's network.
    pub network: NetworkConfig,
    /// Cluster that this host reports its pods to.
    pub upstream: Option<UpstreamConfig>,
    /// Hooks that hear of failures.
    pub notify: NotifyConfig,
    /// The daemon's own log.
    pub logging: Logging,
}

/// Rotation of a container's log, and its limits (kubelet rule D18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRotation {
    /// Bytes of the file that is being written.
    pub max_size: u64,
    /// Files kept, the one being written included; at least 2.
    pub max_files: u32,
}

/// The daemon's own log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Logging {
    /// A level or a filter of `tracing` (`info`, `podstead=debug`).
    pub level: String,
    /// Format of the log.
    pub format: LogFormat,
}

/// Resolves what is written in `bytes`, so that errors and rules name their places there.
fn resolved(written: &WrittenConfig, bytes: &[u8], facts: &HostFacts, path: &Path) -> Result<Config, ConfigError> {
    let mut config = written.resolve(facts, path).map_err(|error| written::located_in(bytes, error))?;
    let places = locate(bytes);
    config.image_policy.locate(|field| places.position(field).map(|position| position.line));
    Ok(config)
}

impl Config {
    /// Reads `path` and resolves it for this host. A missing file is the default configuration; an unreadable one is an error.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let facts = HostFacts::of_this_host();
        match std::fs::read(path) {
            Ok(bytes) => Self::parse(&bytes, &facts, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => WrittenConfig::default().resolve(&facts, path),
            Err(source) => Err(ConfigError::Read { path: path.to_owned(), source }),
        }
    }

    /// Reads `path` as another host would: it has that name, and of labels and variables what is given. Without a name, it is this host, with
    /// these labels and variables beside those in the file.
    pub fn load_for(
        path: &Path,
        host: Option<&str>,
        labels: BTreeMap<String, String>,
        variables: BTreeMap<String, String>,
    ) -> Result<Self, ConfigError> {
        let bytes = std::fs::read(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let mut written = WrittenConfig::parse(&bytes, path)?;
        if let Some(host) = host {
            // What is written there is true of the host that it was written for.
            written = WrittenConfig { node_name: Some(host.to_owned()), labels, variables, ..written };
        } else {
            written.labels.extend(labels);
            written.variables.extend(variables);
        }
        resolved(&written, &bytes, &HostFacts::of_this_host(), path)
    }

    /// Returns the settings for pod admission on this host.
    pub fn admit_context(&self) -> AdmitContext {
        AdmitContext {
            unsafe_sysctls: self.allowed_unsafe_sysctls.clone(),
            cluster_domain: self.network.dns.domain.clone(),
            ..AdmitContext::new(self.node_name.clone())
        }
    }

    /// Everything that may be replaced in paths and manifests, by name.
    pub fn values(&self) -> BTreeMap<String, String> {
        variables::values(&self.node_name, &self.labels, &self.variables)
    }

    /// Reads the bytes of `path` and resolves them for a host. Errors name line and column.
    pub fn parse(bytes: &[u8], facts: &HostFacts, path: &Path) -> Result<Self, ConfigError> {
        resolved(&WrittenConfig::parse(bytes, path)?, bytes, facts, path)
    }

    /// The configuration written out with every default, as `podstead config show` prints it.
    pub fn to_written(&self) -> WrittenConfig {
        WrittenConfig::of(self)
    }
}
