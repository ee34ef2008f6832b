//! A host for tests: the API with stubs behind it on a socket of its own, and the `podstead` command to ask it.

use crate::stub::{StubImages, StubOrders, StubRuntime, StubSources};
use jiff::Timestamp;
use podstead::api::services::ServiceView;
use podstead::api::{Access, ApiSocket, Backend, NodeView, Published, ServerIdentity, serve, serve_tls};
use podstead::container::{
    CgroupResources, ContainerKind, ContainerState, ContainerStatus, ObservedPod, PodNamespaces, QosClass, SandboxState,
    SandboxStatus,
};
use podstead::expand::{ShownWorkload, WorkloadSink};
use podstead::manifest::ObjectKey;
use podstead::pod::{ContainerId, ContainerName, NodeName, Pod, PodFullName, PodUid, SourceId};
use podstead::settings::{ApiConfig, ConfigStanding};
use podstead::sys::layout::Paths;
use podstead::telemetry::EventLog;
use podstead::volume::{NodeFiles, Volumes};
use podstead::workload::object::WorkloadKind;
use podstead::{artifact::Wakers, pod::Revision};
use podstead::{
    manifest::Problem,
    pod::{Origin, Position, Severity},
};
use podstead::{mux::ObjectView, pod::DesiredPod};
use podstead::{
    status::PodStatusSink,
    store::{SourceStatus, SourceStatusSink},
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime as Tokio;

/// Time limit for a condition that normally holds at once; generous, because the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The version before the first change.
pub(crate) const START: u64 = 1000;
/// The name of the host.
pub(crate) const NODE: &str = "edge";

/// The API, running.
pub(crate) struct Host {
    pub(crate) published: Arc<Published>,
    pub(crate) events: Arc<EventLog>,
    pub(crate) runtime: Arc<StubRuntime>,
    pub(crate) images: Arc<StubImages>,
    pub(crate) objects: Arc<ObjectView>,
    pub(crate) services: Arc<ServiceView>,
    pub(crate) orders: Arc<StubOrders>,
    pub(crate) paths: Paths,
    pub(crate) tokio: Tokio,
    pub(crate) root: TempDir,
}

impl Host {
    /// Nothing is published yet.
    pub(crate) fn start() -> Self {
        Self::start_with(&ApiConfig::default())
    }

    /// As [`Host::start`], with roles and a TLS port.
    pub(crate) fn start_with(api: &ApiConfig) -> Self {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
        std::fs::create_dir_all(&paths.run).unwrap();
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let host = Self {
            published: Arc::new(Published::new(START, Timestamp::now)),
            events: Arc::new(EventLog::new(START, Timestamp::now)),
            runtime: Arc::new(StubRuntime::default()),
            images: Arc::new(StubImages::new()),
            objects: Arc::default(),
            services: Arc::new(ServiceView::new(0)),
            orders: Arc::default(),
            paths,
            tokio,
            root,
        };
        let configured = ConfigStanding {
            sources: vec![SourceId::new("manifests")],
            since: Timestamp::now(),
            error: None,
            needs_restart: Vec::new(),
        };
        let (_, config) = tokio::sync::watch::channel(configured);
        let identity = api.tls_port.map(|_| ServerIdentity::load_or_make(&host.paths.api_identity(), NODE).unwrap());
        let access = Access::new(api.clone(), None, identity);
        let backend = Backend {
            published: Arc::clone(&host.published),
            events: Arc::clone(&host.events) as Arc<EventLog>,
            traces: Default::default(),
            runtime: Arc::clone(&host.runtime) as _,
            images: Arc::clone(&host.images) as _,
            objects: Arc::clone(&host.objects),
            claims: Arc::new(Volumes::new(host.paths.clone(), NodeFiles::default(), Arc::default(), 0)),
            paths: host.paths.clone(),
            node: NodeName::new(NODE),
            node_view: NodeView(Arc::new(|_: &Value| node())),
            config,
            hooks: tokio::sync::watch::channel(Vec::new()).1,
            wakers: Wakers::default(),
            source_control: Arc::new(StubSources),
            writable: tokio::sync::watch::channel(None).1,
            pod_control: Arc::clone(&host.orders) as _,
            expand: None,
            services: Arc::clone(&host.services),
            access: Arc::new(access),
            upstream: None,
            started_at: Timestamp::now(),
            now: Timestamp::now,
        };
        if let Some(port) = api.tls_port {
            host.tokio.spawn(serve_tls(port, backend.clone()));
        }
        let has_roles = !api.roles.is_empty();
        let socket = host.socket();
        host.tokio.spawn(async move { serve(ApiSocket::bind(&socket, None, has_roles).unwrap(), backend).await });
        eventually("the socket is served", || std::os::unix::net::UnixStream::connect(host.socket()).ok());
        host
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.paths.api_socket()
    }

    /// A command of `podstead` against this host.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podstead"));
        command.arg("--socket").arg(self.socket()).args(arguments).stdin(Stdio::null());
        command.env_remove("PODSTEAD_CONFIG").env_remove("PODSTEAD_SOCKET").env_remove("CLICOLOR_FORCE").env_remove("COLUMNS");
        command
    }

    /// Runs a command; returns stdout, and fails when it fails.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "podstead {arguments:?}: {}\n{}", output.status, text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs a command; returns stdout, whatever its exit code.
    pub(crate) fn run_any(&self, arguments: &[&str]) -> String {
        text(&self.output(arguments).stdout)
    }

    /// Runs a command; returns its exit code and stderr, and fails when it succeeds.
    pub(crate) fn fail(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.output(arguments);
        assert!(!output.status.success(), "podstead {arguments:?} succeeded:\n{}", text(&output.stdout));
        (output.status.code().unwrap(), text(&output.stderr))
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Publishes a pod of one running container `main`, started a while ago.
    pub(crate) fn publish_running(&self, namespace: &str, short_name: &str) -> Arc<DesiredPod> {
        let desired = desired(namespace, short_name, json!({}));
        self.observe(&desired, "main", 0, running());
        self.published.publish(&desired, serde_json::from_value(running_status()).unwrap());
        desired
    }

    /// As [`Host::publish_running`], with a sandbox on this machine's own network.
    pub(crate) fn publish_on_host(&self, short_name: &str, extra: Value) -> Arc<DesiredPod> {
        let desired = desired("default", short_name, extra);
        self.observe(&desired, "main", 0, running());
        let spec = json!({
            "uid": desired.uid, "full_name": desired.full_name, "attempt": 0, "hostname": short_name, "namespaces": PodNamespaces::default(),
            "qos": QosClass::BestEffort, "resources": CgroupResources::default(), "sysctls": [],
        });
        let sandbox = SandboxStatus {
            spec: serde_json::from_value(spec).unwrap(),
            state: SandboxState::Ready,
            created_at: Timestamp::now(),
            shim_pid: Some(1),
            netns: None,
        };
        self.runtime.pods.lock().unwrap().get_mut(&desired.uid).unwrap().sandbox = Some(sandbox);
        self.published.publish(&desired, serde_json::from_value(running_status()).unwrap());
        desired
    }

    /// Publishes a status.
    pub(crate) fn published_status(&self, desired: &Arc<DesiredPod>, status: Value) {
        self.published.publish(desired, serde_json::from_value(status).unwrap());
    }

    /// Makes the runtime know one more run of a container.
    pub(crate) fn observe(&self, desired: &DesiredPod, container: &str, attempt: u32, state: ContainerState) -> ContainerId {
        let id = ContainerId::new(format!("{container}-{attempt}"));
        let status = ContainerStatus {
            id: id.clone(),
            name: ContainerName::new(container),
            kind: ContainerKind::Main,
            attempt,
            sandbox_attempt: 0,
            hash: String::new(),
            image_ref: "nginx:1.27".into(),
            image_id: "sha256:11".into(),
            user: None,
            stop_signal: 15,
            created_at: Timestamp::now(),
            log_path: self.paths.container_log(&desired.full_name, &desired.uid, container, attempt),
            state,
        };
        let mut pods = self.runtime.pods.lock().unwrap();
        let pod = pods.entry(desired.uid.clone()).or_insert_with(|| ObservedPod {
            uid: desired.uid.clone(),
            sandbox: None,
            containers: Vec::new(),
            given: Default::default(),
            plugged: Default::default(),
        });
        pod.containers.retain(|known| known.id != id);
        pod.containers.push(status);
        id
    }

    /// Publishes a workload of source `manifests`. Its `spec` has one container `main` where it says nothing else.
    pub(crate) fn publish_workload(&self, kind: WorkloadKind, namespace: &str, name: &str, parts: Value) -> ShownWorkload {
        let shown = workload(kind, namespace, name, parts);
        self.published.publish_workload(Arc::new(shown.clone()));
        shown
    }

    /// Publishes a running pod that a workload owns.
    pub(crate) fn publish_owned(&self, short_name: &str, owner: &ShownWorkload) -> Arc<DesiredPod> {
        let mut desired = (*desired(&owner.key.namespace, short_name, json!({}))).clone();
        let mut pod = (*desired.pod).clone();
        pod.metadata.owner_references = Some(vec![serde_json::from_value(reference_to(owner)).unwrap()]);
        desired.pod = Arc::new(pod);
        let desired = Arc::new(desired);
        self.observe(&desired, "main", 0, running());
        self.published_status(&desired, running_status());
        desired
    }

    /// Publishes how source `manifests` is.
    pub(crate) fn publish_source(&self, problem: Option<&str>, last_error: Option<&str>) {
        self.publish_source_of(problem, None, last_error);
    }

    /// Publishes how source `manifests` is, with a problem of this object.
    pub(crate) fn publish_source_of(&self, problem: Option<&str>, object: Option<ObjectKey>, last_error: Option<&str>) {
        let problems = problem.into_iter().map(|message| Problem {
            severity: Severity::Error,
            code: "unknown-field".into(),
            file: "bad.yaml".into(),
            position: Some(Position { line: 19, column: 3 }),
            field: "spec.hostNetwrok".into(),
            message: message.into(),
            hint: None,
            object: object.clone(),
        });
        self.published.publish_source(SourceStatus {
            id: SourceId::new("manifests"),
            kind: "directory".into(),
            location: "/etc/podstead/manifests".into(),
            fetched: Some(Revision("sha256:0123456789abcdef".into())),
            fetched_at: Some(Timestamp::now()),
            accepted: Some(Revision("sha256:0123456789abcdef".into())),
            accepted_at: Some(Timestamp::now()),
            applied: Some(Revision("sha256:0123456789abcdef".into())),
            applied_at: Some(Timestamp::now()),
            hold: None,
            pods: self.published.pods().len(),
            last_error: last_error.map(str::to_owned),
            problems: problems.collect(),
        });
    }
}

/// The Node of this host, as the daemon would make it.
fn node() -> Value {
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready",
        "lastHeartbeatTime": Timestamp::now().to_string(), "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let resources = json!({"cpu": "2", "memory": "1Gi", "pods": "110"});
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}}, "spec": {},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "Hostname", "address": NODE}],
            "conditions": [condition], "capacity": resources, "allocatable": resources,
            "nodeInfo": {
                "kubeletVersion": "v1.34.0+podstead.0", "osImage": "Debian", "kernelVersion": "6.1",
                "containerRuntimeVersion": "podstead://0",
            },
        },
    })
}

