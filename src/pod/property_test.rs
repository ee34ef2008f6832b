//! Properties of admission and of all that is asked about a Pod, over Pods made from the API's schema and over good ones.

use super::env::{EnvFacts, EnvFiles, container_environment, expanded_args, expanded_command};
use super::hash::{config_hash, container_hash, sandbox_hash};
use super::objects::Objects;
use super::{AdmitContext, NodeName, Pod, admit, containers, defaults, host_files, resources};
use crate::Severity;
use crate::testing::seen;
use k8s_openapi::schemars::SchemaGenerator;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| SchemaGenerator::default().into_root_schema_for::<Pod>().to_value());

/// Texts on both sides of the rules.
const TEXTS: [&str; 48] = [
    "",
    "a",
    "web",
    "A",
    "-",
    "a-",
    "..",
    "../a",
    "a/../b",
    "/",
    "/data",
    "/data/",
    "a b",
    "ü",
    "\0",
    "$",
    "$(",
    "$(A)",
    "$$(A)",
    "Always",
    "Never",
    "OnFailure",
    "None",
    "Default",
    "ClusterFirst",
    "Localhost",
    "RuntimeDefault",
    "Exists",
    "NoExecute",
    "Memory",
    "Unmasked",
    "TCP",
    "1",
    "1Mi",
    "-1",
    "500m",
    "1e1000",
    "0.0000000001Ei",
    "metadata.name",
    "metadata.labels['a']",
    "metadata.labels['",
    "limits.cpu",
    "hugepages-2Mi",
    "net/ipv4/tcp_syncookies",
    "10.0.0.1",
    "::1",
    "SYS_ADMIN",
    "SIGRTMIN+99999999999999999999",
];
const NUMBERS: [i64; 12] = [0, 1, -1, 2, 80, 511, 65_535, 65_536, i32::MAX as i64, i32::MIN as i64, i64::MAX, i64::MIN];

/// A source of choices that shrinks with its input.
struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl Choices<'_> {
    fn pick(&mut self, among: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % among
    }

    /// A value of the schema; nothing more once the choices are used up.
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let schema = resolve(schema);
        if schema.get("x-kubernetes-int-or-string").is_some() {
            return if self.pick(2) == 0 { json!(80) } else { json!(TEXTS[self.pick(TEXTS.len())]) };
        }
        match (schema.get("type").and_then(Value::as_str), schema.get("format").and_then(Value::as_str)) {
            (Some("string"), Some("date-time")) => json!("2024-01-01T00:00:00Z"),
            (Some("string"), _) => {
                let text = TEXTS[self.pick(TEXTS.len())];
                if self.pick(32) == 31 { json!(text.repeat(300)) } else { json!(text) }
            }
            (Some("integer"), format) => {
                let number = NUMBERS[self.pick(NUMBERS.len())];
                if format == Some("int32") { json!(i32::try_from(number).unwrap_or(i32::MAX)) } else { json!(number) }
            }
            (Some("boolean"), _) => json!(self.pick(2) == 1),
            (Some("array"), _) => Value::Array((0..self.pick(3)).map(|_| self.value(&schema["items"], depth + 1)).collect()),
            _ => self.object(schema, depth),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        if let Some(values) = schema.get("additionalProperties") {
            let keys = (0..self.pick(3)).map(|_| TEXTS[self.pick(TEXTS.len())].to_owned()).collect::<Vec<_>>();
            return Value::Object(keys.into_iter().map(|key| (key, self.value(values, depth + 1))).collect());
        }
        let mut members = Map::new();
        for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let required = schema.get("required").is_some_and(|required| required.as_array().unwrap().contains(&json!(name)));
            // Without these there is nothing to look at.
            let wanted = depth == 0 && name == "spec" || depth == 1 && (name == "containers" || name == "volumes");
            if (wanted || required || self.pick(4) == 3)
                && depth < 12
                && !matches!(name.as_str(), "apiVersion" | "kind" | "managedFields")
            {
                members.insert(name.clone(), self.value(member, depth + 1));
            }
        }
        Value::Object(members)
    }
}

fn resolve(schema: &Value) -> &Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => resolve(SCHEMA.pointer(reference.trim_start_matches('#')).unwrap()),
        None => schema.get("allOf").and_then(|all| all.get(0)).map_or(schema, resolve),
    }
}

fn arbitrary_pod(choices: &[u8]) -> Pod {
    let mut value = Choices { bytes: choices.iter() }.value(&SCHEMA, 0);
    value.as_object_mut().unwrap().extend([("apiVersion".to_owned(), json!("v1")), ("kind".to_owned(), json!("Pod"))]);
    serde_json::from_value(value).expect("what is made from the schema can be decoded")
}

/// Parts of which any choice makes a good pod.
const POD_PARTS: [&str; 16] = [
    "restartPolicy: Never",
    "terminationGracePeriodSeconds: 0",
    "activeDeadlineSeconds: 5",
    "hostIPC: true",
    "shareProcessNamespace: true",
    "hostname: www",
    "subdomain: site",
    "setHostnameAsFQDN: true",
    "dnsPolicy: None",
    "dnsConfig: {nameservers: [192.0.2.1], options: [{name: ndots, value: '1'}]}",
    "hostAliases: [{ip: 192.0.2.9, hostnames: [db]}]",
    "securityContext: {runAsUser: 0, supplementalGroups: [5], sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}]}",
    "initContainers: [{name: i, image: 'x:1'}, {name: s, image: x, restartPolicy: Always, resources: {requests: {cpu: 1m}}}]",
    "priorityClassName: system-node-critical",
    "nodeSelector: {a: b}",
    "os: {name: linux}",
];
const CONTAINER_PARTS: [&str; 12] = [
    "command: [sh, -c, '$(A)']",
    "args: ['$$(A)', '$(B']",
    "env: [{name: A, value: '$(B)'}, {name: B, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, {name: C, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]",
    "resources: {limits: {cpu: 500m, memory: 64Mi}}",
    "imagePullPolicy: Always",
    "ports: [{containerPort: 80, name: http}]",
    "volumeMounts: [{name: v, mountPath: /v, subPath: a}, {name: h, mountPath: /h, readOnly: true}]",
    "workingDir: /srv",
    "tty: true, stdin: true",
    "securityContext: {capabilities: {drop: [ALL]}, readOnlyRootFilesystem: true}",
    "terminationMessagePolicy: FallbackToLogsOnError",
    "stdinOnce: true",
];

