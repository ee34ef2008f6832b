//! Networks that a pod asks for beside its own: the annotation `k8s.v1.cni.cncf.io/networks` of the Network Plumbing Working Group, in its
//! short and in its JSON form. **Pure**, and of no other module's types.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Annotation that names additional networks.
pub const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";
/// Annotation that names another network for the pod's first interface.
pub const DEFAULT_NETWORK: &str = "v1.multus-cni.io/default-network";

/// A pod's first interface.
pub const FIRST_INTERFACE: &str = "eth0";

/// A longer annotation is refused; Kubernetes allows this much for all together.
const MAX_BYTES: usize = 256 << 10;
/// More interfaces are a mistake.
const MAX_NETWORKS: usize = 32;

/// Reason why an annotation cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("annotation {annotation}: {place}{message}")]
pub struct SelectionError {
    annotation: &'static str,
    place: String,
    message: String,
}

impl SelectionError {
    /// The problem, with the item of the list that has it.
    pub fn problem(&self) -> String {
        format!("{}{}", self.place, self.message)
    }
}

/// Bits in a second, and bits that may be sent at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelectedBandwidth {
    /// To the pod.
    #[serde(default)]
    pub ingress_rate: Option<u64>,
    /// To the pod, at once.
    #[serde(default)]
    pub ingress_burst: Option<u64>,
    /// From the pod.
    #[serde(default)]
    pub egress_rate: Option<u64>,
    /// From the pod, at once.
    #[serde(default)]
    pub egress_burst: Option<u64>,
}

/// A port of the host that leads to this interface.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelectedPort {
    /// The host's port.
    pub host_port: u16,
    /// The pod's port.
    pub container_port: u16,
    /// `tcp`, `udp` or `sctp`, in either case.
    #[serde(default)]
    pub protocol: Option<String>,
    /// The host's address; all of them without.
    #[serde(default, rename = "hostIP")]
    pub host_ip: Option<String>,
}

/// One network that a pod asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Name of the network, by its configuration.
    pub name: String,
    /// As written; networks of this host have no namespaces.
    pub namespace: Option<String>,
    /// Name of the interface.
    pub interface: String,
    /// Addresses that it shall have, with or without prefix.
    pub ips: Vec<String>,
    /// Hardware address that it shall have.
    pub mac: Option<String>,
    /// GUID of an InfiniBand interface.
    pub infiniband_guid: Option<String>,
    /// Routers for whatever has no other route, at most one of each family. `None`: the interface has nothing to do with it; empty: the
    /// default routes that its plugins make are the pod's only ones.
    pub default_route: Option<Vec<IpAddr>>,
    /// Limits of traffic.
    pub bandwidth: Option<SelectedBandwidth>,
    /// Ports of the host.
    pub ports: Vec<SelectedPort>,
    /// For `args.cni` of the configuration.
    pub cni_args: Map<String, Value>,
}

/// One item of the JSON form. What is not in here is refused: it would be ignored.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default, alias = "interfaceRequest")]
    interface: Option<String>,
    #[serde(default)]
    ips: Option<Vec<String>>,
    #[serde(default)]
    mac: Option<String>,
    #[serde(default, rename = "infiniband-guid")]
    infiniband_guid: Option<String>,
    #[serde(default, rename = "default-route")]
    default_route: Option<Vec<String>>,
    #[serde(default)]
    bandwidth: Option<SelectedBandwidth>,
    #[serde(default, rename = "portMappings")]
    port_mappings: Option<Vec<SelectedPort>>,
    #[serde(default, rename = "cni-args")]
    cni_args: Option<Map<String, Value>>,
    /// Of a cluster.
    #[serde(default, rename = "ipam-claim-reference")]
    ipam_claim_reference: Option<Value>,
    /// Of a device plugin.
    #[serde(default, rename = "deviceID")]
    device_id: Option<Value>,
}

