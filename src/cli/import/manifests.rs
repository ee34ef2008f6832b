//! Manifests of services: a Deployment (or a Pod that ends), claims, ConfigMaps and Secrets, in the order in which people read them. **Pure**.

use super::model::{Health, Mount, MountSource, Port, Project, Restart, Rights, Run, Service};
use super::words::object_name;
use serde_json::Value as Json;
use serde_yaml::{Mapping, Value};
use std::collections::BTreeSet;

/// Size of a claim whose origin has no size; nothing enforces it.
const CLAIM_SIZE: &str = "1Gi";

/// The files with their names. A volume that several services share is written with the first of them.
pub(super) fn files(project: &Project, namespace: Option<&str>) -> anyhow::Result<Vec<(String, String)>> {
    let mut written = BTreeSet::new();
    let mut files = Vec::new();
    let mut is_first = true;
    for service in &project.services {
        let mut documents = vec![workload(service, namespace)];
        for mount in &service.mounts {
            let object = match &mount.source {
                MountSource::Named(name) => claim(name, namespace),
                MountSource::File { name, key, content: Some(content), is_secret } => {
                    file_object(name, key, content, *is_secret, namespace)
                }
                MountSource::File { content: None, .. }
                | MountSource::Anonymous
                | MountSource::Memory(_)
                | MountSource::Host(_) => {
                    continue;
                }
            };
            if written.insert(object.to_string()) {
                documents.push(to_yaml(&object));
            }
        }
        let mut text = String::new();
        if std::mem::take(&mut is_first) {
            text.push_str(&comment(&format!("Made by podstead import from {}", project.origin)));
            project.notes.iter().for_each(|note| text.push_str(&comment(&format!("TO CHECK: {note}"))));
        }
        service.notes.iter().for_each(|note| text.push_str(&comment(&format!("TO CHECK: {note}"))));
        let documents: Vec<String> = documents.iter().map(serde_yaml::to_string).collect::<Result<_, _>>()?;
        text.push_str(&documents.join("---\n"));
        files.push((format!("{}.yaml", object_name(&service.name)), text));
    }
    Ok(files)
}

/// A comment, whatever is in the text.
fn comment(text: &str) -> String {
    let line: String = text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    format!("# {line}\n")
}

/// A mapping in the given order, without what is empty.
fn map(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let is_there = |value: &Value| match value {
        Value::Null => false,
        Value::Sequence(items) => !items.is_empty(),
        Value::Mapping(entries) => !entries.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Tagged(_) => true,
    };
    let entries = entries.into_iter().filter(|(_, value)| is_there(value));
    Value::Mapping(entries.map(|(key, value)| (Value::from(key), value)).collect::<Mapping>())
}

fn list(items: impl IntoIterator<Item = Value>) -> Value {
    Value::Sequence(items.into_iter().collect())
}

fn texts(items: &[String]) -> Value {
    list(items.iter().map(|item| Value::from(item.as_str())))
}

fn some(value: Option<impl Into<Value>>) -> Value {
    value.map_or(Value::Null, Into::into)
}

fn flag(value: bool) -> Value {
    if value { Value::from(true) } else { Value::Null }
}

fn workload(service: &Service, namespace: Option<&str>) -> Value {
    let name = object_name(&service.name);
    let labels = || map([("app", Value::from(name.as_str()))]);
    let metadata = map([("name", Value::from(name.as_str())), ("namespace", some(namespace)), ("labels", labels())]);
    let spec = pod_spec(service, &name);
    match service.run.restart {
        Restart::Always => {
            // A port of the host and a directory belong to one pod at a time.
            let strategy = map([("type", Value::from("Recreate"))]);
            let template = map([("metadata", map([("labels", labels())])), ("spec", spec)]);
            map([
                ("apiVersion", Value::from("apps/v1")),
                ("kind", Value::from("Deployment")),
                ("metadata", metadata),
                (
                    "spec",
                    map([
                        ("replicas", some(service.run.replicas.filter(|replicas| *replicas != 1))),
                        ("strategy", strategy),
                        ("selector", map([("matchLabels", labels())])),
                        ("template", template),
                    ]),
                ),
            ])
        }
        Restart::OnFailure | Restart::Never => {
            map([("apiVersion", Value::from("v1")), ("kind", Value::from("Pod")), ("metadata", metadata), ("spec", spec)])
        }
    }
}

