//! `/etc/resolv.conf` (kubelet rule D22).

use crate::Pod;
use crate::containers::{list, spec, text};
use k8s_openapi::api::core::v1::PodDNSConfigOption;
use std::fmt;
use std::net::IpAddr;

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
/// Characters of the search list, blanks between domains included.
const MAX_SEARCH_CHARS: usize = 2048;
/// glibc 2.28 aborts on a longer search domain.
const MAX_DOMAIN: usize = 253;

/// The name servers that know pods: those of a cluster, or podstead's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterDns {
    /// Their addresses; empty without any.
    pub servers: Vec<IpAddr>,
    /// Addresses of the same servers for pods on the host's network; empty if these do not use them.
    pub servers_on_host: Vec<IpAddr>,
    /// The domain of names of pods, e.g. `cluster.local`; may be empty.
    pub domain: String,
}

/// DNS settings from the network that plugins connected a pod to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkDns {
    /// Nothing, and the pod finds those that know pods at this address.
    Resolver(IpAddr),
    /// These; without any, those of the node are meant. The pod does not reach those that know pods.
    Named(ResolvConf),
}

/// The resolver's settings of a pod. `Display` writes the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvConf {
    /// Addresses as written.
    pub nameservers: Vec<String>,
    /// Search domains.
    pub searches: Vec<String>,
    /// Options such as `ndots:5`.
    pub options: Vec<String>,
    /// That something did not fit within the resolver's limits and was left out, in the kubelet's words; for events.
    pub exceeded: Vec<String>,
}

impl ResolvConf {
    /// Reads a resolv.conf as the kubelet does: the last `search` line counts, `options` add up, unknown lines are skipped.
    pub fn parse(file: &str) -> Self {
        let mut parsed = Self::default();
        for line in file.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => parsed.nameservers.extend(words.next().map(str::to_owned)),
                // The root domain keeps its dot, all others are compared without.
                Some("search") => {
                    parsed.searches = words
                        .map(|domain| if domain == "." { domain } else { domain.strip_suffix('.').unwrap_or(domain) }.to_owned())
                        .collect();
                }
                Some("options") => words.for_each(|option| set_option(&mut parsed.options, option.to_owned())),
                _ => {}
            }
        }
        parsed
    }
}

impl fmt::Display for ResolvConf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.searches.is_empty() {
            writeln!(f, "search {}", self.searches.join(" "))?;
        }
        for server in &self.nameservers {
            writeln!(f, "nameserver {server}")?;
        }
        if !self.options.is_empty() {
            writeln!(f, "options {}", self.options.join(" "))?;
        }
        Ok(())
    }
}

/// The pod's settings. `node_file` is the node's own resolv.conf; without name servers that know pods, `ClusterFirst` means the node's, too.
/// `network` is what the network that plugins connected the pod to says of them, to which `ClusterFirst` leads. No other policy looks at it.
pub fn resolv_conf(pod: &Pod, node_file: &str, cluster: Option<&ClusterDns>, network: Option<&NetworkDns>) -> ResolvConf {
    let spec = spec(pod);
    let node = ResolvConf::parse(node_file);
    let on_host_network = spec.host_network == Some(true);
    let own = |cluster: &ClusterDns| if on_host_network { cluster.servers_on_host.clone() } else { cluster.servers.clone() };
    let (servers, named) = match network.filter(|_| !on_host_network) {
        None => (cluster.map(own), None),
        Some(NetworkDns::Resolver(address)) => (Some(vec![*address]), None),
        Some(NetworkDns::Named(settings)) => (None, Some(settings)),
    };
    let cluster = cluster.zip(servers.filter(|servers| !servers.is_empty()));
    let mut settings = match (text(&spec.dns_policy), cluster) {
        ("None", _) => ResolvConf::default(),
        ("ClusterFirstWithHostNet", Some((cluster, servers))) => of_cluster(pod, &node, &cluster.domain, &servers),
        ("Default", _) => node,
        (_, None) => named.filter(|named| !named.nameservers.is_empty()).cloned().unwrap_or(node),
        (_, Some(_)) if on_host_network => node,
        (_, Some((cluster, servers))) => of_cluster(pod, &node, &cluster.domain, &servers),
    };
    if let Some(config) = &spec.dns_config {
        settings.nameservers.extend(list(&config.nameservers).iter().cloned());
        settings.searches.extend(list(&config.searches).iter().cloned());
        for option in list(&config.options) {
            set_option(&mut settings.options, option_text(option));
        }
    }
    without_duplicates(&mut settings.nameservers);
    without_duplicates(&mut settings.searches);
    within_limits(&mut settings);
    settings
}

