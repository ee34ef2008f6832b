//! The runs that are probed, and when each of their probes is due. **Pure**.

use super::spread::first_pause;
use super::state::{Answer, ProbeState};
use crate::action::PodAddress;
use crate::health::{PodHealth, ProbeResult};
use crate::spec::{ProbeKind, ProbeSpec};
use podstead_pod::{ContainerId, PodUid};
use podstead_sys_async::clock::{Moment, Now};
use podstead_telemetry::events::Subject;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// The running containers of a pod, as its worker declares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbedPod {
    /// Address of the pod.
    pub address: PodAddress,
    /// Its running containers.
    pub runs: BTreeMap<ContainerId, ProbedRun>,
}

/// One running container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbedRun {
    /// As events name it.
    pub subject: Subject,
    /// The time at which its program was executed.
    pub started_at: Moment,
    /// It is being stopped: only readiness is asked for (kubelet rule D12).
    pub is_ending: bool,
    /// Its probes. `None`: as they were declared before; the run is of an earlier definition, and probes of the present one would ask
    /// it for what it never promised.
    pub probes: Option<Vec<Arc<ProbeSpec>>>,
    /// It has started, as far as was known before its probes were declared here: in the daemon before, or in a definition without them.
    pub was_started: bool,
    /// The same of whether it was ready.
    pub was_ready: bool,
}

/// One probe of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProbeId(u64);

/// A check to be made now.
#[derive(Clone, Debug)]
pub struct Check {
    /// The probe.
    pub probe: ProbeId,
    /// The pod.
    pub uid: PodUid,
    /// The run.
    pub container: ContainerId,
    /// For events.
    pub subject: Subject,
    /// The check to make.
    pub spec: Arc<ProbeSpec>,
    /// The address.
    pub address: PodAddress,
    /// Delay beyond its time.
    pub late: Duration,
}

#[derive(Debug)]
struct Slot {
    id: ProbeId,
    spec: Arc<ProbeSpec>,
    state: ProbeState,
    /// Time of its last check, or of its first one: periods count from there.
    base: Moment,
    due: Option<Moment>,
    is_under_way: bool,
    /// It has its own place in its period.
    is_spread: bool,
}

#[derive(Debug)]
struct Run {
    subject: Subject,
    was_started: bool,
    is_ending: bool,
    slots: Vec<Slot>,
}

impl Run {
    /// Without a startup probe a run has started when it runs.
    fn is_started(&self) -> bool {
        let startup = self.slots.iter().find(|slot| slot.spec.kind == ProbeKind::Startup);
        startup.is_none_or(|slot| slot.state.result() == ProbeResult::Success)
    }
}

#[derive(Debug)]
struct Pod {
    address: PodAddress,
    runs: BTreeMap<ContainerId, Run>,
}

/// All probes.
#[derive(Debug)]
pub struct Schedule {
    /// Runs that began before were started by an earlier daemon.
    beginning: Moment,
    pods: HashMap<PodUid, Pod>,
    places: HashMap<ProbeId, (PodUid, ContainerId)>,
    due: BTreeSet<(Moment, ProbeId)>,
    next_id: u64,
}

impl Schedule {
    /// Nothing is probed yet.
    pub fn new(beginning: Moment) -> Self {
        Self { beginning, pods: HashMap::new(), places: HashMap::new(), due: BTreeSet::new(), next_id: 0 }
    }

    /// The pod's running containers are these. `jitter` draws from [0, its argument): so much later an adopted run is asked first,
    /// so that a daemon's start is not a burst (kubelet rule D15).
    pub fn declare(&mut self, uid: &PodUid, declared: &ProbedPod, now: Moment, jitter: &mut dyn FnMut(Duration) -> Duration) {
        let mut old = self.pods.remove(uid).map(|pod| pod.runs).unwrap_or_default();
        let mut runs = BTreeMap::new();
        for (id, declared) in &declared.runs {
            let known = old.remove(id);
            let is_probed = known.as_ref().is_some_and(|run| !run.slots.is_empty());
            let has_probes = declared.probes.as_ref().is_some_and(|probes| !probes.is_empty());
            if is_probed || has_probes {
                runs.insert(id.clone(), self.declare_run(uid, id, declared, known, now, jitter));
            }
        }
        for run in old.into_values() {
            self.drop_slots(&run.slots);
        }
        if !runs.is_empty() {
            self.pods.insert(uid.clone(), Pod { address: declared.address.clone(), runs });
            self.plan(uid, now);
        }
    }