fn pod_spec(service: &Service, name: &str) -> Value {
    let Service { image, entrypoint, command, environment, ports, mounts, run, rights, health, .. } = service;
    let policy = match run.restart {
        Restart::Always => None,
        Restart::OnFailure => Some("OnFailure"),
        Restart::Never => Some("Never"),
    };
    let container = map([
        ("name", Value::from(name)),
        ("image", Value::from(image.as_str())),
        ("command", texts(entrypoint)),
        ("args", texts(command)),
        ("workingDir", some(run.directory.as_deref())),
        ("env", list(environment.iter().map(|(name, value)| map([("name", name.as_str().into()), ("value", escaped(value))])))),
        ("ports", list(ports.iter().map(|port| port_of(port, rights)))),
        ("livenessProbe", health.as_ref().map_or(Value::Null, probe)),
        ("resources", resources(run)),
        ("securityContext", security(rights)),
        ("stdin", flag(run.tty)),
        ("tty", flag(run.tty)),
        ("volumeMounts", list(mounts.iter().enumerate().map(|(index, mount)| volume_mount(index, mount)))),
    ]);
    let sysctls = run.sysctls.iter().map(|(name, value)| map([("name", name.as_str().into()), ("value", value.as_str().into())]));
    let aliases =
        run.hosts.iter().map(|(address, name)| map([("ip", address.as_str().into()), ("hostnames", list([name.as_str().into()]))]));
    map([
        ("restartPolicy", some(policy)),
        ("terminationGracePeriodSeconds", some(run.grace)),
        ("hostNetwork", flag(rights.host_network)),
        ("dnsPolicy", some(rights.host_network.then_some("ClusterFirstWithHostNet"))),
        ("hostPID", flag(rights.host_pid)),
        // Other services reach it by this name.
        ("hostname", some(run.hostname.as_deref().map(object_name))),
        ("subdomain", Value::from(name)),
        ("hostAliases", list(aliases)),
        ("securityContext", map([("sysctls", list(sysctls))])),
        ("containers", list([container])),
        ("volumes", list(mounts.iter().enumerate().map(|(index, mount)| volume(index, mount)))),
    ])
}

/// `$(NAME)` in a value would be a reference.
fn escaped(value: &str) -> Value {
    Value::from(value.replace("$(", "$$("))
}

fn port_of(port: &Port, rights: &Rights) -> Value {
    let host = port.host.filter(|_| !rights.host_network);
    map([
        ("containerPort", port.container.into()),
        ("hostPort", some(host)),
        ("hostIP", some(port.host_ip.as_deref().filter(|_| host.is_some()))),
        ("protocol", some(port.udp.then_some("UDP"))),
    ])
}

fn probe(health: &Health) -> Value {
    map([
        ("exec", map([("command", texts(&health.command))])),
        ("initialDelaySeconds", some(health.delay.filter(|delay| *delay > 0))),
        // The defaults of docker, which differ.
        ("periodSeconds", health.period.unwrap_or(30).max(1).into()),
        ("timeoutSeconds", health.timeout.unwrap_or(30).max(1).into()),
        ("failureThreshold", some(health.retries.filter(|retries| *retries > 0 && *retries != 3))),
    ])
}

fn resources(run: &Run) -> Value {
    map([("limits", map([("cpu", some(run.cpu.as_deref())), ("memory", some(run.memory.as_deref()))]))])
}

fn security(rights: &Rights) -> Value {
    let Rights { user, group, privileged, read_only, host_network: _, host_pid: _, add, drop } = rights;
    map([
        ("privileged", flag(*privileged)),
        ("runAsUser", some(*user)),
        ("runAsGroup", some(*group)),
        ("readOnlyRootFilesystem", flag(*read_only)),
        ("capabilities", map([("add", texts(add)), ("drop", texts(drop))])),
    ])
}