fn of_cluster(pod: &Pod, node: &ResolvConf, domain: &str, servers: &[IpAddr]) -> ResolvConf {
    let mut searches = if domain.is_empty() {
        Vec::new()
    } else {
        vec![format!("{}.svc.{domain}", text(&pod.metadata.namespace)), format!("svc.{domain}"), domain.to_owned()]
    };
    searches.extend(node.searches.iter().cloned());
    ResolvConf {
        nameservers: servers.iter().map(IpAddr::to_string).collect(),
        searches,
        options: vec!["ndots:5".to_owned()],
        exceeded: Vec::new(),
    }
}

fn option_text(option: &PodDNSConfigOption) -> String {
    match text(&option.value) {
        "" => text(&option.name).to_owned(),
        value => format!("{}:{value}", text(&option.name)),
    }
}

/// Adds an option in the place of one with the same name, if there is one.
fn set_option(options: &mut Vec<String>, option: String) {
    fn name(option: &str) -> &str {
        option.split_once(':').map_or(option, |(name, _)| name)
    }
    match options.iter_mut().find(|present| name(present) == name(&option)) {
        Some(present) => *present = option,
        None => options.push(option),
    }
}

fn without_duplicates(words: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    words.retain(|word| seen.insert(word.clone()));
}

fn within_limits(settings: &mut ResolvConf) {
    if settings.nameservers.len() > MAX_NAMESERVERS {
        settings.nameservers.truncate(MAX_NAMESERVERS);
        let applied = settings.nameservers.join(" ");
        settings.exceeded.push(format!(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: {applied}"
        ));
    }
    let wanted = settings.searches.len();
    settings.searches.retain(|domain| domain.len() <= MAX_DOMAIN);
    let mut chars = 0;
    let fitting = settings
        .searches
        .iter()
        .take(MAX_SEARCHES)
        .take_while(|domain| {
            chars += domain.len() + usize::from(chars > 0);
            chars <= MAX_SEARCH_CHARS
        })
        .count();
    settings.searches.truncate(fitting);
    if settings.searches.len() < wanted {
        let applied = settings.searches.join(" ");
        settings.exceeded.push(format!(
            "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: {applied}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "# a comment\nnameserver 192.0.2.53\nsearch old.example\nsearch example.org corp.example. .\noptions timeout:1\noptions rotate timeout:2\nnameserver\n";

    fn conf(fields: &str, cluster: Option<&ClusterDns>) -> ResolvConf {
        let pod: Pod =
            serde_yaml::from_str(&format!("{{metadata: {{namespace: shop}}, spec: {{containers: [], {fields}}}}}")).unwrap();
        resolv_conf(&pod, NODE, cluster, None)
    }

    fn cluster() -> ClusterDns {
        ClusterDns {
            servers: vec!["10.96.0.10".parse().unwrap()],
            servers_on_host: vec!["127.0.0.9".parse().unwrap()],
            domain: "cluster.local".into(),
        }
    }

    const OF_THE_NODE: &str = "search example.org corp.example .\nnameserver 192.0.2.53\noptions timeout:2 rotate\n";
    const OF_THE_CLUSTER: &str = "search shop.svc.cluster.local svc.cluster.local cluster.local example.org corp.example .\nnameserver 10.96.0.10\noptions ndots:5\n";

    #[test]
    fn the_policy_chooses_between_node_cluster_and_nothing() {
        for (fields, with_cluster, without) in [
            ("dnsPolicy: ClusterFirst", OF_THE_CLUSTER, OF_THE_NODE),
            ("dnsPolicy: ClusterFirst, hostNetwork: true", OF_THE_NODE, OF_THE_NODE),
            (
                "dnsPolicy: ClusterFirstWithHostNet, hostNetwork: true",
                &OF_THE_CLUSTER.replace("10.96.0.10", "127.0.0.9"),
                OF_THE_NODE,
            ),
            ("dnsPolicy: Default", OF_THE_NODE, OF_THE_NODE),
            ("dnsPolicy: None", "", ""),
        ] {
            assert_eq!(conf(fields, Some(&cluster())).to_string(), with_cluster, "{fields}, in a cluster");
            assert_eq!(conf(fields, None).to_string(), without, "{fields}, alone");
        }
    }

    #[test]
    fn d22_name_servers_of_a_plugins_network_stand_for_the_cluster_s() {
        let own =
            ResolvConf { nameservers: vec!["10.7.0.53".into()], searches: vec!["plant.example".into()], ..ResolvConf::default() };
        let of_own = "search plant.example\nnameserver 10.7.0.53\n";
        for (fields, expected) in [
            ("dnsPolicy: ClusterFirst", of_own),
            ("dnsPolicy: ClusterFirstWithHostNet", of_own),
            ("dnsPolicy: Default", OF_THE_NODE),
            ("dnsPolicy: None", ""),
            ("dnsPolicy: ClusterFirst, hostNetwork: true", OF_THE_NODE),
            (
                "dnsPolicy: ClusterFirst, dnsConfig: {searches: [more.example]}",
                "search plant.example more.example\nnameserver 10.7.0.53\n",
            ),
        ] {
            let pod: Pod = serde_yaml::from_str(&format!("{{spec: {{containers: [], {fields}}}}}")).unwrap();
            let own = NetworkDns::Named(own.clone());
            assert_eq!(resolv_conf(&pod, NODE, Some(&cluster()), Some(&own)).to_string(), expected, "{fields}");
        }
        let pod: Pod = serde_yaml::from_str("{spec: {containers: [], dnsPolicy: ClusterFirst}}").unwrap();
        let silent = ResolvConf { searches: vec!["plant.example".into()], ..ResolvConf::default() };
        let settings = resolv_conf(&pod, NODE, Some(&cluster()), Some(&NetworkDns::Named(silent)));
        assert_eq!(settings.to_string(), OF_THE_NODE, "podstead's resolver is not reached from there");
    }

    #[test]
    fn d22_pods_of_a_plugins_network_find_the_resolver_where_that_has_it() {
        let here = NetworkDns::Resolver("10.7.0.1".parse().unwrap());
        let nowhere = ClusterDns { servers: Vec::new(), ..cluster() };
        for (fields, expected) in [
            ("dnsPolicy: ClusterFirst", OF_THE_CLUSTER.replace("10.96.0.10", "10.7.0.1")),
            ("dnsPolicy: Default", OF_THE_NODE.to_owned()),
            ("dnsPolicy: None", String::new()),
            ("dnsPolicy: ClusterFirst, hostNetwork: true", OF_THE_NODE.to_owned()),
            ("dnsPolicy: ClusterFirstWithHostNet, hostNetwork: true", OF_THE_CLUSTER.replace("10.96.0.10", "127.0.0.9")),
        ] {
            let pod = format!("{{metadata: {{namespace: shop}}, spec: {{containers: [], {fields}}}}}");
            let pod: Pod = serde_yaml::from_str(&pod).unwrap();
            for cluster in [&cluster(), &nowhere] {
                assert_eq!(resolv_conf(&pod, NODE, Some(cluster), Some(&here)).to_string(), expected, "{fields}");
            }
        }
    }

    #[test]
    fn dns_config_is_appended_without_duplicates_and_overrides_options() {
        let config = "dnsPolicy: Default, dnsConfig: {nameservers: [192.0.2.53, 192.0.2.54], searches: [more.example, example.org],
            options: [{name: timeout, value: '9'}, {name: edns0}]}";
        assert_eq!(
            conf(config, None).to_string(),
            "search example.org corp.example . more.example\nnameserver 192.0.2.53\nnameserver 192.0.2.54\noptions timeout:9 rotate edns0\n"
        );
    }

    #[test]
    fn what_does_not_fit_the_resolver_is_dropped_and_told() {
        let servers = conf("dnsPolicy: None, dnsConfig: {nameservers: [192.0.2.1, 192.0.2.2, 192.0.2.3, 192.0.2.4]}", None);
        let told = "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 192.0.2.1 192.0.2.2 192.0.2.3";
        assert_eq!((servers.nameservers.len(), servers.exceeded), (3, vec![told.to_owned()]));

        let many: Vec<_> = (0..40).map(|i| format!("d{i}.example")).collect();
        let searches = conf(&format!("dnsPolicy: None, dnsConfig: {{searches: [{}]}}", many.join(",")), None);
        assert_eq!((searches.searches.len(), searches.exceeded.len()), (32, 1));

        let long: Vec<_> = (0..20).map(|i| format!("{i:0>200}")).collect();
        let searches = conf(&format!("dnsPolicy: None, dnsConfig: {{searches: ['{}']}}", long.join("','")), None);
        assert_eq!(searches.searches.len(), 10, "10 * 200 + 9 blanks fit into 2048, 11 do not");

        let too_long = "x".repeat(254);
        let domain = conf(&format!("dnsPolicy: None, dnsConfig: {{searches: [{too_long}, ok]}}"), None);
        let told = "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ok";
        assert_eq!((domain.searches, domain.exceeded), (vec!["ok".to_owned()], vec![told.to_owned()]));
        assert_eq!(conf("dnsPolicy: Default", None).exceeded, [""; 0], "what fits is not spoken of");
    }
}
