//! The network of pods: passing on, packet rules, other people's firewalls, ranges of addresses, and what is refused.

use super::finding::Finding;
use super::host::Host;
use super::ports::{self, ObservedPorts};
use crate::unserved::Unserved;
use podstead_network::diagnosis::{Denied, NetworkView, view};
use podstead_policy::definition::Direction;
use podstead_settings::NetworkKind;
use podstead_telemetry::counted;

/// Pods with denied packets that are named.
const MOST_DENIALS: usize = 20;

/// Observed state.
#[derive(Debug)]
struct Observed {
    /// Pods of the builtin network that have an address.
    pods: usize,
    forwards_ipv4: Option<bool>,
    forwards_ipv6: Option<bool>,
    /// State of the kernel; `None` without permission to read it.
    kernel: Option<NetworkView>,
    /// The host has iptables-legacy rules, which only iptables-legacy can read.
    has_legacy_filter: bool,
    /// ufw is enabled.
    has_ufw: bool,
    ports: ObservedPorts,
    /// Ports of Services without endpoints.
    unserved: Vec<Unserved>,
}

pub(super) fn check(host: &Host) -> Vec<Finding> {
    match &host.config {
        Ok(config) if config.network.kind == NetworkKind::Builtin => judge(&look(host)),
        Ok(_) => vec![Finding::ok("podstead's own pod network is not used: network.type selects another one")],
        // The check of the configuration reports that.
        Err(_) => Vec::new(),
    }
}

fn look(host: &Host) -> Observed {
    let is_on = |path: &str| host.files.number(path).map(|value| value != 0);
    let pods = host.answers.iter().flat_map(|answers| &answers.pods);
    let has_address = |pod: &&k8s_openapi::api::core::v1::Pod| {
        let on_host = pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or(false);
        !on_host && pod.status.as_ref().is_some_and(|status| status.pod_ip.is_some())
    };
    let legacy = host.files.read("/proc/net/ip_tables_names").unwrap_or_default();
    Observed {
        pods: pods.filter(has_address).count(),
        forwards_ipv4: is_on("/proc/sys/net/ipv4/ip_forward"),
        forwards_ipv6: is_on("/proc/sys/net/ipv6/conf/all/forwarding"),
        kernel: if host.is_root { view(&host.paths).ok() } else { None },
        has_legacy_filter: legacy.lines().any(|line| line.trim() == "filter"),
        has_ufw: host.files.read("/etc/ufw/ufw.conf").is_some_and(|text| text.lines().any(|line| line.trim() == "ENABLED=yes")),
        ports: ports::look(host),
        unserved: host.answers.iter().flat_map(|answers| answers.unserved.iter().cloned()).collect(),
    }
}

/// Without pods that have an address, nothing has to be there yet.
fn judge(observed: &Observed) -> Vec<Finding> {
    let Observed { pods, forwards_ipv4, forwards_ipv6, kernel, has_legacy_filter, has_ufw, ports, unserved } = observed;
    // Their interfaces exist even if no daemon reports the pods.
    let has_pods =
        *pods > 0 || kernel.as_ref().is_some_and(|kernel| kernel.smallest_pod_mtu.is_some() || !kernel.unconnected.is_empty());
    let mut findings = Vec::new();
    for (value, setting) in [(forwards_ipv4, "net.ipv4.ip_forward"), (forwards_ipv6, "net.ipv6.conf.all.forwarding")] {
        if has_pods && *value == Some(false) {
            findings.push(Finding::problem(
                format!("{setting} is 0"),
                "packets of pods are not forwarded: another program disabled forwarding after podstead had enabled it; a running daemon enables it again within a minute",
                format!("sysctl -w {setting}=1, and search /etc/sysctl.d for a file that sets it to 0"),
            ));
        }
    }
    if *has_legacy_filter {
        findings.push(Finding::note(
            "this host has iptables-legacy rules",
            "podstead cannot read them; if their FORWARD chain has policy DROP, pods have no network",
            "check with iptables-legacy -S FORWARD; if the policy is DROP: iptables-legacy -A FORWARD -i ps-+ -j ACCEPT, and the same with -o",
        ));
    }
    match kernel {
        Some(kernel) => findings.extend(judge_kernel(kernel, has_pods, *has_ufw)),
        None => {
            findings.push(Finding::note("packet rules were not checked", "only root can read them", "sudo podstead doctor network"))
        }
    }
    findings.extend(ports::judge(ports));
    findings.extend(without_endpoints(unserved));
    if findings.is_empty() {
        findings.push(Finding::ok(if has_pods {
            format!("the network of {pods} pods is complete, and no firewall blocks it")
        } else {
            "no pod has an address; no firewall would block pods".to_owned()
        }));
    }
    findings
}

