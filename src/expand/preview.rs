//! The pods that workloads want in the end, for `podstead plan`: every pod becomes ready at once, every stop is quick and every image can be pulled.
//!
//! Nothing is written. Jobs are shown with the attempts that would start now; how they end is not guessed.

use crate::memory_file::{self, Damaged};
use crate::observations::{Seen, Sight};
use crate::plan::{Expander, Expansion, Now};
use crate::{Clocks, KnownPod};
use jiff::Timestamp;
use podstead_manifest::ObjectKey;
use podstead_pod::sharing::Sharing;
use podstead_pod::{AdmitContext, PodUid, SourceId};
use podstead_store::Set;
use podstead_sys::layout::Paths;
use podstead_sys::time_sync;
use podstead_workload::cron;
use podstead_workload::host_fit::Host;
use podstead_workload::observed::{ObservedPod, Phase};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Steps of a rollout that are followed: each replaces at least one of at most 500 pods.
const MAX_STEPS: usize = 2000;

/// State of a pod of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodState {
    /// It runs, or waits to.
    Running,
    /// It ended with success.
    Succeeded,
    /// It ended with a failure.
    Failed,
}

/// Workloads, simulated from the memory on disk.
#[derive(Debug)]
pub struct Preview {
    expander: Expander,
    clocks: Clocks,
    pods: BTreeMap<PodUid, (ObjectKey, ObservedPod)>,
    /// The last SET of each source.
    sets: BTreeMap<SourceId, Set>,
}

impl Preview {
    /// From the memory below `paths`, which may be missing, and the pods of workloads on this host.
    pub fn new(
        paths: &Paths,
        sources: Sharing,
        host: Host,
        admit: AdmitContext,
        pods: Vec<(KnownPod, PodState)>,
    ) -> io::Result<Self> {
        let memories = memory_file::read(paths, Damaged::Leave)?;
        let known = pods.iter().map(|(pod, _)| pod.clone()).collect();
        let mut preview = Self {
            expander: Expander::new(sources, host, admit, memories, known),
            clocks: Clocks::system(),
            pods: BTreeMap::new(),
            sets: BTreeMap::new(),
        };
        for (KnownPod { uid, owner, name, is_terminating }, state) in pods {
            let phase = match state {
                PodState::Running => Phase::Running,
                PodState::Succeeded => Phase::Succeeded,
                PodState::Failed => Phase::Failed,
            };
            let pod = preview.pod(name, phase);
            preview.see(uid, owner, ObservedPod { is_terminating, ..pod });
        }
        Ok(preview)
    }

    /// Applies the SET of a source. Returns the SETs that differ from those before, with the pods that are wanted in the end.
    pub fn apply(&mut self, set: Set) -> Vec<Set> {
        let mut changed = BTreeSet::new();
        self.expander.apply(set);
        for _ in 0..MAX_STEPS {
            let expansion = self.plan();
            if expansion.sets.is_empty() && expansion.warm.values().all(Option::is_none) {
                break;
            }
            changed.extend(expansion.sets.iter().map(|set| set.source.clone()));
            self.follow(expansion);
        }
        self.sets.iter().filter(|(source, _)| changed.contains(*source)).map(|(_, set)| set.clone()).collect()
    }

    fn plan(&mut self) -> Expansion {
        let clocks = cron::Clocks {
            wall: Timestamp::now(),
            moment: self.clocks.moment(),
            boot_id: self.clocks.boot_id().to_owned(),
            synchronised: time_sync::is_synchronised(),
            built: cron::BUILT,
            wait_for_sync: cron::WAIT_FOR_SYNC,
        };
        let fresh_uid = || PodUid::random().as_str().to_owned();
        self.expander.plan(&Now { clocks, zones: jiff::tz::db(), fresh_uid: &fresh_uid, is_disposable: &|_, _| false })
    }

    fn follow(&mut self, expansion: Expansion) {
        for warm in expansion.warm.into_values().flatten() {
            self.expander.images_arrived(&warm.key, warm.images.into_iter().map(|(image, _)| image));
        }
        self.sets.extend(expansion.sets.into_iter().map(|set| (set.source.clone(), set)));
        let mut wanted = BTreeMap::new();
        for pod in self.sets.values().flat_map(|set| set.pods.values()) {
            let namespace = pod.pod.metadata.namespace.clone().unwrap_or_default();
            if let (Some(name), Some(owner)) = (&pod.pod.metadata.name, crate::owner(&pod.pod, &namespace)) {
                wanted.insert((namespace, name.clone()), owner);
            }
        }
        let name_of = |(owner, pod): &(ObjectKey, ObservedPod)| (owner.namespace.to_string(), pod.name.clone());
        let gone: Vec<PodUid> =
            self.pods.iter().filter(|(_, pod)| !wanted.contains_key(&name_of(pod))).map(|(uid, _)| uid.clone()).collect();
        for uid in gone {
            self.pods.remove(&uid);
            self.expander.observe(uid, Sight::Gone);
        }
        let present: BTreeSet<(String, String)> = self.pods.values().map(name_of).collect();
        for ((namespace, name), owner) in wanted {
            if !present.contains(&(namespace, name.clone())) {
                let pod = self.pod(name, Phase::Running);
                self.see(PodUid::random(), owner, pod);
            }
        }
    }

    fn see(&mut self, uid: PodUid, owner: ObjectKey, pod: ObservedPod) {
        self.pods.insert(uid.clone(), (owner.clone(), pod.clone()));
        self.expander.observe(uid, Sight::Seen(Box::new(Seen { owner, pod, lost: Vec::new() })));
    }

    /// A pod that has been ready since the boot, so that no time has to pass before it counts as available.
    fn pod(&self, name: String, phase: Phase) -> ObservedPod {
        let is_over = matches!(phase, Phase::Succeeded | Phase::Failed);
        ObservedPod {
            name,
            phase,
            ready_since: (!is_over).then(Default::default),
            is_terminating: false,
            restarts: 0,
            ends: Vec::new(),
            ended_at: is_over.then(|| self.clocks.moment()),
            conditions: Vec::new(),
            deletion_cost: 0,
        }
    }
}
