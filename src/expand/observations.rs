//! Statuses of pods as workloads see them.
//!
//! Workers publish statuses through [`Observations`], which hands them on and keeps what concerns workloads until the task takes it: the newest
//! of each pod only, so that a busy task makes no queue.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, PodStatus};
use podstead_manifest::ObjectKey;
use podstead_pod::{DesiredPod, Pod, PodUid};
use podstead_status::PodStatusSink;
use podstead_sys::boot::BootTime;
use podstead_workload::moment::Moment;
use podstead_workload::object::WorkloadKind;
use podstead_workload::observed::{ContainerEnd, ObservedPod, Phase, PodCondition};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use podstead_pod::annotations::WORKLOAD as WORKLOAD_ANNOTATION;

/// The reason of a container whose end nobody saw.
const UNKNOWN: &str = "ContainerStatusUnknown";
const DISRUPTION_TARGET: &str = "DisruptionTarget";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The workload that made a pod.
pub fn owner(pod: &Pod, namespace: &str) -> Option<ObjectKey> {
    let annotation = pod.metadata.annotations.as_ref()?.get(WORKLOAD_ANNOTATION)?;
    let (kind, name) = annotation.split_once('/')?;
    WorkloadKind::named(kind)?;
    // An author can write the annotation into a manifest; only pods of workloads have an owner.
    pod.metadata.owner_references.as_ref().filter(|owners| !owners.is_empty())?;
    Some(ObjectKey { kind: kind.into(), namespace: namespace.into(), name: name.into() })
}

/// The clocks of observations and decisions.
#[derive(Clone, Debug)]
pub struct Clocks {
    base: Duration,
    begun: Instant,
    boot_id: String,
}

impl Clocks {
    /// The host's clocks.
    pub fn system() -> Self {
        let BootTime { boot_id, since_boot } = BootTime::now();
        Self { base: since_boot, begun: Instant::now(), boot_id }
    }

    /// The clock that never jumps.
    pub fn moment(&self) -> Moment {
        Moment::after_boot(self.base + self.begun.elapsed())
    }

    /// The time from now to a moment.
    pub fn until(&self, moment: Moment) -> Duration {
        moment.since(self.moment())
    }

    /// The id of this boot.
    pub fn boot_id(&self) -> &str {
        &self.boot_id
    }
}

/// A container that ran when the host lost power, and was restarted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostContainer {
    /// Its name.
    pub container: String,
    /// Its number of restarts, this one included.
    pub restarts: u32,
}

/// A pod of a workload, observed or gone.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    /// Its newest status.
    Seen(Box<Seen>),
    /// Nothing of it is left.
    Gone,
}

/// A pod that exists.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The workload.
    pub owner: ObjectKey,
    /// The pod, with all restarts of its containers.
    pub pod: ObservedPod,
    /// Containers whose last restart followed a power cut.
    pub lost: Vec<LostContainer>,
}

/// Collects what was observed of pods of workloads, and hands all statuses on.
#[derive(Debug)]
pub struct Observations {
    next: Arc<dyn PodStatusSink>,
    clocks: Clocks,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The newest of each pod, to compare the next one with.
    last: BTreeMap<PodUid, (ObservedPod, Vec<LostContainer>)>,
    /// Pods of records that no worker has published yet.
    unpublished: BTreeSet<PodUid>,
    /// Not taken yet.
    pending: BTreeMap<PodUid, Sight>,
}

