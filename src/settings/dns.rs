//! `network.dns`: the resolver that pods ask.

use super::ConfigError;
use super::check::{Check, is_subdomain};
use super::network::NetworkKind;
use podstead_pod::host_files::DEFAULT_CLUSTER_DOMAIN;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

const RESOLV_CONF: &str = "/etc/resolv.conf";
/// As many as anybody asks.
const MOST_FORWARDERS: usize = 8;
/// A name of a pod below it still fits into 253 characters.
const LONGEST_DOMAIN: usize = 100;

/// The resolver of pods, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsConfig {
    /// True if podstead runs a DNS server for pods.
    pub enabled: bool,
    /// Domain at the end of pod names, without a trailing dot.
    pub domain: String,
    /// Name servers for all other names; empty for those of the host.
    pub forwarders: Vec<SocketAddr>,
    /// The host's resolver settings.
    pub resolv_conf: PathBuf,
}

impl Default for DnsConfig {
    fn default() -> Self {
        Self { enabled: true, domain: DEFAULT_CLUSTER_DOMAIN.into(), forwarders: Vec::new(), resolv_conf: RESOLV_CONF.into() }
    }
}

/// `network.dns` as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenDns {
    /// Run a DNS server for pods. Default: true, unless `type` is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Domain at the end of the DNS names of pods. Default: cluster.local.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Name servers for all other names, up to 8: `address`, `address:port` or `[address]:port`. Default: those of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwarders: Vec<String>,
    /// File with the host's name servers and search list. Default: /etc/resolv.conf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolv_conf: Option<PathBuf>,
}

impl WrittenDns {
    /// Checks what is written and fills in the defaults.
    pub fn resolve(&self, kind: NetworkKind, check: &Check<'_>) -> Result<DnsConfig, ConfigError> {
        let has_gateway = match kind {
            // With plugins, those whose router is this host.
            NetworkKind::Builtin | NetworkKind::Cni => true,
            NetworkKind::None => false,
        };
        if !has_gateway && (self.enabled == Some(true) || !self.forwarders.is_empty()) {
            let field = if self.enabled == Some(true) { "enabled" } else { "forwarders" };
            let message = "requires network.type builtin or cni".to_owned();
            return Err(check.invalid(&format!("network.dns.{field}"), message));
        }
        let domain = self.domain.as_deref().unwrap_or(DEFAULT_CLUSTER_DOMAIN);
        if !is_subdomain(domain) || domain.len() > LONGEST_DOMAIN {
            let message =
                format!("{domain:?} is not a lower-case domain of at most {LONGEST_DOMAIN} characters without a trailing dot");
            return Err(check.invalid("network.dns.domain", message));
        }
        if self.forwarders.len() > MOST_FORWARDERS {
            return Err(check.invalid("network.dns.forwarders", format!("has more than {MOST_FORWARDERS} items")));
        }
        let forwarders = self.forwarders.iter().enumerate().map(|(index, text)| {
            let address = text.parse::<SocketAddr>().or_else(|_| text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53)));
            let usable = address.ok().filter(|address| address.port() != 0 && !address.ip().is_unspecified());
            let field = format!("network.dns.forwarders[{index}]");
            usable.ok_or_else(|| check.invalid(&field, format!("{text:?} is neither an address nor address:port")))
        });
        Ok(DnsConfig {
            enabled: self.enabled.unwrap_or(has_gateway),
            domain: domain.to_owned(),
            forwarders: forwarders.collect::<Result<_, _>>()?,
            resolv_conf: check.directory("network.dns.resolvConf", self.resolv_conf.as_ref(), Path::new(RESOLV_CONF))?,
        })
    }

    /// As it is written.
    pub fn of(config: &DnsConfig) -> Self {
        let DnsConfig { enabled, domain, forwarders, resolv_conf } = config;
        Self {
            enabled: Some(*enabled),
            domain: Some(domain.clone()),
            forwarders: forwarders.iter().map(ToString::to_string).collect(),
            resolv_conf: Some(resolv_conf.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str, kind: NetworkKind) -> Result<DnsConfig, String> {
        let written: WrittenDns = serde_yaml::from_str(text).unwrap();
        written.resolve(kind, &Check { path: Path::new("/c") }).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_written_has_a_default_and_what_is_resolved_is_written_back() {
        for kind in [NetworkKind::Builtin, NetworkKind::Cni] {
            assert_eq!(resolve("{}", kind), Ok(DnsConfig::default()));
        }
        assert_eq!(resolve("{}", NetworkKind::None), Ok(DnsConfig { enabled: false, ..DnsConfig::default() }));
        let text =
            "{domain: edge.site, forwarders: [192.0.2.1, '192.0.2.2:5353', '2001:db8::1', '[2001:db8::2]:54'], resolvConf: /r}";
        let config = resolve(text, NetworkKind::Builtin).unwrap();
        let shown: Vec<String> = config.forwarders.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["192.0.2.1:53", "192.0.2.2:5353", "[2001:db8::1]:53", "[2001:db8::2]:54"]);
        let again = WrittenDns::of(&config).resolve(NetworkKind::Builtin, &Check { path: Path::new("/c") }).unwrap();
        assert_eq!(again, config);
    }

    #[test]
    fn mistakes_name_the_field() {
        let long = format!("{{domain: {}}}", ["abcdefghi"; 11].join("."));
        for (text, kind, expected) in [
            ("{domain: Cluster.local}", NetworkKind::Builtin, "network.dns.domain: \"Cluster.local\" is not a lower-case domain"),
            ("{domain: cluster.local.}", NetworkKind::Builtin, "network.dns.domain"),
            (long.as_str(), NetworkKind::Builtin, "at most 100"),
            (
                "{forwarders: [192.0.2.1, dns.example.org]}",
                NetworkKind::Builtin,
                "network.dns.forwarders[1]: \"dns.example.org\" is neither",
            ),
            ("{forwarders: ['0.0.0.0']}", NetworkKind::Builtin, "network.dns.forwarders[0]"),
            ("{resolvConf: resolv.conf}", NetworkKind::Builtin, "network.dns.resolvConf: \"resolv.conf\" is not an absolute path"),
            ("{enabled: true}", NetworkKind::None, "network.dns.enabled: requires network.type builtin or cni"),
            ("{forwarders: [192.0.2.1]}", NetworkKind::None, "network.dns.forwarders: requires network.type builtin or cni"),
        ] {
            let error = resolve(text, kind).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
