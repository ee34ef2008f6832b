//! The task, on paused time, against real servers on loopback and a runtime that has no processes.

use super::action::PodAddress;
use super::prober::{Prober, ProberHandle, Probes};
use super::schedule::{ProbedPod, ProbedRun};
use super::spec::{ProbeKind, probes};
use super::{PodHealth, ProbeResult};
use jiff::Timestamp;
use podstead_pod::{ContainerId, PodFullName, PodUid};
use podstead_runtime::fake::FakeRuntime;
use podstead_sys_async::clock::Clock;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

#[derive(Debug, Default)]
struct Told(Mutex<Vec<String>>);

impl EventRecorder for Told {
    fn record(&self, _: &Subject, _: EventType, reason: &str, message: &str) {
        self.0.lock().unwrap().push(format!("{reason}: {message}"));
    }
}

struct Scene {
    handle: ProberHandle,
    pokes: mpsc::UnboundedReceiver<PodUid>,
    told: Arc<Told>,
    clock: Clock,
    task: JoinHandle<()>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn uid() -> PodUid {
    PodUid::new("uid")
}

impl Scene {
    fn new() -> Self {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let (poke, pokes) = mpsc::unbounded_channel();
        let told = Arc::new(Told::default());
        let (prober, handle) = Prober::new(Arc::new(FakeRuntime::new(clock)), told.clone(), clock, poke);
        let task = tokio::spawn(async move { match prober.run().await {} });
        Self { handle, pokes, told, clock, task }
    }

    fn declare(&self, probe: &str) {
        let full_name = PodFullName { namespace: "default".to_owned(), name: "a".to_owned() };
        let run = ProbedRun {
            subject: Subject::Pod { uid: uid(), full_name, field_path: None },
            started_at: self.clock.now().moment,
            is_ending: false,
            probes: Some(probes(&serde_yaml::from_str(&format!("{{name: a, {probe}}}")).unwrap())),
            was_started: false,
            was_ready: false,
        };
        let address = PodAddress::OfPod("127.0.0.1".parse().unwrap());
        let runs = BTreeMap::from([(ContainerId::new("1"), run)]);
        self.handle.declare(&uid(), ProbedPod { address, runs });
    }

    /// Waits until the probe says so. Time is paused: waiting is where it goes on.
    async fn until(&mut self, kind: ProbeKind, expected: ProbeResult) -> Arc<PodHealth> {
        loop {
            let health = self.handle.health(&uid());
            if health.values().any(|run| run.get(&kind).is_some_and(|probe| probe.result == expected)) {
                return health;
            }
            tokio::time::timeout(Duration::from_secs(3600), self.pokes.recv()).await.unwrap().unwrap();
        }
    }

    fn told(&self) -> Vec<String> {
        self.told.0.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_becomes_ready_and_unready_with_its_port() {
    let mut scene = Scene::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let port = address.port();
    let beginning = scene.clock.now().moment;
    scene.declare(&format!(
        "readinessProbe: {{tcpSocket: {{port: {port}}}, periodSeconds: 7, initialDelaySeconds: 3, failureThreshold: 2}}"
    ));
    scene.until(ProbeKind::Readiness, ProbeResult::Success).await;
    assert!(scene.clock.now().moment.since(beginning) >= Duration::from_secs(3));
    drop(listener);
    let health = scene.until(ProbeKind::Readiness, ProbeResult::Failure).await;
    let failure = health[&ContainerId::new("1")][&ProbeKind::Readiness].failure.clone().unwrap();
    assert_eq!(failure.message, format!("Readiness probe failed: dial tcp {address}: connect: connection refused"));
    let unhealthy = format!("Unhealthy: {}", failure.message);
    assert_eq!(scene.told(), [unhealthy.clone(), unhealthy]);
    // The time between the first success and the next check, at most a period, and a whole period.
    let past = scene.clock.now().moment.since(beginning);
    assert!(past >= Duration::from_secs(3 + 7) && past < Duration::from_secs(3 + 15), "{past:?}");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_cannot_be_made_is_told_and_counts_for_nothing() {
    let mut scene = Scene::new();
    // The runtime knows no such container; the other probe tells when time has gone on.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    scene.declare(&format!(
        "livenessProbe: {{exec: {{command: [x]}}, failureThreshold: 1, periodSeconds: 1}}, \
         readinessProbe: {{tcpSocket: {{port: {port}}}, initialDelaySeconds: 5}}"
    ));
    let health = scene.until(ProbeKind::Readiness, ProbeResult::Success).await;
    assert_eq!(health[&ContainerId::new("1")][&ProbeKind::Liveness].result, ProbeResult::Success);
    let told = scene.told();
    assert!(told.len() >= 4 && told.iter().all(|told| told.starts_with("Unhealthy: Liveness probe errored")), "{told:?}");
    scene.declare("readinessProbe: {tcpSocket: {port: nowhere}}");
    scene.handle.forget(&uid());
    tokio::time::timeout(Duration::from_secs(60), async {
        while !scene.handle.health(&uid()).is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}
