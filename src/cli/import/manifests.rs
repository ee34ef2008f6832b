//! Manifests of services: a Deployment (or a Pod that ends), claims, ConfigMaps and Secrets, in the order in which people read them. **Pure**.

use super::model::{Device, Dns, Health, Mount, MountSource, Port, Project, Protocol, Restart, Rights, Run, Service};
use super::words::{key_name, object_name};
use podstead_manifest::to_manifest;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Size of a claim whose origin has no size; nothing enforces it.
const CLAIM_SIZE: &str = "1Gi";

/// The files with their names. A volume that several services share is written with the first of them.
pub(super) fn files(project: &Project, namespace: Option<&str>) -> Vec<(String, String)> {
    let mut written = BTreeSet::new();
    let mut files = Vec::new();
    let mut is_first = true;
    for pod in pods(&project.services) {
        let name = pod.leader.pod_name();
        let mut objects = vec![workload(&pod, namespace)];
        for service in pod.services() {
            objects.extend(service.aliases.iter().map(|alias| alias_service(alias, &name, namespace)));
            objects.extend(service.mounts.iter().filter_map(|mount| object_of(&mount.source, namespace)));
        }
        let mut documents = Vec::new();
        for object in objects {
            let text = to_manifest(&object);
            if written.insert(text.clone()) {
                documents.push(text);
            }
        }
        let mut text = String::new();
        if std::mem::take(&mut is_first) {
            text.push_str(&comment(&format!("Made by podstead import from {}", project.origin)));
            project.notes.iter().for_each(|note| text.push_str(&comment(&format!("TO CHECK: {note}"))));
        }
        for service in pod.services() {
            let of = if pod.members.is_empty() { String::new() } else { format!("{}: ", service.name) };
            service.notes.iter().for_each(|note| text.push_str(&comment(&format!("TO CHECK: {of}{note}"))));
        }
        text.push_str(&documents.join("---\n"));
        files.push((format!("{name}.yaml"), text));
    }
    files
}

/// Services that share a network, and so a pod.
struct PodOf<'a> {
    leader: &'a Service,
    members: Vec<&'a Service>,
}

impl<'a> PodOf<'a> {
    fn services(&self) -> impl Iterator<Item = &'a Service> {
        std::iter::once(self.leader).chain(self.members.iter().copied())
    }
}

/// The pods, in the order of their first services. A service that joins one that is not there, or that joins another one itself, stands alone.
fn pods(services: &[Service]) -> Vec<PodOf<'_>> {
    let leader_of = |service: &Service| {
        let name = service.joins.as_deref()?;
        services.iter().find(|leader| leader.name == name && leader.joins.is_none()).map(|leader| leader.name.clone())
    };
    let mut pods: Vec<PodOf<'_>> = Vec::new();
    for service in services.iter().filter(|service| leader_of(service).is_none()) {
        let members = services.iter().filter(|member| leader_of(member).is_some_and(|leader| leader == service.name));
        pods.push(PodOf { leader: service, members: members.collect() });
    }
    pods
}

/// A comment, whatever is in the text.
fn comment(text: &str) -> String {
    let line: String = text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    format!("# {line}\n")
}

/// A mapping without what is empty.
fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let is_there = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    let entries = entries.into_iter().filter(|(_, value)| is_there(value));
    Value::Object(entries.map(|(key, value)| (key.to_owned(), value)).collect())
}

fn flag(value: bool) -> Value {
    if value { json!(true) } else { Value::Null }
}

fn workload(pod: &PodOf<'_>, namespace: Option<&str>) -> Value {
    let name = pod.leader.pod_name();
    let labels = json!({"app": name});
    let annotations = annotations(pod);
    let metadata = |annotations: &Value| {
        map([
            ("name", json!(name)),
            ("namespace", json!(namespace)),
            ("labels", labels.clone()),
            ("annotations", annotations.clone()),
        ])
    };
    let run = &pod.leader.run;
    match run.restart {
        Restart::Always => {
            let template =
                map([("metadata", map([("labels", labels.clone()), ("annotations", annotations)])), ("spec", pod_spec(pod))]);
            let spec = map([
                ("replicas", json!(run.replicas.filter(|replicas| *replicas != 1))),
                // A port of the host and a directory belong to one pod at a time.
                ("strategy", json!({"type": "Recreate"})),
                ("selector", json!({"matchLabels": labels})),
                ("template", template),
            ]);
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(&Value::Null), "spec": spec})
        }
        Restart::OnFailure | Restart::Never => {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata(&annotations), "spec": pod_spec(pod)})
        }
    }
}