/// A warning for each Service that nobody answers.
pub(in super::super) fn without_endpoints(unserved: &[Unserved]) -> Vec<Finding> {
    let finding = |Unserved { namespace, name, port, reason }: &Unserved| {
        let port = port.as_ref().map(|port| format!(" at port {port}")).unwrap_or_default();
        Finding::warning(
            format!("Service {namespace}/{name} has no endpoint{port}"),
            reason.clone(),
            format!("podstead describe service {name} -n {namespace}"),
        )
    };
    unserved.iter().map(finding).collect()
}

fn judge_kernel(kernel: &NetworkView, has_pods: bool, has_ufw: bool) -> Vec<Finding> {
    let NetworkView {
        has_rules,
        dropping,
        guarding,
        rejected_by_firewalld,
        remedy_for_firewalld,
        collisions,
        unconnected,
        uplink_mtu,
        smallest_pod_mtu,
        largest_pod_mtu,
        denied,
    } = kernel;
    let mut findings = Vec::new();
    if has_pods && !has_rules {
        findings.push(Finding::problem(
            "the packet rules of pods are missing",
            "host ports are not forwarded, and pods cannot reach other hosts; a running daemon restores the rules at once",
            "systemctl status podstead; journalctl -u podstead",
        ));
    }
    for (pod, interface) in unconnected {
        findings.push(Finding::problem(
            format!("the interface {interface} of pod {pod} is missing"),
            "the pod has no network: another program removed the interface; a running daemon creates it again within a minute",
            "podstead get events; systemctl status podstead",
        ));
    }
    for chain in dropping {
        findings.push(Finding::problem(
            format!("{chain} drops forwarded packets of pods"),
            "pods can reach only this host, and other hosts cannot reach pods",
            "accept packets from and to the interfaces ps-* in that chain: see the section on firewalls in docs/explanation/network.md",
        ));
    }
    for (chain, is_ipv6) in guarding.iter().filter(|_| has_pods) {
        let program = if *is_ipv6 { "ip6tables" } else { "iptables" };
        let accept = |protocol: &str| format!("{program} -I INPUT -i 'ps-+' -p {protocol} --dport 10053 -j ACCEPT");
        let is_of_iptables = chain.contains("chain INPUT of table ip");
        let remedy = if is_of_iptables && has_ufw {
            "ufw allow in on ps-+ to any port 10053".to_owned()
        } else if is_of_iptables {
            format!("{}; {}", accept("udp"), accept("tcp"))
        } else {
            "accept UDP and TCP packets from the interfaces ps-* to port 10053 in that chain".to_owned()
        };
        findings.push(Finding::note(
            format!("{chain} drops all packets to this host that no rule accepts{}", if has_ufw { " (ufw)" } else { "" }),
            "pods cannot resolve names unless it accepts their queries to podstead's resolver (usually port 10053; the event DnsBlocked names the port)",
            remedy,
        ));
    }
    if !rejected_by_firewalld.is_empty() {
        findings.push(Finding::problem(
            format!("firewalld rejects packets between pods ({}) and other hosts", rejected_by_firewalld.join(", ")),
            "these ranges are in no firewalld zone with target ACCEPT; pods can reach only this host",
            remedy_for_firewalld.clone(),
        ));
    }
    for collision in collisions {
        findings.push(Finding::problem(
            collision.clone(),
            "pods cannot reach hosts with these addresses",
            "set network.ipv4Range or network.ipv6Range in /etc/podstead/config.yaml to an unused range, and restart the pods",
        ));
    }
    findings.extend(denials(denied));
    if let (Some(uplink), Some(smallest), Some(largest)) = (uplink_mtu, smallest_pod_mtu, largest_pod_mtu)
        && (smallest < uplink || largest > uplink)
    {
        findings.push(Finding::note(
            format!("the uplink has an MTU of {uplink}, the interfaces of pods have {smallest} to {largest}"),
            "packets larger than the MTU of the uplink may be lost without an error; a smaller MTU costs throughput",
            "a pod gets the new MTU when it is created again: remove and add the pods that matter",
        ));
    }
    findings
}