/// The additional networks; interfaces without a name of their own are called `net1` and so on, by their place in the list.
pub fn additional(text: &str) -> Result<Vec<Selection>, SelectionError> {
    let mut selections = parse(NETWORKS, text)?;
    let mut taken: BTreeSet<String> = BTreeSet::from([FIRST_INTERFACE.to_owned(), "lo".to_owned()]);
    for (index, selection) in selections.iter_mut().enumerate() {
        if selection.interface.is_empty() {
            selection.interface = format!("net{}", index + 1);
        }
        if !taken.insert(selection.interface.clone()) {
            let message = format!("interface {} is listed already", selection.interface);
            return Err(SelectionError { annotation: NETWORKS, place: format!("[{index}]: "), message });
        }
    }
    let routed = |(index, selection): (usize, &Selection)| selection.default_route.is_some().then_some(index);
    if let [_, second, ..] = selections.iter().enumerate().filter_map(routed).collect::<Vec<_>>().as_slice() {
        let message = "only one network can have default-route".to_owned();
        return Err(SelectionError { annotation: NETWORKS, place: format!("[{second}]: "), message });
    }
    Ok(selections)
}

/// The network of the pod's first interface.
pub fn default_network(text: &str) -> Result<Selection, SelectionError> {
    let wrong = |message: &str| SelectionError { annotation: DEFAULT_NETWORK, place: String::new(), message: message.to_owned() };
    let mut selections = parse(DEFAULT_NETWORK, text)?;
    match (selections.pop(), selections.len()) {
        (Some(selection), 0) if selection.default_route.is_some() => {
            drop(selection);
            Err(wrong("default-route is allowed on additional networks only: the first interface has the default route"))
        }
        (Some(selection), 0) if selection.interface.is_empty() || selection.interface == FIRST_INTERFACE => {
            Ok(Selection { interface: FIRST_INTERFACE.to_owned(), ..selection })
        }
        (Some(_), 0) => Err(wrong("the first interface must be named eth0")),
        (Some(_) | None, _) => Err(wrong("must name one network")),
    }
}

fn parse(annotation: &'static str, text: &str) -> Result<Vec<Selection>, SelectionError> {
    let wrong = |place: String, message: String| SelectionError { annotation, place, message };
    if text.len() > MAX_BYTES {
        return Err(wrong(String::new(), format!("is longer than {MAX_BYTES} bytes")));
    }
    let text = text.trim();
    let selections: Vec<Selection> = if text.starts_with('[') || text.starts_with('{') {
        let items: Vec<Value> = match serde_json::from_str(text) {
            Ok(Value::Array(items)) => items,
            Ok(_) => return Err(wrong(String::new(), "is not a list".to_owned())),
            Err(error) => return Err(wrong(String::new(), quoted(&error.to_string()))),
        };
        let item = |(index, item): (usize, Value)| {
            let written = Written::deserialize(item).map_err(|error| wrong(format!("[{index}]: "), quoted(&error.to_string())))?;
            written.checked().map_err(|message| wrong(format!("[{index}]: "), message))
        };
        items.into_iter().take(MAX_NETWORKS + 1).enumerate().map(item).collect::<Result<_, _>>()?
    } else {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty()).take(MAX_NETWORKS + 1);
        items.map(|item| short(item).map_err(|message| wrong(String::new(), message))).collect::<Result<_, _>>()?
    };
    if selections.len() > MAX_NETWORKS {
        return Err(wrong(String::new(), format!("lists more than {MAX_NETWORKS} networks")));
    }
    Ok(selections)
}

/// `[<namespace>/]<name>[@<interface>]`.
fn short(item: &str) -> Result<Selection, String> {
    let (rest, interface) = match item.split_once('@') {
        Some((_, "")) => return Err(format!("{:?} has no interface name after @", quoted(item))),
        Some((rest, interface)) => (rest, Some(interface.to_owned())),
        None => (item, None),
    };
    let (namespace, name) = match rest.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, rest),
    };
    Written { name: name.to_owned(), namespace, interface, ..Written::default() }.checked()
}

