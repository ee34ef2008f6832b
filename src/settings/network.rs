//! `network`: how pods that are not on the host's network are connected.

use super::check::Check;
use super::dns::{DnsConfig, WrittenDns};
use super::{AddressRange, ConfigError};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Usual directory of CNI configurations.
const CNI_CONFIG_DIRECTORY: &str = "/etc/cni/net.d";
/// Directories of CNI plugins upstream, in Debian and in Red Hat.
const CNI_BIN_DIRECTORIES: [&str; 3] = ["/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"];
/// A plugin that asks a DHCP server takes seconds, no plugin takes a minute.
const DEFAULT_CNI_TIMEOUT_SECONDS: u64 = 60;

/// Fewer addresses are a mistake rather than a network.
const LEAST_CAPACITY: u32 = 2;

/// Implementation of the pod network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkKind {
    /// podstead itself: an address of each family, routed.
    #[default]
    Builtin,
    /// Plugins of the Container Network Interface, as their configuration says.
    Cni,
    /// No network: pods have only `lo`.
    None,
}

/// Mode of the builtin network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkMode {
    /// Each pod has its own veth pair, and the host routes.
    #[default]
    Routed,
    /// All pods are on one bridge and receive each other's broadcasts.
    Bridge,
}

impl std::fmt::Display for NetworkMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Routed => "routed",
            Self::Bridge => "bridge",
        })
    }
}

/// Locations of CNI configurations and plugins. With every kind of network: pods may ask for additional interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CniConfig {
    /// Directory of configurations.
    pub config_directory: PathBuf,
    /// Directories of plugins; the first one that has a plugin counts.
    pub bin_directories: Vec<PathBuf>,
    /// Time limit of one call of a plugin.
    pub timeout: Duration,
    /// Plugins enforce NetworkPolicies.
    pub enforces_policies: bool,
}

impl Default for CniConfig {
    fn default() -> Self {
        Self {
            config_directory: CNI_CONFIG_DIRECTORY.into(),
            bin_directories: CNI_BIN_DIRECTORIES.map(PathBuf::from).to_vec(),
            timeout: Duration::from_secs(DEFAULT_CNI_TIMEOUT_SECONDS),
            enforces_policies: false,
        }
    }
}

/// The network of pods, resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Implementation of the pod network.
    pub kind: NetworkKind,
    /// Mode of the builtin network.
    pub mode: NetworkMode,
    /// IPv4 address range; `None` for a default range that is free on this host.
    pub ipv4: Option<AddressRange>,
    /// IPv6 address range; `None` as above.
    pub ipv6: Option<AddressRange>,
    /// IPv4 address range of Services; `None` for a default range that is free on this host.
    pub service_ipv4: Option<AddressRange>,
    /// IPv6 address range of Services; `None` as above.
    pub service_ipv6: Option<AddressRange>,
    /// First and last port of the host that Services of type NodePort get; `None` for those of Kubernetes.
    pub node_ports: Option<(u16, u16)>,
    /// Locations of CNI configurations and plugins.
    pub cni: CniConfig,
    /// Chains `FORWARD` of iptables that drop what they do not know are left as they are.
    pub leaves_iptables: bool,
    /// DNS server for pods.
    pub dns: DnsConfig,
}

/// `network` as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenNetwork {
    /// Network of pods: podstead's own, that of CNI plugins, or none: then pods that are not on the host's network have only `lo`. Default:
    /// builtin.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<NetworkKind>,
    /// With type `builtin`: the host routes between pods, or all pods are on a bridge and receive each other's broadcasts. Default:
    /// routed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<NetworkMode>,
    /// IPv4 address range of pods. Default: the first of podstead's ranges that nothing else on this host uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4_range: Option<String>,
    /// IPv6 address range of pods. Default: as for IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6_range: Option<String>,
    /// IPv4 address range of Services. Default: the first of podstead's ranges that nothing else on this host uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ipv4_range: Option<String>,
    /// IPv6 address range of Services. Default: as for IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ipv6_range: Option<String>,
    /// Ports of the host for Services of type NodePort, `<first>-<last>`. Default: `30000-32767`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_port_range: Option<String>,
    /// Add rules that accept traffic and DNS queries of pods to the iptables chains FORWARD and INPUT if their policy is DROP.
    /// Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_in_iptables: Option<bool>,
    /// Locations of CNI configurations and plugins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cni: Option<WrittenCni>,
    /// DNS server for pods.
    #[serde(default)]
    pub dns: WrittenDns,
}

/// `network.cni` as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenCni {
    /// Directory of `.conflist`, `.conf` and `.json` files. Default: `/etc/cni/net.d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_dir: Option<PathBuf>,
    /// Directories of plugins, searched in this order. Default: `/opt/cni/bin`, `/usr/lib/cni`, `/usr/libexec/cni`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bin_dirs: Option<Vec<PathBuf>>,
    /// Time limit in seconds of one call of a plugin, 1 to 600. Default: 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// The plugins enforce NetworkPolicies, for which podstead cannot do it. Otherwise a pod that they connect and a policy selects does not
    /// start. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforces_policies: Option<bool>,
}

impl WrittenCni {
    fn resolve(&self, check: &Check<'_>) -> Result<CniConfig, ConfigError> {
        let defaults = CniConfig::default();
        let bin_directories = match &self.bin_dirs {
            None => defaults.bin_directories,
            Some(written) => {
                let items = written.iter().enumerate();
                items
                    .map(|(index, path)| bin_directory(check, &format!("network.cni.binDirs[{index}]"), path))
                    .collect::<Result<_, _>>()?
            }
        };
        let seconds = self.timeout_seconds.unwrap_or(DEFAULT_CNI_TIMEOUT_SECONDS);
        Ok(CniConfig {
            config_directory: check.directory("network.cni.configDir", self.config_dir.as_ref(), &defaults.config_directory)?,
            bin_directories,
            timeout: Duration::from_secs(check.range("network.cni.timeoutSeconds", seconds, 1, 600)?),
            enforces_policies: self.enforces_policies.unwrap_or_default(),
        })
    }

