//! Memory of a worker between turns: facts that cannot be observed, and times of the next attempts. **Pure**.
//!
//! All of it can be lost at any time (the daemon may die): then images are looked up again, volumes and network are prepared again
//! (both idempotent), back-off is derived from records, and a container that is being stopped gets its signal and its grace once more.

use super::backoff::{Backoff, BackoffPolicy, Failure};
use super::definition::{ContainerDefinition, PodDefinition};
use super::health::RunState;
use super::hook::{HookEnded, HookKind};
use super::plan::StopReason;
use super::record::Halt;
use jiff::Timestamp;
use podstead_container::{ContainerState, ContainerStatus, ObservedPod, ResolvedImage, SandboxState};
use podstead_pod::host_files::NetworkDns;
use podstead_pod::host_ports::ask_the_same;
use podstead_pod::storage::StorageUsage;
use podstead_pod::{ContainerId, ContainerName, pull_secrets};
use podstead_sys_async::clock::{Moment, Now};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// One step of preparing a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// To be taken.
    #[default]
    Open,
    /// Taken, for the present definition and sandbox.
    Done,
    /// Failed; to be tried again.
    Failed(Failure),
}

/// State of the image for a container's next start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ImageWork {
    /// Not looked up yet.
    #[default]
    Open,
    /// Being fetched, after `previous` failures.
    Pulling(Option<Failure>),
    /// Present; used up by the next start, since `imagePullPolicy` counts for every start.
    Present(Box<ResolvedImage>),
    /// Unavailable; to be retried.
    Failed(Failure),
}

/// A container that was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// SIGKILL comes then; while its preStop hook runs, the signal.
    pub deadline: Moment,
    /// SIGKILL does not come before, however close the end of the pod comes.
    pub not_before: Moment,
    /// State of its preStop hook.
    pub pre_stop: PreStop,
    /// When SIGKILL was sent last.
    pub killed: Option<Moment>,
    /// Reason why it was begun.
    pub why: StopReason,
}

/// State of the preStop hook of a container that is being stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreStop {
    /// There was none: the container has its signal.
    #[default]
    None,
    /// Under way.
    Running,
    /// At its end; the signal follows.
    Ended,
    /// The signal followed.
    Over,
}

/// A postStart hook that is not done; without one, or when it is done, there is nothing to remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostStart {
    /// To be done.
    Owed,
    /// Under way.
    Running,
    /// Failed for this reason: the container has to go.
    Failed(String),
}

/// Back-off of one definition of a container (kubelet rule D9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashLoop {
    /// The definition's hash; another definition starts afresh.
    pub hash: String,
    /// Its state.
    pub backoff: Backoff,
}

/// Memory for one container name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerMemory {
    /// The image for the next start.
    pub image: ImageWork,
    /// Reason why the last attempt to start it failed.
    pub failure: Option<Failure>,
    /// Its restarts.
    pub crash_loop: Option<CrashLoop>,
    /// Reason why its resources could not be changed.
    pub resize: Option<Failure>,
}

/// Measuring what a pod uses of the host's disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageWork {
    /// It is being measured.
    pub is_measuring: bool,
    /// When it is to be measured next; `None` for now.
    pub due: Option<Moment>,
    /// The last measurement, for the present definition.
    pub usage: Option<StorageUsage>,
}

/// Memory of a worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodMemory {
    /// The pod record on disk says what is being acted on.
    pub record: Step,
    /// `status.startTime`.
    pub started_at: Option<Timestamp>,
    /// The same on the clock that counts.
    pub active_since: Option<Moment>,
    /// When to keep on disk how long the pod has been active, if that matters.
    pub keep_active_at: Option<Moment>,
    /// Volumes of the present definition.
    pub volumes: Step,
    /// Volumes of this or an earlier definition were prepared in the present sandbox.
    pub had_volumes: bool,
    /// The sandbox's network, and what it got.
    pub network: Step,
    /// Addresses of the pod, primary first.
    pub pod_ips: Vec<IpAddr>,
    /// All interfaces of the pod, where there is more to tell than addresses.
    pub network_report: Option<String>,
    /// DNS settings from the pod's network, where plugins made it.
    pub network_dns: Option<NetworkDns>,
    /// Reason why the sandbox could not be made or changed.
    pub sandbox: Option<Failure>,
    /// Number of sandbox losses, and the time of the last one.
    pub losses: Option<Backoff>,
    /// When the loss of the present sandbox was seen.
    pub lost_at: Option<Moment>,
    /// Per container name.
    pub containers: BTreeMap<ContainerName, ContainerMemory>,
    /// Containers that were asked to stop and still run.
    pub stops: BTreeMap<ContainerId, Stop>,
    /// Running containers whose postStart hook is not done.
    pub post_starts: BTreeMap<ContainerId, PostStart>,
    /// Running containers whose preStop hook is over, by what an earlier daemon kept.
    pub pre_stops_done: BTreeSet<ContainerId>,
    /// Containers that podstead killed or will kill: their exit code is ignored.
    pub signalled: BTreeSet<ContainerId>,
    /// Probe state of runs.
    pub health: BTreeMap<ContainerId, RunState>,
    /// True until the runs of an earlier daemon are known.
    pub is_adopting: bool,
    /// When the end of a container was seen first.
    pub ends: BTreeMap<ContainerId, Moment>,
    /// Reason why something could not be cleaned up.
    pub cleanup: Option<Failure>,
    /// Teardown steps of a removed pod that are done.
    pub volumes_removed: bool,
    /// State of the images of volumes.
    pub volume_images: BTreeMap<String, ImageWork>,
    /// Volumes of an earlier definition may be left.
    pub has_surplus_volumes: bool,
    /// Its use of the host's disk.
    pub storage: StorageWork,
    /// Its recreation was requested.
    pub recreated: bool,
    /// Nothing of a removed pod is left.
    pub forgotten: bool,
}