impl Written {
    fn checked(self) -> Result<Selection, String> {
        let Self { name, namespace, interface, ips, mac, infiniband_guid, default_route, bandwidth, port_mappings, .. } = self;
        if self.ipam_claim_reference.is_some() {
            return Err("ipam-claim-reference needs a cluster: set the address in ips".to_owned());
        }
        if self.device_id.is_some() {
            return Err("deviceID needs a device plugin: set the device in the network's configuration".to_owned());
        }
        if !is_name(&name) {
            return Err(format!("{:?} is not a valid network name", quoted(&name)));
        }
        if let Some(namespace) = namespace.as_ref().filter(|namespace| !is_name(namespace)) {
            return Err(format!("{:?} is not a valid namespace", quoted(namespace)));
        }
        let interface = interface.unwrap_or_default();
        if !interface.is_empty() && !is_interface_name(&interface) {
            return Err(format!("{:?} is not a valid interface name", quoted(&interface)));
        }
        let ips = ips.unwrap_or_default();
        if let Some(ip) = ips.iter().find(|ip| ip.parse::<IpAddr>().is_err() && network(ip).is_none()) {
            return Err(format!("{:?} is not an IP address", quoted(ip)));
        }
        let mac = mac.filter(|mac| !mac.is_empty());
        if let Some(mac) = mac.as_ref().filter(|mac| !is_mac(mac)) {
            return Err(format!("{:?} is not a MAC address", quoted(mac)));
        }
        let infiniband_guid = infiniband_guid.filter(|guid| !guid.is_empty());
        if let Some(guid) = infiniband_guid.as_ref().filter(|guid| !are_bytes(guid, 8)) {
            return Err(format!("{:?} is not an InfiniBand GUID", quoted(guid)));
        }
        let ports = port_mappings.unwrap_or_default();
        for port in &ports {
            port.check()?;
        }
        let default_route = default_route.map(|gateways| gateways_of(&gateways)).transpose()?;
        let cni_args = self.cni_args.unwrap_or_default();
        Ok(Selection { name, namespace, interface, ips, mac, infiniband_guid, default_route, bandwidth, ports, cni_args })
    }
}

impl SelectedPort {
    fn check(&self) -> Result<(), String> {
        let Self { host_port, container_port, protocol, host_ip } = self;
        if *host_port == 0 || *container_port == 0 {
            return Err("portMappings: hostPort and containerPort must be between 1 and 65535".to_owned());
        }
        let protocol = protocol.as_deref().unwrap_or_default().to_ascii_lowercase();
        if !matches!(protocol.as_str(), "" | "tcp" | "udp" | "sctp") {
            return Err(format!("portMappings: {:?} is not a protocol (tcp, udp, sctp)", quoted(&protocol)));
        }
        match host_ip.as_deref() {
            Some(ip) if !ip.is_empty() && ip.parse::<IpAddr>().is_err() => {
                Err(format!("portMappings: {:?} is not an IP address", quoted(ip)))
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn gateways_of(texts: &[String]) -> Result<Vec<IpAddr>, String> {
    let mut gateways: Vec<IpAddr> = Vec::new();
    for text in texts {
        let gateway: IpAddr =
            text.parse().map_err(|_| format!("default-route: {:?} is not the IP address of a gateway", quoted(text)))?;
        if gateways.iter().any(|other| other.is_ipv4() == gateway.is_ipv4()) {
            return Err("default-route has two gateways of the same address family".to_owned());
        }
        gateways.push(gateway);
    }
    Ok(gateways)
}

/// As many pairs of hexadecimal digits between colons.
fn are_bytes(text: &str, count: usize) -> bool {
    let is_byte = |group: &str| group.len() == 2 && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.split(':').count() == count && text.split(':').all(is_byte)
}

fn is_mac(text: &str) -> bool {
    are_bytes(text, 6)
}

/// An address with the length of its network's prefix.
pub fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let prefix = prefix.parse().ok().filter(|prefix| *prefix <= if address.is_ipv4() { 32 } else { 128 })?;
    Some((address, prefix))
}

/// Returns true if a text is a valid name of a network or a container (the specification's expression).
pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.len() <= 253
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// Returns true if a text is a valid interface name: accepted by the kernel, and without blanks or control characters.
pub fn is_interface_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'%');
    !text.is_empty() && text.len() <= 15 && text != "." && text != ".." && text.bytes().all(is_plain)
}

/// A text of somebody else's for a message: one line, of a bounded length.
pub fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 1000;
    let mut line: String = text.trim().chars().take(MAX_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim().chars().nth(MAX_CHARS).is_some() {
        line.push_str("...");
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn short_forms(text: &str) -> Vec<(String, Option<String>, String)> {
        let tuple = |selection: Selection| (selection.name, selection.namespace, selection.interface);
        additional(text).unwrap().into_iter().map(tuple).collect()
    }

    fn problem(text: &str) -> String {
        let text = additional(text).unwrap_err().to_string();
        text.strip_prefix("annotation k8s.v1.cni.cncf.io/networks: ").unwrap().to_owned()
    }

    #[test]
    fn the_short_form_names_networks_and_perhaps_interfaces() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            short_forms("plant, default/cameras@cam0,,plant"),
            [
                ("plant".to_owned(), None, "net1".to_owned()),
                ("cameras".to_owned(), some("default"), "cam0".to_owned()),
                ("plant".to_owned(), None, "net3".to_owned()),
            ]
        );
        assert_eq!(short_forms(""), []);
    }

