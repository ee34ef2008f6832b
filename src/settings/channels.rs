//! Ways from a pod to the host that are neither a right of a container nor a file of the host: ports, networks, probes, profiles, kernel
//! parameters, priorities. Pure.

use super::allow::WrittenAllow;
use crate::ConfigError;
use crate::check::Check;
use podstead_pod::security::AllowedSysctls;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Stands for every name in a list of names.
const ALL: &str = "*";

/// An item of `hostPorts`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WrittenPorts {
    /// One port.
    One(u16),
    /// `<first>-<last>`.
    Range(String),
}

/// The part of these ways that a source may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    host_ports: Vec<RangeInclusive<u16>>,
    networks: Names,
    probe_hosts: Names,
    app_armor_profiles: Names,
    seccomp_profiles: Names,
    sysctls: AllowedSysctls,
    priority_classes: Names,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Names(Vec<String>);

impl Channels {
    /// Checks every value below `field`.
    pub fn resolve(check: &Check<'_>, field: &str, written: &WrittenAllow) -> Result<Self, ConfigError> {
        let ports = |(index, ports): (usize, &WrittenPorts)| {
            ports.range().ok_or_else(|| {
                let message = format!("{} is neither a port nor a range such as 8000-8099", ports.text());
                check.invalid(&format!("{field}.hostPorts[{index}]"), message)
            })
        };
        let names = |name: &str, written: &[String]| match written.iter().position(String::is_empty) {
            Some(index) => Err(check.invalid(&format!("{field}.{name}[{index}]"), "is empty".to_owned())),
            None => Ok(Names(written.to_vec())),
        };
        let hosts: Vec<String> = written.probe_hosts.iter().map(|host| normalised(host)).collect();
        Ok(Self {
            host_ports: written.host_ports.iter().enumerate().map(ports).collect::<Result<_, _>>()?,
            networks: names("networks", &written.networks)?,
            probe_hosts: names("probeHosts", &hosts)?,
            app_armor_profiles: names("appArmorProfiles", &written.app_armor_profiles)?,
            seccomp_profiles: names("seccompProfiles", &written.seccomp_profiles)?,
            sysctls: AllowedSysctls::parse(&written.sysctls)
                .map_err(|(index, problem)| check.invalid(&format!("{field}.sysctls[{index}]"), problem))?,
            priority_classes: names("priorityClasses", &written.priority_classes)?,
        })
    }

    /// Reports whether a port of the host may lead to a pod.
    pub fn host_port(&self, port: u16) -> bool {
        self.host_ports.iter().any(|range| range.contains(&port))
    }

    /// Reports whether a pod may be connected to this network of CNI plugins.
    pub fn network(&self, name: &str) -> bool {
        self.networks.contain(name)
    }

    /// Reports whether a probe or hook may name this host.
    pub fn probe_host(&self, host: &str) -> bool {
        self.probe_hosts.contain(&normalised(host))
    }

    /// Reports whether a container may have this AppArmor profile of the host.
    pub fn app_armor_profile(&self, name: &str) -> bool {
        self.app_armor_profiles.contain(name)
    }

    /// Reports whether a container may have this file as its seccomp profile.
    pub fn seccomp_profile(&self, file: &str) -> bool {
        self.seccomp_profiles.contain(file)
    }

    /// Reports whether a pod may set this sysctl, which is none of the safe ones; dots separate its parts.
    pub fn sysctl(&self, name: &str) -> bool {
        self.sysctls.allow(name)
    }

    /// Reports whether a pod may have this priority class.
    pub fn priority_class(&self, name: &str) -> bool {
        self.priority_classes.contain(name)
    }
}

impl Names {
    fn contain(&self, name: &str) -> bool {
        self.0.iter().any(|allowed| allowed == name || allowed == ALL)
    }
}

