//! Memory stays bounded however long nothing can be sent, and whatever a server reports.

use super::mirrors::Mirrors;
use super::watch::{MAX_PODS, MAX_STATUSES, Observation};
use super::{Board, Links};
use crate::cluster::{ApiError, ApiRequest, Cluster, Watch};
use crate::plan::node::{HostFacts, NodeSettings};
use crate::plan::step::Observed;
use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodStatus;
use podstead_api::Published;
use podstead_pod::{DesiredPod, Origin, PodFullName, PodUid, Position, Revision, SourceId};
use podstead_status::PodStatusSink;
use podstead_telemetry::EventLog;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::watch;

#[derive(Debug)]
struct Nobody;

#[async_trait]
impl Cluster for Nobody {
    async fn send(&self, _: ApiRequest) -> Result<Value, ApiError> {
        std::future::pending().await
    }

    async fn watch(&self, _: ApiRequest) -> Result<Box<dyn Watch>, ApiError> {
        std::future::pending().await
    }

    async fn address(&self) -> Option<String> {
        None
    }
}

fn links() -> Links {
    Links {
        cluster: Arc::new(Nobody),
        published: Arc::new(Published::new(1, Timestamp::now)),
        events: Arc::new(EventLog::new(1, Timestamp::now)),
        settings: NodeSettings { name: "edge".into(), ..NodeSettings::default() },
        host_labels: watch::channel(Default::default()).1,
        register: true,
        agent: "a".into(),
        facts: Arc::new(HostFacts::default),
        now: Timestamp::now,
        random: || 0,
        sources_ready: watch::channel(true).1,
        board: Board::new("test".into()),
    }
}

fn name(number: usize) -> PodFullName {
    PodFullName { name: format!("pod-{number}"), namespace: "default".into() }
}

fn publish(links: &Links, number: usize) {
    let desired = DesiredPod {
        uid: PodUid::new(format!("uid-{number}")),
        full_name: name(number),
        source: SourceId::new("manifests"),
        revision: Revision("r".into()),
        origin: Origin { file: "f.yaml".into(), position: Position { line: 1, column: 1 } },
        pod: Arc::default(),
    };
    links.published.publish(&Arc::new(desired), PodStatus::default());
}

fn seen(number: usize, message: &str) -> (PodFullName, Box<Observed>) {
    let pod = json!({
        "metadata": {"name": format!("pod-{number}"), "namespace": "default", "uid": format!("u-{number}"), "resourceVersion": "5"},
        "status": {"phase": "Running", "message": message},
    });
    let (name, observed) = Observed::of(&pod).unwrap();
    (name, Box::new(observed))
}

#[tokio::test]
async fn of_pods_that_come_and_go_while_nothing_can_be_sent_only_those_that_are_there_are_remembered() {
    let links = links();
    let mut mirrors = Mirrors::new(&links);
    // Read at every change, then so seldom that the history does not reach back.
    for pause in [1, 700] {
        for number in 0..6000 {
            publish(&links, number);
            if number >= 50 {
                links.published.withdraw(&PodUid::new(format!("uid-{}", number - 50)));
            }
            if number % pause == 0 {
                mirrors.read_feed();
            }
        }
        (5950..6000).for_each(|number| links.published.withdraw(&PodUid::new(format!("uid-{number}"))));
        publish(&links, 6000);
        mirrors.read_feed();
        assert_eq!(mirrors.held(), (1, 1), "read after each {pause} pods");
        links.published.withdraw(&PodUid::new("uid-6000"));
        mirrors.read_feed();
        assert_eq!(mirrors.held(), (0, 0));
    }
}

#[tokio::test]
async fn a_server_that_tells_of_pods_without_end_is_believed_as_many_as_a_node_can_have() {
    let links = links();
    let mut mirrors = Mirrors::new(&links);
    for number in 0..MAX_PODS + 2000 {
        let (name, observed) = seen(number, "m");
        mirrors.observe(Observation::Present(name, observed));
        let (name, observed) = seen(number + 100_000, "m");
        mirrors.observe(Observation::Gone(name, observed));
    }
    assert_eq!(mirrors.held(), (MAX_PODS, MAX_PODS));
    // One of this host's own finds room all the same.
    publish(&links, 1_000_000);
    mirrors.read_feed();
    assert_eq!(mirrors.held(), (MAX_PODS + 1, MAX_PODS + 1));
    mirrors.observe(Observation::All(Vec::new(), tokio::time::Instant::now()));
    assert_eq!(mirrors.held(), (1, 1));
}

#[tokio::test]
async fn statuses_that_are_large_are_remembered_only_as_far_as_there_is_room() {
    let links = links();
    let mut mirrors = Mirrors::new(&links);
    let message = "m".repeat(200 << 10);
    let (_, one) = seen(0, &message);
    assert!(one.weight > message.len());
    for number in 0..400 {
        let (name, observed) = seen(number, &message);
        mirrors.observe(Observation::Present(name, observed));
    }
    assert_eq!(mirrors.held(), (400, 400));
    let weight = mirrors.statuses_held();
    assert!(weight <= MAX_STATUSES && weight + one.weight > MAX_STATUSES, "{weight}");
}
