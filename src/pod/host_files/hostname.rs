//! The pod's host name (kubelet rule D23). A pod on the host's network has the host's UTS namespace, and these names are not used.

use crate::Pod;
use crate::containers::{spec, text};

/// The domain of pods with a subdomain, where no cluster says otherwise.
pub const DEFAULT_CLUSTER_DOMAIN: &str = "cluster.local";
/// Longest label.
const MAX_LABEL: usize = 63;
/// Longest node name that the kernel takes.
const MAX_KERNEL_NAME: usize = 64;

/// Host name and domain of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hostname {
    /// At most 63 bytes.
    pub hostname: String,
    /// `<subdomain>.<namespace>.svc.<cluster domain>`; empty without a subdomain.
    pub domain: String,
}

impl Hostname {
    /// `<hostname>.<domain>`, or the bare host name without a domain.
    pub fn fqdn(&self) -> String {
        if self.domain.is_empty() { self.hostname.clone() } else { format!("{}.{}", self.hostname, self.domain) }
    }
}

/// The name for `setHostnameAsFQDN` is too long for the kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("host name {fqdn:?} is too long: {length} bytes, the limit is {MAX_KERNEL_NAME}", length = fqdn.len())]
pub struct FqdnTooLong {
    /// The name.
    pub fqdn: String,
}

/// Host name and domain of a pod whose name carries the node suffix.
pub fn hostname(pod: &Pod, cluster_domain: &str) -> Hostname {
    let spec = spec(pod);
    let override_name = text(&spec.hostname_override);
    if !override_name.is_empty() {
        return Hostname { hostname: override_name.to_owned(), domain: String::new() };
    }
    let hostname = match text(&spec.hostname) {
        "" => text(&pod.metadata.name),
        hostname => hostname,
    };
    let subdomain = text(&spec.subdomain);
    let domain = if subdomain.is_empty() {
        String::new()
    } else {
        format!("{subdomain}.{}.svc.{cluster_domain}", text(&pod.metadata.namespace))
    };
    Hostname { hostname: cut(hostname), domain }
}

/// Host name for the pod's UTS namespace: the short one, or with `setHostnameAsFQDN` the full one.
pub fn kernel_hostname(pod: &Pod, cluster_domain: &str) -> Result<String, FqdnTooLong> {
    let name = hostname(pod, cluster_domain);
    if name.domain.is_empty() || spec(pod).set_hostname_as_fqdn != Some(true) {
        return Ok(name.hostname);
    }
    let fqdn = name.fqdn();
    if fqdn.len() > MAX_KERNEL_NAME { Err(FqdnTooLong { fqdn }) } else { Ok(fqdn) }
}

/// The name cut at 63 bytes; what is cut leaves no `-` or `.` at the end.
fn cut(name: &str) -> String {
    if name.len() <= MAX_LABEL {
        return name.to_owned();
    }
    let end = (0..=MAX_LABEL).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    name[..end].trim_end_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, fields: &str) -> Pod {
        serde_yaml::from_str(&format!("{{metadata: {{name: {name}, namespace: shop}}, spec: {{containers: [], {fields}}}}}"))
            .unwrap()
    }

    #[test]
    fn override_hostname_and_pod_name_are_taken_in_this_order() {
        for (fields, hostname_expected, domain) in [
            ("", "web-edge", ""),
            ("hostname: www", "www", ""),
            ("hostname: www, subdomain: site", "www", "site.shop.svc.cluster.local"),
            ("subdomain: site", "web-edge", "site.shop.svc.cluster.local"),
            ("hostname: www, subdomain: site, hostnameOverride: other.example.org", "other.example.org", ""),
        ] {
            let result = hostname(&pod("web-edge", fields), DEFAULT_CLUSTER_DOMAIN);
            assert_eq!((result.hostname.as_str(), result.domain.as_str()), (hostname_expected, domain), "{fields}");
        }
    }

    #[test]
    fn a_long_name_is_cut_at_a_label_and_does_not_end_in_punctuation() {
        for (name, expected) in [
            ("a".repeat(63), "a".repeat(63)),
            ("a".repeat(64), "a".repeat(63)),
            (format!("{}-bc", "a".repeat(62)), "a".repeat(62)),
            (format!("{}.-.bc", "a".repeat(60)), "a".repeat(60)),
        ] {
            assert_eq!(hostname(&pod(&name, ""), "d").hostname, expected, "{name}");
        }
    }

    #[test]
    fn the_kernel_gets_the_full_name_only_where_asked_for() {
        let domain = "cluster.local";
        assert_eq!(kernel_hostname(&pod("a", "subdomain: s"), domain).as_deref(), Ok("a"));
        assert_eq!(kernel_hostname(&pod("a", "setHostnameAsFQDN: true"), domain).as_deref(), Ok("a"));
        let full = "subdomain: s, setHostnameAsFQDN: true";
        assert_eq!(kernel_hostname(&pod("a", full), domain).as_deref(), Ok("a.s.shop.svc.cluster.local"));
        let longest = "a".repeat(64 - ".s.shop.svc.cluster.local".len());
        assert_eq!(kernel_hostname(&pod(&longest, full), domain).unwrap().len(), 64);
        let error = kernel_hostname(&pod(&format!("{longest}a"), full), domain).unwrap_err();
        assert_eq!(error.fqdn.len(), 65);
    }
}