    fn declare_run(
        &mut self,
        uid: &PodUid,
        id: &ContainerId,
        declared: &ProbedRun,
        known: Option<Run>,
        now: Moment,
        jitter: &mut dyn FnMut(Duration) -> Duration,
    ) -> Run {
        let was_started = known.as_ref().map_or(declared.was_started, |run| run.was_started || run.is_started());
        let mut old = known.map(|run| run.slots).unwrap_or_default();
        let Some(probes) = &declared.probes else {
            return Run { subject: declared.subject.clone(), was_started, is_ending: declared.is_ending, slots: old };
        };
        let is_adopted = declared.started_at < self.beginning;
        let mut slots = Vec::with_capacity(probes.len());
        for spec in probes {
            let slot = match old.iter().position(|slot| slot.spec.kind == spec.kind) {
                Some(at) => {
                    let mut slot = old.swap_remove(at);
                    if slot.spec != *spec {
                        slot.state.redefined();
                        slot.spec = Arc::clone(spec);
                    }
                    slot
                }
                None => {
                    let past = match spec.kind {
                        ProbeKind::Startup if was_started => Some(ProbeResult::Success),
                        ProbeKind::Readiness if declared.was_ready => Some(ProbeResult::Success),
                        ProbeKind::Startup | ProbeKind::Readiness | ProbeKind::Liveness => None,
                    };
                    let delay = if is_adopted { jitter(spec.timing.period) } else { Duration::ZERO };
                    self.next_id += 1;
                    let probe = ProbeId(self.next_id);
                    self.places.insert(probe, (uid.clone(), id.clone()));
                    let base = (declared.started_at + spec.timing.initial_delay).max(now + delay);
                    let state = ProbeState::new(spec.kind, past);
                    Slot { id: probe, spec: Arc::clone(spec), state, base, due: None, is_under_way: false, is_spread: is_adopted }
                }
            };
            slots.push(slot);
        }
        self.drop_slots(&old);
        Run { subject: declared.subject.clone(), was_started, is_ending: declared.is_ending, slots }
    }

    fn drop_slots(&mut self, slots: &[Slot]) {
        for slot in slots {
            self.places.remove(&slot.id);
            if let Some(due) = slot.due {
                self.due.remove(&(due, slot.id));
            }
        }
    }

    /// The pod is gone.
    pub fn forget(&mut self, uid: &PodUid) {
        for run in self.pods.remove(uid).into_iter().flat_map(|pod| pod.runs.into_values()) {
            self.drop_slots(&run.slots);
        }
    }

    /// Brings the times of a pod's probes up to date with who is asked.
    fn plan(&mut self, uid: &PodUid, now: Moment) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        for run in pod.runs.values_mut() {
            let is_started = run.is_started();
            for slot in &mut run.slots {
                let is_asked = !slot.is_under_way && slot.state.is_asked(is_started, run.is_ending);
                // One whose time passed while it waited for the startup probe is asked at once.
                let due = is_asked.then(|| slot.due.unwrap_or(slot.base.max(now)));
                if due != slot.due {
                    if let Some(due) = slot.due {
                        self.due.remove(&(due, slot.id));
                    }
                    self.due.extend(due.map(|due| (due, slot.id)));
                    slot.due = due;
                }
            }
        }
    }

    /// The time of the next check.
    pub fn next_due(&self) -> Option<Moment> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The next check whose time has come. It is due again when its answer was taken in.
    pub fn take_due(&mut self, now: Moment) -> Option<Check> {
        let (due, probe) = self.due.first().copied().filter(|(due, _)| *due <= now)?;
        self.due.remove(&(due, probe));
        let (uid, id) = self.places.get(&probe)?.clone();
        let pod = self.pods.get_mut(&uid)?;
        let run = pod.runs.get_mut(&id)?;
        let slot = run.slots.iter_mut().find(|slot| slot.id == probe)?;
        (slot.due, slot.is_under_way, slot.base) = (None, true, due);
        let (spec, late) = (Arc::clone(&slot.spec), now.since(due));
        Some(Check { probe, uid, container: id, subject: run.subject.clone(), spec, address: pod.address.clone(), late })
    }

    /// Takes in the answer to a check; one to a probe that is no longer declared has no effect. The pod, if others should look at it.
    pub fn answered(&mut self, probe: ProbeId, answer: &Answer, now: Now) -> Option<PodUid> {
        let (uid, id) = self.places.get(&probe)?.clone();
        let run = self.pods.get_mut(&uid)?.runs.get_mut(&id)?;
        let slot = run.slots.iter_mut().find(|slot| slot.id == probe)?;
        let Slot { spec, state, base, is_under_way, is_spread, .. } = slot;
        *is_under_way = false;
        // Periods count from check to check, not from answer to check; those that a slow check used up are left out.
        let period = spec.timing.period;
        let periods = (now.moment.since(*base).as_nanos() / period.as_nanos().max(1)).saturating_add(1);
        let next = *base + period.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX));
        let is_news = state.take_in(answer, &spec.timing, now.wall);
        // Once, when all is well: neither the first check nor one that counts towards a threshold comes at another time than it should.
        let is_settled = *answer == Answer::Success && state.result() == ProbeResult::Success;
        let place = *base + first_pause(&uid, &id, spec.kind, period);
        if is_settled && !*is_spread && now.moment < place {
            (*base, *is_spread) = (place, true);
        } else {
            *base = next;
        }
        self.plan(&uid, now.moment);
        is_news.then_some(uid)
    }

    /// Results of the pod's probes.
    pub fn health(&self, uid: &PodUid) -> PodHealth {
        let runs = self.pods.get(uid).into_iter().flat_map(|pod| &pod.runs);
        let health = |run: &Run| run.slots.iter().map(|slot| (slot.spec.kind, slot.state.health().clone())).collect();
        runs.map(|(id, run)| (id.clone(), health(run))).collect()
    }

    /// Returns true if the probe is still declared.
    pub fn has(&self, probe: ProbeId) -> bool {
        self.places.contains_key(&probe)
    }

    /// Number of probes.
    pub fn count(&self) -> usize {
        self.places.len()
    }
}
