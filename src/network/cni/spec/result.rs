//! Result of a plugin: interfaces, addresses, routes, name servers. **Pure**.
//!
//! Results of all versions are read into one type. Within a chain all plugins speak one version, so that a result goes on as it came; one of
//! another version is converted.

use super::version::CniVersion;
use super::{network, quoted};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::net::IpAddr;

/// A longer answer of a plugin is cut off, and refused.
pub(crate) const MAX_RESULT_BYTES: usize = 1 << 20;

/// Reason why an answer is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResultError {
    /// There is none.
    #[error("printed no result")]
    Empty,
    /// It is no JSON, or has another form.
    #[error("printed an invalid result: {0}")]
    Malformed(String),
    /// It is of a version that podstead does not speak.
    #[error("printed a result of the unsupported version {0:?}")]
    Version(String),
    /// An address is none.
    #[error("printed a result with the invalid address {0:?}")]
    Address(String),
}

/// An interface that was made or changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResultInterface {
    /// Its name.
    #[serde(default)]
    pub(crate) name: String,
    /// Its hardware address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) mac: String,
    /// Its MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mtu: Option<u32>,
    /// The namespace that it is in; empty for the host's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) sandbox: String,
    /// Path of its socket, if it is one of user space.
    #[serde(default, rename = "socketPath", skip_serializing_if = "String::is_empty")]
    pub(crate) socket_path: String,
    /// The device that it belongs to.
    #[serde(default, rename = "pciID", skip_serializing_if = "String::is_empty")]
    pub(crate) pci_id: String,
}

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResultIp {
    /// The address itself.
    pub(crate) address: IpAddr,
    /// Length of its network's prefix.
    pub(crate) prefix: u8,
    /// The network's router.
    pub(crate) gateway: Option<IpAddr>,
    /// Index of its interface.
    pub(crate) interface: Option<usize>,
}

/// Name servers and the like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResultDns {
    /// Addresses of name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) nameservers: Vec<String>,
    /// The network's own domain.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) domain: String,
    /// Domains that short names are looked up in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) search: Vec<String>,
    /// Options of the resolver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) options: Vec<String>,
}

/// Result of a plugin, or of a chain of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CniResult {
    /// Interfaces of pod and host.
    pub(crate) interfaces: Vec<ResultInterface>,
    /// Addresses.
    pub(crate) ips: Vec<ResultIp>,
    /// Routes, as written.
    pub(crate) routes: Vec<Map<String, Value>>,
    /// Name servers.
    pub(crate) dns: ResultDns,
}

#[derive(Deserialize)]
struct WrittenResult {
    #[serde(default)]
    interfaces: Option<Vec<ResultInterface>>,
    #[serde(default)]
    ips: Option<Vec<WrittenIp>>,
    #[serde(default)]
    routes: Option<Vec<Map<String, Value>>>,
    #[serde(default)]
    dns: Option<ResultDns>,
}

#[derive(Deserialize)]
struct WrittenIp {
    address: String,
    #[serde(default)]
    gateway: Option<String>,
    #[serde(default)]
    interface: Option<i64>,
}

/// Parses the output of a plugin: the result, and the JSON for the next plugin. `version` is that of the chain.
pub(crate) fn read(output: &[u8], version: CniVersion) -> Result<(CniResult, Value), ResultError> {
    if output.iter().all(u8::is_ascii_whitespace) {
        return Err(ResultError::Empty);
    }
    let malformed = |error: serde_json::Error| ResultError::Malformed(quoted(&error.to_string()));
    let value: Value = serde_json::from_slice(output).map_err(malformed)?;
    let spoken = match value.get("cniVersion") {
        None | Some(Value::Null) => version,
        Some(Value::String(text)) if text.is_empty() => version,
        Some(Value::String(text)) => CniVersion::parse(text).ok_or_else(|| ResultError::Version(quoted(text)))?,
        Some(_) => return Err(ResultError::Malformed("cniVersion is not a string".to_owned())),
    };
    let result = CniResult::from_value(&value)?;
    let passed_on = if spoken == version { value } else { result.to_value(version) };
    Ok((result, passed_on))
}

