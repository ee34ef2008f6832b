//! The configuration file as written: field names, strict reading, and where a mistake is.

use super::Config;
use super::images::WrittenImages;
use super::notify::WrittenNotify;
use super::source::WrittenSource;
use podstead_image::RegistryConfig;
use podstead_manifest::locate;
use podstead_settings::api::WrittenApi;
use podstead_settings::image_policy::WrittenImagePolicy;
use podstead_settings::network::WrittenNetwork;
use podstead_settings::upstream::WrittenUpstream;
use podstead_settings::user_namespaces::WrittenUserNamespaces;
use podstead_settings::{ConfigError, invalid, size};
use podstead_telemetry::logging::LogFormat;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Value of `apiVersion`.
pub(super) const API_VERSION: &str = "podstead.dev/v1alpha1";
/// Value of `kind`.
pub(super) const KIND: &str = "Config";

/// `config.yaml`. Every field may be missing; its default is what [`Config`] has then.
// One type because it mirrors the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenConfig {
    /// `podstead.dev/v1alpha1`; must be there when the file has any content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// `Config`; must be there when the file has any content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of this host: a lower-case RFC 1123 subdomain. Pods are named `<name>-<node>`. Default: the host name in lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Labels of this host by key; each is also a variable `LABEL_<KEY>`. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Variables of this host, for paths of sources and for manifests. Default: only `NODE_NAME`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Directories for state, runtime files and logs.
    #[serde(default)]
    pub paths: WrittenPaths,
    /// Sources of manifests. Default: one directory `manifests` at `/etc/podstead/manifests`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<WrittenSource>>,
    /// Directory from which image archives are imported. Default: `images/preload` under the state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preload_path: Option<PathBuf>,
    /// The `podstead-shim` binary. Default: beside the `podstead` binary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shim_path: Option<PathBuf>,
    /// Size at which the log of a container is rotated. Default: 10Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_log_max_size: Option<String>,
    /// Log files kept per container, at least 2. Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_log_max_files: Option<u32>,
    /// Back-off between restarts of a failing container.
    #[serde(default)]
    pub crash_loop_back_off: WrittenCrashLoopBackOff,
    /// Most processes and threads in one pod; -1 for no limit. Default: -1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_pids_limit: Option<i64>,
    /// Start pods at the next boot that were stopped with `podstead stop`. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_stopped_pods_at_boot: Option<bool>,
    /// Directories with CDI specs of this host's devices; a later one takes precedence. Default: /etc/cdi, /var/run/cdi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cdi_spec_dirs: Option<Vec<PathBuf>>,
    /// Group that may use the API socket. Default: none, only root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_socket_group: Option<String>,
    /// Access to the API: its TLS port, and roles of users other than root.
    #[serde(default)]
    pub api: WrittenApi,
    /// Registries that need other settings than https without credentials. The settings apply to all pods; a pod's own
    /// credentials are its `imagePullSecrets`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registries: Vec<RegistryConfig>,
    /// Directory with a directory for each registry, in the layout of `/etc/containerd/certs.d`: `hosts.toml` with mirrors, or certificates. Default:
    /// /etc/podstead/certs.d.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registries_directory: Option<PathBuf>,
    /// Also use credentials for registries in their usual places: the systemd credential `registry-auth.json`, `/etc/podstead/auth.json`, and what
    /// `podman login` and `docker login` write for root. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_auth_files: Option<bool>,
    /// File with age identities, for manifests encrypted with SOPS; mode 0600. Default: only the systemd credential `podstead.age-key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_key_file: Option<PathBuf>,
    /// Sysctls that pods may set in addition to those that Kubernetes calls safe: names, or prefixes with a trailing `*`; only of
    /// network and IPC namespaces. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_unsafe_sysctls: Vec<String>,
    /// Most layers fetched and unpacked at the same time, over all pulls, 1 to 16. Each registry has at most three of them and always one,
    /// so that a slow registry delays its own images only. Default: 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel_layer_pulls: Option<usize>,
    /// Lowest rate in bytes per second, over a minute; a slower connection to a registry is closed and resumed. 0 for no minimum. Default:
    /// 1Ki.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_pull_rate: Option<String>,
    /// Limits of images, and the disk space that they leave free.
    #[serde(default)]
    pub images: WrittenImages,
    /// Images that may run, by name: any, those that are named by a digest, signed ones, or none. Default: any.
    #[serde(default)]
    pub image_policy: WrittenImagePolicy,
    /// Host ids for the user namespaces of pods with `hostUsers: false`.
    #[serde(default)]
    pub user_namespaces: WrittenUserNamespaces,
    /// Listener for webhooks of git hosts, which trigger a fetch after a push. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WrittenWebhook>,
    /// Listener for monitoring over TCP. Default: none, only the API socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring: Option<WrittenMonitoring>,
    /// Network of pods that are not on the host's network.
    #[serde(default)]
    pub network: WrittenNetwork,
    /// Kubernetes cluster that this host reports its pods to. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<WrittenUpstream>,
    /// Commands and URLs that are notified of failures of this host, and of their end.
    #[serde(default)]
    pub notify: WrittenNotify,
    /// The daemon's own log.
    #[serde(default)]
    pub logging: WrittenLogging,
}

