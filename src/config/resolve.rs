//! From the file as written to the configuration that counts: defaults and checks. Pure, but for the time zones of this host.

use super::variables::Variables;
use super::written::{WrittenConfig, WrittenMonitoring, WrittenWebhook};
use super::{Config, LogRotation, Logging, source};
use podstead_image::RegistryConfig;
use podstead_pod::NodeName;
use podstead_pod::security::AllowedSysctls;
use podstead_settings::check::{Check, is_subdomain};
use podstead_settings::{ConfigError, invalid, size};
use podstead_source::webhook::WebhookOptions;
use podstead_sys::layout::Paths;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

const DEFAULT_CRASH_LOOP_MAX_SECONDS: u64 = 300;
const DEFAULT_LOG_MAX_SIZE: u64 = 10 << 20;
/// The shim rotates between reads of at most this size: a smaller limit could not be kept.
const MIN_LOG_MAX_SIZE: u64 = 64 << 10;
const DEFAULT_LOG_MAX_FILES: u32 = 5;
const DEFAULT_PARALLEL_PULLS: usize = 6;
const DEFAULT_MINIMUM_RATE: u64 = 1024;
/// Path of the shim in the package; used if the path of the running binary is not known.
const PACKAGED_SHIM: &str = "/usr/libexec/podstead/podstead-shim";

/// Facts about the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFacts {
    /// The kernel's host name.
    pub host_name: String,
    /// The running binary.
    pub executable: Option<PathBuf>,
}

impl HostFacts {
    /// Asks the kernel.
    pub fn of_this_host() -> Self {
        let host_name = podstead_container::kernel::host_name();
        Self { host_name, executable: std::env::current_exe().ok() }
    }
}

/// Directory with mirrors and certificates of registries.
const REGISTRIES_DIRECTORY: &str = "/etc/podstead/certs.d";
/// Usual directories of CDI specs.
const CDI_DIRECTORIES: [&str; 2] = ["/etc/cdi", "/var/run/cdi"];

impl WrittenConfig {
    /// Fills in defaults and checks every value. `path` is named in errors.
    pub fn resolve(&self, facts: &HostFacts, path: &Path) -> Result<Config, ConfigError> {
        let check = Check { path };
        let defaults = Paths::default();
        let paths = Paths {
            state: check.directory("paths.state", self.paths.state.as_ref(), &defaults.state)?,
            run: check.directory("paths.run", self.paths.run.as_ref(), &defaults.run)?,
            logs: check.directory("paths.logs", self.paths.logs.as_ref(), &defaults.logs)?,
        };
        let pids = self.pod_pids_limit.unwrap_or(-1);
        let node_name = self.node_name(facts, &check)?;
        let variables = Variables::resolve(&check, &node_name, &self.labels, &self.variables)?;
        Ok(Config {
            sources: source::sources(&check, self.sources.as_deref(), &variables)?,
            node_name,
            labels: self.labels.clone(),
            variables: self.variables.clone(),
            preload: check.directory("preloadPath", self.preload_path.as_ref(), &paths.preload())?,
            shim: check.directory("shimPath", self.shim_path.as_ref(), &default_shim(facts))?,
            log_rotation: self.log_rotation(&check)?,
            crash_loop_max: Duration::from_secs(check.range(
                "crashLoopBackOff.maxContainerRestartPeriodSeconds",
                self.crash_loop_back_off.max_container_restart_period_seconds.unwrap_or(DEFAULT_CRASH_LOOP_MAX_SECONDS),
                1,
                300,
            )?),
            pod_pids_limit: match pids {
                -1 => None,
                limit => Some(check.range("podPidsLimit", limit, 1, i64::MAX)?),
            },
            start_stopped_pods_at_boot: self.start_stopped_pods_at_boot.unwrap_or(true),
            cdi_directories: self.cdi_directories(&check)?,
            api_socket_group: self.api_socket_group.clone(),
            api: self.api.resolve(&check)?,
            registries: registries(&check, &self.registries)?,
            registries_directory: check.directory(
                "registriesDirectory",
                self.registries_directory.as_ref(),
                Path::new(REGISTRIES_DIRECTORY),
            )?,
            default_auth_files: self.default_auth_files.unwrap_or(true),
            allowed_unsafe_sysctls: AllowedSysctls::parse(&self.allowed_unsafe_sysctls)
                .map_err(|(index, problem)| check.invalid(&format!("allowedUnsafeSysctls[{index}]"), problem))?,
            age_key_file: self.age_key_file.as_deref().map(|file| check.file("ageKeyFile", file)).transpose()?,
            max_parallel_layer_pulls: check.range(
                "maxParallelLayerPulls",
                self.max_parallel_layer_pulls.unwrap_or(DEFAULT_PARALLEL_PULLS),
                1,
                16,
            )?,
            minimum_pull_rate: match &self.minimum_pull_rate {
                None => DEFAULT_MINIMUM_RATE,
                Some(text) => size::parse(text)
                    .ok_or_else(|| check.invalid("minimumPullRate", format!("{text:?} is not a number of bytes such as 1Ki")))?,
            },
            images: self.images.resolve(&check)?,
            image_policy: self.image_policy.resolve(&check)?,
            user_namespaces: self.user_namespaces.resolve(&check)?,
            network: self.network.resolve(&check)?,
            upstream: self.upstream.as_ref().map(|written| written.resolve(&check)).transpose()?,
            notify: self.notify.resolve(&check)?,
            logging: self.logging(path)?,
            webhook: self.webhook.as_ref().map(|written| webhook(&check, written)).transpose()?,
            monitoring: self.monitoring.as_ref().map(|written| monitoring(&check, written)).transpose()?,
            paths,
        })
    }

