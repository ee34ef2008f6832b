//! Annotations about networks: arguments for plugins, and bandwidth limits.
//!
//! The API server takes any text; multus and the kubelet fail when the pod starts.

use crate::Pod;
use crate::field::{FieldPath, Problems};
use crate::host_ports::{EGRESS_BANDWIDTH, INGRESS_BANDWIDTH, bandwidth};
use crate::networks::{DEFAULT_NETWORK, NETWORKS, additional, default_network};

/// Checks the annotations below `path`.
pub(super) fn check(pod: &Pod, path: &FieldPath, problems: &mut Problems) {
    let annotation = |key: &str| pod.metadata.annotations.as_ref()?.get(key).map(String::as_str);
    let is_on_host = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
    for (key, wrong) in [
        (NETWORKS, annotation(NETWORKS).and_then(|text| additional(text).err())),
        (DEFAULT_NETWORK, annotation(DEFAULT_NETWORK).and_then(|text| default_network(text).err())),
    ] {
        match annotation(key) {
            Some(text) if is_on_host && !text.trim().is_empty() => {
                problems.ignored(&path.key(key), "the pod is on the host's network");
            }
            Some(text) => {
                if let Some(error) = wrong {
                    problems.invalid(&path.key(key), shortened(text), error.problem());
                }
            }
            None => {}
        }
    }
    for key in [INGRESS_BANDWIDTH, EGRESS_BANDWIDTH] {
        if let Some((text, Err(problem))) = annotation(key).map(|text| (text, bandwidth(text))) {
            let words = problem.strip_prefix(&format!("{text:?} ")).unwrap_or(&problem).to_owned();
            problems.invalid(&path.key(key), text, words);
        }
    }
}

/// A list of networks may be long, and have several lines.
fn shortened(text: &str) -> String {
    const CHARS: usize = 60;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= CHARS { line } else { line.chars().take(CHARS).chain("...".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::problems_of;

    fn check(annotations: &str, spec: &str, expected: &[&str]) {
        let pod = format!(
            "{{metadata: {{name: a, annotations: {{{annotations}}}}}, spec: {{containers: [{{name: a, image: x}}], {spec}}}}}"
        );
        assert_eq!(problems_of(&pod), expected, "{annotations}");
    }

    #[test]
    fn networks_are_checked_before_a_plugin_is_told_of_them() {
        check("k8s.v1.cni.cncf.io/networks: 'plant@vlan7, default/cameras', v1.multus-cni.io/default-network: lan", "", &[]);
        check("k8s.v1.cni.cncf.io/networks: ''", "hostNetwork: true", &[]);
        check(
            "k8s.v1.cni.cncf.io/networks: 'a@eth0'",
            "",
            &["metadata.annotations[k8s.v1.cni.cncf.io/networks]: invalid value \"a@eth0\": [0]: interface eth0 is listed already"],
        );
        check(
            "k8s.v1.cni.cncf.io/networks: '[{\"name\": \"a\", \"ipam-claim-reference\": \"x\"}]'",
            "",
            &[
                "metadata.annotations[k8s.v1.cni.cncf.io/networks]: invalid value \"[{\\\"name\\\": \\\"a\\\", \\\"ipam-claim-reference\\\": \\\"x\\\"}]\": [0]: ipam-claim-reference needs a cluster: set the address in ips",
            ],
        );
        check(
            "v1.multus-cni.io/default-network: 'a,b'",
            "",
            &["metadata.annotations[v1.multus-cni.io/default-network]: invalid value \"a,b\": must name one network"],
        );
        check(
            "k8s.v1.cni.cncf.io/networks: a",
            "hostNetwork: true",
            &["metadata.annotations[k8s.v1.cni.cncf.io/networks]: has no effect: the pod is on the host's network"],
        );
    }

    #[test]
    fn limits_of_traffic_are_quantities_within_reason() {
        check("kubernetes.io/ingress-bandwidth: 10M", "", &[]);
        check(
            "kubernetes.io/egress-bandwidth: '999'",
            "",
            &["metadata.annotations[kubernetes.io/egress-bandwidth]: invalid value \"999\": is unreasonably small (< 1kbit/s)"],
        );
    }
}