impl PodMemory {
    /// Memory for `name`; an empty one if there is none yet.
    pub fn container(&self, name: &ContainerName) -> &ContainerMemory {
        static NOTHING: ContainerMemory = ContainerMemory { image: ImageWork::Open, failure: None, crash_loop: None, resize: None };
        self.containers.get(name).unwrap_or(&NOTHING)
    }

    /// State of the image of a volume.
    pub fn volume_image(&self, volume: &str) -> &ImageWork {
        self.volume_images.get(volume).unwrap_or(&ImageWork::Open)
    }

    /// Returns true if a living sandbox has its network: set up by this daemon, or by an earlier one that started containers in it.
    pub fn is_connected(&self) -> bool {
        match self.network {
            Step::Done => true,
            Step::Open => self.had_volumes,
            Step::Failed(_) => false,
        }
    }

    /// For changing it.
    pub fn container_mut(&mut self, name: &ContainerName) -> &mut ContainerMemory {
        self.containers.entry(name.clone()).or_default()
    }

    /// Takes note of what was observed: new ends, stops that came to their end, a lost sandbox.
    pub fn observe(&mut self, observed: &ObservedPod, now: Now) {
        for container in &observed.containers {
            let ended_at = match &container.state {
                ContainerState::Created | ContainerState::Running { .. } => continue,
                ContainerState::Exited { finished_at, .. } => *finished_at,
                ContainerState::Unknown { found_at, .. } => *found_at,
            };
            self.ends.entry(container.id.clone()).or_insert_with(|| now.moment_of(ended_at));
            self.stops.remove(&container.id);
            self.post_starts.remove(&container.id);
            self.pre_stops_done.remove(&container.id);
        }
        let is_present = |id: &ContainerId| observed.containers.iter().any(|container| container.id == *id);
        self.ends.retain(|id, _| is_present(id));
        self.stops.retain(|id, _| is_present(id));
        self.post_starts.retain(|id, _| is_present(id));
        self.pre_stops_done.retain(|id| is_present(id));
        self.signalled.retain(|id| is_present(id));
        match observed.sandbox.as_ref().map(|sandbox| sandbox.state) {
            Some(SandboxState::Ready) => self.lost_at = None,
            Some(SandboxState::Lost) => {
                self.lost_at.get_or_insert(now.moment);
                self.network = Step::Open;
                self.stops.clear();
            }
            Some(SandboxState::Stopped) | None => {
                self.network = Step::Open;
                self.stops.clear();
            }
        }
    }

    /// Derives back-off from the records of a pod that an earlier daemon ran. Not from runs in a sandbox that is gone: the host was booted
    /// anew or all pods were stopped, which says nothing against a container.
    pub fn adopt(&mut self, observed: &ObservedPod, policy: &BackoffPolicy, now: Now) {
        self.observe(observed, now);
        let present = observed.sandbox.as_ref().filter(|sandbox| sandbox.state == SandboxState::Ready);
        let runs_of_present =
            || observed.containers.iter().filter(|run| Some(run.sandbox_attempt) == present.map(|sandbox| sandbox.spec.attempt));
        self.had_volumes = runs_of_present().next().is_some();
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
        let ended = observed.containers.iter().filter(|run| match &run.state {
            ContainerState::Exited { finished_at, .. } => halt.covers(*finished_at),
            ContainerState::Created | ContainerState::Running { .. } | ContainerState::Unknown { .. } => false,
        });
        self.signalled.extend(ended.map(|run| run.id.clone()));
    }