/// The devices of the containers, and the mount options of their volumes.
fn annotations(pod: &PodOf<'_>) -> Value {
    let mut all = serde_json::Map::new();
    for service in pod.services() {
        for Device { path, container_path, read_only } in &service.devices {
            let containers = (!pod.members.is_empty()).then(|| vec![object_name(&service.name)]);
            let is_plain = container_path.is_none() && !read_only && containers.is_none();
            let fields = map([
                ("path", json!(path)),
                ("containerPath", json!(container_path)),
                ("permissions", json!(read_only.then_some("r"))),
                ("containers", json!(containers)),
            ]);
            let base = object_name(path.rsplit('/').next().unwrap_or_default());
            let key = unique(&base, |name| all.contains_key(&format!("devices.podstead.dev/{name}")));
            // JSON is YAML, too.
            let value = if is_plain { path.clone() } else { fields.to_string() };
            all.insert(format!("devices.podstead.dev/{key}"), json!(value));
        }
    }
    // Named as in the pod, in the same order.
    let mut volumes = Volumes::default();
    for mount in pod.services().flat_map(|service| &service.mounts) {
        let name = volumes.name_of(&mount.source, &mount.target);
        if let MountSource::Export { options, .. } = &mount.source
            && !options.is_empty()
        {
            all.insert(format!("{}{name}", podstead_pod::nfs::PREFIX), json!(options));
        }
    }
    Value::Object(all)
}

