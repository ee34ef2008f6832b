//! Problems of Services, Namespaces and EndpointSlices.

use super::*;
use crate::testing;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;

fn fields(problems: &[Problem]) -> Vec<&str> {
    problems.iter().map(|problem| problem.field.as_str()).collect()
}

fn refused(spec: &str) -> Vec<Problem> {
    service(&testing::service("web", spec))
}

#[track_caller]
fn assert_refused(spec: &str, expected: &[(&str, &str)]) {
    let found = refused(spec);
    let told: Vec<_> = found.iter().map(|problem| (problem.field.as_str(), problem.message.as_str())).collect();
    assert_eq!(told, expected, "{spec}");
}

#[test]
fn usual_services_have_no_problems() {
    for spec in [
        "ports: [{port: 80}], selector: {app: web}",
        "ports: [{name: a, port: 53, protocol: UDP}, {name: b, port: 53}]",
        "clusterIP: None",
        "clusterIP: None, selector: {app: db}, ports: [{port: 5432, targetPort: pg}]",
        "type: ExternalName, externalName: db.example.org.",
        "type: NodePort, ports: [{name: a, port: 1, nodePort: 30000}, {name: b, port: 2, nodePort: 30000, protocol: UDP}]",
        "type: LoadBalancer, ports: [{port: 80}], loadBalancerSourceRanges: [10.0.0.0/8], allocateLoadBalancerNodePorts: false",
        "ports: [{port: 80}], sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 86400}}",
        "ports: [{port: 80}], clusterIPs: [10.202.0.9, 'fd00::9'], ipFamilies: [IPv4, IPv6]",
    ] {
        assert_refused(spec, &[]);
    }
}

#[test]
fn ports_are_checked() {
    assert_refused("selector: {a: b}", &[("spec.ports", "is required")]);
    assert_refused(
        "ports: [{port: 80}, {name: a, port: 0, targetPort: 70000}, {name: a, port: 80, targetPort: No, protocol: X}]",
        &[
            ("spec.ports[0].name", "is required"),
            ("spec.ports[1].port", "invalid value 0: must be between 1 and 65535, inclusive"),
            ("spec.ports[1].targetPort", "invalid value 70000: must be between 1 and 65535, inclusive"),
            ("spec.ports[2].name", "duplicate value \"a\""),
            (
                "spec.ports[2].targetPort",
                "invalid value \"No\": must be 1 to 15 lower-case letters, digits or single '-', with at least one letter, starting and ending with a letter or digit",
            ),
            ("spec.ports[2].protocol", "invalid value \"X\": must be one of \"SCTP\", \"TCP\", \"UDP\""),
        ],
    );
    assert_refused("ports: [{name: a, port: 80}, {name: b, port: 80}]", &[("spec.ports[1].port", "duplicate value \"80/TCP\"")]);
    let forbidden = "forbidden: may not be used when `type` is 'ClusterIP'";
    assert_refused("ports: [{port: 80, nodePort: 30000}]", &[("spec.ports[0].nodePort", forbidden)]);
    let twice = "type: NodePort, ports: [{name: a, port: 1, nodePort: 30000}, {name: b, port: 2, nodePort: 30000}]";
    assert_refused(twice, &[("spec.ports[1].nodePort", "duplicate value 30000")]);
}

#[test]
fn addresses_are_checked() {
    for (spec, field) in [
        ("clusterIP: x", "spec.clusterIP"),
        ("clusterIP: 10.0.0.1, clusterIPs: [10.0.0.2]", "spec.clusterIPs[0]"),
        ("clusterIPs: [10.0.0.1, 10.0.0.2], ipFamilyPolicy: RequireDualStack", "spec.clusterIPs[1]"),
        ("clusterIP: 'fd00::1', ipFamilies: [IPv4]", "spec.clusterIPs[0]"),
        ("ipFamilies: [IPv4, IPv4]", "spec.ipFamilies[1]"),
        ("ipFamilies: [IPv5]", "spec.ipFamilies[0]"),
        ("ipFamilies: [IPv4, IPv6], ipFamilyPolicy: SingleStack", "spec.ipFamilies"),
        ("ipFamilyPolicy: Dual", "spec.ipFamilyPolicy"),
        ("type: NodePort, clusterIP: None", "spec.clusterIPs[0]"),
        ("externalIPs: [127.0.0.1]", "spec.externalIPs[0]"),
        ("externalIPs: [169.254.0.1]", "spec.externalIPs[0]"),
    ] {
        assert_eq!(fields(&refused(&format!("ports: [{{port: 80}}], {spec}"))), [field], "{spec}");
    }
    assert_refused("type: ExternalName", &[("spec.externalName", "is required")]);
    let long = format!("type: ExternalName, externalName: {}.example.org", "a".repeat(64));
    assert_eq!(fields(&refused(&long)), ["spec.externalName"]);
    let forbidden = "forbidden: may not be set when `type` is 'ExternalName'";
    let named = "type: ExternalName, externalName: a.b, clusterIP: 10.0.0.1";
    assert_refused(named, &[("spec.clusterIP", forbidden)]);
}

