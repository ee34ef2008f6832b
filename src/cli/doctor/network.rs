//! The network of pods: passing on, packet rules, other people's firewalls, ranges of addresses.

use super::finding::Finding;
use super::host::Host;
use super::ports::{self, ObservedPorts};
use crate::config::NetworkKind;
use crate::network::diagnosis::{NetworkView, view};

/// What was observed.
#[derive(Debug)]
struct Observed {
    /// Pods of the builtin network that have an address.
    pods: usize,
    forwards_ipv4: Option<bool>,
    forwards_ipv6: Option<bool>,
    /// What the kernel says; nothing for who may not ask.
    kernel: Option<NetworkView>,
    /// Tables of the old iptables, whose rules the kernel tells nobody else.
    has_legacy_filter: bool,
    /// ufw is enabled.
    has_ufw: bool,
    ports: ObservedPorts,
}

pub(super) fn check(host: &Host) -> Vec<Finding> {
    match &host.config {
        Ok(config) if config.network.kind == NetworkKind::Builtin => judge(&look(host)),
        Ok(_) => vec![Finding::ok("pods have no network of podstead's: network.type says so")],
        // That is told elsewhere.
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
    }
}

/// Without pods that have an address, nothing has to be there yet.
fn judge(observed: &Observed) -> Vec<Finding> {
    let Observed { pods, forwards_ipv4, forwards_ipv6, kernel, has_legacy_filter, has_ufw, ports } = observed;
    // Their interfaces are there also when no daemon tells of them.
    let has_pods =
        *pods > 0 || kernel.as_ref().is_some_and(|kernel| kernel.smallest_pod_mtu.is_some() || !kernel.unconnected.is_empty());
    let mut findings = Vec::new();
    for (value, setting) in [(forwards_ipv4, "net.ipv4.ip_forward"), (forwards_ipv6, "net.ipv6.conf.all.forwarding")] {
        if has_pods && *value == Some(false) {
            findings.push(Finding::problem(
                format!("{setting} is 0"),
                "packets of pods are not passed on: somebody switched it off after podstead had switched it on; a running daemon does so again within a minute",
                format!("sysctl -w {setting}=1, and look into /etc/sysctl.d for who sets it"),
            ));
        }
    }
    if *has_legacy_filter {
        findings.push(Finding::note(
            "this host has rules of the old iptables (iptables-legacy)",
            "podstead does not see them; a policy DROP of their chain FORWARD cuts pods off",
            "iptables-legacy -S FORWARD; if it drops, iptables-legacy -A FORWARD -i ps-+ -j ACCEPT, and the same with -o",
        ));
    }
    match kernel {
        Some(kernel) => findings.extend(judge_kernel(kernel, has_pods, *has_ufw)),
        None => findings.push(Finding::note(
            "packet rules were not looked at",
            "only root can see them",
            "sudo podstead doctor network",
        )),
    }
    findings.extend(ports::judge(ports));
    if findings.is_empty() {
        findings.push(Finding::ok(if has_pods {
            format!("the network of {pods} pods is complete, and nothing is in its way")
        } else {
            "no pod has an address; nothing would be in its way".to_owned()
        }));
    }
    findings
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
    } = kernel;
    let mut findings = Vec::new();
    if has_pods && !has_rules {
        findings.push(Finding::problem(
            "the packet rules of pods are not there",
            "ports of the host lead nowhere, and pods cannot reach the world; a running daemon makes them anew at once",
            "systemctl status podstead, and its log",
        ));
    }
    for (pod, interface) in unconnected {
        findings.push(Finding::problem(
            format!("pod {pod} lacks its interface {interface}"),
            "it reaches nobody, and nobody reaches it: somebody removed the interface; a running daemon makes it anew within a minute",
            "podstead get events, and systemctl status podstead",
        ));
    }
    for chain in dropping {
        findings.push(Finding::problem(
            format!("{chain} drops what passes and does not accept pods"),
            "pods reach nothing but this host, and nobody beyond it reaches them",
            "accept what comes from and goes to interfaces ps-*: docs/explanation/network.md, Beside firewalls and other engines",
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
            "accept what comes from interfaces ps-* to port 10053 of UDP and TCP in that chain".to_owned()
        };
        findings.push(Finding::note(
            format!("{chain} drops what comes to this host and is not accepted{}", if has_ufw { " (ufw)" } else { "" }),
            "pods find no names unless it accepts their questions to podstead's resolver (the event DnsBlocked tells its port, usually 10053)",
            remedy,
        ));
    }
    if !rejected_by_firewalld.is_empty() {
        findings.push(Finding::problem(
            format!("firewalld rejects what passes between pods ({}) and the world", rejected_by_firewalld.join(", ")),
            "no zone of it that accepts everything is told of them; pods reach nothing but this host",
            remedy_for_firewalld.clone(),
        ));
    }
    for collision in collisions {
        findings.push(Finding::problem(
            collision.clone(),
            "pods cannot reach what has the addresses of other pods there",
            "set network.ipv4Range or network.ipv6Range in /etc/podstead/config.yaml to a range that nobody uses, and restart the pods",
        ));
    }
    if let (Some(uplink), Some(smallest), Some(largest)) = (uplink_mtu, smallest_pod_mtu, largest_pod_mtu)
        && (smallest < uplink || largest > uplink)
    {
        findings.push(Finding::note(
            format!("the uplink takes packets of {uplink} bytes, interfaces of pods have {smallest} to {largest}"),
            "larger packets are refused one by one, which some firewalls on the way hide; smaller ones cost throughput",
            "podstead gives the new size to each pod's next sandbox: remove and add the pods that matter",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::Severity;

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
        assert!(remedy("chain in of table inet mine", false, false).starts_with("accept what comes from interfaces ps-*"));
    }
}
