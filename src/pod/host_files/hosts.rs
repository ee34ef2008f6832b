//! `/etc/hosts` (kubelet rule D21).

use super::hostname::Hostname;
use crate::Pod;
use crate::containers::{list, spec};
use std::net::IpAddr;

const OWN: &str = "\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
";
const OF_THE_HOST: &str = "# Kubernetes-managed hosts file (host network).\n";

/// The file's content: `node_hosts` (the node's own `/etc/hosts`) for a pod on the host's network, else one line for each address of
/// the pod. Host aliases follow.
pub fn hosts_file(pod: &Pod, name: &Hostname, pod_ips: &[IpAddr], node_hosts: &str) -> String {
    let mut file = if spec(pod).host_network == Some(true) {
        format!("{OF_THE_HOST}{node_hosts}")
    } else {
        let names = if name.domain.is_empty() { name.hostname.clone() } else { format!("{}\t{}", name.fqdn(), name.hostname) };
        pod_ips.iter().fold(OWN.to_owned(), |mut file, ip| {
            line(&mut file, &ip.to_string(), &names);
            file
        })
    };
    let aliases = list(&spec(pod).host_aliases);
    if !aliases.is_empty() {
        file.push_str("\n# Entries added by HostAliases.\n");
    }
    for alias in aliases {
        line(&mut file, &alias.ip, &list(&alias.hostnames).join("\t"));
    }
    file
}

fn line(file: &mut String, ip: &str, names: &str) {
    file.extend([ip, "\t", names, "\n"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_files::hostname;

    fn file(fields: &str, ips: &[&str]) -> String {
        let pod: Pod =
            serde_yaml::from_str(&format!("{{metadata: {{name: web-edge, namespace: shop}}, spec: {{containers: [], {fields}}}}}"))
                .unwrap();
        let ips: Vec<IpAddr> = ips.iter().map(|ip| ip.parse().unwrap()).collect();
        hosts_file(&pod, &hostname(&pod, "cluster.local"), &ips, "127.0.0.1 localhost\n192.0.2.1 edge\n")
    }

    #[test]
    fn a_pod_with_its_own_network_has_a_line_for_each_address() {
        assert_eq!(file("", &["10.0.0.7", "fd00::7"]), format!("{OWN}10.0.0.7\tweb-edge\nfd00::7\tweb-edge\n"));
        assert_eq!(
            file("hostname: www, subdomain: site", &["10.0.0.7"]),
            format!("{OWN}10.0.0.7\twww.site.shop.svc.cluster.local\twww\n")
        );
        assert_eq!(file("", &[]), OWN);
    }

    #[test]
    fn a_pod_on_the_hosts_network_has_the_hosts_file() {
        assert_eq!(
            file("hostNetwork: true", &["192.0.2.1"]),
            "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n192.0.2.1 edge\n"
        );
    }

    #[test]
    fn host_aliases_follow() {
        let aliases = "hostAliases: [{ip: 192.0.2.9, hostnames: [db, db.example]}, {ip: '2001:db8::9', hostnames: [v6]}]";
        assert_eq!(
            file(aliases, &["10.0.0.7"]),
            format!("{OWN}10.0.0.7\tweb-edge\n\n# Entries added by HostAliases.\n192.0.2.9\tdb\tdb.example\n2001:db8::9\tv6\n")
        );
        assert!(
            file(&format!("hostNetwork: true, {aliases}"), &[])
                .ends_with("192.0.2.1 edge\n\n# Entries added by HostAliases.\n192.0.2.9\tdb\tdb.example\n2001:db8::9\tv6\n")
        );
    }
}
