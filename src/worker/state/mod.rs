//! State of a pod that cannot be observed: how far each run, the sandbox and the preparations have come, and when a failed step is due again.
//! **Pure**.
//!
//! ```text
//!   record ---> images, volumes ---> sandbox ---> network ---> runs: start, postStart, serving, stopping, ended ---> cleanup
//!   (Step)      ImageWork            SandboxWork  NetworkWork  RunStage, one for each container id                  CleanupStage
//!               VolumeWork
//! ```
//!
//! * [`run`]: the stage of each run, and what its exit code means.
//! * [`health`]: results of its probes.
//! * [`work`]: preparations, sandbox, network, volumes, removal.
//! * [`apply`]: the change that the outcome of each step makes.
//!
//! All of it can be lost at any time (the daemon may die): then images are looked up again, volumes and network are prepared again
//! (both idempotent), back-off is derived from records, and a container that is being stopped gets its signal and its grace once more.

pub mod apply;
pub mod health;
pub mod run;
pub mod work;

pub use apply::Outcome;
pub use run::{ExitCode, PostStart, PreStop, Run, RunStage, Runs, Stop, Up};
pub use work::{
    ActiveTimes, Cleanup, CleanupStage, ContainerWork, CrashLoop, ImageWork, Measuring, NetworkWork, SandboxWork, Step,
    StorageWork, VolumeWork,
};

use super::backoff::{BackoffPolicy, Failure};
use super::definition::PodDefinition;
use super::record::Halt;
use podstead_container::{ContainerState, ContainerStatus, ObservedPod, SandboxState};
use podstead_pod::host_ports::ask_the_same;
use podstead_pod::{ContainerName, pull_secrets};
use podstead_status::reason;
use podstead_sys_async::clock::Now;
use std::collections::BTreeMap;

/// State of a pod between turns of its worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodState {
    /// The pod record on disk is of the present definition.
    pub record: Step,
    /// Time for which the pod has been there.
    pub active: ActiveTimes,
    /// Its sandbox.
    pub sandbox: SandboxWork,
    /// Its network.
    pub network: NetworkWork,
    /// Its volumes.
    pub volumes: VolumeWork,
    /// The next start of each container, by its name. In boxes: a node of the map has room for eleven values, and few pods have more than one container.
    pub containers: BTreeMap<ContainerName, Box<ContainerWork>>,
    /// Its runs.
    pub runs: Runs,
    /// Its use of the host's disk.
    pub storage: StorageWork,
    /// Its removal.
    pub cleanup: Cleanup,
}

impl PodState {
    /// Progress of `name` towards its next start.
    pub fn container(&self, name: &ContainerName) -> &ContainerWork {
        static NOTHING: ContainerWork = ContainerWork { image: ImageWork::Open, failure: None, crash_loop: None, resize: None };
        self.containers.get(name).map_or(&NOTHING, |work| work)
    }

    /// The same, for changing it.
    pub fn container_mut(&mut self, name: &ContainerName) -> &mut ContainerWork {
        self.containers.entry(name.clone()).or_default()
    }

    /// Returns true if a living sandbox has its network: set up by this daemon, or by an earlier one that started containers in it.
    pub const fn is_connected(&self) -> bool {
        match self.network.step {
            Step::Done => true,
            Step::Open => self.volumes.were_prepared,
            Step::Failed(_) => false,
        }
    }

    /// Takes note of what was observed: new ends, stops that came to their end, a lost sandbox.
    pub fn observe(&mut self, observed: &ObservedPod, now: Now) {
        self.runs.observe(observed, now);
        let sandbox = observed.sandbox.as_ref().map(|sandbox| sandbox.state);
        match sandbox {
            Some(SandboxState::Ready) => {
                self.sandbox.lost_at = None;
                return;
            }
            Some(SandboxState::Lost) => {
                self.sandbox.lost_at.get_or_insert(now.moment);
            }
            Some(SandboxState::Stopped) | None => {}
        }
        self.network.step = Step::Open;
        self.runs.withdraw_stops();
    }

