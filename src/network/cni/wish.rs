//! Requests of a pod to CNI plugins. **Pure**.

use super::spec::capability::{
    BANDWIDTH, Bandwidth, CapabilityArguments, INFINIBAND_GUID, IPS, MAC, POD_ANNOTATIONS, PORT_MAPPINGS, PortMapping,
};
use super::spec::conflist::Conflist;
use super::spec::invocation::{Ask, Place};
use podstead_pod::host_ports::{self, EGRESS_BANDWIDTH, HostPort, INGRESS_BANDWIDTH, Protocol, host_ports};
use podstead_pod::networks::{
    self, DEFAULT_NETWORK, FIRST_INTERFACE, NETWORKS, SelectedBandwidth, SelectedPort, Selection, SelectionError,
};
use podstead_pod::{Pod, PodFullName, PodUid};
use std::net::IpAddr;

/// Reason why a request cannot be met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WishError {
    /// An annotation about networks is wrong.
    #[error(transparent)]
    Selection(SelectionError),
    /// An annotation about bandwidth is wrong.
    #[error("annotation {annotation}: {problem}")]
    Bandwidth { annotation: &'static str, problem: String },
}

/// An attachment that a pod wants.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wish {
    /// Name of the network; `None` for the host's first one.
    pub(super) network: Option<String>,
    /// Namespace that the pod's status names the network with.
    pub(super) namespace: Option<String>,
    /// Arguments for the plugins.
    pub(super) ask: Ask,
    /// The routers of the pod's default routes, if they are to be on this interface; none: those that plugins make.
    pub(super) default_route: Option<Vec<IpAddr>>,
}

impl Wish {
    /// Returns true if it is the pod's first interface.
    pub(super) fn is_primary(&self) -> bool {
        self.ask.place.interface == FIRST_INTERFACE
    }

    /// Reason why no plugin of the network can do what is asked for; `None` if that is possible.
    pub(super) fn refusal(&self, network: &Conflist) -> Option<String> {
        let CapabilityArguments { port_mappings, bandwidth: _, ips, mac, infiniband_guid, annotations: _ } = &self.ask.capabilities;
        let name = &network.name;
        let lacks = |capability: &str| !network.is_capable(capability);
        if let Some(port) = port_mappings.first().filter(|_| lacks(PORT_MAPPINGS)) {
            let PortMapping { host_port, protocol, .. } = port;
            let port = format!("{host_port}/{}", protocol.to_uppercase());
            return Some(format!(
                "cannot forward hostPort {port} to the pod: no plugin of network {name} supports the capability {PORT_MAPPINGS}"
            ));
        }
        if let Some(ip) = ips.first().filter(|_| lacks(IPS)) {
            return Some(format!(
                "cannot assign the address {ip} to the pod: no plugin of network {name} supports the capability {IPS}"
            ));
        }
        if let Some(mac) = mac.as_ref().filter(|_| lacks(MAC)) {
            return Some(format!(
                "cannot assign the MAC address {mac} to the pod: no plugin of network {name} supports the capability {MAC}"
            ));
        }
        if let Some(guid) = infiniband_guid.as_ref().filter(|_| lacks(INFINIBAND_GUID)) {
            return Some(format!(
                "cannot assign the GUID {guid} to the pod: no plugin of network {name} supports the capability {INFINIBAND_GUID}"
            ));
        }
        None
    }

    /// Returns true if bandwidth limits have no effect.
    pub(super) fn is_unlimited_by(&self, network: &Conflist) -> bool {
        self.ask.capabilities.bandwidth.is_some() && !network.is_capable(BANDWIDTH)
    }

    /// Arguments of the attachment in this network: the pod's annotations only where a plugin requests them.
    pub(super) fn ask_of(&self, network: &Conflist, pod: &Pod) -> Ask {
        let mut ask = self.ask.clone();
        if network.is_capable(POD_ANNOTATIONS) {
            ask.capabilities.annotations = pod.metadata.annotations.clone().unwrap_or_default();
        }
        ask
    }
}

/// Requests of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wishes {
    /// The pod's first interface, if plugins make it, then the others.
    pub(super) attachments: Vec<Wish>,
    /// Ports of the host that lead to the pod.
    pub(super) ports: Vec<HostPort>,
    /// It wants its traffic to be limited.
    pub(super) has_bandwidth: bool,
}