    /// The pod has a new definition: forgets what concerned the old one only.
    /// A stop whose reason is gone (the edit was taken back) is not pursued; its signal cannot be called back. One whose preStop hook was
    /// begun is: the container may have given up its work already.
    pub fn redefine(&mut self, old: &PodDefinition, new: &PodDefinition, observed: &ObservedPod) {
        self.record = Step::Open;
        self.volumes = Step::Open;
        self.sandbox = None;
        self.has_surplus_volumes |=
            old.desired.pod.spec.as_ref().map(|spec| &spec.volumes) != new.desired.pod.spec.as_ref().map(|spec| &spec.volumes);
        self.storage.due = None;
        self.storage.usage = None;
        if !ask_the_same(&old.desired.pod, &new.desired.pod) {
            self.network = Step::Open;
        }
        self.reassess(old, new, observed);
    }

    /// Handles a change of the pod's definition or of an object it refers to: forgets the old state of the affected containers, so that a
    /// waiting container is retried at once.
    pub fn reassess(&mut self, old: &PodDefinition, new: &PodDefinition, observed: &ObservedPod) {
        // A missing part, such as a claim, was not prepared with the rest.
        if new.has_files || old.missing_files != new.missing_files {
            self.volumes = Step::Open;
        }
        let is_current =
            |run: &ContainerStatus| new.container(&run.name).is_some_and(|container| container.is_run_by(run, observed));
        self.volume_images.retain(|volume, _| {
            let of = |definition: &PodDefinition| definition.volume_images.iter().find(|image| image.volume == *volume).cloned();
            of(new).is_some_and(|image| of(old) == Some(image))
        });
        if !pull_with_the_same(old, new) {
            self.forget_failed_pulls();
        }
        self.stops.retain(|id, stop| {
            !stop.why.is_edit()
                || stop.pre_stop != PreStop::None
                || !observed.containers.iter().any(|run| run.id == *id && is_current(run))
        });
        self.containers.retain(|name, _| new.container(name).is_some());
        for container in &new.containers {
            let before = old.container(&container.name);
            if before == Some(container) {
                continue;
            }
            let memory = self.container_mut(&container.name);
            memory.failure = None;
            memory.resize = None;
            // With other resources it may do better (kubelet rule D9).
            if before.is_none_or(|before| !before.resources.agrees(&container.resources)) {
                memory.crash_loop = None;
            }
            let same_image =
                before.is_some_and(|before| before.image == container.image && before.pull_policy == container.pull_policy);
            if !same_image {
                memory.image = ImageWork::Open;
            }
        }
    }

    /// Other credentials may succeed where the earlier ones failed: the pause is skipped.
    fn forget_failed_pulls(&mut self) {
        let containers = self.containers.values_mut().map(|container| &mut container.image);
        for image in containers.chain(self.volume_images.values_mut()) {
            if let ImageWork::Failed(_) = image {
                *image = ImageWork::Open;
            }
        }
    }

    /// Something happened to the network, or to what it waits for: all about it is tried again at once.
    pub(super) fn network_has_news(&mut self) {
        self.network = Step::Open;
        self.cleanup = None;
    }

    /// Takes note of a hook's end.
    pub(super) fn hook_ended(&mut self, ended: &HookEnded) {
        let HookEnded { container: _, id, kind, result } = ended;
        match (kind, result) {
            (HookKind::PostStart, Ok(())) => {
                self.post_starts.remove(id);
            }
            (HookKind::PostStart, Err(why)) => {
                if let Some(state) = self.post_starts.get_mut(id) {
                    *state = PostStart::Failed(format!("PostStartHook failed: {why}"));
                }
            }
            (HookKind::PreStop, Ok(()) | Err(_)) => {
                if let Some(stop) = self.stops.get_mut(id) {
                    stop.pre_stop = PreStop::Ended;
                }
            }
        }
    }

    /// A container is started: uses up its image and takes its back-off one step further. `ended` is the end of its last run.
    pub fn restarting(&mut self, container: &ContainerDefinition, ended: Option<Moment>, policy: &BackoffPolicy, now: Moment) {
        let hash = container.hash.to_string();
        let memory = self.container_mut(&container.name);
        let state = memory.crash_loop.take().filter(|crash_loop| container.hash.is(&crash_loop.hash));
        memory.crash_loop = match ended {
            Some(ended) => {
                let backoff = policy.next(state.as_ref().map(|crash_loop| &crash_loop.backoff), ended, now);
                Some(CrashLoop { hash, backoff })
            }
            None => state,
        };
    }
}

/// Returns true if images would be pulled with the same Secrets.
fn pull_with_the_same(old: &PodDefinition, new: &PodDefinition) -> bool {
    let names = pull_secrets::names(&new.desired.pod);
    names == pull_secrets::names(&old.desired.pod)
        && new.objects.seen_by(&new.desired.source).agrees(&old.objects, &names.into_iter().collect())
}
