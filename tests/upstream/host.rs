//! A host as the rest of the daemon shows it, with the loops that tell the cluster of it, in paused time.

use crate::server::Server;
use crate::unreliable::Unreliable;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use podstead::api::Published;
use podstead::pod::DesiredPod;
use podstead::pod::Revision;
use podstead::pod::{Origin, Position};
use podstead::pod::{PodFullName, PodUid, SourceId};
use podstead::status::{PodStatusSink, UpstreamStatus};
use podstead::telemetry::EventLog;
use podstead::upstream::plan::node::{HostFacts, HostIdentity, NodeSettings};
use podstead::upstream::run::{Board, Links, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) const NODE: &str = "edge";

pub(crate) struct Host {
    pub(crate) published: Arc<Published>,
    pub(crate) events: Arc<EventLog>,
    pub(crate) ready: watch::Sender<bool>,
    pub(crate) status: watch::Receiver<UpstreamStatus>,
    pub(crate) labels: watch::Sender<BTreeMap<String, String>>,
    pods: BTreeMap<String, (u32, PodStatus)>,
    serial: u32,
    links: Links,
    running: Option<JoinHandle<()>>,
}

/// Different numbers, the same in every run.
fn random() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static LAST: AtomicU32 = AtomicU32::new(1);
    LAST.fetch_add(0x9E37_79B9, Ordering::Relaxed)
}

impl Host {
    /// Nothing runs yet, and the sources were heard.
    pub(crate) fn new(transport: &Unreliable, agent: &str) -> Self {
        let published = Arc::new(Published::new(1, Timestamp::now));
        let events = Arc::new(EventLog::new(1, Timestamp::now));
        let (ready, sources_ready) = watch::channel(true);
        let (labels, host_labels) = watch::channel(BTreeMap::new());
        let board = Board::new("test".into());
        let status = board.subscribe();
        let identity = HostIdentity { architecture: "amd64".into(), operating_system: "linux".into(), ..HostIdentity::default() };
        let facts = HostFacts { host_name: NODE.into(), cpus: 2, memory_bytes: 1 << 30, identity, ..HostFacts::default() };
        let links = Links {
            cluster: Arc::new(transport.clone()),
            published: published.clone(),
            events: events.clone(),
            host_labels,
            settings: NodeSettings { name: NODE.into(), max_pods: 110, ..NodeSettings::default() },
            register: true,
            agent: agent.into(),
            facts: Arc::new(move || facts.clone()),
            now: Timestamp::now,
            random,
            sources_ready,
            board,
        };
        Self { published, events, ready, status, labels, pods: BTreeMap::new(), serial: 0, links, running: None }
    }

    pub(crate) fn start(&mut self) {
        let links = self.links.clone();
        self.running = Some(tokio::spawn(async move { match run(links).await {} }));
    }

