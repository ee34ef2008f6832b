//! Ports of the host that lead to pods, and the one of the resolver: who else has them.

use super::finding::Finding;
use super::host::Host;
use crate::pods::{name_of, namespace_of};
use podstead_network::diagnosis;
use podstead_pod::host_ports::host_ports;

/// Observed state.
#[derive(Debug, Default)]
pub(super) struct ObservedPorts {
    /// A pod, its port, and the program that listens there as well.
    pub(super) shared: Vec<(String, String, String)>,
    /// Program that uses the port of the resolver for pods on the host network.
    pub(super) resolver: Option<String>,
}

pub(super) fn look(host: &Host) -> ObservedPorts {
    let Ok(answers) = &host.answers else { return ObservedPorts::default() };
    let is_own = |pod: &&k8s_openapi::api::core::v1::Pod| {
        let has_address = pod.status.as_ref().is_some_and(|status| status.pod_ip.is_some());
        // Who is on the host's network listens itself.
        has_address && pod.spec.as_ref().and_then(|spec| spec.host_network) != Some(true)
    };
    let ports = answers.pods.iter().filter(is_own).flat_map(|pod| host_ports(pod).into_iter().map(move |port| (pod, port)));
    let shared = ports.filter_map(|(pod, port)| {
        let name = format!("{}/{}", namespace_of(pod), name_of(pod));
        Some((name, port.to_string(), diagnosis::listener(&port)?))
    });
    let has_resolver = host.config.as_ref().is_ok_and(|config| config.network.dns.enabled);
    ObservedPorts { shared: shared.collect(), resolver: has_resolver.then(diagnosis::in_place_of_resolver).flatten() }
}

pub(super) fn judge(observed: &ObservedPorts) -> Vec<Finding> {
    let ObservedPorts { shared, resolver } = observed;
    let shared = shared.iter().map(|(pod, port, owner)| {
        Finding::warning(
            format!("hostPort {port} of pod {pod} is also used by {owner}"),
            "only one of the two can be reached: from other hosts, the service for ports below 1024 and the pod for other ports",
            "change the port of one of them",
        )
    });
    let resolver = resolver.iter().map(|owner| {
        Finding::warning(
            format!("port 53 on 127.112.115.53 is in use by {owner}"),
            "pods on the host network with dnsPolicy ClusterFirstWithHostNet use the host's name servers and cannot resolve names of pods",
            "configure it to listen on specific addresses only (dnsmasq: bind-interfaces; unbound: interface), then restart podstead",
        )
    });
    shared.chain(resolver).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_shares_a_port_is_named() {
        let shared = vec![("default/web-edge".to_owned(), "8080/TCP".to_owned(), "nginx (process 7)".to_owned())];
        let found = judge(&ObservedPorts { shared, resolver: Some("dnsmasq (process 8)".into()) });
        assert_eq!(found[0].what, "hostPort 8080/TCP of pod default/web-edge is also used by nginx (process 7)");
        assert_eq!(found[1].what, "port 53 on 127.112.115.53 is in use by dnsmasq (process 8)");
        assert_eq!(judge(&ObservedPorts::default()), []);
    }
}