fn volume_name(index: usize) -> String {
    format!("volume-{index}")
}

fn volume_mount(index: usize, mount: &Mount) -> Value {
    let key = match &mount.source {
        MountSource::File { key, .. } => Some(key.as_str()),
        MountSource::Named(_) | MountSource::Anonymous | MountSource::Memory(_) | MountSource::Host(_) => None,
    };
    map([
        ("name", volume_name(index).into()),
        ("mountPath", mount.target.as_str().into()),
        ("subPath", some(key)),
        ("readOnly", flag(mount.read_only)),
    ])
}

fn volume(index: usize, mount: &Mount) -> Value {
    let name = ("name", Value::from(volume_name(index)));
    let empty = || Value::Mapping(Mapping::new());
    match &mount.source {
        MountSource::Named(claim) => map([name, ("persistentVolumeClaim", map([("claimName", object_name(claim).into())]))]),
        // An empty mapping has a meaning here.
        MountSource::Anonymous => {
            Value::Mapping([(Value::from("name"), name.1), (Value::from("emptyDir"), empty())].into_iter().collect())
        }
        MountSource::Memory(size) => {
            map([name, ("emptyDir", map([("medium", "Memory".into()), ("sizeLimit", some(size.as_deref()))]))])
        }
        MountSource::Host(path) => map([name, ("hostPath", map([("path", path.as_str().into())]))]),
        MountSource::File { name: object, is_secret: true, .. } => {
            map([name, ("secret", map([("secretName", object.as_str().into())]))])
        }
        MountSource::File { name: object, is_secret: false, .. } => {
            map([name, ("configMap", map([("name", object.as_str().into())]))])
        }
    }
}

fn claim(name: &str, namespace: Option<&str>) -> Json {
    serde_json::json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": object_name(name), "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": CLAIM_SIZE}}},
    })
}

fn file_object(name: &str, key: &str, content: &str, is_secret: bool, namespace: Option<&str>) -> Json {
    let (kind, field) = if is_secret { ("Secret", "stringData") } else { ("ConfigMap", "data") };
    serde_json::json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, field: {key: content}})
}

/// In the usual order of fields, without what is null.
fn to_yaml(object: &Json) -> Value {
    let convert = |value: &Json| serde_yaml::to_value(value).unwrap_or(Value::Null);
    let metadata = map([("name", convert(&object["metadata"]["name"])), ("namespace", convert(&object["metadata"]["namespace"]))]);
    map([
        ("apiVersion", convert(&object["apiVersion"])),
        ("kind", convert(&object["kind"])),
        ("metadata", metadata),
        ("data", convert(&object["data"])),
        ("stringData", convert(&object["stringData"])),
        ("spec", convert(&object["spec"])),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_of_two_services_is_written_once() {
        let shared = || Mount { source: MountSource::Named("data".into()), target: "/data".into(), read_only: false };
        let service = |name: &str| Service { name: name.into(), image: "a".into(), mounts: vec![shared()], ..Service::default() };
        let project = Project { origin: "x".into(), services: vec![service("a"), service("b")], notes: Vec::new() };
        let files = files(&project, None).unwrap();
        assert_eq!(files.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a.yaml", "b.yaml"]);
        assert_eq!(files.iter().filter(|(_, text)| text.contains("kind: PersistentVolumeClaim")).count(), 1);
    }

    #[test]
    fn notes_cannot_become_yaml() {
        let service = Service { name: "a".into(), notes: vec!["x\nkind: Pod".into()], ..Service::default() };
        let project = Project { origin: "y\nz: 1".into(), services: vec![service], notes: Vec::new() };
        let (_, text) = files(&project, None).unwrap().remove(0);
        assert!(text.contains("# TO CHECK: x kind: Pod\n") && text.contains("from y z: 1\n"), "{text}");
    }

    #[test]
    fn values_are_no_references() {
        let service = Service { name: "a".into(), environment: vec![("A".into(), "$(B)".into())], ..Service::default() };
        let project = Project { origin: String::new(), services: vec![service], notes: Vec::new() };
        assert!(files(&project, None).unwrap()[0].1.contains("value: $$(B)"));
    }
}