    /// As if the daemon died.
    pub(crate) async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
            running.await.ok();
        }
    }

    pub(crate) fn with_labels(mut self, labels: &[(&str, &str)]) -> Self {
        self.links.settings.labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self
    }

    /// Another connection to the server.
    pub(crate) fn with_cluster(mut self, cluster: Arc<dyn podstead::upstream::cluster::Cluster>) -> Self {
        self.links.cluster = cluster;
        self
    }

    pub(crate) fn without_registration(mut self) -> Self {
        self.links.register = false;
        self
    }

    /// A clock for everything; before there are pods and events.
    pub(crate) fn with_clock(mut self, now: fn() -> Timestamp) -> Self {
        self.published = Arc::new(Published::new(1, now));
        self.events = Arc::new(EventLog::new(1, now));
        (self.links.published, self.links.events) = (self.published.clone(), self.events.clone());
        self.links.now = now;
        self
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.pods.keys().cloned().collect()
    }

    /// Adds a pod, or gives it another content.
    pub(crate) fn set_content(&mut self, name: &str) {
        self.serial += 1;
        let serial = self.serial;
        let entry = self.pods.entry(name.to_owned()).or_insert_with(|| (serial, PodStatus::default()));
        entry.0 = serial;
        entry.1 = status("Pending", serial);
        self.publish(name);
    }

    /// The pod has another status.
    pub(crate) fn set_status(&mut self, name: &str, phase: &str) {
        self.serial += 1;
        let serial = self.serial;
        if let Some(entry) = self.pods.get_mut(name) {
            entry.1 = status(phase, serial);
            self.publish(name);
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if self.pods.remove(name).is_some() {
            self.published.withdraw(&PodUid::new(format!("local-{name}")));
        }
    }

    fn publish(&self, name: &str) {
        let (content, status) = &self.pods[name];
        let (namespace, pod_name) = split(name);
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": pod_name, "namespace": namespace, "annotations": {"kubernetes.io/config.hash": format!("hash-{content}")}},
            "spec": {
                "containers": [{
                    "name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "s"}}], "livenessProbe": {"grpc": {"port": 1}},
                }],
                "volumes": [{"name": "s", "secret": {"secretName": "s"}}],
            },
        }))
        .unwrap();
        let desired = DesiredPod {
            uid: PodUid::new(format!("local-{name}")),
            full_name: PodFullName { name: pod_name, namespace },
            source: SourceId::new("manifests"),
            revision: Revision("r".into()),
            origin: Origin { file: "f.yaml".into(), position: Position { line: 1, column: 1 } },
            pod: Arc::new(pod),
        };
        self.published.publish(&Arc::new(desired), status.clone());
    }

    /// The difference between the mirrors at the server and the pods.
    pub(crate) fn difference(&self, server: &Server) -> Result<(), String> {
        let mirrors: BTreeMap<String, Value> = server
            .store()
            .all("pods")
            .into_iter()
            .filter(|pod| !pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null())
            .map(|pod| (format!("{}/{}", text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"])), pod))
            .collect();
        let has: Vec<_> = mirrors.keys().cloned().collect();
        if has != self.names() {
            return Err(format!("mirrors {has:?}, pods {:?}; {:?}", self.names(), *self.status.borrow()));
        }
        for (name, (content, status)) in &self.pods {
            let mirror = &mirrors[name];
            if mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] != format!("hash-{content}") {
                return Err(format!("{name} is of other content"));
            }
            let wanted = serde_json::to_value(status).unwrap();
            for field in ["phase", "message", "containerStatuses", "podIPs"] {
                if stored(&wanted[field]) != stored(&mirror["status"][field]) {
                    return Err(format!("{name}: {field}: {} at the server, not {}", mirror["status"][field], wanted[field]));
                }
            }
            for condition in wanted["conditions"].as_array().into_iter().flatten() {
                let of_type = |other: &&Value| other["type"] == condition["type"];
                let at_server = mirror["status"]["conditions"].as_array().and_then(|all| all.iter().find(of_type));
                if at_server.map(|at_server| &at_server["status"]) != Some(&condition["status"]) {
                    return Err(format!("{name}: condition {condition}, at the server {at_server:?}"));
                }
            }
        }
        Ok(())
    }

    /// Lets time pass until mirrors equal pods; fails after `patience`. Gives the time that it took.
    pub(crate) async fn settle(&self, server: &Server, patience: Duration) -> Duration {
        let begin = tokio::time::Instant::now();
        eventually(patience, || self.difference(server)).await;
        begin.elapsed()
    }
}

/// Lets time pass until `probe` is content.
pub(crate) async fn eventually(patience: Duration, mut probe: impl FnMut() -> Result<(), String>) {
    let begin = tokio::time::Instant::now();
    while let Err(last) = probe() {
        assert!(begin.elapsed() < patience, "after {patience:?}: {last}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn split(name: &str) -> (String, String) {
    let (namespace, name) = name.split_once('/').unwrap();
    (namespace.to_owned(), name.to_owned())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn stored(value: &Value) -> Value {
    match value {
        Value::Array(items) if items.is_empty() => Value::Null,
        other => other.clone(),
    }
}

fn status(phase: &str, serial: u32) -> PodStatus {
    let ready = if phase == "Running" { "True" } else { "False" };
    let mut status = json!({
        "phase": phase,
        "conditions": [{"type": "Ready", "status": ready}, {"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [{"name": "c", "image": "i", "imageID": "sha256:1", "ready": ready == "True", "restartCount": serial}],
        "podIPs": [{"ip": format!("10.0.0.{}", serial % 200)}],
        "startTime": "2026-01-01T00:00:00.5Z",
    });
    if serial.is_multiple_of(3) {
        status["message"] = format!("message {serial}").into();
    }
    serde_json::from_value(status).unwrap()
}
