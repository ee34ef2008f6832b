//! Scheduling of all workers: pending work, permission to run, timers.
//!
//! One owner (the sync loop) calls this; turns run as tasks of their own, each with its worker moved in and handed back at its end. So
//! there are no locks, and at most one turn of a pod runs because there is only one worker to move.

use super::exclusion::NameExclusion;
use super::halt::{Command, Given, OrderError};
use super::pod_worker::{PodWorker, TurnEnd};
use super::queue::WorkQueue;
use super::record::PodRecord;
use super::references::ReferenceIndex;
use super::services::Services;
use podstead_container::ObservedPod;
use podstead_pod::objects::{ObjectName, references};
use podstead_pod::resources::burstable_cpu_milli;
use podstead_pod::{DesiredPod, Pod, PodFullName, PodUid};
use podstead_sys::tick::Tick;
use podstead_sys_async::clock::Moment;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// One pod's place.
#[derive(Debug)]
struct Slot {
    full_name: PodFullName,
    /// Its share in the tier (see [`burstable_cpu_milli`]).
    burstable_milli: i64,
    queue: WorkQueue<Arc<DesiredPod>>,
    /// The arrival of the definition that no turn has taken yet.
    ordered: Option<Tick>,
    occupancy: Occupancy,
    /// The time of its next turn, if nothing happens before.
    wake: Option<Moment>,
    /// Orders of operators that no turn has taken yet. Few: each operator waits for the answer.
    orders: Vec<Given>,
    /// A definition that came for this UID after the pod was removed (kubelet rule C10).
    successor: Option<Arc<DesiredPod>>,
}

/// Place of the worker: idle or in a turn.
#[derive(Debug)]
enum Occupancy {
    /// Not created yet: the pod has never had a turn.
    Empty,
    /// Resting.
    Resting(Box<PodWorker>),
    /// In its turn.
    Away,
}

/// The workers of all pods.
#[derive(Debug)]
pub struct PodWorkers {
    services: Arc<Services>,
    slots: HashMap<PodUid, Slot>,
    names: NameExclusion,
    references: ReferenceIndex,
    wakes: BTreeSet<(Moment, PodUid)>,
    turns: JoinSet<(PodUid, Box<PodWorker>, TurnEnd)>,
}

/// Result of a step of the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "data of claims may be waiting to be deleted"]
pub enum Step {
    /// A pod with claims is gone: their data may be unused now.
    ClaimsGivenUp,
    /// Anything else.
    Other,
}

fn uses_claims(pod: &Pod) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    volumes.iter().any(|volume| volume.persistent_volume_claim.is_some())
}

impl PodWorkers {
    /// No pods yet.
    pub fn new(services: Arc<Services>) -> Self {
        let (slots, names, references) = (HashMap::new(), NameExclusion::default(), ReferenceIndex::default());
        Self { services, slots, names, references, wakes: BTreeSet::new(), turns: JoinSet::new() }
    }

    /// Returns true if no turn runs.
    pub fn is_idle(&self) -> bool {
        self.turns.is_empty()
    }

    /// Returns true if there is a pod of this UID.
    pub fn knows(&self, uid: &PodUid) -> bool {
        self.slots.contains_key(uid)
    }

    /// CPU requests of all Burstable pods, in thousandths of a processor.
    pub fn burstable_milli(&self) -> i64 {
        self.slots.values().map(|slot| slot.burstable_milli).fold(0, i64::saturating_add)
    }

    /// Waits for the running turns; starts none.
    pub async fn drain(&mut self) {
        while self.turns.join_next().await.is_some() {}
    }