    /// Derives back-off from the records of a pod that an earlier daemon ran. Not from runs in a sandbox that is gone: the host was booted
    /// anew or all pods were stopped, which says nothing against a container.
    pub fn adopt(&mut self, observed: &ObservedPod, policy: &BackoffPolicy, now: Now) {
        self.observe(observed, now);
        let present = observed.sandbox.as_ref().filter(|sandbox| sandbox.state == SandboxState::Ready);
        let runs_of_present =
            || observed.containers.iter().filter(|run| Some(run.sandbox_attempt) == present.map(|sandbox| sandbox.spec.attempt));
        self.volumes.were_prepared = runs_of_present().next().is_some();
        for container in runs_of_present() {
            let (started, finished) = match &container.state {
                ContainerState::Exited { started_at, finished_at, .. } => (started_at.unwrap_or(*finished_at), *finished_at),
                // Its exit decides whether the failures are forgiven.
                ContainerState::Running { started_at, .. } => (*started_at, *started_at),
                ContainerState::Created | ContainerState::Unknown { .. } => continue,
            };
            let (started, finished) = (now.moment_of(started), now.moment_of(finished));
            if let Some(backoff) = policy.derive(container.attempt, started, finished) {
                self.container_mut(&container.name).crash_loop = Some(CrashLoop { hash: container.hash.clone(), backoff });
            }
        }
    }

    /// Ignores the exit codes of containers that ended while an operator's stop was in force.
    pub fn excuse_halted(&mut self, observed: &ObservedPod, halt: &Halt) {
        for run in &observed.containers {
            match &run.state {
                ContainerState::Exited { finished_at, .. } if halt.covers(*finished_at) => {
                    self.runs.entry(&run.id).exit_code = ExitCode::Ignored;
                }
                ContainerState::Exited { .. }
                | ContainerState::Created
                | ContainerState::Running { .. }
                | ContainerState::Unknown { .. } => {}
            }
        }
    }

    /// The pod has a new definition: forgets what concerned the old one only.
    pub fn redefine(&mut self, old: &PodDefinition, new: &PodDefinition, observed: &ObservedPod) {
        self.record = Step::Open;
        self.volumes.step = Step::Open;
        self.sandbox.failure = None;
        self.volumes.has_surplus |=
            old.desired.pod.spec.as_ref().map(|spec| &spec.volumes) != new.desired.pod.spec.as_ref().map(|spec| &spec.volumes);
        self.storage.redefine();
        if !ask_the_same(&old.desired.pod, &new.desired.pod) {
            self.network.step = Step::Open;
        }
        self.reassess(old, new, observed);
    }

    /// Handles a change of the pod's definition or of an object it refers to: forgets the old state of the affected containers, so that a
    /// waiting container is retried at once.
    pub fn reassess(&mut self, old: &PodDefinition, new: &PodDefinition, observed: &ObservedPod) {
        // A missing part, such as a claim, was not prepared with the rest.
        if new.has_files || old.missing_files != new.missing_files {
            self.volumes.step = Step::Open;
        }
        self.volumes.images.retain(|volume, _| {
            let of = |definition: &PodDefinition| definition.volume_images.iter().find(|image| image.volume == *volume).cloned();
            of(new).is_some_and(|image| of(old) == Some(image))
        });
        if !pull_with_the_same(old, new) {
            self.retry_failed_pulls();
        }
        let is_current =
            |run: &ContainerStatus| new.container(&run.name).is_some_and(|container| container.is_run_by(run, observed));
        self.runs.withdraw_stops_of_edit(observed, is_current);
        self.containers.retain(|name, _| new.container(name).is_some());
        for container in &new.containers {
            let before = old.container(&container.name);
            if before != Some(container) {
                self.container_mut(&container.name).redefine(before, container);
            }
        }
    }

    /// Another attempt may succeed where the earlier one failed, with other credentials or over another link: the pause is skipped.
    pub(super) fn retry_failed_pulls(&mut self) {
        let containers = self.containers.values_mut().map(|container| &mut container.image);
        containers.chain(self.volumes.images.values_mut()).for_each(ImageWork::retry_now);
    }

    /// A device was plugged in or unplugged: what waits for one is tried again at once.
    pub(super) fn devices_changed(&mut self) {
        let is_missing = |failure: &mut Failure| failure.reason == reason::DEVICE_MISSING;
        self.containers.values_mut().for_each(|work| drop(work.failure.take_if(is_missing)));
    }

    /// Something happened to the network, or to what it waits for: all about it is tried again at once.
    pub(super) fn network_has_news(&mut self) {
        self.network.step = Step::Open;
        self.cleanup.failure = None;
    }
}

/// Returns true if images would be pulled with the same Secrets.
fn pull_with_the_same(old: &PodDefinition, new: &PodDefinition) -> bool {
    let names = pull_secrets::names(&new.desired.pod);
    names == pull_secrets::names(&old.desired.pod)
        && new.objects.seen_by(&new.desired.source).agrees(&old.objects, &names.into_iter().collect())
}