/// `monitoring`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenMonitoring {
    /// Address to listen at. Default: 127.0.0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// TCP port, 1 to 65535. The kubelet's for reading is 10255.
    pub port: u16,
}

/// `webhook`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenWebhook {
    /// Address to listen at. Default: 127.0.0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// TCP port, 1 to 65535.
    pub port: u16,
    /// File with the secret that senders use.
    pub secret_file: PathBuf,
}

/// `paths`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenPaths {
    /// Durable state. Default: `/var/lib/podstead`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    /// Runtime files, lost at reboot, and the API socket. Default: `/run/podstead`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<PathBuf>,
    /// Container logs. If the path ends in `pods`, links to the logs are made in `containers` beside it. Default: `/var/log/pods`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<PathBuf>,
}

/// `crashLoopBackOff`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenCrashLoopBackOff {
    /// Longest back-off in seconds, 1 to 300. Default: 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_container_restart_period_seconds: Option<u64>,
}

/// `logging`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenLogging {
    /// `error`, `warn`, `info`, `debug`, `trace` or a filter of `tracing`. Changes take effect at once; `PODSTEAD_LOG` takes precedence.
    /// Default: info.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// `text`: lines of text on stderr, `json`: JSON objects on stderr, `journal`: entries with fields in systemd's journal. Default: text;
    /// under systemd journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<LogFormat>,
}

impl WrittenConfig {
    /// Reads the bytes of `path` strictly. Only comments or nothing is the default configuration.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, ConfigError> {
        let written: Option<Self> = serde_yaml::from_slice(bytes).map_err(|error| syntax_error(&error, path))?;
        let Some(written) = written else { return Ok(Self::default()) };
        let must_be = |field: &str, actual: &Option<String>, expected: &str| match actual.as_deref() {
            Some(value) if value == expected => Ok(()),
            Some(value) => Err(invalid(path, field, format!("is {value:?}, must be {expected:?}"))),
            None => Err(invalid(path, field, format!("is missing, must be {expected:?}"))),
        };
        must_be("apiVersion", &written.api_version, API_VERSION)?;
        must_be("kind", &written.kind, KIND)?;
        Ok(written)
    }

    /// Every field of `config` written out.
    pub(super) fn of(config: &Config) -> Self {
        Self {
            api_version: Some(API_VERSION.into()),
            kind: Some(KIND.into()),
            node_name: Some(config.node_name.to_string()),
            labels: config.labels.clone(),
            variables: config.variables.clone(),
            paths: WrittenPaths {
                state: Some(config.paths.state.clone()),
                run: Some(config.paths.run.clone()),
                logs: Some(config.paths.logs.clone()),
            },
            sources: Some(config.sources.iter().map(WrittenSource::of).collect()),
            preload_path: Some(config.preload.clone()),
            shim_path: Some(config.shim.clone()),
            container_log_max_size: Some(size::format(config.log_rotation.max_size)),
            container_log_max_files: Some(config.log_rotation.max_files),
            crash_loop_back_off: WrittenCrashLoopBackOff {
                max_container_restart_period_seconds: Some(config.crash_loop_max.as_secs()),
            },
            pod_pids_limit: Some(config.pod_pids_limit.unwrap_or(-1)),
            start_stopped_pods_at_boot: Some(config.start_stopped_pods_at_boot),
            cdi_spec_dirs: Some(config.cdi_directories.clone()),
            api_socket_group: config.api_socket_group.clone(),
            api: WrittenApi::of(&config.api),
            registries: config.registries.clone(),
            registries_directory: Some(config.registries_directory.clone()),
            default_auth_files: Some(config.default_auth_files),
            allowed_unsafe_sysctls: config.allowed_unsafe_sysctls.patterns().to_vec(),
            age_key_file: config.age_key_file.clone(),
            max_parallel_layer_pulls: Some(config.max_parallel_layer_pulls),
            minimum_pull_rate: Some(size::format(config.minimum_pull_rate)),
            images: WrittenImages::of(config.images.clone()),
            image_policy: config.image_policy.to_written(),
            user_namespaces: WrittenUserNamespaces::of(config.user_namespaces),
            webhook: config.webhook.as_ref().map(|webhook| WrittenWebhook {
                address: Some(webhook.listen.ip()),
                port: webhook.listen.port(),
                secret_file: webhook.secret_file.clone(),
            }),
            monitoring: config.monitoring.map(|listen| WrittenMonitoring { address: Some(listen.ip()), port: listen.port() }),
            network: WrittenNetwork::of(&config.network),
            upstream: config.upstream.as_ref().map(WrittenUpstream::of),
            notify: WrittenNotify::of(&config.notify),
            logging: WrittenLogging { level: Some(config.logging.level.clone()), format: Some(config.logging.format) },
        }
    }
}