    /// Takes over a pod that an earlier daemon recorded. It has its first turn after `delay`, or (`None`: only) when it is asked for.
    pub fn recover(&mut self, record: PodRecord, observed: Option<&ObservedPod>, delay: Option<Duration>) {
        let (uid, full_name) = (record.desired.uid.clone(), record.desired.full_name.clone());
        let mut queue = WorkQueue::new();
        self.references.set(&uid, references(&record.desired.pod));
        if record.is_removed {
            queue.remove();
        }
        let worker = PodWorker::recovered(record, observed, &self.services);
        self.names.claim(&full_name, &uid);
        let burstable_milli = burstable_cpu_milli(&worker.desired().pod);
        let slot = Slot {
            full_name,
            burstable_milli,
            queue,
            ordered: None,
            occupancy: Occupancy::Resting(Box::new(worker)),
            wake: None,
            orders: Vec::new(),
            successor: None,
        };
        self.slots.insert(uid.clone(), slot);
        if let Some(delay) = delay {
            self.wake_at(&uid, self.services.clock.now().moment + delay);
        }
    }

    /// The pod shall be so.
    pub fn sync(&mut self, desired: Arc<DesiredPod>) {
        let uid = desired.uid.clone();
        let slot = self.slots.entry(uid.clone()).or_insert_with(|| Slot {
            full_name: desired.full_name.clone(),
            burstable_milli: 0,
            queue: WorkQueue::new(),
            ordered: None,
            occupancy: Occupancy::Empty,
            wake: None,
            orders: Vec::new(),
            successor: None,
        });
        slot.burstable_milli = burstable_cpu_milli(&desired.pod);
        slot.ordered = Some(Tick::now());
        self.names.claim(&slot.full_name, &uid);
        self.references.set(&uid, references(&desired.pod));
        if let Err(desired) = slot.queue.sync(desired) {
            slot.successor = Some(desired);
        }
        self.begin(&uid);
    }

    /// The pod is no longer wanted.
    pub fn remove(&mut self, uid: &PodUid) {
        let Some(slot) = self.slots.get_mut(uid) else { return };
        slot.successor = None;
        if matches!(slot.occupancy, Occupancy::Empty) {
            self.forget(uid);
        } else {
            slot.queue.remove();
            self.begin(uid);
        }
    }

    /// Something happened to the pod.
    pub fn look(&mut self, uid: &PodUid) {
        if let Some(slot) = self.slots.get_mut(uid).filter(|slot| !matches!(slot.occupancy, Occupancy::Empty)) {
            slot.queue.look();
            self.begin(uid);
        }
    }

    /// An operator wants the pod stopped or started.
    pub fn command(&mut self, command: Command) {
        let Command { uid, order, answer } = command;
        match self.slots.get_mut(&uid).filter(|slot| !matches!(slot.occupancy, Occupancy::Empty)) {
            Some(slot) => {
                slot.orders.push((order, answer));
                slot.queue.look();
                self.begin(&uid);
            }
            // The operator may have gone.
            None => drop(answer.send(Err(OrderError::Gone))),
        }
    }

    /// An image became present: the pods that may be waiting for it look again.
    pub fn look_where_images_are_missing(&mut self) {
        let may_wait = |slot: &Slot| match &slot.occupancy {
            Occupancy::Empty => false,
            Occupancy::Resting(worker) => worker.misses_image(),
            Occupancy::Away => true,
        };
        let uids: Vec<PodUid> = self.slots.iter().filter(|(_, slot)| may_wait(slot)).map(|(uid, _)| uid.clone()).collect();
        for uid in uids {
            self.look(&uid);
        }
    }

    /// ConfigMaps or Secrets changed: the pods that refer to them look again.
    pub fn objects_changed(&mut self, names: &[ObjectName]) {
        for uid in self.references.of_any(names) {
            self.look(&uid);
        }
    }

    /// Every source was heard: objects that are not there are known to be absent, and the pods that refer to them look again.
    pub fn objects_settled(&mut self) {
        let objects = self.services.objects.get();
        let absent: Vec<ObjectName> = self.references.names().filter(|name| objects.may_be_missing(name)).cloned().collect();
        self.objects_changed(&absent);
    }

    /// Every pod looks again.
    pub fn look_at_all(&mut self) {
        let uids: Vec<PodUid> = self.slots.keys().cloned().collect();
        for uid in uids {
            self.look(&uid);
        }
    }