fn good_pod() -> impl Strategy<Value = Pod> {
    let part = proptest::sample::subsequence;
    (part(POD_PARTS.to_vec(), 0..=POD_PARTS.len()), part(CONTAINER_PARTS.to_vec(), 0..=CONTAINER_PARTS.len())).prop_map(
        |(pod, container)| {
            let mut pod = pod;
            // A policy of None needs a name server.
            if pod.contains(&POD_PARTS[8]) && !pod.contains(&POD_PARTS[9]) {
                pod.retain(|part| *part != POD_PARTS[8]);
            }
            let spec = [
                format!("containers: [{{{}}}]", [vec!["name: a", "image: 'x:1'"], container].concat().join(", ")),
                "volumes: [{name: v}, {name: h, hostPath: {path: /srv}}]".to_owned(),
            ];
            let spec = spec.into_iter().chain(pod.into_iter().map(str::to_owned)).collect::<Vec<_>>().join(", ");
            serde_yaml::from_str(&format!("{{metadata: {{name: web, labels: {{a: b}}}}, spec: {{{spec}}}}}")).unwrap()
        },
    )
}

fn context() -> AdmitContext {
    AdmitContext::new(NodeName::new("edge"))
}

/// Asks everything that is asked about an admitted pod.
fn ask_all(pod: &Pod) {
    let ips = vec!["10.0.0.7".parse().unwrap()];
    let facts = EnvFacts {
        node_name: NodeName::new("edge"),
        cluster_domain: "cluster.local".into(),
        host_ips: vec![],
        pod_ips: ips.clone(),
        service_variables: Vec::new(),
        allocatable_cpu_milli: u64::MAX,
        allocatable_memory_bytes: u64::MAX,
        allocatable_ephemeral_storage_bytes: 0,
    };
    config_hash(pod);
    sandbox_hash(pod);
    resources::pod_cgroup(pod);
    resources::burstable_cpu_milli(pod);
    let name = host_files::hostname(pod, "cluster.local");
    host_files::hosts_file(pod, &name, &ips, "").lines().count();
    host_files::resolv_conf(pod, "search a\n", None, None);
    for (_, container) in containers::all(pod) {
        container_hash(pod, container);
        resources::container_cgroup(pod, container);
        resources::oom_score_adj(pod, container, 1 << 30);
        containers::pull_policy(container);
        let environment = container_environment(pod, container, seen(&Objects::default()), &EnvFiles::new(), &facts)
            .unwrap_or_default()
            .variables;
        expanded_command(container, &environment);
        expanded_args(container, &environment);
    }
}

proptest! {
    #[test]
    fn no_pod_makes_admission_panic(choices in proptest::collection::vec(any::<u8>(), 0..4096)) {
        let pod = arbitrary_pod(&choices);
        ask_all(&pod);
        let mut defaulted = pod.clone();
        defaults::apply(&mut defaulted);
        let once = defaulted.clone();
        defaults::apply(&mut defaulted);
        prop_assert_eq!(&once, &defaulted, "defaults are idempotent");
        ask_all(&defaulted);
        let verdict = admit(pod, &context());
        let refused = verdict.problems.iter().any(|problem| problem.severity == Severity::Error);
        prop_assert_eq!(verdict.pod.is_none(), refused, "a pod is refused exactly where there is an error");
        for problem in &verdict.problems {
            prop_assert!(!problem.field.is_empty() && !problem.message.is_empty() && !problem.message.ends_with('.'), "{:?}", problem);
        }
    }

    #[test]
    fn a_good_pod_is_admitted_and_stays_as_it_is_when_admitted_again(pod in good_pod()) {
        let first = admit(pod, &context());
        prop_assert!(first.pod.is_some(), "{:?}", first.problems);
        let mut first_pod = first.pod.unwrap();
        ask_all(&first_pod);
        first_pod.metadata.name = Some("web".to_owned());
        let second = admit(first_pod.clone(), &context());
        prop_assert!(second.problems.iter().all(|problem| first.problems.contains(problem)), "{:?}", second.problems);
        let mut second_pod = second.pod.unwrap();
        prop_assert_eq!(second_pod.metadata.name.as_deref(), Some("web-edge"));
        second_pod.metadata.name = Some("web".to_owned());
        prop_assert_eq!(&first_pod, &second_pod);
        prop_assert_eq!(config_hash(&first_pod), config_hash(&second_pod));
    }
}

#[test]
fn the_generator_reaches_deep_fields() {
    let choices: Vec<u8> = (0..60_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let reached = choices.chunks(3000).map(arbitrary_pod).filter(|pod| {
        containers::all(pod).any(|(_, container)| container.liveness_probe.is_some() || container.security_context.is_some())
    });
    assert!(reached.count() > 2, "pods with probes or security contexts are among those that are made");
}