/// The name, or the name with the first number that makes it free.
fn unique(base: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    std::iter::once(base.to_owned()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default()
}

fn pod_spec(pod: &PodOf<'_>) -> Value {
    let leader = pod.leader;
    let any = |is: fn(&Rights) -> bool| flag(pod.services().any(|service| is(&service.rights)));
    let policy = match leader.run.restart {
        Restart::Always => None,
        Restart::OnFailure => Some("OnFailure"),
        Restart::Never => Some("Never"),
    };
    let mut volumes = Volumes::default();
    let containers: Vec<Value> = pod.services().map(|service| container(service, &mut volumes)).collect();
    let host_network = pod.services().any(|service| service.rights.host_network);
    let stops_by_signal = pod.services().any(|service| service.run.stop_signal.is_some());
    let grace = pod.services().filter_map(|service| service.run.grace).max();
    let dns = &leader.run.dns;
    let dns_policy = if !dns.servers.is_empty() { Some("None") } else { host_network.then_some("ClusterFirstWithHostNet") };
    let aliases = pod.services().flat_map(|service| &service.run.hosts);
    let aliases: Vec<Value> = aliases.map(|(address, name)| json!({"ip": address, "hostnames": [name]})).collect();
    map([
        ("restartPolicy", json!(policy)),
        ("terminationGracePeriodSeconds", json!(grace)),
        // A signal needs it.
        ("os", if stops_by_signal { json!({"name": "linux"}) } else { Value::Null }),
        ("hostNetwork", flag(host_network)),
        ("dnsPolicy", json!(dns_policy)),
        ("dnsConfig", dns_config(dns)),
        ("hostPID", any(|rights| rights.host_pid)),
        ("hostIPC", any(|rights| rights.host_ipc)),
        // Other services reach it by this name.
        ("hostname", json!(leader.run.hostname.as_deref().map(object_name))),
        ("subdomain", json!(leader.pod_name())),
        ("hostAliases", json!(aliases)),
        ("securityContext", pod_security(pod)),
        ("containers", json!(containers)),
        ("volumes", volumes.objects()),
    ])
}

fn dns_config(dns: &Dns) -> Value {
    let option = |option: &String| match option.split_once(':') {
        Some((name, value)) => json!({"name": name, "value": value}),
        None => json!({"name": option}),
    };
    let options: Vec<Value> = dns.options.iter().map(option).collect();
    map([("nameservers", json!(dns.servers)), ("searches", json!(dns.searches)), ("options", json!(options))])
}

fn pod_security(pod: &PodOf<'_>) -> Value {
    let mut groups: Vec<i64> = pod.services().flat_map(|service| service.rights.groups.iter().copied()).collect();
    groups.sort_unstable();
    groups.dedup();
    let sysctls: BTreeMap<&str, &str> =
        pod.services().flat_map(|service| &service.run.sysctls).map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let sysctls: Vec<Value> = sysctls.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    map([("supplementalGroups", json!(groups)), ("sysctls", json!(sysctls))])
}

fn container(service: &Service, volumes: &mut Volumes) -> Value {
    let Service { name, image, entrypoint, command, environment, secret_environment, ports, mounts, run, rights, health, .. } =
        service;
    let plain = environment.iter().map(|(name, value)| json!({"name": name, "value": escaped(value)}));
    let of_secrets = secret_environment.iter().map(|(name, secret)| {
        json!({"name": name, "valueFrom": {"secretKeyRef": {"name": object_name(secret), "key": key_name(secret)}}})
    });
    let env: Vec<Value> = plain.chain(of_secrets).collect();
    let health = health.as_ref().map(|health| (health.restarts, probe(health)));
    let (liveness, readiness) = match health {
        Some((true, probe)) => (probe, Value::Null),
        Some((false, probe)) => (Value::Null, probe),
        None => (Value::Null, Value::Null),
    };
    let signal = run.stop_signal.as_ref().map(|signal| json!({"stopSignal": signal}));
    let ports: Vec<Value> = ports.iter().map(|port| port_of(port, rights)).collect();
    let mounts: Vec<Value> =
        mounts.iter().map(|mount| volume_mount(volumes.name_of(&mount.source, &mount.target), mount)).collect();
    map([
        ("name", json!(object_name(name))),
        ("image", json!(image)),
        ("imagePullPolicy", json!(run.pull)),
        ("command", json!(entrypoint)),
        ("args", json!(command)),
        ("workingDir", json!(run.directory)),
        ("env", json!(env)),
        ("ports", json!(ports)),
        ("livenessProbe", liveness),
        ("readinessProbe", readiness),
        ("lifecycle", json!(signal)),
        ("resources", resources(run)),
        ("securityContext", security(rights)),
        ("stdin", flag(run.tty)),
        ("tty", flag(run.tty)),
        ("volumeMounts", json!(mounts)),
    ])
}

/// `$(NAME)` in a value would be a reference.
fn escaped(value: &str) -> String {
    value.replace("$(", "$$(")
}

fn port_of(port: &Port, rights: &Rights) -> Value {
    let host = port.host.filter(|_| !rights.host_network);
    let protocol = match port.protocol {
        Protocol::Tcp => None,
        Protocol::Udp => Some("UDP"),
        Protocol::Sctp => Some("SCTP"),
    };
    map([
        ("containerPort", json!(port.container)),
        ("hostPort", json!(host)),
        ("hostIP", json!(port.host_ip.as_deref().filter(|_| host.is_some()))),
        ("protocol", json!(protocol)),
    ])
}

fn probe(health: &Health) -> Value {
    // Only a restart has to wait until a slow program has started.
    let delay = health.delay.filter(|delay| *delay > 0 && health.restarts);
    map([
        ("exec", json!({"command": health.command})),
        ("initialDelaySeconds", json!(delay)),
        // The defaults of docker, which differ.
        ("periodSeconds", json!(health.period.unwrap_or(30).max(1))),
        ("timeoutSeconds", json!(health.timeout.unwrap_or(30).max(1))),
        ("failureThreshold", json!(health.retries.filter(|retries| *retries > 0 && *retries != 3))),
    ])
}

fn resources(run: &Run) -> Value {
    map([
        ("limits", map([("cpu", json!(run.cpu)), ("memory", json!(run.memory))])),
        ("requests", map([("cpu", json!(run.cpu_request)), ("memory", json!(run.memory_request))])),
    ])
}

fn security(rights: &Rights) -> Value {
    let unconfined = |is: bool| if is { json!({"type": "Unconfined"}) } else { Value::Null };
    map([
        ("privileged", flag(rights.privileged)),
        ("allowPrivilegeEscalation", if rights.no_new_privileges { json!(false) } else { Value::Null }),
        ("runAsUser", json!(rights.user)),
        ("runAsGroup", json!(rights.group)),
        ("readOnlyRootFilesystem", flag(rights.read_only)),
        ("seccompProfile", unconfined(rights.seccomp_unconfined)),
        ("appArmorProfile", unconfined(rights.apparmor_unconfined)),
        ("capabilities", map([("add", json!(rights.add)), ("drop", json!(rights.drop))])),
    ])
}

fn volume_mount(volume: String, mount: &Mount) -> Value {
    let key = match &mount.source {
        MountSource::File { key, .. } => Some(key.as_str()),
        MountSource::Named(_)
        | MountSource::Anonymous
        | MountSource::Memory(_)
        | MountSource::Host(_)
        | MountSource::Export { .. } => None,
    };
    map([
        ("name", json!(volume)),
        ("mountPath", json!(mount.target)),
        ("subPath", json!(key)),
        ("readOnly", flag(mount.read_only)),
        ("mountPropagation", json!(mount.propagation)),
    ])
}

/// The volumes of a pod, with their names.
#[derive(Debug, Default)]
struct Volumes(Vec<(String, MountSource)>);

impl Volumes {
    /// The name of the volume for a mount. Containers share a claim, an object and a path.
    fn name_of(&mut self, source: &MountSource, target: &str) -> String {
        let is_shared = match source {
            MountSource::Named(_) | MountSource::Host(_) | MountSource::Export { .. } | MountSource::File { .. } => true,
            MountSource::Anonymous | MountSource::Memory(_) => false,
        };
        if let Some((name, _)) = self.0.iter().find(|(_, known)| is_shared && known == source) {
            return name.clone();
        }
        let last = |path: &str| object_name(path.trim_end_matches('/').rsplit('/').next().unwrap_or_default());
        let base = match source {
            MountSource::Named(name) | MountSource::Export { name, .. } => object_name(name),
            MountSource::File { name, .. } => name.clone(),
            MountSource::Host(path) if path.trim_matches('/').is_empty() => "root".to_owned(),
            MountSource::Host(path) => last(path),
            MountSource::Anonymous | MountSource::Memory(_) => last(target),
        };
        let name = unique(&base, |name| self.0.iter().any(|(known, _)| known == name));
        self.0.push((name.clone(), source.clone()));
        name
    }

    fn objects(&self) -> Value {
        let volume = |(name, source): &(String, MountSource)| match source {
            MountSource::Named(claim) => json!({"name": name, "persistentVolumeClaim": {"claimName": object_name(claim)}}),
            MountSource::Anonymous => json!({"name": name, "emptyDir": {}}),
            MountSource::Memory(size) => {
                json!({"name": name, "emptyDir": map([("medium", json!("Memory")), ("sizeLimit", json!(size))])})
            }
            MountSource::Host(path) => json!({"name": name, "hostPath": {"path": path}}),
            MountSource::Export { server, path, read_only, .. } => {
                let source = map([("server", json!(server)), ("path", json!(path)), ("readOnly", flag(*read_only))]);
                json!({"name": name, "nfs": source})
            }
            MountSource::File { name: object, is_secret: true, .. } => json!({"name": name, "secret": {"secretName": object}}),
            MountSource::File { name: object, is_secret: false, .. } => json!({"name": name, "configMap": {"name": object}}),
        };
        self.0.iter().map(volume).collect()
    }
}

fn metadata(name: &str, namespace: Option<&str>) -> Value {
    map([("name", json!(name)), ("namespace", json!(namespace))])
}

/// The object that a mount needs.
fn object_of(source: &MountSource, namespace: Option<&str>) -> Option<Value> {
    match source {
        MountSource::Named(name) => Some(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata(&object_name(name), namespace),
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": CLAIM_SIZE}}},
        })),
        MountSource::File { name, key, content: Some(content), is_secret } => {
            let (kind, field) = if *is_secret { ("Secret", "stringData") } else { ("ConfigMap", "data") };
            Some(json!({"apiVersion": "v1", "kind": kind, "metadata": metadata(name, namespace), field: {key: content}}))
        }
        MountSource::File { content: None, .. }
        | MountSource::Anonymous
        | MountSource::Memory(_)
        | MountSource::Host(_)
        | MountSource::Export { .. } => None,
    }
}

