//! Field by field: what its edit restarts. A field of the API without a row fails.

use super::{container_hash, sandbox_hash};
use crate::{Pod, defaults};
use k8s_openapi::api::core::v1::{Container, PodSecurityContext, PodSpec, SecurityContext};
use k8s_openapi::schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Effect of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restarts {
    /// It takes effect on what runs, or has none.
    Nothing,
    /// This container.
    Container,
    /// The whole pod: its sandbox is recreated.
    Sandbox,
    /// The sandbox, and the container for a reason of its own.
    Both,
}
use Restarts::{Both, Container as Own, Nothing, Sandbox};

const BASE: &str = "{
    metadata: {name: web, namespace: shop, uid: u, labels: {app: web, other: x}, annotations: {note: hello}},
    spec: {
        containers: [
            {name: a, image: 'x:1', volumeMounts: [{name: v, mountPath: /v}],
             env: [{name: LABEL, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['app']\"}}},
                   {name: NOTE, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['note']\"}}},
                   {name: SEEN, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['kubernetes.io/config.seen']\"}}},
                   {name: UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}},
                   {name: CPU, valueFrom: {resourceFieldRef: {containerName: b, resource: limits.cpu}}}]},
            {name: b, image: 'y:1', resources: {limits: {cpu: 1}}}],
        volumes: [{name: v, emptyDir: {medium: Memory}}, {name: unused}]}}";

/// Sandbox hash, and the hash of the container `a`.
fn hashes(pod: &Value) -> (String, String) {
    let mut pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    defaults::apply(&mut pod);
    let container = &pod.spec.as_ref().unwrap().containers[0];
    (sandbox_hash(&pod), container_hash(&pod, container))
}

fn base() -> Value {
    let mut pod: Value = serde_yaml::from_str(BASE).unwrap();
    pod.as_object_mut().unwrap().extend([("apiVersion".to_owned(), json!("v1")), ("kind".to_owned(), json!("Pod"))]);
    pod
}

#[track_caller]
fn check(edit: &str, edited: &Value, expected: Restarts) {
    let (before, after) = (hashes(&base()), hashes(edited));
    let seen = match (before.0 != after.0, before.1 != after.1) {
        (false, false) => Nothing,
        (false, true) => Own,
        (true, false) => Sandbox,
        (true, true) => Both,
    };
    assert_eq!(seen, expected, "{edit}");
}

/// Sets each field of the object at `pointer` by itself; the rows must be all fields that its schema has.
#[track_caller]
fn check_fields<T: JsonSchema>(pointer: &str, rows: &[(&str, &str, Restarts)]) {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    let fields: BTreeSet<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(rows.iter().map(|(field, ..)| *field).collect::<BTreeSet<_>>(), fields, "a row for each field of {pointer}");
    for (field, value, expected) in rows {
        let mut pod = base();
        let mut at = &mut pod;
        for step in pointer.split('/').filter(|step| !step.is_empty()) {
            at = match step.parse::<usize>() {
                Ok(index) => &mut at[index],
                Err(_) => &mut at[step],
            };
        }
        at[*field] = serde_yaml::from_str(value).unwrap();
        check(&format!("{pointer}/{field}"), &pod, *expected);
    }
}

#[test]
fn each_field_of_the_pod_restarts_what_is_made_from_it() {
    check_fields::<PodSpec>(
        "spec",
        &[
            ("activeDeadlineSeconds", "5", Nothing),
            ("affinity", "{nodeAffinity: {}}", Nothing),
            ("automountServiceAccountToken", "false", Nothing),
            ("containers", "[{name: a, image: other}]", Own),
            ("dnsConfig", "{searches: [a.b]}", Own),
            ("dnsPolicy", "Default", Own),
            ("enableServiceLinks", "false", Nothing),
            ("ephemeralContainers", "[{name: e}]", Nothing),
            ("hostAliases", "[{ip: 192.0.2.1}]", Own),
            ("hostIPC", "true", Sandbox),
            ("hostNetwork", "true", Sandbox),
            ("hostPID", "true", Sandbox),
            ("hostUsers", "false", Sandbox),
            ("hostname", "www", Both),
            ("hostnameOverride", "www", Both),
            ("imagePullSecrets", "[{name: s}]", Nothing),
            ("initContainers", "[{name: i, image: x}]", Nothing),
            ("nodeName", "other", Nothing),
            ("nodeSelector", "{a: b}", Nothing),
            ("os", "{name: linux}", Nothing),
            ("overhead", "{cpu: 1}", Nothing),
            ("preemptionPolicy", "Never", Nothing),
            ("priority", "5", Nothing),
            ("priorityClassName", "high", Nothing),
            ("readinessGates", "[{conditionType: a}]", Nothing),
            ("resourceClaims", "[{name: c}]", Nothing),
            ("resources", "{limits: {cpu: 1}}", Nothing),
            ("restartPolicy", "Never", Nothing),
            ("runtimeClassName", "other", Sandbox),
            ("schedulerName", "other", Nothing),
            ("schedulingGates", "[{name: g}]", Nothing),
            ("securityContext", "{runAsUser: 0}", Own),
            ("serviceAccount", "bot", Nothing),
            ("serviceAccountName", "bot", Nothing),
            ("setHostnameAsFQDN", "true", Both),
            ("shareProcessNamespace", "true", Sandbox),
            ("subdomain", "site", Both),
            ("terminationGracePeriodSeconds", "5", Nothing),
            ("tolerations", "[{operator: Exists}]", Nothing),
            ("topologySpreadConstraints", "[{maxSkew: 1, topologyKey: a, whenUnsatisfiable: b}]", Nothing),
            ("volumes", "[{name: v, hostPath: {path: /v}}]", Own),
        ],
    );
}

#[test]
fn each_field_of_a_container_restarts_it_if_its_process_sees_it() {
    let probe = "{tcpSocket: {port: 1}}";
    check_fields::<Container>(
        "spec/containers/0",
        &[
            ("args", "[a]", Own),
            ("command", "[a]", Own),
            ("env", "[{name: A, value: a}]", Own),
            ("envFrom", "[{configMapRef: {name: m}}]", Own),
            ("image", "'x:2'", Own),
            ("imagePullPolicy", "Never", Nothing),
            ("lifecycle", "{stopSignal: SIGQUIT}", Own),
            ("livenessProbe", probe, Nothing),
            ("name", "c", Own),
            ("ports", "[{containerPort: 1}]", Nothing),
            ("readinessProbe", probe, Nothing),
            ("resizePolicy", "[{resourceName: cpu, restartPolicy: NotRequired}]", Nothing),
            ("resources", "{limits: {hugepages-2Mi: 2Mi}}", Own),
            ("restartPolicy", "Always", Nothing),
            ("restartPolicyRules", "[{action: Restart}]", Nothing),
            ("securityContext", "{privileged: true}", Own),
            ("startupProbe", probe, Nothing),
            ("stdin", "true", Own),
            ("stdinOnce", "true", Own),
            ("terminationMessagePath", "/t", Own),
            ("terminationMessagePolicy", "FallbackToLogsOnError", Nothing),
            ("tty", "true", Own),
            ("volumeDevices", "[{name: d, devicePath: /d}]", Own),
            ("volumeMounts", "[{name: v, mountPath: /w}]", Own),
            ("workingDir", "/w", Own),
        ],
    );
}

#[test]
fn each_field_of_the_pods_security_context_restarts_the_container_but_sysctls() {
    check_fields::<PodSecurityContext>(
        "spec/securityContext",
        &[
            ("appArmorProfile", "{type: Unconfined}", Own),
            ("fsGroup", "0", Own),
            ("fsGroupChangePolicy", "Always", Nothing),
            ("runAsGroup", "0", Own),
            ("runAsNonRoot", "true", Own),
            ("runAsUser", "0", Own),
            ("seLinuxChangePolicy", "Recursive", Nothing),
            ("seLinuxOptions", "{level: a}", Own),
            ("seccompProfile", "{type: Unconfined}", Own),
            ("supplementalGroups", "[0]", Own),
            ("supplementalGroupsPolicy", "Strict", Own),
            ("sysctls", "[{name: a, value: b}]", Sandbox),
            ("windowsOptions", "{hostProcess: true}", Nothing),
        ],
    );
}

#[test]
fn each_field_of_a_containers_security_context_restarts_it() {
    check_fields::<SecurityContext>(
        "spec/containers/0/securityContext",
        &[
            ("allowPrivilegeEscalation", "false", Own),
            ("appArmorProfile", "{type: Unconfined}", Own),
            ("capabilities", "{drop: [ALL]}", Own),
            ("privileged", "true", Own),
            ("procMount", "Unmasked", Own),
            ("readOnlyRootFilesystem", "true", Own),
            ("runAsGroup", "0", Own),
            ("runAsNonRoot", "true", Own),
            ("runAsUser", "0", Own),
            ("seLinuxOptions", "{level: a}", Own),
            ("seccompProfile", "{type: Unconfined}", Own),
            ("windowsOptions", "{hostProcess: true}", Nothing),
        ],
    );
}

/// Edits of parts of fields, by JSON pointer.
#[test]
fn an_edit_counts_where_the_container_sees_it() {
    for (pointer, value, expected) in [
        // Its references.
        ("/metadata/labels/app", "other", Own),
        ("/metadata/annotations/note", "other", Own),
        ("/metadata/labels/other", "y", Nothing),
        ("/spec/containers/1/resources/limits/cpu", "2", Own),
        ("/spec/containers/1/image", "'y:2'", Nothing),
        // Volumes: its own, not the others'.
        ("/spec/volumes/0/emptyDir", "{}", Own),
        ("/spec/volumes/0/emptyDir/medium", "''", Own),
        ("/spec/volumes/1/hostPath", "{path: /x}", Nothing),
        // Spelling.
        ("/spec/containers/1/resources/limits/cpu", "1000m", Nothing),
        ("/spec/containers/0/stdin", "false", Nothing),
        ("/spec/containers/0/workingDir", "''", Nothing),
        ("/spec/containers/0/args", "[]", Nothing),
        ("/spec/containers/0/resources", "{}", Nothing),
        // Changed while it runs.
        ("/spec/containers/0/resources", "{requests: {cpu: 1}, limits: {memory: 1Mi, ephemeral-storage: 1Gi}}", Nothing),
        ("/spec/containers/0/resources", "{limits: {example.org/gpu: 1}}", Own),
        ("/spec/containers/0/securityContext", "{}", Nothing),
        ("/spec/containers/0/securityContext", "{capabilities: {}, privileged: false}", Nothing),
        ("/spec/dnsConfig", "{}", Nothing),
        ("/spec/hostNetwork", "false", Nothing),
        ("/spec/hostUsers", "true", Nothing),
        ("/spec/containers/0/volumeMounts/0/readOnly", "false", Nothing),
        // podstead's additions.
        ("/metadata/uid", "other", Nothing),
        ("/metadata/annotations/kubernetes.io~1config.seen", "later", Nothing),
        ("/metadata/annotations/kubernetes.io~1config.hash", "other", Nothing),
        // Devices.
        ("/metadata/annotations/cdi.k8s.io~1radio", "v.org/radio=0", Own),
        ("/metadata/annotations/devices.podstead.dev~1radio", "/dev/radio", Own),
        ("/metadata/annotations/devices.podstead.dev~1radio", "'{path: /dev/radio, containers: [none]}'", Nothing),
        // Of a volume that is not NFS: no options.
        ("/metadata/annotations/nfs.podstead.dev~1v", "soft", Nothing),
        // The older way to name a profile.
        ("/metadata/annotations/container.apparmor.security.beta.kubernetes.io~1a", "unconfined", Own),
        ("/metadata/annotations/container.apparmor.security.beta.kubernetes.io~1b", "unconfined", Nothing),
    ] {
        let mut pod = base();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        pod.pointer_mut(parent).unwrap()[name.replace("~1", "/")] = serde_yaml::from_str(value).unwrap();
        check(&format!("{pointer}: {value}"), &pod, expected);
    }
}

#[test]
fn a_value_of_the_pod_that_the_container_overrides_does_not_count() {
    let hash = |pod_user: i64| {
        let yaml = format!(
            "{{spec: {{securityContext: {{runAsUser: {pod_user}}}, containers: [{{name: a, securityContext: {{runAsUser: 5}}}}]}}}}"
        );
        let pod: Pod = serde_yaml::from_str(&yaml).unwrap();
        container_hash(&pod, &pod.spec.as_ref().unwrap().containers[0])
    };
    assert_eq!(hash(1), hash(2));
}