impl CniResult {
    /// Takes apart what was read.
    pub(crate) fn from_value(value: &Value) -> Result<Self, ResultError> {
        if !value.is_object() {
            return Err(ResultError::Malformed("it is not an object".to_owned()));
        }
        let malformed = |error: serde_json::Error| ResultError::Malformed(quoted(&error.to_string()));
        let written = WrittenResult::deserialize(value).map_err(malformed)?;
        let ips = written.ips.unwrap_or_default().into_iter().map(|written| {
            let (address, prefix) = network(&written.address).ok_or_else(|| ResultError::Address(quoted(&written.address)))?;
            let gateway = match written.gateway.as_deref() {
                None | Some("") => None,
                Some(text) => Some(text.parse().map_err(|_| ResultError::Address(quoted(text)))?),
            };
            Ok(ResultIp { address, prefix, gateway, interface: written.interface.and_then(|index| usize::try_from(index).ok()) })
        });
        Ok(Self {
            ips: ips.collect::<Result<_, _>>()?,
            interfaces: written.interfaces.unwrap_or_default(),
            routes: written.routes.unwrap_or_default(),
            dns: written.dns.unwrap_or_default(),
        })
    }

    /// As a version writes it. What a version has no words for is left out.
    pub(crate) fn to_value(&self, version: CniVersion) -> Value {
        let interfaces = self.interfaces.iter().map(|interface| match version {
            CniVersion::V1_1_0 => serde_json::json!(interface),
            CniVersion::V0_3_0 | CniVersion::V0_3_1 | CniVersion::V0_4_0 | CniVersion::V1_0_0 => {
                serde_json::json!(ResultInterface {
                    mtu: None,
                    socket_path: String::new(),
                    pci_id: String::new(),
                    ..interface.clone()
                })
            }
        });
        let ips = self.ips.iter().map(|ip| {
            let mut written = Map::new();
            if version.marks_families() {
                written.insert("version".to_owned(), if ip.address.is_ipv4() { "4" } else { "6" }.into());
            }
            if let Some(index) = ip.interface {
                written.insert("interface".to_owned(), index.into());
            }
            written.insert("address".to_owned(), format!("{}/{}", ip.address, ip.prefix).into());
            if let Some(gateway) = ip.gateway {
                written.insert("gateway".to_owned(), gateway.to_string().into());
            }
            Value::Object(written)
        });
        let is_known = |field: &str| version >= CniVersion::V1_1_0 || matches!(field, "dst" | "gw");
        let routes = self.routes.iter().map(|route| {
            Value::Object(
                route.iter().filter(|(field, _)| is_known(field)).map(|(field, value)| (field.clone(), value.clone())).collect(),
            )
        });
        serde_json::json!({
            "cniVersion": version.as_str(),
            "interfaces": interfaces.collect::<Vec<_>>(),
            "ips": ips.collect::<Vec<_>>(),
            "routes": routes.collect::<Vec<_>>(),
            "dns": self.dns,
        })
    }

    /// Addresses of the pod, as the result has them: those of interfaces on the host are not among them.
    pub(crate) fn pod_ips(&self) -> Vec<IpAddr> {
        let is_pods = |ip: &&ResultIp| match ip.interface.and_then(|index| self.interfaces.get(index)) {
            Some(interface) => !interface.sandbox.is_empty(),
            None => true,
        };
        self.ips.iter().filter(is_pods).map(|ip| ip.address).collect()
    }

    /// Routers of the default routes that plugins made, at most one of each family.
    pub(crate) fn default_gateways(&self) -> Vec<IpAddr> {
        let default = |route: &Map<String, Value>, is_ipv4: bool| {
            let (to, prefix) = network(route.get("dst").and_then(Value::as_str)?)?;
            let is_default = prefix == 0 && to.is_ipv4() == is_ipv4;
            let written = route.get("gw").and_then(Value::as_str).and_then(|text| text.parse().ok());
            let of_address = || self.ips.iter().find(|ip| ip.address.is_ipv4() == is_ipv4).and_then(|ip| ip.gateway);
            is_default.then(|| written.or_else(of_address)).flatten()
        };
        [true, false].into_iter().filter_map(|is_ipv4| self.routes.iter().find_map(|route| default(route, is_ipv4))).collect()
    }

    /// Interfaces in the pod.
    pub(crate) fn pod_interfaces(&self) -> impl Iterator<Item = &ResultInterface> {
        self.interfaces.iter().filter(|interface| !interface.sandbox.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As Debian's bridge plugin prints it.
    const BRIDGE: &str = r#"{"cniVersion": "0.4.0", "interfaces": [{"name": "br7", "mac": "8a:00:00:00:00:01"},
        {"name": "veth1", "mac": "8a:00:00:00:00:02"}, {"name": "eth0", "mac": "8a:00:00:00:00:03", "sandbox": "/run/netns/a"}],
        "ips": [{"version": "4", "interface": 2, "address": "10.7.0.5/24", "gateway": "10.7.0.1"}],
        "routes": [{"dst": "0.0.0.0/0"}], "dns": {}}"#;