    fn of(config: &CniConfig) -> Self {
        Self {
            config_dir: Some(config.config_directory.clone()),
            bin_dirs: Some(config.bin_directories.clone()),
            timeout_seconds: Some(config.timeout.as_secs()),
            enforces_policies: Some(config.enforces_policies),
        }
    }
}

/// Plugins get all directories in one variable, with colons between them.
fn bin_directory(check: &Check<'_>, field: &str, path: &Path) -> Result<PathBuf, ConfigError> {
    let path = check.file(field, path)?;
    if path.as_os_str().as_encoded_bytes().contains(&b':') {
        return Err(check.invalid(field, format!("{:?} must not contain a colon", path.display().to_string())));
    }
    Ok(path)
}

/// A range of ports of the host.
fn node_ports(check: &Check<'_>, text: &str, kind: NetworkKind) -> Result<(u16, u16), ConfigError> {
    let field = "network.nodePortRange";
    if kind != NetworkKind::Builtin {
        return Err(check.invalid(field, "requires network.type builtin".to_owned()));
    }
    let parsed = text.split_once('-').and_then(|(first, last)| Some((first.parse::<u16>().ok()?, last.parse::<u16>().ok()?)));
    match parsed {
        Some((first, last)) if first > 0 && first <= last => Ok((first, last)),
        Some(_) | None => Err(check.invalid(field, format!("{text:?} is not a range of ports such as 30000-32767"))),
    }
}

impl WrittenNetwork {
    /// Checks what is written and fills in the defaults.
    pub fn resolve(&self, check: &Check<'_>) -> Result<NetworkConfig, ConfigError> {
        let kind = self.kind.unwrap_or_default();
        if self.mode.is_some() && kind != NetworkKind::Builtin {
            return Err(check.invalid("network.mode", "requires network.type builtin".to_owned()));
        }
        let range = |field: &str, written: &Option<String>, is_ipv4: bool| -> Result<Option<AddressRange>, ConfigError> {
            let Some(text) = written else { return Ok(None) };
            let invalid = |message: String| Err(check.invalid(&format!("network.{field}"), message));
            match kind {
                NetworkKind::Builtin => {}
                NetworkKind::Cni => return invalid("has no effect with type cni".to_owned()),
                NetworkKind::None => return invalid("has no effect with type none".to_owned()),
            }
            match text.parse::<AddressRange>() {
                Err(error) => invalid(format!("{text:?} {error}")),
                Ok(range) if range.is_ipv4() != is_ipv4 => {
                    invalid(format!("{text:?} is not an IPv{} range", if is_ipv4 { 4 } else { 6 }))
                }
                Ok(range) if range.capacity() < LEAST_CAPACITY => invalid(format!(
                    "{text:?} has room for {} addresses, must have room for at least {LEAST_CAPACITY}",
                    range.capacity()
                )),
                Ok(range) => Ok(Some(range)),
            }
        };
        let node_ports = self.node_port_range.as_deref().map(|text| node_ports(check, text, kind)).transpose()?;
        let ranges = [
            ("ipv4Range", range("ipv4Range", &self.ipv4_range, true)?),
            ("ipv6Range", range("ipv6Range", &self.ipv6_range, false)?),
            ("serviceIpv4Range", range("serviceIpv4Range", &self.service_ipv4_range, true)?),
            ("serviceIpv6Range", range("serviceIpv6Range", &self.service_ipv6_range, false)?),
        ];
        for (of_pods, of_services) in [(0, 2), (1, 3)] {
            if let (Some(pods), (field, Some(services))) = (ranges[of_pods].1, ranges[of_services])
                && pods.overlaps(&services)
            {
                return Err(check.invalid(&format!("network.{field}"), format!("{services} overlaps the range of pods, {pods}")));
            }
        }
        let [(_, ipv4), (_, ipv6), (_, service_ipv4), (_, service_ipv6)] = ranges;
        Ok(NetworkConfig {
            kind,
            mode: self.mode.unwrap_or_default(),
            ipv4,
            ipv6,
            service_ipv4,
            service_ipv6,
            node_ports,
            cni: self.cni.as_ref().map_or_else(|| Ok(CniConfig::default()), |written| written.resolve(check))?,
            leaves_iptables: !self.accept_in_iptables.unwrap_or(true),
            dns: self.dns.resolve(kind, check)?,
        })
    }

    /// As it is written.
    pub fn of(config: &NetworkConfig) -> Self {
        let text = |range: &Option<AddressRange>| range.as_ref().map(ToString::to_string);
        let dns = WrittenDns::of(&config.dns);
        let cni = Some(WrittenCni::of(&config.cni));
        let accept_in_iptables = (config.kind == NetworkKind::Builtin).then_some(!config.leaves_iptables);
        Self {
            kind: Some(config.kind),
            mode: (config.kind == NetworkKind::Builtin).then_some(config.mode),
            ipv4_range: text(&config.ipv4),
            ipv6_range: text(&config.ipv6),
            service_ipv4_range: text(&config.service_ipv4),
            service_ipv6_range: text(&config.service_ipv6),
            node_port_range: config.node_ports.map(|(first, last)| format!("{first}-{last}")),
            accept_in_iptables,
            cni,
            dns,
        }
    }
}