    fn log_rotation(&self, check: &Check<'_>) -> Result<LogRotation, ConfigError> {
        let max_size = match &self.container_log_max_size {
            Some(text) => size::parse(text)
                .ok_or_else(|| check.invalid("containerLogMaxSize", format!("{text:?} is not a size such as 10Mi")))?,
            None => DEFAULT_LOG_MAX_SIZE,
        };
        let max_files = self.container_log_max_files.unwrap_or(DEFAULT_LOG_MAX_FILES);
        Ok(LogRotation {
            max_size: check.range("containerLogMaxSize", max_size, MIN_LOG_MAX_SIZE, u64::MAX)?,
            max_files: check.range("containerLogMaxFiles", max_files, 2, 1000)?,
        })
    }

    fn cdi_directories(&self, check: &Check<'_>) -> Result<Vec<PathBuf>, ConfigError> {
        let Some(written) = &self.cdi_spec_dirs else { return Ok(CDI_DIRECTORIES.map(PathBuf::from).to_vec()) };
        let items = written.iter().enumerate();
        items.map(|(index, path)| check.file(&format!("cdiSpecDirs[{index}]"), path)).collect()
    }

    fn node_name(&self, facts: &HostFacts, check: &Check<'_>) -> Result<NodeName, ConfigError> {
        let (name, origin) = match &self.node_name {
            Some(name) => (name.clone(), "is"),
            None => (facts.host_name.to_lowercase(), "is not set, and the host name is"),
        };
        if is_subdomain(&name) {
            Ok(NodeName::new(name))
        } else {
            let message = format!(
                "{origin} {name:?}, which is not a node name: must be at most 253 lower-case letters, digits, '-' and '.', \
                 beginning and ending with a letter or digit"
            );
            Err(invalid(check.path, "nodeName", message))
        }
    }

    fn logging(&self, path: &Path) -> Result<Logging, ConfigError> {
        let level = self.logging.level.clone().unwrap_or_else(|| "info".into());
        match tracing_subscriber::EnvFilter::try_new(&level) {
            Ok(_) => Ok(Logging { level, format: self.logging.format.unwrap_or_default() }),
            Err(error) => Err(invalid(path, "logging.level", format!("{level:?} is not a log level or filter: {error}"))),
        }
    }
}

fn default_shim(facts: &HostFacts) -> PathBuf {
    match &facts.executable {
        Some(executable) => executable.with_file_name("podstead-shim"),
        None => PACKAGED_SHIM.into(),
    }
}

fn webhook(check: &Check<'_>, written: &WrittenWebhook) -> Result<WebhookOptions, ConfigError> {
    let WrittenWebhook { address, port, secret_file } = written;
    let port = check.range("webhook.port", *port, 1, u16::MAX)?;
    Ok(WebhookOptions {
        listen: SocketAddr::new(address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), port),
        secret_file: check.file("webhook.secretFile", secret_file)?,
    })
}

fn monitoring(check: &Check<'_>, written: &WrittenMonitoring) -> Result<SocketAddr, ConfigError> {
    let port = check.range("monitoring.port", written.port, 1, u16::MAX)?;
    Ok(SocketAddr::new(written.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), port))
}

