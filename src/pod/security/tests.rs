//! Table tests of the security context.

use super::*;
use serde_json::{Value, json};

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({ "metadata": { "name": "p" }, "spec": spec })).unwrap()
}

/// A pod with the given pod-level context and one container with the given container-level context.
fn contexts_of(of_pod: Value, of_container: Value) -> (Pod, Container) {
    let pod = pod(json!({ "securityContext": of_pod, "containers": [{ "name": "c", "securityContext": of_container }] }));
    let container = pod.spec.as_ref().unwrap().containers[0].clone();
    (pod, container)
}

fn security(of_pod: Value, of_container: Value) -> Security {
    let (pod, container) = contexts_of(of_pod, of_container);
    container_security(&pod, &container, Some("default"))
}

#[test]
fn a_pod_that_says_nothing_gets_the_secure_default() {
    let security = security(json!(null), json!(null));
    assert_eq!(
        security,
        Security {
            privileged: false,
            capabilities: DEFAULT_CAPABILITIES.map(str::to_owned).to_vec(),
            no_new_privileges: false,
            read_only_root: false,
            unmasked_proc: false,
            seccomp: SeccompProfile::RuntimeDefault,
            apparmor: Some("default".into()),
        }
    );
}

#[test]
fn seccomp_is_the_containers_then_the_pods_then_the_runtimes() {
    let localhost = json!({ "seccompProfile": { "type": "Localhost", "localhostProfile": "a/b.json" } });
    let unconfined = json!({ "seccompProfile": { "type": "Unconfined" } });
    let default = json!({ "seccompProfile": { "type": "RuntimeDefault" } });
    let file = SeccompProfile::Localhost("a/b.json".into());
    let cases = [
        (&unconfined, &json!({}), SeccompProfile::Unconfined),
        (&unconfined, &default, SeccompProfile::RuntimeDefault),
        (&default, &localhost, file.clone()),
        (&localhost, &json!({}), file),
        (&localhost, &json!({ "privileged": true }), SeccompProfile::Unconfined),
    ];
    for (of_pod, of_container, expected) in cases {
        assert_eq!(security(of_pod.clone(), of_container.clone()).seccomp, expected, "{of_pod} {of_container}");
    }
}

#[test]
fn capabilities_are_added_and_dropped_in_the_order_of_the_cri() {
    let of = |capabilities: Value| security(json!({}), json!({ "capabilities": capabilities })).capabilities;
    let without = |name: &str| DEFAULT_CAPABILITIES.iter().filter(|c| **c != name).map(|c| (*c).to_owned()).collect::<Vec<_>>();
    assert_eq!(of(json!({ "drop": ["ALL"] })), Vec::<String>::new());
    assert_eq!(of(json!({ "drop": ["all"], "add": ["NET_BIND_SERVICE"] })), ["CAP_NET_BIND_SERVICE"]);
    assert_eq!(of(json!({ "drop": ["NET_RAW"] })), without("CAP_NET_RAW"));
    assert_eq!(of(json!({ "drop": ["CAP_NET_RAW"], "add": ["NET_RAW"] })), without("CAP_NET_RAW"), "a drop wins over an addition");
    assert_eq!(of(json!({ "add": ["ALL"] })).len(), ALL_CAPABILITIES.len());
    assert_eq!(of(json!({ "add": ["ALL"], "drop": ["SYS_ADMIN"] })).len(), ALL_CAPABILITIES.len() - 1);
    let added = of(json!({ "add": ["sys_time", "CHOWN"] }));
    assert_eq!(added.last().unwrap(), "CAP_SYS_TIME");
    assert_eq!(added.len(), DEFAULT_CAPABILITIES.len() + 1, "an addition that is there already changes nothing");
}

#[test]
fn privileged_means_all_capabilities_whatever_else_is_said() {
    let security = security(json!({}), json!({ "privileged": true, "capabilities": { "drop": ["ALL"] } }));
    assert!(security.privileged);
    assert_eq!(security.capabilities, ALL_CAPABILITIES);
}

#[test]
fn switches_follow_their_fields() {
    let of = |context: Value| security(json!({}), context);
    assert!(of(json!({ "allowPrivilegeEscalation": false })).no_new_privileges);
    assert!(!of(json!({ "allowPrivilegeEscalation": true })).no_new_privileges);
    assert!(of(json!({ "readOnlyRootFilesystem": true })).read_only_root);
    assert!(of(json!({ "procMount": "Unmasked" })).unmasked_proc);
    assert!(!of(json!({ "procMount": "Default" })).unmasked_proc);
}