    /// Waits for the end of a turn or for the time of the next one, and acts on it. Waits for ever when there is neither.
    /// Cancel-safe: what ended is taken out only when it is acted on.
    pub async fn step(&mut self) -> Step {
        let next = self.wakes.first().map(|(moment, _)| self.services.clock.instant(*moment));
        let timer = async {
            match next {
                Some(instant) => tokio::time::sleep_until(instant).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(joined) = self.turns.join_next() => match joined {
                Ok((uid, worker, end)) => return self.end(&uid, worker, end),
                // A turn that panicked leaves its pod in an unknown state: the daemon restarts, which is a recovery.
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => {}
            },
            () = timer => self.wake(),
        }
        Step::Other
    }

    fn wake(&mut self) {
        let now = self.services.clock.now().moment;
        while let Some((moment, uid)) = self.wakes.first().cloned().filter(|(moment, _)| *moment <= now) {
            self.wakes.remove(&(moment, uid.clone()));
            if let Some(slot) = self.slots.get_mut(&uid) {
                slot.wake = None;
            }
            self.look(&uid);
        }
    }

    fn wake_at(&mut self, uid: &PodUid, moment: Moment) {
        self.cancel_wake(uid);
        if let Some(slot) = self.slots.get_mut(uid) {
            slot.wake = Some(moment);
            self.wakes.insert((moment, uid.clone()));
        }
    }

    fn cancel_wake(&mut self, uid: &PodUid) {
        if let Some(moment) = self.slots.get_mut(uid).and_then(|slot| slot.wake.take()) {
            self.wakes.remove(&(moment, uid.clone()));
        }
    }

    /// Begins a turn if the pod has its name, has work and has none running.
    fn begin(&mut self, uid: &PodUid) {
        let Some(slot) = self.slots.get_mut(uid) else { return };
        if !self.names.has(&slot.full_name, uid) && matches!(slot.occupancy, Occupancy::Empty) {
            return;
        }
        let Some(work) = slot.queue.begin() else { return };
        let mut worker = match (std::mem::replace(&mut slot.occupancy, Occupancy::Away), &work) {
            (Occupancy::Resting(worker), _) => worker,
            (Occupancy::Empty, super::queue::Work::Sync(desired)) => Box::new(PodWorker::new(Arc::clone(desired), &self.services)),
            (Occupancy::Empty | Occupancy::Away, _) => {
                slot.queue.end();
                return;
            }
        };
        let (orders, ordered) = (std::mem::take(&mut slot.orders), slot.ordered.take());
        self.cancel_wake(uid);
        let (services, uid) = (Arc::clone(&self.services), uid.clone());
        self.turns.spawn(async move {
            let end = worker.turn(&services, work, ordered, orders).await;
            (uid, worker, end)
        });
    }

    fn end(&mut self, uid: &PodUid, worker: Box<PodWorker>, end: TurnEnd) -> Step {
        let Some(slot) = self.slots.get_mut(uid) else { return Step::Other };
        let has_claims = end == TurnEnd::Gone && uses_claims(&worker.desired().pod);
        slot.queue.end();
        slot.occupancy = Occupancy::Resting(worker);
        match end {
            TurnEnd::Wait(Some(moment)) => self.wake_at(uid, moment),
            TurnEnd::Wait(None) => {}
            TurnEnd::Gone => {
                self.forget(uid);
                return if has_claims { Step::ClaimsGivenUp } else { Step::Other };
            }
        }
        self.begin(uid);
        Step::Other
    }

    /// Forgets a removed pod, and lets the next one of its name start.
    fn forget(&mut self, uid: &PodUid) {
        self.cancel_wake(uid);
        let Some(slot) = self.slots.remove(uid) else { return };
        self.references.forget(uid);
        for (_, answer) in slot.orders {
            // The operator may have gone.
            answer.send(Err(OrderError::Gone)).ok();
        }
        if let Some(next) = self.names.release(&slot.full_name, uid) {
            self.begin(&next);
        }
        if let Some(successor) = slot.successor {
            self.sync(successor);
        }
    }
}
