//! `podstead describe networkpolicy`, and the policies that select a pod. **Pure** but for the question.

use super::writer::Description;
use super::{own_annotations, service};
use crate::client::{Client, ClientError, Target};
use crate::object_type::ObjectType;
use crate::pods::{self, ServedList, name_of, namespace_of};
use crate::workloads::{annotation, metadata};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use podstead_api::ONLY_PODS_OF_ANNOTATION;
use podstead_api::published::SOURCE_ANNOTATION;
use podstead_api::show::selector_text;
use podstead_policy::selector::{Labels, Selector};
use serde_json::{Value, json};

/// Path of the daemon's metrics.
const METRICS: &str = "/metrics";
/// The metric with denied packets, by pod and direction.
const DENIED_PACKETS: &str = "podstead_network_policy_denied_packets_total";

/// NetworkPolicies of a namespace. None where the daemon is older than they are.
async fn list(client: &Client, namespace: &str) -> Result<Vec<Value>, ClientError> {
    match client.get::<ServedList>(ObjectType::NetworkPolicy.collection(Some(namespace))).await {
        Ok(list) => Ok(list.items),
        Err(ClientError::Refused { code: 404, .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Names of the policies that select a pod, with the directions that they close.
pub(super) async fn selecting(client: &Client, pod: &Pod) -> Result<Vec<String>, ClientError> {
    let policies = list(client, namespace_of(pod)).await?;
    let selecting = policies.iter().filter(|policy| selects(policy, pod));
    Ok(selecting.map(|policy| format!("{} ({})", metadata(policy, "name"), directions(&typed(policy)).join(", "))).collect())
}

/// The pods that a policy selects.
pub(super) async fn selected(client: &Client, policy: &Value) -> Result<Vec<String>, ClientError> {
    let pods = pods::list(client, Some(metadata(policy, "namespace"))).await?;
    Ok(pods.iter().filter(|pod| selects(policy, pod)).map(|pod| name_of(pod).to_owned()).collect())
}

/// Packets that were denied to and from the selected pods, in the directions that the policy closes: a line for each. Nothing where the daemon or the
/// user's role has no metrics.
pub(super) async fn denied(client: &Client, policy: &Value, selected: &[String]) -> Result<Vec<String>, ClientError> {
    if selected.is_empty() {
        return Ok(Vec::new());
    }
    match client.get_whole(Target::new(METRICS, &[])).await {
        Ok(metrics) => {
            let text = String::from_utf8_lossy(metrics.body());
            Ok(denied_lines(&text, metadata(policy, "namespace"), selected, &directions(&typed(policy))))
        }
        Err(ClientError::Refused { code: 403 | 404, .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The same, from metrics (pure). They have samples of pods that were denied something.
fn denied_lines(metrics: &str, namespace: &str, pods: &[String], directions: &[&str]) -> Vec<String> {
    let samples: Vec<&str> = metrics.lines().filter(|line| line.starts_with(DENIED_PACKETS)).collect();
    let mut lines = Vec::new();
    for pod in pods {
        for direction in directions {
            let has = |line: &&str, label: &str, value: &str| line.contains(&format!("{label}=\"{value}\""));
            let direction = direction.to_lowercase();
            let is_this =
                |line: &&&str| has(line, "namespace", namespace) && has(line, "pod", pod) && has(line, "direction", &direction);
            let packets = samples.iter().find(is_this).and_then(|line| line.rsplit(' ').next());
            lines.extend(packets.map(|packets| format!("{pod}: {packets} ({direction})")));
        }
    }
    lines
}

/// Reports whether a policy of the pod's namespace selects it. Policies do not apply to pods on the host's network.
fn selects(policy: &Value, pod: &Pod) -> bool {
    let on_host = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
    let source = pods::annotation(pod, SOURCE_ANNOTATION);
    let is_in_scope = annotation(policy, ONLY_PODS_OF_ANNOTATION).is_none_or(|only| Some(only) == source);
    let selector = typed(policy).pod_selector.as_ref().map_or(Some(Selector::default()), Selector::of);
    let labels: &Labels = &pod.metadata.labels.clone().unwrap_or_default();
    !on_host && is_in_scope && selector.is_some_and(|selector| selector.matches(labels))
}

/// The spec; an empty one if it cannot be read, which the daemon does not serve.
fn typed(policy: &Value) -> NetworkPolicySpec {
    serde_json::from_value::<NetworkPolicy>(policy.clone()).ok().and_then(|policy| policy.spec).unwrap_or_default()
}

/// `Ingress`, `Egress` or both (N2).
fn directions(spec: &NetworkPolicySpec) -> Vec<&str> {
    let written: Vec<&str> = spec.policy_types.iter().flatten().map(String::as_str).collect();
    match (written.is_empty(), spec.egress.as_ref().is_some_and(|rules| !rules.is_empty())) {
        (false, _) => written,
        (true, true) => vec!["Ingress", "Egress"],
        (true, false) => vec!["Ingress"],
    }
}

/// Everything but the events, in the words of kubectl.
pub(super) fn describe(policy: &Value, selected: &[String], denied: &[String]) -> String {
    let mut text = Description::default();
    service::identity(&mut text, policy, &own_annotations());
    if let Some(source) = annotation(policy, ONLY_PODS_OF_ANNOTATION) {
        text.field("Only Pods Of", &format!("source {source}"));
    }
    let spec = typed(policy);
    let directions = directions(&spec);
    text.field(
        "Pod Selector",
        &pods_text(spec.pod_selector.as_ref(), "<none> (Allowing the specific traffic to all pods in this namespace)"),
    );
    let names = if selected.is_empty() { "<none>".to_owned() } else { selected.join("\n") };
    text.field("Selected Pods", &names);
    if directions.contains(&"Ingress") {
        let rules: Vec<Rule<'_>> = spec.ingress.iter().flatten().map(Rule::ingress).collect();
        write_rules(&mut text, "Allowing ingress traffic", ["From", "traffic not restricted by source"], &rules);
    } else {
        text.field("Not affecting", "ingress traffic");
    }
    if directions.contains(&"Egress") {
        let rules: Vec<Rule<'_>> = spec.egress.iter().flatten().map(Rule::egress).collect();
        write_rules(&mut text, "Allowing egress traffic", ["To", "traffic not restricted by destination"], &rules);
    } else {
        text.field("Not affecting", "egress traffic");
    }
    text.field("Policy Types", &directions.join(", "));
    if !denied.is_empty() {
        // A packet is denied by all policies that select the pod: none of them allows it.
        text.field("Denied Packets", &denied.join("\n"));
    }
    text.finish()
}

/// Peers and ports of a rule.
struct Rule<'a> {
    peers: &'a [NetworkPolicyPeer],
    ports: &'a [NetworkPolicyPort],
}

impl<'a> Rule<'a> {
    fn ingress(rule: &'a NetworkPolicyIngressRule) -> Self {
        Self { peers: rule.from.as_deref().unwrap_or_default(), ports: rule.ports.as_deref().unwrap_or_default() }
    }

    fn egress(rule: &'a NetworkPolicyEgressRule) -> Self {
        Self { peers: rule.to.as_deref().unwrap_or_default(), ports: rule.ports.as_deref().unwrap_or_default() }
    }
}

fn write_rules(text: &mut Description, heading: &str, [peer, everybody]: [&str; 2], rules: &[Rule<'_>]) {
    if rules.is_empty() {
        return text.field(heading, "<none> (Selected pods are isolated for this connectivity)");
    }
    text.heading(heading);
    for (index, Rule { peers, ports }) in rules.iter().enumerate() {
        text.indented(1, "Rule", &index.to_string());
        let ports: Vec<String> = ports.iter().map(port_text).collect();
        text.indented(2, "To Port", &or(ports.join(", "), "<any> (traffic allowed to all ports)"));
        let peers: Vec<String> = peers.iter().map(peer_text).collect();
        text.indented(2, peer, &or(peers.join("\n"), &format!("<any> ({everybody})")));
    }
}

fn or(text: String, none: &str) -> String {
    if text.is_empty() { none.to_owned() } else { text }
}

fn port_text(port: &NetworkPolicyPort) -> String {
    let protocol = port.protocol.as_deref().unwrap_or("TCP");
    match (&port.port, port.end_port) {
        (None, _) => format!("<any>/{protocol}"),
        (Some(IntOrString::Int(first)), Some(last)) => format!("{first}-{last}/{protocol}"),
        (Some(IntOrString::Int(number)), None) => format!("{number}/{protocol}"),
        (Some(IntOrString::String(name)), _) => format!("{name}/{protocol}"),
    }
}

fn peer_text(peer: &NetworkPolicyPeer) -> String {
    if let Some(block) = &peer.ip_block {
        let except = block.except.iter().flatten().cloned().collect::<Vec<_>>().join(", ");
        let except = if except.is_empty() { String::new() } else { format!(" except {except}") };
        return format!("IPBlock {}{except}", block.cidr);
    }
    let selectors = [("NamespaceSelector", &peer.namespace_selector), ("PodSelector", &peer.pod_selector)];
    let told =
        selectors.iter().filter_map(|(name, selector)| Some(format!("{name} {}", pods_text(Some((*selector).as_ref()?), "<all>"))));
    told.collect::<Vec<_>>().join(" and ")
}

fn pods_text(selector: Option<&LabelSelector>, all: &str) -> String {
    match selector_text(&json!(selector)).as_str() {
        "<none>" => all.to_owned(),
        told => told.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Value {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "annotations": {"podstead.dev/source": "site", "a": "b"}},
            "spec": {
                "podSelector": {"matchLabels": {"app": "web"}},
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [
                    {
                        "from": [
                            {"podSelector": {"matchLabels": {"app": "front"}}},
                            {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "proxy"}}},
                            {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
                        ],
                        "ports": [{"port": 80}, {"port": "dns", "protocol": "UDP"}, {"port": 100, "endPort": 200}],
                    },
                    {},
                ],
            },
        })
    }

    #[test]
    fn policy_is_described() {
        insta::assert_snapshot!(describe(&policy(), &["web-edge".to_owned()], &["web-edge: 12 (ingress)".to_owned()]));
    }

    #[test]
    fn denied_packets_are_those_of_selected_pods() {
        let sample = |namespace: &str, pod: &str, direction: &str, packets: u32| {
            format!("{DENIED_PACKETS}{{namespace=\"{namespace}\",pod=\"{pod}\",direction=\"{direction}\"}} {packets}\n")
        };
        let metrics = [
            format!("# TYPE {DENIED_PACKETS} counter\n"),
            sample("shop", "web-edge", "ingress", 12),
            sample("shop", "web-edge", "egress", 3),
            sample("shop", "web", "ingress", 7),
            sample("other", "db-edge", "ingress", 9),
        ]
        .concat();
        let pods = ["web-edge", "db-edge"].map(str::to_owned);
        assert_eq!(denied_lines(&metrics, "shop", &pods, &["Ingress"]), ["web-edge: 12 (ingress)"]);
        let both = denied_lines(&metrics, "shop", &pods, &["Ingress", "Egress"]);
        assert_eq!(both, ["web-edge: 12 (ingress)", "web-edge: 3 (egress)"]);
        assert_eq!(denied_lines("", "shop", &pods, &["Ingress"]), [""; 0]);
    }

    #[test]
    fn pods_on_the_network_of_their_source_are_selected() {
        let pod = |labels: Value, spec: Value, source: &str| -> Pod {
            let metadata = json!({"name": "web-edge", "labels": labels, "annotations": {"podstead.dev/source": source}});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
        };
        let plain = json!({"containers": []});
        let web = json!({"app": "web"});
        assert!(selects(&policy(), &pod(web.clone(), plain.clone(), "site")));
        assert!(!selects(&policy(), &pod(json!({}), plain.clone(), "site")));
        assert!(!selects(&policy(), &pod(web.clone(), json!({"containers": [], "hostNetwork": true}), "site")));
        let mut own = policy();
        own["metadata"]["annotations"][ONLY_PODS_OF_ANNOTATION] = json!("site");
        assert!(selects(&own, &pod(web.clone(), plain.clone(), "site")));
        assert!(!selects(&own, &pod(web, plain, "other")));
    }

    #[test]
    fn types_follow_from_rules() {
        let of = |spec: Value| directions(&serde_json::from_value(spec).unwrap()).join(",");
        assert_eq!(of(json!({"podSelector": {}})), "Ingress");
        assert_eq!(of(json!({"podSelector": {}, "egress": [{}]})), "Ingress,Egress");
        assert_eq!(of(json!({"podSelector": {}, "egress": [{}], "policyTypes": ["Egress"]})), "Egress");
    }
}