impl Observations {
    /// Hands statuses on to `next`. `known` are the pods of workloads that records tell of: they may go before a worker publishes them.
    pub fn new(next: Arc<dyn PodStatusSink>, clocks: Clocks, known: impl IntoIterator<Item = PodUid>) -> Self {
        let state = State { unpublished: known.into_iter().collect(), ..State::default() };
        Self { next, clocks, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Waits until there is something to take. Cancel-safe.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Everything since the last call.
    pub fn take(&self) -> BTreeMap<PodUid, Sight> {
        std::mem::take(&mut self.lock().pending)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What is behind the lock is whole between statements: a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PodStatusSink for Observations {
    fn publish(&self, desired: &Arc<DesiredPod>, status: PodStatus) {
        if let Some(owner) = owner(&desired.pod, &desired.full_name.namespace) {
            let mut state = self.lock();
            let before = state.last.get(&desired.uid);
            let (name, known) = (&desired.full_name.name, before.map(|(pod, _)| pod));
            let pod = observed(&desired.pod, name, &status, known, self.clocks.moment(), Timestamp::now());
            let lost = lost(&status);
            if before.is_none_or(|before| (&before.0, &before.1) != (&pod, &lost)) {
                state.unpublished.remove(&desired.uid);
                state.last.insert(desired.uid.clone(), (pod.clone(), lost.clone()));
                state.pending.insert(desired.uid.clone(), Sight::Seen(Box::new(Seen { owner, pod, lost })));
                self.changed.notify_one();
            }
        }
        self.next.publish(desired, status);
    }

    fn withdraw(&self, uid: &PodUid) {
        let mut state = self.lock();
        if state.last.remove(uid).is_some() | state.unpublished.remove(uid) {
            state.pending.insert(uid.clone(), Sight::Gone);
            self.changed.notify_one();
        }
        drop(state);
        self.next.withdraw(uid);
    }
}

/// A status, after the one `before`. Times in a status are of the wall clock and may be wrong; moments that were known stay.
fn observed(pod: &Pod, name: &str, status: &PodStatus, before: Option<&ObservedPod>, now: Moment, wall: Timestamp) -> ObservedPod {
    let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready" && condition.status == "True");
    let ready_since = ready.map(|ready| {
        let recorded = ready.last_transition_time.as_ref().map(|time| time.0);
        before.map_or_else(|| moment_of(recorded, now, wall), |before| before.ready_since.unwrap_or(now))
    });
    let phase = phase(status.phase.as_deref());
    let is_terminal = matches!(phase, Phase::Succeeded | Phase::Failed);
    let ended_at = is_terminal.then(|| {
        let known = before.and_then(|before| before.ended_at);
        known.unwrap_or_else(|| moment_of(last_end(status), now, wall))
    });
    let annotations = pod.metadata.annotations.as_ref();
    ObservedPod {
        name: name.to_owned(),
        phase,
        ready_since,
        is_terminating: pod.metadata.deletion_timestamp.is_some(),
        restarts: restarts(status),
        ends: ends(status),
        ended_at,
        conditions: conditions(status),
        deletion_cost: annotations.and_then(|all| all.get(DELETION_COST)?.parse().ok()).unwrap_or(0),
    }
}

/// The moment of a time that was recorded; now if the clock says that it lies in the future.
fn moment_of(recorded: Option<Timestamp>, now: Moment, wall: Timestamp) -> Moment {
    let ago = recorded.and_then(|recorded| Duration::try_from(wall.duration_since(recorded)).ok()).unwrap_or_default();
    Moment::after_boot(now.since(Moment::default()).saturating_sub(ago))
}

fn phase(phase: Option<&str>) -> Phase {
    match phase {
        Some("Running") => Phase::Running,
        Some("Succeeded") => Phase::Succeeded,
        Some("Failed") => Phase::Failed,
        Some(_) | None => Phase::Pending,
    }
}

fn statuses(status: &PodStatus) -> impl Iterator<Item = (bool, &ContainerStatus)> {
    let init = status.init_container_statuses.iter().flatten().map(|container| (true, container));
    init.chain(status.container_statuses.iter().flatten().map(|container| (false, container)))
}

fn restarts(status: &PodStatus) -> u32 {
    statuses(status).map(|(_, container)| restarts_of(container)).fold(0, u32::saturating_add)
}

fn restarts_of(container: &ContainerStatus) -> u32 {
    u32::try_from(container.restart_count).unwrap_or(0)
}

/// Containers whose last restart followed a power cut.
fn lost(status: &PodStatus) -> Vec<LostContainer> {
    let was_lost = |container: &ContainerStatus| {
        let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        last.is_some_and(|last| last.reason.as_deref() == Some(UNKNOWN)) && container.restart_count > 0
    };
    let lost = statuses(status).map(|(_, container)| container).filter(|container| was_lost(container));
    lost.map(|container| LostContainer { container: container.name.clone(), restarts: restarts_of(container) }).collect()
}

fn ends(status: &PodStatus) -> Vec<ContainerEnd> {
    let end = |(is_init, container): (bool, &ContainerStatus)| {
        let terminated = container.state.as_ref()?.terminated.as_ref()?;
        Some(ContainerEnd {
            container: container.name.clone(),
            is_init,
            exit_code: terminated.exit_code,
            reason: terminated.reason.clone().unwrap_or_default(),
        })
    };
    statuses(status).filter_map(end).collect()
}

fn last_end(status: &PodStatus) -> Option<Timestamp> {
    let ended = |container: &ContainerStatus| Some(container.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0);
    statuses(status).filter_map(|(_, container)| ended(container)).max()
}

/// Conditions that rules ask for: those of readiness change often and are in [`ObservedPod::ready_since`].
fn conditions(status: &PodStatus) -> Vec<PodCondition> {
    const OF_READINESS: [&str; 5] = ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];
    let others = status.conditions.iter().flatten().filter(|condition| !OF_READINESS.contains(&condition.type_.as_str()));
    let mut conditions: Vec<PodCondition> =
        others.map(|condition| PodCondition { kind: condition.type_.clone(), status: condition.status.clone() }).collect();
    // A host that lost power disrupted the pod, as a node that is gone does upstream (W53).
    let was_lost = ends(status).iter().any(|end| end.reason == UNKNOWN);
    if was_lost && conditions.iter().all(|condition| condition.kind != DISRUPTION_TARGET) {
        conditions.push(PodCondition { kind: DISRUPTION_TARGET.to_owned(), status: "True".to_owned() });
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
    use podstead_pod::{Origin, PodFullName, Position, Revision, SourceId};
    use serde_json::json;

    #[derive(Debug, Default)]
    struct Next(Mutex<Vec<String>>);

    impl PodStatusSink for Next {
        fn publish(&self, desired: &Arc<DesiredPod>, _: PodStatus) {
            self.0.lock().unwrap().push(format!("publish {}", desired.uid));
        }

        fn withdraw(&self, uid: &PodUid) {
            self.0.lock().unwrap().push(format!("withdraw {uid}"));
        }
    }

    fn desired(uid: &str, owner: Option<&str>) -> Arc<DesiredPod> {
        let metadata = ObjectMeta {
            annotations: owner.map(|owner| [(WORKLOAD_ANNOTATION.to_owned(), owner.to_owned())].into()),
            owner_references: owner.map(|_| vec![OwnerReference::default()]),
            ..ObjectMeta::default()
        };
        Arc::new(DesiredPod {
            uid: PodUid::new(uid),
            full_name: PodFullName { name: format!("{uid}-0"), namespace: "shop".into() },
            source: SourceId::new("apps"),
            revision: Revision("1".into()),
            origin: Origin { file: "a.yaml".into(), position: Position { line: 1, column: 1 } },
            pod: Arc::new(Pod { metadata, ..Pod::default() }),
        })
    }

    fn status(ready: bool, restarts: i32, last_reason: &str) -> PodStatus {
        serde_json::from_value(json!({
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
            "containerStatuses": [{"name": "a", "image": "b", "imageID": "c", "ready": ready, "restartCount": restarts,
                "lastState": {"terminated": {"exitCode": 255, "reason": last_reason}}}],
        }))
        .unwrap()
    }

    fn observations(known: &[&str]) -> (Observations, Arc<Next>) {
        let next = Arc::new(Next::default());
        let known = known.iter().map(|uid| PodUid::new(*uid));
        (Observations::new(next.clone(), Clocks::system(), known), next)
    }

    fn seen(observations: &Observations) -> Option<(ObjectKey, ObservedPod)> {
        observations.take().into_values().find_map(|sight| match sight {
            Sight::Seen(seen) => Some((seen.owner, seen.pod)),
            Sight::Gone => None,
        })
    }

    #[tokio::test]
    async fn only_pods_of_workloads_are_kept_and_all_are_handed_on() {
        let (observations, next) = observations(&[]);
        observations.publish(&desired("plain", None), status(true, 0, ""));
        assert!(observations.take().is_empty());
        observations.publish(&desired("web", Some("Deployment/web")), status(true, 0, ""));
        observations.changed().await;
        let (owner, pod) = seen(&observations).unwrap();
        assert_eq!((owner.kind.as_str(), owner.namespace.as_str(), owner.name.as_str()), ("Deployment", "shop", "web"));
        assert!(pod.ready_since.is_some());
        assert_eq!(next.0.lock().unwrap().len(), 2);
    }

    /// W98.
    #[test]
    fn same_status_is_no_news() {
        let (observations, _) = observations(&[]);
        let web = desired("web", Some("Deployment/web"));
        observations.publish(&web, status(true, 0, ""));
        let (_, first) = seen(&observations).unwrap();
        observations.publish(&web, status(true, 0, ""));
        assert!(observations.take().is_empty());
        observations.publish(&web, status(false, 0, ""));
        assert_eq!(seen(&observations).unwrap().1.ready_since, None);
        observations.publish(&web, status(true, 0, ""));
        assert!(seen(&observations).unwrap().1.ready_since >= first.ready_since);
    }

    #[test]
    fn pod_that_nobody_published_can_go() {
        let (observations, next) = observations(&["old"]);
        observations.withdraw(&PodUid::new("old"));
        assert_eq!(observations.take().into_values().collect::<Vec<_>>(), [Sight::Gone]);
        observations.withdraw(&PodUid::new("other"));
        assert!(observations.take().is_empty());
        assert_eq!(next.0.lock().unwrap().len(), 2);
    }

    /// W53.
    #[test]
    fn restart_after_power_cut_is_told_apart() {
        let (observations, _) = observations(&[]);
        let job = desired("job", Some("Job/dump"));
        let lost = |observations: &Observations| match observations.take().into_values().next() {
            Some(Sight::Seen(seen)) => seen.lost,
            other => panic!("{other:?}"),
        };
        observations.publish(&job, status(false, 2, "ContainerStatusUnknown"));
        assert_eq!(lost(&observations), [LostContainer { container: "a".into(), restarts: 2 }]);
        observations.publish(&job, status(false, 3, "Error"));
        assert_eq!(lost(&observations), []);
    }

    #[test]
    fn time_from_a_wrong_clock_is_not_believed() {
        let wall: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let now = Moment::after_boot(Duration::from_secs(100));
        let at = |text: &str| moment_of(Some(text.parse().unwrap()), now, wall);
        assert_eq!(at("2025-12-31T23:59:50Z"), Moment::after_boot(Duration::from_secs(90)));
        assert_eq!(at("1970-01-01T00:00:00Z"), Moment::default());
        assert_eq!(at("2030-01-01T00:00:00Z"), now);
    }
}