fn registries(check: &Check<'_>, written: &[RegistryConfig]) -> Result<Vec<RegistryConfig>, ConfigError> {
    let mut hosts = BTreeSet::new();
    for (index, registry) in written.iter().enumerate() {
        let field = format!("registries[{index}]");
        if let Some(problem) = registry.problem() {
            return Err(check.invalid(&field, problem));
        }
        if !hosts.insert(registry.host.as_str()) {
            return Err(check.invalid(&format!("{field}.host"), format!("duplicate entry for {:?}", registry.host)));
        }
    }
    Ok(written.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> HostFacts {
        HostFacts { host_name: "Edge-01".into(), executable: Some("/usr/bin/podstead".into()) }
    }

    fn load(text: &str) -> Result<Config, ConfigError> {
        let path = Path::new("/etc/podstead/config.yaml");
        Config::parse(text.as_bytes(), &facts(), path)
    }

    fn with_head(text: &str) -> String {
        format!("apiVersion: podstead.dev/v1alpha1\nkind: Config\n{text}")
    }

    #[test]
    fn no_file_at_all_is_a_working_configuration() {
        let config = load("# nothing\n").unwrap();
        assert_eq!(config.node_name.as_str(), "edge-01");
        assert_eq!(config.paths, Paths::default());
        assert_eq!(config.shim, Path::new("/usr/bin/podstead-shim"));
        assert_eq!(config.preload, Path::new("/var/lib/podstead/images/preload"));
        assert_eq!(config.log_rotation, LogRotation { max_size: 10 << 20, max_files: 5 });
        assert_eq!(config.sources.len(), 1);
        assert_eq!(config.sources[0].name.as_str(), "manifests");
    }

    #[test]
    fn what_show_prints_is_read_back_as_the_same() {
        let config = load(&with_head(
            "nodeName: edge.site\npaths: {state: /srv/state/}\npodPidsLimit: 500\nageKeyFile: /k\nallowedUnsafeSysctls: [kernel.msg*]\napiSocketGroup: adm\n\
             minimumPullRate: 2Ki\ndefaultAuthFiles: false\nregistriesDirectory: /etc/containerd/certs.d\n\
             registries: [{host: registry.lan:5000, http: true, tokenServers: ['auth.lan:5001']},\n  {host: docker.io, upstream: false, mirrors: [{url: 'https://m.lan/hub', resolve: true, proxyNamespace: true}]}]\nwebhook: {address: '::', port: 8085, secretFile: /s}\n\
             images: {limits: {entries: 9, fileSize: 2Gi}, reserve: {storagePercent: 0, storageAtLeast: 1Gi},\n  \
                      bandwidth: {total: 2Mi}, windows: [{days: [Mon, Sun], from: '22:00', to: '06:00', timeZone: Europe/Berlin}, {from: '00:00', to: '24:00'}]}\n\
             userNamespaces: {firstId: 655360, maxPods: 10}\nnetwork: {ipv4Range: 10.9.0.0/24, ipv6Range: 'fd00:9::/64'}\n\
             upstream: {kubeconfig: /k, context: c, registerNode: false, maxPods: 7, labels: {a/b: c}, taints: [], pressure: {memoryAvailable: 5%}}\n\
             sources: [{name: a, directory: {path: /a, relistIntervalSeconds: 5}}, {name: b, directory: {path: /b}}]\n",
        ))
        .unwrap();
        let shown = serde_yaml::to_string(&config.to_written()).unwrap();
        assert_eq!(load(&shown).unwrap(), config);
    }

    #[test]
    fn every_mistake_names_its_place_and_what_would_be_right() {
        let cases = [
            ("nodeNam: x\n", r#"/etc/podstead/config.yaml:3:1: unknown field "nodeNam", did you mean "nodeName"?"#),
            (
                "sources:\n- name: a\n  directory: {path: /a, relistIntervalSec: 5}\n",
                r#"config.yaml:5:25: sources[0].directory: unknown field "relistIntervalSec", did you mean "relistIntervalSeconds"?"#,
            ),
            ("zzz: 1\n", r#":3:1: unknown field "zzz""#),
            ("podPidsLimit: many\n", "config.yaml:3:15: podPidsLimit: is the text \"many\", must be a whole number"),
            ("sources: [{name: a, directory: /x}]\n", ":3:32: sources[0].directory: is the text \"/x\", must be a mapping"),
            ("sources: {a: {directory: {path: /x}}}\n", "config.yaml:3:10: sources: is a mapping, must be a list"),
            ("registries: [{host: a, plainText: true}]\n", r#"registries[0]: unknown field "plainText", known are host, "#),
            ("notify: []\n", "config.yaml:3:9: notify: is a list, must be a mapping"),
            ("api: {tls: true}\n", "api.tls: is true, must be a mapping"),
            ("api: {tls: {port: 99999}}\n", "api.tls.port: is 99999, must be a whole number from 0 to 65535"),
            ("podPidsLimit: 0\n", "/etc/podstead/config.yaml:3:15: podPidsLimit: is 0, must be at least 1"),
            ("nodeName: Edge_1\n", r#"nodeName: is "Edge_1", which is not a node name"#),
            ("paths: {run: run/podstead}\n", r#"paths.run: "run/podstead" is not an absolute path"#),
            ("paths: {run: /run/../etc}\n", "paths.run: \"/run/../etc\" is not an absolute path"),
            ("crashLoopBackOff: {maxContainerRestartPeriodSeconds: 301}\n", "must be at most 300"),
            ("containerLogMaxSize: 10MB\n", r#""10MB" is not a size such as 10Mi"#),
            ("containerLogMaxFiles: 1\n", "must be at least 2"),
            ("minimumPullRate: 1KB\n", r#"minimumPullRate: "1KB" is not a number of bytes such as 1Ki"#),
            (
                "sources: [{name: a}]\n",
                "/etc/podstead/config.yaml:3:12: sources[0]: must have one of directory, http, git, oci and bundle",
            ),
            ("sources: [{name: a/b, directory: {path: /a}}]\n", r#"sources[0].name: "a/b" is not a source name"#),
            (
                "sources: [{name: a, directory: {path: /a}}, {name: a, directory: {path: /b}}]\n",
                r#"sources[1].name: duplicate source name "a""#,
            ),
            ("logging: {level: 'a=b=c'}\n", r#"logging.level: "a=b=c" is not a log level or filter"#),
            ("network: {type: bridge}\n", "network.type: unknown variant `bridge`, expected one of `builtin`, `cni`, `none`"),
            ("network: {ipv4Range: 10.0.0.1/24}\n", "network.ipv4Range: \"10.0.0.1/24\" is not an address range"),
            ("network: {ipv4Range: 'fd00::/64'}\n", "network.ipv4Range: \"fd00::/64\" is not an IPv4 range"),
            ("network: {ipv6Range: 'fd00::/127'}\n", "network.ipv6Range: \"fd00::/127\" has room for 0 addresses"),
            ("network: {type: none, ipv4Range: 10.0.0.0/24}\n", "network.ipv4Range: has no effect with type none"),
            (
                "registries: [{host: r.lan, username: u}]\n",
                "registries[0]: registry r.lan: username and passwordFile must be set together",
            ),
            (
                "registries: [{host: r.lan, mirrors: [{url: m.lan}]}]\n",
                r#"registries[0]: registry r.lan: mirror "m.lan" is not a URL such as https://mirror.lan:5000"#,
            ),
            ("registriesDirectory: certs.d\n", r#"registriesDirectory: "certs.d" is not an absolute path"#),
            ("registries: [{host: r.lan}, {host: r.lan}]\n", r#"registries[1].host: duplicate entry for "r.lan""#),
            ("registries: [{host: r.lan, insecure: true}]\n", r#"registries[0]: unknown field "insecure""#),
            ("webhook: {port: 0, secretFile: /s}\n", "config.yaml:3:17: webhook.port: is 0, must be at least 1"),
            ("ageKeyFile: age.key\n", "config.yaml:3:13: ageKeyFile: \"age.key\" is not an absolute path"),
            (
                "allowedUnsafeSysctls: [net.*, kernel.pid_max]\n",
                "config.yaml:3:31: allowedUnsafeSysctls[1]: \"kernel.pid_max\" is not namespaced",
            ),
            ("images: {limits: {entries: 0}}\n", "config.yaml:3:28: images.limits.entries: is 0, must be at least 1"),
            ("images: {limits: {unpackedSize: 64GB}}\n", "images.limits.unpackedSize: \"64GB\" is not a size such as 10Mi"),
            ("images: {limits: {zstdWindow: 48Mi}}\n", "images.limits.zstdWindow: is 48Mi, must be a power of two"),
            ("images: {limits: {ratios: 2}}\n", "images.limits: unknown field \"ratios\", did you mean \"ratio\"?"),
            (
                "imagePolicy:\n  rules:\n  - {images: [a], require: [signature]}\n",
                "config.yaml:5:29: imagePolicy.rules[0].require: signature needs keys",
            ),
            ("imagePolicy: {default: deny}\n", "imagePolicy.default: unknown variant `deny`"),
            ("images: {bandwidth: {perHost: 1Ki}}\n", "images.bandwidth.perHost: is 1024, must be at least 4096"),
            (
                "images:\n  windows:\n  - {from: '1:00', to: '02:00'}\n",
                r#"config.yaml:5:12: images.windows[0].from: "1:00" is not a time of day such as 01:30"#,
            ),
            (
                "images: {windows: [{days: [Monday], from: '01:00', to: '02:00'}]}\n",
                r#"images.windows[0].days: "Monday" is not one of Mon, Tue, Wed, Thu, Fri, Sat, Sun"#,
            ),
            (
                "images: {windows: [{from: '01:00', to: '02:00', timeZone: Europe/Pariss}]}\n",
                "images.windows[0].timeZone: unknown time zone Europe/Pariss; name a zone of the IANA database",
            ),
            ("images: {windows: [{from: '01:00', to: '01:00'}]}\n", "images.windows[0]: from and to are the same"),
            ("images: {reserve: {inodesPercent: 91}}\n", "images.reserve.inodesPercent: is 91, must be at most 90"),
            (
                "userNamespaces: {firstId: 70000}\n",
                "config.yaml:3:27: userNamespaces.firstId: is 70000, must be a multiple of 65536",
            ),
            ("userNamespaces: {firstId: 0}\n", "userNamespaces.firstId: is 0, must be at least 65536"),
            (
                "userNamespaces: {firstId: 4294836224, maxPods: 2}\n",
                "userNamespaces.maxPods: is 2, must be at most 1 with firstId 4294836224",
            ),
            ("webhook: {port: 80}\n", "missing field `secretFile`"),
            ("webhook: {port: 80, secretFile: s}\n", "webhook.secretFile: \"s\" is not an absolute path"),
            ("webhook: {address: lan, port: 80, secretFile: /s}\n", "webhook.address: "),
            ("upstream: {}\n", "missing field `kubeconfig`"),
            ("upstream: {kubeconfig: k}\n", "config.yaml:3:24: upstream.kubeconfig: \"k\" is not an absolute path"),
            ("upstream: {kubeconfig: /k, labels: {'a b': c}}\n", "upstream.labels.a b: is not a label key"),
            ("upstream: {kubeconfig: /k, taints: [{key: a, effect: Never}]}\n", "unknown variant `Never`"),
            ("upstream: {kubeconfig: /k, taints: [{key: '', effect: NoSchedule}]}\n", "upstream.taints[0].key: is not a label key"),
            ("upstream: {kubeconfig: /k, maxPods: 0}\n", "upstream.maxPods: is 0, must be at least 1"),
            ("upstream: {kubeconfig: /k, pressure: {pidsAvailable: few}}\n", "upstream.pressure.pidsAvailable: is \"few\""),
            ("upstream: {kubeconfig: /k, insecure: true}\n", "unknown field \"insecure\""),
            ("nodeName: a\nnodeName: b\n", "duplicate"),
        ];
        for (text, expected) in cases {
            let error = load(&with_head(text)).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}\n  got:      {error}\n  expected: {expected}");
        }
    }

    #[test]
    fn image_rules_know_their_lines() {
        let text = "imagePolicy:\n  default: digest\n  rules:\n  - images: [registry.lan/]\n    require: [signature]\n    keys: [/k]\n    \
                    threshold: 1\n    signedAs: [registry.lan/]\n    predicateTypes: [x]\n  - {images: [a], refuse: true}\n";
        let config = load(&with_head(text)).unwrap();
        let origin = |image: &str| config.image_policy.demand(&image.parse().unwrap()).origin.to_string();
        assert_eq!(origin("registry.lan/app"), "imagePolicy.rules[0] (/etc/podstead/config.yaml:6)");
        assert_eq!(origin("a"), "imagePolicy.rules[1] (/etc/podstead/config.yaml:12)");
        assert_eq!(origin("b"), "imagePolicy.default (/etc/podstead/config.yaml:4)");
        let shown = config.to_written();
        assert_eq!(load(&serde_yaml::to_string(&shown).unwrap()).unwrap().to_written(), shown);
    }

    #[test]
    fn another_kind_of_file_is_refused() {
        let error = load("apiVersion: v1\nkind: Pod\n").unwrap_err().to_string();
        assert!(error.contains(r#"apiVersion: is "v1", must be "podstead.dev/v1alpha1""#) || error.contains("unknown"), "{error}");
        assert!(load("nodeName: a\n").unwrap_err().to_string().contains("apiVersion: is missing"));
    }

    #[test]
    fn an_empty_list_of_sources_is_no_source() {
        assert!(load(&with_head("sources: []\n")).unwrap().sources.is_empty());
    }
}