    #[test]
    fn the_json_form_asks_for_addresses_and_arguments() {
        let text = r#"[{"name": "plant", "namespace": "x", "interface": "vlan7", "ips": ["10.7.0.9/24", "fd00::9"],
            "mac": "02:00:00:00:00:09", "cni-args": {"vlan": 7}}, {"name": "b"}]"#;
        let selections = additional(text).unwrap();
        assert_eq!(
            selections[0],
            Selection {
                name: "plant".into(),
                namespace: Some("x".into()),
                interface: "vlan7".into(),
                ips: vec!["10.7.0.9/24".into(), "fd00::9".into()],
                mac: Some("02:00:00:00:00:09".into()),
                cni_args: serde_json::from_str(r#"{"vlan": 7}"#).unwrap(),
                ..Selection::default()
            }
        );
        assert_eq!(selections[1].interface, "net2");
    }

    #[test]
    fn what_cannot_be_followed_is_refused_in_words() {
        for (text, words) in [
            ("a b", "\"a b\" is not a valid network name"),
            ("a@", "\"a@\" has no interface name after @"),
            ("a@eth0", "[0]: interface eth0 is listed already"),
            ("a@x,b@x", "[1]: interface x is listed already"),
            ("a@longer-than-fifteen", "\"longer-than-fifteen\" is not a valid interface name"),
            (r#"[{"name": "a", "ips": ["ten"]}]"#, "[0]: \"ten\" is not an IP address"),
            (r#"[{"name": "a", "mac": "02:00"}]"#, "[0]: \"02:00\" is not a MAC address"),
            (r#"{"name": "a"}"#, "is not a list"),
            (r#"[{"interface": "x"}]"#, "[0]: missing field `name`"),
        ] {
            assert_eq!(problem(text), words, "{text}");
        }
        for (field, words) in [
            (r#""infiniband-guid": "c2:11""#, "[0]: \"c2:11\" is not an InfiniBand GUID"),
            (r#""default-route": ["ten"]"#, "[0]: default-route: \"ten\" is not the IP address of a gateway"),
            (r#""default-route": ["10.0.0.1", "10.0.0.2"]"#, "[0]: default-route has two gateways of the same address family"),
            (
                r#""portMappings": [{"hostPort": 0, "containerPort": 1}]"#,
                "[0]: portMappings: hostPort and containerPort must be between 1 and 65535",
            ),
            (
                r#""portMappings": [{"hostPort": 1, "containerPort": 1, "protocol": "icmp"}]"#,
                "[0]: portMappings: \"icmp\" is not a protocol (tcp, udp, sctp)",
            ),
            (r#""ipam-claim-reference": "x""#, "[0]: ipam-claim-reference needs a cluster: set the address in ips"),
            (r#""deviceID": "0000:03:02.3""#, "[0]: deviceID needs a device plugin: set the device in the network's configuration"),
        ] {
            assert_eq!(problem(&format!(r#"[{{"name": "a", {field}}}]"#)), words);
        }
        assert!(problem(r#"[{"name": "a", "gateway": ["10.0.0.1"]}]"#).starts_with("[0]: unknown field `gateway`"));
        let two = r#"[{"name": "a", "default-route": []}, {"name": "b"}, {"name": "c", "default-route": ["10.0.0.1"]}]"#;
        assert_eq!(problem(two), "[2]: only one network can have default-route");
        assert!(problem("[{]").contains("line 1"), "{}", problem("[{]"));
        assert_eq!(problem(&"a,".repeat(33)), "lists more than 32 networks");
    }

    #[test]
    fn the_json_form_has_all_that_needs_no_cluster() {
        let text = r#"[{"name": "a", "interfaceRequest": "ib0", "infiniband-guid": "c2:11:22:33:44:55:66:77", "default-route": ["10.7.0.1", "fd07::1"],
            "bandwidth": {"ingressRate": 2048, "egressRate": 4096, "egressBurst": 9},
            "portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "UDP", "hostIP": "192.0.2.2"}]}]"#;
        let selection = additional(text).unwrap().remove(0);
        assert_eq!((selection.interface.as_str(), selection.infiniband_guid.as_deref()), ("ib0", Some("c2:11:22:33:44:55:66:77")));
        assert_eq!(selection.default_route, Some(vec!["10.7.0.1".parse().unwrap(), "fd07::1".parse().unwrap()]));
        let bandwidth = selection.bandwidth.unwrap();
        assert_eq!((bandwidth.ingress_rate, bandwidth.ingress_burst, bandwidth.egress_burst), (Some(2048), None, Some(9)));
        assert_eq!((selection.ports[0].host_port, selection.ports[0].protocol.as_deref()), (8080, Some("UDP")));
        assert_eq!(additional(r#"[{"name": "a", "default-route": []}]"#).unwrap()[0].default_route, Some(Vec::new()));
    }

    #[test]
    fn names_of_networks_and_interfaces_have_no_surprises() {
        assert!(is_name("a") && is_name("plant.vlan-7_x") && !is_name("") && !is_name("-a") && !is_name("a/b") && !is_name("a b"));
        assert!(is_interface_name("net1") && is_interface_name("eth0.7") && !is_interface_name("sixteen-letters-"));
        assert!(!is_interface_name("") && !is_interface_name("..") && !is_interface_name("a/b") && !is_interface_name("a b"));
        assert_eq!(quoted(" a\nb\u{7} "), "a b");
        assert!(quoted(&"x".repeat(5000)).len() < 1010);
    }

    #[test]
    fn one_network_is_the_pods_first() {
        assert_eq!(default_network("ns/plant").unwrap().interface, "eth0");
        assert_eq!(default_network(r#"[{"name": "plant", "ips": ["10.7.0.9/24"]}]"#).unwrap().ips, ["10.7.0.9/24"]);
        for text in ["", "a,b", "a@net1", r#"[{"name": "a", "default-route": []}]"#] {
            default_network(text).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn interfaces_are_valid_and_never_given_twice(text in "[a-c@/,0 ]{0,40}") {
            if let Ok(selections) = additional(&text) {
                let names: BTreeSet<&str> = selections.iter().map(|selection| selection.interface.as_str()).collect();
                prop_assert_eq!(names.len(), selections.len());
                prop_assert!(names.iter().all(|name| is_interface_name(name) && *name != FIRST_INTERFACE));
            }
        }
    }
}