/// A Service without an address of its own: its name is another name of the pods.
fn alias_service(alias: &str, app: &str, namespace: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata(&object_name(alias), namespace),
        "spec": {"clusterIP": "None", "selector": {"app": app}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_of_two_services_is_written_once() {
        let shared = || Mount::new(MountSource::Named("data".into()), "/data");
        let service = |name: &str| Service { name: name.into(), image: "a".into(), mounts: vec![shared()], ..Service::default() };
        let project = Project { origin: "x".into(), services: vec![service("a"), service("b")], notes: Vec::new() };
        let files = files(&project, None);
        assert_eq!(files.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a.yaml", "b.yaml"]);
        assert_eq!(files.iter().filter(|(_, text)| text.contains("kind: PersistentVolumeClaim")).count(), 1);
    }

    #[test]
    fn export_is_volume_with_mount_options() {
        let source = MountSource::Export {
            name: "Media".into(),
            server: "nas".into(),
            path: "/export".into(),
            options: "soft".into(),
            read_only: true,
        };
        let mounts = vec![Mount::new(MountSource::Anonymous, "/media"), Mount::new(source, "/m")];
        let service = Service { name: "a".into(), image: "a".into(), mounts, ..Service::default() };
        let (_, text) = texts(vec![service]).remove(0);
        assert!(text.contains("nfs.podstead.dev/media-2: soft"), "{text}");
        let value: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
        let volume = &value["spec"]["template"]["spec"]["volumes"][1];
        assert_eq!((volume["name"].as_str(), volume["nfs"]["server"].as_str()), (Some("media-2"), Some("nas")));
        assert_eq!(volume["nfs"]["readOnly"].as_bool(), Some(true));
    }

    #[test]
    fn notes_cannot_become_yaml() {
        let service = Service { name: "a".into(), notes: vec!["x\nkind: Pod".into()], ..Service::default() };
        let project = Project { origin: "y\nz: 1".into(), services: vec![service], notes: Vec::new() };
        let (_, text) = files(&project, None).remove(0);
        assert!(text.contains("# TO CHECK: x kind: Pod\n") && text.contains("from y z: 1\n"), "{text}");
    }

    #[test]
    fn values_are_no_references() {
        let service = Service { name: "a".into(), environment: vec![("A".into(), "$(B)".into())], ..Service::default() };
        let project = Project { origin: String::new(), services: vec![service], notes: Vec::new() };
        assert!(files(&project, None)[0].1.contains("value: $$(B)"));
    }

    fn texts(services: Vec<Service>) -> Vec<(String, String)> {
        files(&Project { origin: String::new(), services, notes: Vec::new() }, None)
    }

    #[test]
    fn services_of_one_network_share_a_pod() {
        let device = Device { path: "/dev/ttyS0".into(), container_path: None, read_only: false };
        let shared = || vec![Mount::new(MountSource::Named("data".into()), "/data"), Mount::new(MountSource::Anonymous, "/data")];
        let leader = Service { name: "vpn".into(), pod: Some("net".into()), mounts: shared(), ..Service::default() };
        let member = Service {
            name: "app".into(),
            joins: Some("vpn".into()),
            mounts: shared(),
            devices: vec![device],
            ..Service::default()
        };
        let alone = Service { name: "b".into(), joins: Some("missing".into()), ..Service::default() };
        let files = texts(vec![leader, member, alone]);
        assert_eq!(files.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["net.yaml", "b.yaml"]);
        let text = &files[0].1;
        assert!(text.contains(r#"devices.podstead.dev/ttys0: "{\"containers\":[\"app\"],\"path\":\"/dev/ttyS0\"}""#), "{text}");
        assert_eq!((text.matches("claimName: data").count(), text.matches("emptyDir: {}").count()), (1, 2), "{text}");
        assert!(text.contains("- name: data-2") && text.contains("- name: data-3") && text.contains("subdomain: net"), "{text}");
    }

    #[test]
    fn aliases_become_services_without_address() {
        let text = &texts(vec![Service { name: "web".into(), aliases: vec!["front".into()], ..Service::default() }])[0].1;
        assert!(
            text.ends_with("kind: Service\nmetadata:\n  name: front\nspec:\n  clusterIP: None\n  selector:\n    app: web\n"),
            "{text}"
        );
    }

    #[test]
    fn words_stay_words() {
        let words = ["yes", "on", "1", "0x1f", "a: b"].map(str::to_owned).to_vec();
        let text = &texts(vec![Service { name: "a".into(), command: words.clone(), ..Service::default() }])[0].1;
        assert!(words.iter().all(|word| text.contains(&format!("- \"{word}\"\n"))), "{text}");
    }

    #[test]
    fn health_restarts_only_if_told() {
        let probe = |restarts| {
            let health = Health { command: vec!["true".into()], delay: Some(5), restarts, ..Health::default() };
            texts(vec![Service { name: "a".into(), health: Some(health), ..Service::default() }]).remove(0).1
        };
        assert!(probe(true).contains("livenessProbe:") && probe(true).contains("initialDelaySeconds: 5"));
        assert!(probe(false).contains("readinessProbe:") && !probe(false).contains("initialDelaySeconds"));
    }
}