/// A workload as it would be published; `parts` has its `spec`, `status`, and what is to be merged into `metadata`.
pub(crate) fn workload(kind: WorkloadKind, namespace: &str, name: &str, parts: Value) -> ShownWorkload {
    let template =
        json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]}});
    let mut object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.as_str(),
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("uid-{}-{namespace}-{name}", kind.as_str()), "generation": 1,
            "labels": {"app": name},
            "creationTimestamp": (Timestamp::now() - jiff::SignedDuration::from_mins(200)).to_string(),
        },
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
        "status": {},
    });
    for part in ["metadata", "spec", "status"] {
        for (field, value) in parts[part].as_object().into_iter().flatten() {
            object[part][field] = value.clone();
        }
    }
    ShownWorkload {
        key: ObjectKey { kind: kind.as_str().into(), namespace: namespace.into(), name: name.into() },
        source: SourceId::new("manifests"),
        revision: Revision("rev1".into()),
        origin: Origin { file: format!("{name}.yaml").into(), position: Position { line: 1, column: 1 } },
        object,
        schedule: None,
    }
}

/// The owner reference of an object that a workload made.
pub(crate) fn reference_to(owner: &ShownWorkload) -> Value {
    json!({
        "apiVersion": owner.object["apiVersion"], "kind": owner.key.kind, "name": owner.key.name,
        "uid": owner.object["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    })
}

/// A pod as the mux would hand it on; `extra` is merged into its `spec`.
pub(crate) fn desired(namespace: &str, short_name: &str, extra: Value) -> Arc<DesiredPod> {
    let full_name = PodFullName { name: format!("{short_name}-{NODE}"), namespace: namespace.into() };
    let uid = PodUid::new(format!("uid-{namespace}-{short_name}"));
    let mut pod = json!({
        "metadata": {
            "name": full_name.name, "namespace": namespace, "uid": uid.as_str(), "labels": {"app": short_name},
            "creationTimestamp": (Timestamp::now() - jiff::SignedDuration::from_mins(200)).to_string(),
        },
        "spec": {"nodeName": NODE, "restartPolicy": "Always", "containers": [{"name": "main", "image": "nginx:1.27"}]},
    });
    for (key, value) in extra.as_object().unwrap() {
        pod["spec"][key] = value.clone();
    }
    Arc::new(DesiredPod {
        uid,
        full_name,
        source: SourceId::new("manifests"),
        revision: Revision("rev1".into()),
        origin: Origin { file: format!("{short_name}.yaml").into(), position: Position { line: 1, column: 1 } },
        pod: Arc::new(serde_json::from_value::<Pod>(pod).unwrap()),
    })
}

/// A status with container `main` running.
pub(crate) fn running_status() -> Value {
    json!({
        "phase": "Running",
        "podIP": "10.0.0.5",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{
            "name": "main", "ready": true, "started": true, "restartCount": 0, "image": "nginx:1.27", "imageID": "sha256:11",
            "containerID": "podstead://main-0", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }],
    })
}

/// A container that runs.
pub(crate) fn running() -> ContainerState {
    ContainerState::Running { pid: 1, started_at: Timestamp::now() }
}

/// A container that has ended.
pub(crate) fn exited(exit_code: i32) -> ContainerState {
    ContainerState::Exited {
        started_at: None,
        finished_at: Timestamp::now(),
        exit_code,
        signal: None,
        oom_killed: false,
        error: None,
        message: None,
    }
}

/// Calls `probe` until it gives a value.
pub(crate) fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        match probe() {
            Some(value) => return value,
            None => assert!(Instant::now() < end, "gave up waiting for: {what}"),
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