impl Wishes {
    /// Of a pod that is not on the host's network. `is_default`: plugins make the first interface of all pods.
    pub(super) fn of(uid: &PodUid, name: &PodFullName, pod: &Pod, is_default: bool) -> Result<Self, WishError> {
        let annotation = |key: &str| pod.metadata.annotations.as_ref()?.get(key).map(String::as_str);
        let bandwidth = bandwidth(annotation)?;
        let mut wishes = Self { has_bandwidth: bandwidth.is_some(), ..Self::default() };
        let wish = |network, selection: Selection, capabilities: CapabilityArguments| {
            let Selection { name: _, namespace, interface, ips, mac, infiniband_guid, default_route, .. } = selection;
            let mut port_mappings = capabilities.port_mappings;
            port_mappings.extend(selection.ports.iter().map(selected_port).map(|port| mapping(&port)));
            let bandwidth = capabilities.bandwidth.or_else(|| selection.bandwidth.map(selected_bandwidth));
            let capabilities = CapabilityArguments { port_mappings, bandwidth, ips, mac, infiniband_guid, ..capabilities };
            let place = Place { container_id: uid.to_string(), interface, arguments: arguments(uid, name) };
            Wish { network, namespace, ask: Ask { place, capabilities, cni_args: selection.cni_args }, default_route }
        };
        let first = match annotation(DEFAULT_NETWORK) {
            Some(text) => {
                let selection = networks::default_network(text).map_err(WishError::Selection)?;
                Some((Some(selection.name.clone()), selection))
            }
            None if is_default => Some((None, Selection { interface: FIRST_INTERFACE.to_owned(), ..Selection::default() })),
            None => None,
        };
        if let Some((network, selection)) = first {
            wishes.ports = host_ports(pod);
            let port_mappings = wishes.ports.iter().map(mapping).collect();
            let capabilities = CapabilityArguments { port_mappings, bandwidth, ..CapabilityArguments::default() };
            wishes.ports.extend(selection.ports.iter().map(selected_port));
            wishes.attachments.push(wish(network, selection, capabilities));
        }
        if let Some(text) = annotation(NETWORKS) {
            for selection in networks::additional(text).map_err(WishError::Selection)? {
                let namespace = Some(selection.namespace.clone().unwrap_or_else(|| name.namespace.clone()));
                let network = Some(selection.name.clone());
                wishes.ports.extend(selection.ports.iter().map(selected_port));
                wishes.attachments.push(wish(network, Selection { namespace, ..selection }, CapabilityArguments::default()));
            }
        }
        Ok(wishes)
    }
}

/// The annotation that requests networks; `None` if there is none.
pub(super) fn asks_for_networks(pod: &Pod) -> Option<&'static str> {
    let annotations = pod.metadata.annotations.as_ref()?;
    [NETWORKS, DEFAULT_NETWORK].into_iter().find(|key| annotations.get(*key).is_some_and(|value| !value.trim().is_empty()))
}

/// As the kubelet's runtimes say who the pod is.
fn arguments(uid: &PodUid, name: &PodFullName) -> Vec<(String, String)> {
    let PodFullName { name, namespace } = name;
    let pairs = [
        ("K8S_POD_NAMESPACE", namespace.as_str()),
        ("K8S_POD_NAME", name.as_str()),
        ("K8S_POD_INFRA_CONTAINER_ID", uid.as_str()),
        ("K8S_POD_UID", uid.as_str()),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
}

/// As [`networks`] has checked it.
fn selected_port(port: &SelectedPort) -> HostPort {
    let SelectedPort { host_port, container_port, protocol, host_ip } = port;
    let protocol = match protocol.as_deref().unwrap_or_default().to_ascii_lowercase().as_str() {
        "udp" => Protocol::Udp,
        "sctp" => Protocol::Sctp,
        _ => Protocol::Tcp,
    };
    let host_ip = host_ip.as_deref().and_then(|ip| ip.parse().ok());
    HostPort { protocol, host_ip, host_port: *host_port, container_port: *container_port }
}

const fn selected_bandwidth(bandwidth: SelectedBandwidth) -> Bandwidth {
    let SelectedBandwidth { ingress_rate, ingress_burst, egress_rate, egress_burst } = bandwidth;
    Bandwidth { ingress: ingress_rate, egress: egress_rate, ingress_burst, egress_burst }
}

fn mapping(port: &HostPort) -> PortMapping {
    let HostPort { protocol, host_ip, host_port, container_port } = port;
    PortMapping {
        host_port: *host_port,
        container_port: *container_port,
        protocol: protocol.to_string().to_lowercase(),
        host_ip: *host_ip,
    }
}

fn bandwidth<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Result<Option<Bandwidth>, WishError> {
    let limit = |key: &'static str| {
        let limit = annotation(key).map(host_ports::bandwidth).transpose();
        limit.map_err(|problem| WishError::Bandwidth { annotation: key, problem })
    };
    let bandwidth = Bandwidth { ingress: limit(INGRESS_BANDWIDTH)?, egress: limit(EGRESS_BANDWIDTH)?, ..Bandwidth::default() };
    Ok((bandwidth != Bandwidth::default()).then_some(bandwidth))
}

#[cfg(test)]
mod tests {
    use super::super::spec::conflist::Form;
    use super::*;

    fn of(annotations: &str, is_default: bool) -> Result<Wishes, String> {
        let text = format!(
            "{{metadata: {{name: web, annotations: {{{annotations}}}}}, spec: {{containers: [{{name: a, ports: [{{containerPort: 80, hostPort: 8080, protocol: UDP}}]}}]}}}}"
        );
        let pod: Pod = serde_yaml::from_str(&text).unwrap();
        let name = PodFullName { name: "web".into(), namespace: "shop".into() };
        Wishes::of(&PodUid::new("u1"), &name, &pod, is_default).map_err(|error| error.to_string())
    }