    #[test]
    fn a_result_of_the_chains_version_goes_on_as_it_came() {
        let (result, on) = read(BRIDGE.as_bytes(), CniVersion::V0_4_0).unwrap();
        assert_eq!(on, serde_json::from_str::<Value>(BRIDGE).unwrap());
        assert_eq!(result.default_gateways(), ["10.7.0.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(result.pod_ips(), ["10.7.0.5".parse::<IpAddr>().unwrap()]);
        assert_eq!(result.pod_interfaces().map(|interface| interface.name.as_str()).collect::<Vec<_>>(), ["eth0"]);
        assert_eq!(result.ips[0].gateway, "10.7.0.1".parse().ok());
    }

    #[test]
    fn a_result_of_another_version_is_written_anew() {
        let (_, on) = read(BRIDGE.as_bytes(), CniVersion::V1_0_0).unwrap();
        assert_eq!(on["cniVersion"], "1.0.0");
        assert_eq!(on["ips"][0], serde_json::json!({"interface": 2, "address": "10.7.0.5/24", "gateway": "10.7.0.1"}));
        let new = r#"{"cniVersion": "1.1.0", "interfaces": [{"name": "eth0", "mtu": 1400, "sandbox": "/n", "pciID": "0"}],
            "ips": [{"address": "fd00::5/64", "interface": 0}], "routes": [{"dst": "::/0", "gw": "fd00::1", "mtu": 9}]}"#;
        let (_, on) = read(new.as_bytes(), CniVersion::V0_3_1).unwrap();
        assert_eq!(on["interfaces"][0], serde_json::json!({"name": "eth0", "sandbox": "/n"}));
        assert_eq!(
            (&on["ips"][0]["version"], &on["routes"][0]),
            (&"6".into(), &serde_json::json!({"dst": "::/0", "gw": "fd00::1"}))
        );
    }

    #[test]
    fn what_is_no_result_is_told() {
        let problem = |text: &str| read(text.as_bytes(), CniVersion::V1_0_0).unwrap_err().to_string();
        assert_eq!(problem(" \n"), "printed no result");
        assert!(problem("panic: x").starts_with("printed an invalid result: expected value"));
        assert_eq!(problem("[]"), "printed an invalid result: it is not an object");
        assert_eq!(problem(r#"{"cniVersion": "0.2.0"}"#), "printed a result of the unsupported version \"0.2.0\"");
        assert_eq!(problem(r#"{"ips": [{"address": "10.0.0.1"}]}"#), "printed a result with the invalid address \"10.0.0.1\"");
        assert_eq!(
            problem(r#"{"ips": [{"address": "10.0.0.1/33"}]}"#),
            "printed a result with the invalid address \"10.0.0.1/33\""
        );
        assert_eq!(read(br#"{"ips": null}"#, CniVersion::V1_0_0).unwrap().0, CniResult::default(), "as Go writes an empty list");
    }

    fn any_result() -> impl Strategy<Value = CniResult> {
        let interface = ("[a-z]{1,8}", any::<bool>(), proptest::option::of(any::<u32>())).prop_map(|(name, inside, mtu)| {
            ResultInterface { name, mtu, sandbox: if inside { "/n".into() } else { String::new() }, ..ResultInterface::default() }
        });
        let ip = (any::<IpAddr>(), 0_u8..=32, proptest::option::of(any::<IpAddr>()), proptest::option::of(0_usize..4))
            .prop_map(|(address, prefix, gateway, interface)| ResultIp { address, prefix, gateway, interface });
        (
            proptest::collection::vec(interface, 0..4),
            proptest::collection::vec(ip, 0..4),
            proptest::collection::vec("[a-z.]{1,9}", 0..3),
        )
            .prop_map(|(interfaces, ips, search)| CniResult {
                interfaces,
                ips,
                routes: Vec::new(),
                dns: ResultDns { search, ..ResultDns::default() },
            })
    }

    proptest! {
        #[test]
        fn addresses_and_names_survive_every_version(result in any_result()) {
            for version in CniVersion::ALL {
                let read = CniResult::from_value(&result.to_value(version)).unwrap();
                prop_assert_eq!(&read.ips, &result.ips);
                prop_assert_eq!(&read.dns, &result.dns);
                prop_assert_eq!(read.pod_ips(), result.pod_ips());
                let mtus = |result: &CniResult| result.interfaces.iter().map(|interface| interface.mtu).collect::<Vec<_>>();
                prop_assert!(version != CniVersion::V1_1_0 || mtus(&read) == mtus(&result));
            }
        }
    }
}
