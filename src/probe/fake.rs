//! A fake prober: tests set the results of probes.

use super::health::{PodHealth, ProbeHealth, ProbeResult};
use super::prober::Probes;
use super::schedule::ProbedPod;
use super::spec::ProbeKind;
use podstead_pod::{ContainerId, PodUid};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the module.
#[derive(Debug, Default)]
pub struct FakeProbes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    declared: HashMap<PodUid, ProbedPod>,
    health: HashMap<PodUid, PodHealth>,
}

impl FakeProbes {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last declaration of the pod.
    pub fn declared(&self, uid: &PodUid) -> Option<ProbedPod> {
        self.state().declared.get(uid).cloned()
    }

    /// From now on the probe says this of the run. The pod's worker has to be made to look.
    pub fn say(&self, uid: &PodUid, id: &ContainerId, kind: ProbeKind, result: ProbeResult) {
        let health = ProbeHealth { result, failure: None };
        self.state().health.entry(uid.clone()).or_default().entry(id.clone()).or_default().insert(kind, health);
    }

    /// The daemon ends: what probes said is forgotten.
    pub fn restart_daemon(&self) {
        *self.state() = State::default();
    }
}

impl Probes for FakeProbes {
    fn declare(&self, uid: &PodUid, pod: ProbedPod) {
        self.state().declared.insert(uid.clone(), pod);
    }

    fn forget(&self, uid: &PodUid) {
        self.state().declared.remove(uid);
    }

    fn health(&self, uid: &PodUid) -> Arc<PodHealth> {
        Arc::new(self.state().health.get(uid).cloned().unwrap_or_default())
    }
}