/// The error with the place of the field in the file's `bytes`.
pub(super) fn located_in(bytes: &[u8], error: ConfigError) -> ConfigError {
    match error {
        ConfigError::Invalid { path, position: None, field, message } => {
            ConfigError::Invalid { position: locate(bytes).position(&field), path, field, message }
        }
        located @ (ConfigError::Read { .. } | ConfigError::Syntax { .. } | ConfigError::Invalid { .. }) => located,
    }
}

fn syntax_error(error: &serde_yaml::Error, path: &Path) -> ConfigError {
    let location = match error.location() {
        Some(place) => format!("{}:{}:{}", path.display(), place.line(), place.column()),
        None => path.display().to_string(),
    };
    let mut message = error.to_string();
    // The place is said in front.
    if let Some(end) = message.rfind(" at line ") {
        message.truncate(end);
    }
    if let Some(better) = suggestion(&message).or_else(|| plain_type(&message)) {
        message = better;
    }
    ConfigError::Syntax { location, message }
}

/// More known fields than this are not listed in an error.
const MANY_FIELDS: usize = 12;

/// For serde's message on an unknown field, the same with the nearest known field instead of all of them.
fn suggestion(message: &str) -> Option<String> {
    let (before, known) = message.split_once(", expected")?;
    let start = before.rfind("unknown field `")?;
    let field = before.get(start..)?.strip_prefix("unknown field `")?.strip_suffix('`')?;
    let prefix = before.get(..start)?;
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let distance = |candidate: &&str| strsim::damerau_levenshtein(&field.to_lowercase(), &candidate.to_lowercase());
    let nearest = known.iter().min_by_key(|candidate| distance(candidate))?;
    let hint = match known.len() {
        _ if distance(nearest) <= 2.max(field.len() / 3) => format!(", did you mean {nearest:?}?"),
        ..=MANY_FIELDS => format!(", known are {}", known.join(", ")),
        _ => String::new(),
    };
    Some(format!("{prefix}unknown field {field:?}{hint}"))
}

/// For serde's message on a value of another type or out of range, the same in words of YAML instead of those of this program.
fn plain_type(message: &str) -> Option<String> {
    let (start, word) = ["invalid type: ", "invalid value: "].into_iter().find_map(|word| Some((message.find(word)?, word)))?;
    let (found, expected) = message.get(start + word.len()..)?.rsplit_once(", expected ")?;
    let found = match found.split_once(' ') {
        _ if found == "map" => "a mapping".to_owned(),
        _ if found == "sequence" => "a list".to_owned(),
        _ if found == "unit value" => "empty".to_owned(),
        Some(("string", value)) => format!("the text {value}"),
        Some((_, value)) if value.starts_with('`') => value.trim_matches('`').to_owned(),
        Some((_, value)) if value.ends_with('`') => value.rsplit_once('`').map_or(value, |(head, _)| head).replace('`', ""),
        _ => found.to_owned(),
    };
    let expected = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, not less than 0",
        "i32" | "i64" => "a whole number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a mapping",
        other if other.starts_with("struct ") => "a mapping",
        other => other,
    };
    Some(format!("{}is {found}, must be {expected}", message.get(..start)?))
}