/// A note for each pod that NetworkPolicies denied something.
fn denials(denied: &[Denied]) -> Vec<Finding> {
    let finding = |Denied { pod, direction, packets }: &Denied| {
        let way = match direction {
            Direction::Ingress => "to",
            Direction::Egress => "from",
        };
        Finding::note(
            format!(
                "NetworkPolicies denied {} {way} pod {}/{}",
                counted(usize::try_from(*packets).unwrap_or(usize::MAX), "packet"),
                pod.namespace,
                pod.name
            ),
            "counted since the packet rules were made; connections that are denied on purpose count as well",
            format!(
                "podstead describe pod {} -n {} names its policies; podstead network trace POD DESTINATION:PORT shows a decision",
                pod.name, pod.namespace
            ),
        )
    };
    denied.iter().take(MOST_DENIALS).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;

    fn well() -> Observed {
        let kernel = NetworkView {
            has_rules: true,
            uplink_mtu: Some(1500),
            smallest_pod_mtu: Some(1500),
            largest_pod_mtu: Some(1500),
            ..NetworkView::default()
        };
        let on = Some(true);
        Observed {
            pods: 2,
            forwards_ipv4: on,
            forwards_ipv6: on,
            kernel: Some(kernel),
            has_legacy_filter: false,
            has_ufw: false,
            ports: ObservedPorts::default(),
            unserved: Vec::new(),
        }
    }

    fn severities(observed: &Observed) -> Vec<Severity> {
        judge(observed).iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn a_network_that_is_complete_is_said_to_be() {
        assert_eq!(severities(&well()), [Severity::Ok]);
        // Before there are pods, nothing has been switched on.
        let kernel = Some(NetworkView::default());
        let off = Some(false);
        let none = Observed { pods: 0, forwards_ipv4: off, forwards_ipv6: off, kernel, ..well() };
        assert_eq!(severities(&none), [Severity::Ok]);
    }

    #[test]
    fn what_is_in_the_way_is_found() {
        assert_eq!(severities(&Observed { forwards_ipv4: Some(false), ..well() }), [Severity::Problem]);
        assert_eq!(severities(&Observed { has_legacy_filter: true, ..well() }), [Severity::Note]);
        assert_eq!(severities(&Observed { kernel: None, ..well() }), [Severity::Note]);
        let with = |change: fn(&mut NetworkView)| {
            let mut observed = well();
            observed.kernel.iter_mut().for_each(change);
            severities(&observed)
        };
        assert_eq!(with(|kernel| kernel.has_rules = false), [Severity::Problem]);
        assert_eq!(with(|kernel| kernel.dropping.push("chain x".into())), [Severity::Problem]);
        assert_eq!(with(|kernel| kernel.unconnected.push(("default/a".into(), "ps-1".into()))), [Severity::Problem]);
        assert_eq!(with(|kernel| kernel.collisions.push("overlaps".into())), [Severity::Problem]);
        assert_eq!(with(|kernel| kernel.rejected_by_firewalld.push("10.201.0.0/20".into())), [Severity::Problem]);
        assert_eq!(with(|kernel| kernel.uplink_mtu = Some(1400)), [Severity::Note]);
        assert_eq!(with(|kernel| kernel.uplink_mtu = None), [Severity::Ok]);
        assert_eq!(with(|kernel| kernel.guarding.push(("chain INPUT of table ip filter".into(), false))), [Severity::Note]);
        let idle = Unserved {
            namespace: "shop".into(),
            name: "idle".into(),
            port: Some("80/TCP".into()),
            reason: "no pod is ready: a".into(),
        };
        let found = judge(&Observed { unserved: vec![idle], ..well() });
        assert_eq!(
            (found[0].severity, found[0].what.as_str()),
            (Severity::Warning, "Service shop/idle has no endpoint at port 80/TCP")
        );
        let taken = ObservedPorts { resolver: Some("dnsmasq (process 7)".into()), ..ObservedPorts::default() };
        assert_eq!(severities(&Observed { ports: taken, ..well() }), [Severity::Warning]);
    }

    #[test]
    fn a_guarded_host_is_told_how_to_let_questions_in() {
        let remedy = |chain: &str, is_ipv6: bool, has_ufw: bool| {
            let mut observed = Observed { has_ufw, ..well() };
            observed.kernel.iter_mut().for_each(|kernel| kernel.guarding = vec![(chain.into(), is_ipv6)]);
            judge(&observed).remove(0).remedy
        };
        assert!(
            remedy("chain INPUT of table ip filter", false, false).starts_with("iptables -I INPUT -i 'ps-+' -p udp --dport 10053")
        );
        assert!(remedy("chain INPUT of table ip6 filter", true, false).starts_with("ip6tables -I INPUT"));
        assert_eq!(remedy("chain INPUT of table ip filter", false, true), "ufw allow in on ps-+ to any port 10053");
        assert!(
            remedy("chain in of table inet mine", false, false).starts_with("accept UDP and TCP packets from the interfaces ps-*")
        );
    }
}
