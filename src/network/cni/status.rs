//! Network status of a pod: addresses, the report of all interfaces, name servers. **Pure**.

use super::plan::Attachment;
use super::spec::report::{self, InterfaceReport};
use super::spec::result::{CniResult, ResultDns};
use podstead_pod::host_files::{NetworkDns, ResolvConf};
use podstead_pod::networks::FIRST_INTERFACE;
use podstead_runtime::PodNetworkStatus;
use podstead_settings::NetworkKind;
use std::net::IpAddr;

/// Network name of the pod's first interface where podstead makes it.
const OWN_NETWORK: &str = "podstead";

/// Network status of a pod: from plugins, and from the network behind them. `first_ips` are those of a first interface that neither knows;
/// at `resolver` the pod finds podstead's.
pub(super) fn status(
    attachments: &[Attachment],
    base: Option<&PodNetworkStatus>,
    first_ips: &[IpAddr],
    resolver: Option<IpAddr>,
    kind: NetworkKind,
) -> PodNetworkStatus {
    let by_plugins = attachments.iter().find(|attachment| attachment.is_primary());
    let ips = match (by_plugins, base) {
        (Some(attachment), _) => attachment.gained().pod_ips(),
        (None, Some(base)) => base.ips.clone(),
        (None, None) => first_ips.to_vec(),
    };
    // The first interface decides, as it does about addresses.
    let dns = match by_plugins {
        Some(attachment) => {
            Some(resolver.map_or_else(|| NetworkDns::Named(settings(attachment.gained().dns)), NetworkDns::Resolver))
        }
        None => base.and_then(|base| base.dns.clone()),
    };
    let own = InterfaceReport {
        ips: ips.clone(),
        ..InterfaceReport::of(OWN_NETWORK.to_owned(), FIRST_INTERFACE, true, &CniResult::default())
    };
    let has_own = by_plugins.is_none() && kind == NetworkKind::Builtin && !ips.is_empty();
    let mut reports: Vec<InterfaceReport> = if has_own { vec![own] } else { Vec::new() };
    reports.extend(attachments.iter().filter(|attachment| attachment.is_primary()).map(Attachment::report));
    reports.extend(attachments.iter().filter(|attachment| !attachment.is_primary()).map(Attachment::report));
    PodNetworkStatus { ips, report: (!attachments.is_empty()).then(|| report::text(&reports)), dns }
}

/// As lines of a resolv.conf. What would not be one word there is left out.
fn settings(dns: ResultDns) -> ResolvConf {
    let ResultDns { nameservers, domain, search, options } = dns;
    let is_word = |text: &String| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
    let searches = if search.is_empty() { vec![domain] } else { search };
    ResolvConf {
        nameservers: nameservers.into_iter().filter(|server| server.parse::<IpAddr>().is_ok()).collect(),
        searches: searches.into_iter().filter(is_word).collect(),
        options: options.into_iter().filter(is_word).collect(),
        exceeded: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_of_a_result_are_lines_of_a_resolv_conf() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let dns = ResultDns {
            nameservers: words(&["10.7.0.53", "fd00::53", "ns.example"]),
            domain: "plant.example".into(),
            search: Vec::new(),
            options: words(&["ndots:2", "x\nnameserver 192.0.2.66"]),
        };
        let text = "search plant.example\nnameserver 10.7.0.53\nnameserver fd00::53\noptions ndots:2\n";
        assert_eq!(settings(dns.clone()).to_string(), text);
        let searched = ResultDns { search: words(&["a.example", "b.example"]), ..dns };
        assert!(
            settings(searched).to_string().starts_with("search a.example b.example\n"),
            "the domain is for those without a list"
        );
        assert_eq!(settings(ResultDns::default()), ResolvConf::default());
    }
}