#[test]
fn apparmor_is_the_containers_then_the_annotations_then_the_pods() {
    let profile = |name: &str| json!({ "appArmorProfile": { "type": "Localhost", "localhostProfile": name } });
    let unconfined = json!({ "appArmorProfile": { "type": "Unconfined" } });
    assert_eq!(security(profile("pod"), json!({})).apparmor.as_deref(), Some("pod"));
    assert_eq!(security(profile("pod"), profile("own")).apparmor.as_deref(), Some("own"));
    assert_eq!(security(profile("pod"), unconfined).apparmor, None);
    assert_eq!(security(profile("pod"), json!({ "privileged": true })).apparmor, None);
    let default = json!({ "appArmorProfile": { "type": "RuntimeDefault" } });
    assert_eq!(security(profile("pod"), default.clone()).apparmor.as_deref(), Some("default"));
    assert_eq!(security(json!({}), json!({})).apparmor.as_deref(), Some("default"));
    assert_eq!(security(default.clone(), json!({ "privileged": true })).apparmor, None);
    let (pod, container) = contexts_of(default, json!({}));
    assert_eq!(container_security(&pod, &container, None).apparmor, None, "it is not loaded");

    let (mut pod, container) = contexts_of(profile("pod"), json!({}));
    for (value, expected) in [("localhost/noted", Some("noted")), ("runtime/default", Some("default")), ("unconfined", None)] {
        let key = "container.apparmor.security.beta.kubernetes.io/c".to_owned();
        pod.metadata.annotations = Some([(key, value.to_owned())].into());
        assert_eq!(container_security(&pod, &container, Some("default")).apparmor.as_deref(), expected);
    }
}

#[test]
fn namespaces_follow_the_spec() {
    assert_eq!(pod_namespaces(&Pod::default()), PodNamespaces::default());
    assert_eq!(pod_namespaces(&pod(json!({ "containers": [] }))), PodNamespaces::default());
    let all = json!({ "containers": [], "hostNetwork": true, "hostPID": true, "hostIPC": true, "shareProcessNamespace": true });
    assert_eq!(
        pod_namespaces(&pod(all)),
        PodNamespaces { host_network: true, host_pid: true, host_ipc: true, share_process: true }
    );
}

#[test]
fn sysctl_names_are_normalised_as_sysctl_does() {
    let of = |name: &str| {
        let (pod, _) = contexts_of(json!({ "sysctls": [{ "name": name, "value": "1" }] }), json!({}));
        sysctls(&pod)
    };
    let expected = |name: &str| vec![(name.to_owned(), "1".to_owned())];
    assert_eq!(of("net.ipv4.ip_unprivileged_port_start"), expected("net.ipv4.ip_unprivileged_port_start"));
    assert_eq!(of("net/ipv4/conf/eth0.1/rp_filter"), expected("net.ipv4.conf.eth0/1.rp_filter"));
    assert_eq!(of("net.ipv4.conf.eth0/1.rp_filter"), expected("net.ipv4.conf.eth0/1.rp_filter"));
    assert!(sysctls(&Pod::default()).is_empty());
}

#[test]
fn the_containers_user_wins_and_groups_come_from_the_pod() {
    let of_pod = json!({
        "runAsUser": 1000, "runAsGroup": 2000, "runAsNonRoot": true,
        "supplementalGroups": [5, 6, 5], "fsGroup": 6, "supplementalGroupsPolicy": "Strict",
    });
    let (pod, container) = contexts_of(of_pod.clone(), json!({}));
    assert_eq!(
        run_as(&pod, &container),
        RunAs { uid: Some(1000), gid: Some(2000), non_root: true, supplemental: vec![5, 6], image_groups: false }
    );
    let (pod, container) = contexts_of(of_pod, json!({ "runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": false }));
    let own = run_as(&pod, &container);
    assert_eq!((own.uid, own.gid, own.non_root), (Some(0), Some(0), false));
    let (pod, container) = contexts_of(json!(null), json!(null));
    assert_eq!(run_as(&pod, &container), RunAs { image_groups: true, ..RunAs::default() });
}