    fn network(capabilities: &str) -> Conflist {
        let text = format!(r#"{{"cniVersion": "1.0.0", "name": "n", "type": "x", "capabilities": {{{capabilities}}}}}"#);
        Conflist::parse(text.as_bytes(), Form::Single).unwrap()
    }

    #[test]
    fn plugins_make_the_first_interface_where_they_are_configured_to() {
        assert_eq!(of("", false).unwrap(), Wishes::default());
        let wishes = of("kubernetes.io/ingress-bandwidth: 10M", true).unwrap();
        let first = &wishes.attachments[0];
        assert!(first.is_primary() && first.network.is_none() && wishes.ports.len() == 1);
        assert_eq!(first.ask.capabilities.bandwidth, Some(Bandwidth { ingress: Some(10_000_000), ..Bandwidth::default() }));
        assert_eq!(first.ask.capabilities.port_mappings[0].protocol, "udp");
        assert_eq!(first.ask.place.arguments[1], ("K8S_POD_NAME".to_owned(), "web".to_owned()));
    }

    #[test]
    fn annotations_add_interfaces_and_choose_the_first_ones_network() {
        let wishes =
            of("k8s.v1.cni.cncf.io/networks: 'plant@vlan7,b/other', v1.multus-cni.io/default-network: lan", false).unwrap();
        let told: Vec<_> = wishes
            .attachments
            .iter()
            .map(|wish| (wish.network.as_deref().unwrap(), wish.namespace.as_deref(), wish.ask.place.interface.as_str()))
            .collect();
        assert_eq!(told, [("lan", None, "eth0"), ("plant", Some("shop"), "vlan7"), ("other", Some("b"), "net2")]);
        assert!(wishes.attachments[1].ask.capabilities.port_mappings.is_empty(), "ports lead to the first interface");
    }

    #[test]
    fn what_a_network_cannot_do_is_refused() {
        let wishes = of("v1.multus-cni.io/default-network: '[{name: x}]'", true);
        assert!(wishes.unwrap_err().starts_with("annotation v1.multus-cni.io/default-network: "), "that is no JSON");
        let wish = of("k8s.v1.cni.cncf.io/networks: a", true).unwrap().attachments.remove(0);
        assert_eq!(
            wish.refusal(&network("\"ips\": true")).unwrap(),
            "cannot forward hostPort 8080/UDP to the pod: no plugin of network n supports the capability portMappings"
        );
        assert_eq!(wish.refusal(&network("\"portMappings\": true")), None);
        let mac = r#"k8s.v1.cni.cncf.io/networks: '[{"name": "a", "mac": "02:00:00:00:00:01", "ips": ["10.0.0.1"]}]'"#;
        let wish = of(mac, false).unwrap().attachments.remove(0);
        assert!(wish.refusal(&network("\"mac\": true")).unwrap().contains("the address 10.0.0.1"));
        assert!(wish.refusal(&network("\"ips\": true")).unwrap().contains("the MAC address 02:00:00:00:00:01"));
    }

    #[test]
    fn an_additional_network_may_have_ports_limits_and_the_default_route() {
        let text = r#"k8s.v1.cni.cncf.io/networks: '[{"name": "a", "default-route": ["10.7.0.1"], "bandwidth": {"egressRate": 4096, "egressBurst": 9},
            "portMappings": [{"hostPort": 8081, "containerPort": 80, "protocol": "UDP"}]}]'"#;
        let wishes = of(text, true).unwrap();
        assert_eq!(wishes.ports.iter().map(ToString::to_string).collect::<Vec<_>>(), ["8080/UDP", "8081/UDP"], "all are the pod's");
        let [first, second] = wishes.attachments.as_slice() else { panic!("{wishes:?}") };
        assert_eq!((first.ask.capabilities.port_mappings[0].host_port, first.default_route.as_ref()), (8080, None));
        let CapabilityArguments { port_mappings, bandwidth, .. } = &second.ask.capabilities;
        assert_eq!((port_mappings.len(), port_mappings[0].host_port), (1, 8081));
        assert_eq!(*bandwidth, Some(Bandwidth { egress: Some(4096), egress_burst: Some(9), ..Bandwidth::default() }));
        assert_eq!(second.default_route, Some(vec!["10.7.0.1".parse().unwrap()]));
    }

    #[test]
    fn limits_of_traffic_are_quantities_within_reason() {
        for (text, problem) in
            [("fast", "\"fast\" must be a quantity"), ("999", "unreasonably small"), ("2P", "unreasonably large")]
        {
            let said = of(&format!("kubernetes.io/egress-bandwidth: '{text}'"), true).unwrap_err();
            assert!(said.starts_with("annotation kubernetes.io/egress-bandwidth: ") && said.contains(problem), "{said}");
        }
    }
}