impl WrittenPorts {
    fn range(&self) -> Option<RangeInclusive<u16>> {
        let (first, last) = match self {
            Self::One(port) => (*port, *port),
            Self::Range(text) => {
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                (port(first)?, port(last)?)
            }
        };
        (first > 0 && first <= last).then_some(first..=last)
    }

    fn text(&self) -> String {
        match self {
            Self::One(port) => port.to_string(),
            Self::Range(text) => format!("{text:?}"),
        }
    }
}

/// Digits only: `u16` itself takes a sign.
fn port(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// An address in its one spelling; a name in lower case without a final dot.
fn normalised(host: &str) -> String {
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.to_string(),
        Err(_) => host.strip_suffix('.').unwrap_or(host).to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn channels(text: &str) -> Result<Channels, String> {
        let written: WrittenAllow = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        Channels::resolve(&Check { path: Path::new("/c") }, "allow", &written).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_allowed_that_is_not_named() {
        let none = channels("{}").unwrap();
        assert!(!none.host_port(80) && !none.network("lan") && !none.probe_host("127.0.0.1") && !none.app_armor_profile("a"));
        assert!(
            !none.seccomp_profile("a.json") && !none.sysctl("net.core.somaxconn") && !none.priority_class("system-node-critical")
        );
    }

    #[test]
    fn ports_are_allowed_by_number_and_by_range() {
        let some = channels("{hostPorts: [80, '443', 8000-8002]}").unwrap();
        for (port, allowed) in [(79, false), (80, true), (443, true), (7999, false), (8000, true), (8002, true), (8003, false)] {
            assert_eq!(some.host_port(port), allowed, "{port}");
        }
        assert!(channels("{hostPorts: [1-65535]}").unwrap().host_port(65535));
    }

    #[test]
    fn names_are_compared_in_full_and_a_star_is_all_of_them() {
        let some = channels(
            "{networks: [lan], probeHosts: [Gateway.lan, '::1', 10.0.0.1], appArmorProfiles: [a], seccompProfiles: [a.json], \
             sysctls: [net.core.*], priorityClasses: [system-node-critical]}",
        )
        .unwrap();
        assert!(some.network("lan") && !some.network("lan2") && !some.network("*"));
        for (host, allowed) in [
            ("gateway.lan", true),
            ("GATEWAY.LAN.", true),
            ("a.gateway.lan", false),
            ("0:0::1", true),
            ("[::1]", true),
            ("10.0.0.1", true),
            ("10.0.0.10", false),
            ("127.0.0.1", false),
            ("localhost", false),
        ] {
            assert_eq!(some.probe_host(host), allowed, "{host}");
        }
        assert!(some.app_armor_profile("a") && !some.app_armor_profile("b"));
        assert!(some.seccomp_profile("a.json") && !some.seccomp_profile("b/a.json"));
        assert!(some.sysctl("net.core.somaxconn") && !some.sysctl("net.ipv4.tcp_rmem"));
        assert!(some.priority_class("system-node-critical") && !some.priority_class("system-cluster-critical"));
        let all = channels("{networks: ['*'], probeHosts: ['*']}").unwrap();
        assert!(all.network("any") && all.probe_host("127.0.0.1"));
    }

    #[test]
    fn mistakes_name_their_field() {
        for (text, expected) in [
            ("{hostPorts: [0]}", "allow.hostPorts[0]: 0 is neither a port nor a range such as 8000-8099"),
            ("{hostPorts: [80, 90-80]}", "allow.hostPorts[1]: \"90-80\" is neither"),
            ("{hostPorts: ['+80']}", "allow.hostPorts[0]"),
            ("{hostPorts: [80-]}", "allow.hostPorts[0]"),
            ("{hostPorts: [1-65536]}", "allow.hostPorts[0]"),
            ("{networks: ['']}", "allow.networks[0]: is empty"),
            ("{sysctls: [kernel.pid_max]}", "allow.sysctls[0]: \"kernel.pid_max\" is not namespaced"),
        ] {
            let error = channels(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