#[test]
fn fields_of_other_types_are_refused() {
    for (spec, field) in [
        ("loadBalancerSourceRanges: [10.0.0.0/8]", "spec.loadBalancerSourceRanges"),
        ("loadBalancerClass: a/b", "spec.loadBalancerClass"),
        ("allocateLoadBalancerNodePorts: true", "spec.allocateLoadBalancerNodePorts"),
        ("externalTrafficPolicy: Local", "spec.externalTrafficPolicy"),
        ("healthCheckNodePort: 30001", "spec.healthCheckNodePort"),
        ("sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}", "spec.sessionAffinityConfig"),
        (
            "sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 86401}}",
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
        ),
        ("type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0]", "spec.loadBalancerSourceRanges[0]"),
    ] {
        assert_eq!(fields(&refused(&format!("ports: [{{port: 80}}], {spec}"))), [field], "{spec}");
    }
}

#[test]
fn names_are_dns_labels() {
    let named = |name: &str| service(&testing::service(name, "clusterIP: None"));
    assert_eq!(named("1web"), []);
    assert_eq!(fields(&named("a.b")), ["metadata.name"]);
    assert_eq!(fields(&service(&Service::default())), ["metadata.name", "spec"]);
    let of = |text: &str| namespace(&serde_yaml::from_str(text).unwrap());
    assert_eq!(of("metadata: {name: shop, labels: {purpose: production}}"), []);
    assert_eq!(
        fields(&of("metadata: {name: a.b, namespace: c, labels: {-a: b}}")),
        ["metadata.name", "metadata.namespace", "metadata.labels"]
    );
}

#[test]
fn fields_without_effect_are_named() {
    let found = without_effect(&testing::service(
        "web",
        "internalTrafficPolicy: Local, externalTrafficPolicy: Cluster, trafficDistribution: PreferClose, loadBalancerClass: other",
    ));
    assert_eq!(fields(&found), ["spec.internalTrafficPolicy", "spec.trafficDistribution", "spec.loadBalancerClass"]);
    assert_eq!(without_effect(&testing::service("web", "loadBalancerClass: podstead.dev/host")), []);
    let external = |name: &str| without_effect(&testing::service("web", &format!("type: ExternalName, externalName: {name}")));
    assert_eq!(external("db.example.org"), []);
    assert_eq!(fields(&external("192.0.2.7")), ["spec.externalName"]);
}

#[test]
fn slices_are_checked() {
    let of = |text: &str| -> Vec<Problem> {
        let slice: EndpointSlice = serde_yaml::from_str(text).unwrap();
        endpoint_slice(&slice)
    };
    let good = "{metadata: {name: a.b}, addressType: IPv4, endpoints: [{addresses: [192.0.2.1]}], ports: [{port: 80}]}";
    assert_eq!(of(good), []);
    let bad = "{metadata: {name: x}, addressType: IPv4, endpoints: [{addresses: ['fd00::1', 127.0.0.1]}, {addresses: []}], ports: [{port: 0}, {}]}";
    assert_eq!(
        fields(&of(bad)),
        ["endpoints[0].addresses[0]", "endpoints[0].addresses[1]", "endpoints[1].addresses", "ports[0].port", "ports[1].name"]
    );
    assert_eq!(fields(&of("{metadata: {name: x}, addressType: FQDN, endpoints: []}")), ["addressType"]);
}
