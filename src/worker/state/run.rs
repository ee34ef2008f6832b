//! Runs of a pod's containers: the stage of each, from its start to its removal. **Pure**.
//!
//! ```text
//!               postStart hook                          withdrawn edit
//!             +----------------+                     +------------------+
//!             v                |                     v                  |
//!   start -> Up(PostStart) -> Up(Serving) ---> Stopping: preStop, signal, SIGKILL
//!             |                |                                        |
//!             +----------------+------------> Ended <-------------------+----> removed
//! ```
//!
//! A run about which nothing is remembered is [`Up::Serving`].

use super::health::Health;
use crate::hook_action::{HookEnded, HookKind};
use crate::plan::StopReason;
use podstead_container::{ContainerState, ContainerStatus, ObservedPod};
use podstead_pod::ContainerId;
use podstead_sys_async::clock::{Moment, Now};
use std::collections::BTreeMap;

/// Stage of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStage {
    /// Not asked to stop.
    Up(Up),
    /// Asked to stop, when it had come as far as `up`.
    Stopping {
        /// Progress of the stop.
        stop: Stop,
        /// Its stage before, to which it returns when the stop is withdrawn.
        up: Up,
    },
    /// Its end was first seen then.
    Ended(Moment),
}

/// Stage of a run that was not asked to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Up {
    /// Its postStart hook is not done.
    PostStart(PostStart),
    /// It serves.
    #[default]
    Serving,
    /// An earlier daemon was stopping it, and its preStop hook is over.
    PreStopDone,
}

/// A postStart hook that is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostStart {
    /// To be done.
    Owed,
    /// Under way.
    Running,
    /// Failed for this reason: the container has to go.
    Failed(String),
}

/// Progress of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// SIGKILL comes then; while its preStop hook runs, the signal.
    pub deadline: Moment,
    /// SIGKILL does not come before, however close the end of the pod comes.
    pub not_before: Moment,
    /// State of its preStop hook.
    pub pre_stop: PreStop,
    /// The time of the last SIGKILL.
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

/// Meaning of a run's exit code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitCode {
    /// It is the container's own.
    #[default]
    Counts,
    /// podstead ended the run or will end it, for a reason outside of the container.
    Ignored,
}

/// State of one run of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Its stage.
    pub stage: RunStage,
    /// Meaning of its exit code.
    pub exit_code: ExitCode,
    /// Results of its probes.
    pub health: Health,
}

impl Default for RunStage {
    fn default() -> Self {
        RunStage::Up(Up::Serving)
    }
}

impl Run {
    const fn ended_at(&self) -> Option<Moment> {
        match self.stage {
            RunStage::Ended(at) => Some(at),
            RunStage::Up(_) | RunStage::Stopping { .. } => None,
        }
    }

    const fn up_mut(&mut self) -> Option<&mut Up> {
        match &mut self.stage {
            RunStage::Up(up) | RunStage::Stopping { up, .. } => Some(up),
            RunStage::Ended(_) => None,
        }
    }

    const fn stop_mut(&mut self) -> Option<&mut Stop> {
        match &mut self.stage {
            RunStage::Stopping { stop, .. } => Some(stop),
            RunStage::Up(_) | RunStage::Ended(_) => None,
        }
    }

    /// Begins a stop, or replaces the one under way.
    fn begin_stop(&mut self, stop: Stop) {
        if let Some(up) = self.up_mut().map(std::mem::take) {
            self.stage = RunStage::Stopping { stop, up };
        }
        // A container that failed is to blame for its end.
        if !stop.why.is_of_container() {
            self.exit_code = ExitCode::Ignored;
        }
    }

    /// Forgets a stop. The signal, if it was sent, cannot be called back.
    fn withdraw_stop(&mut self) {
        if let RunStage::Stopping { up, .. } = &mut self.stage {
            self.stage = RunStage::Up(std::mem::take(up));
        }
    }
}

/// Runs of a pod, by container id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs(BTreeMap<ContainerId, Run>);

impl Runs {
    /// A run, if anything is remembered about it.
    pub fn get(&self, id: &ContainerId) -> Option<&Run> {
        self.0.get(id)
    }

    /// A run, for changing it.
    pub fn entry(&mut self, id: &ContainerId) -> &mut Run {
        self.0.entry(id.clone()).or_default()
    }

    /// All runs about which something is remembered.
    pub fn iter(&self) -> impl Iterator<Item = (&ContainerId, &Run)> {
        self.0.iter()
    }

    /// The postStart hook of a run, unless it is done.
    pub fn post_start(&self, id: &ContainerId) -> Option<&PostStart> {
        match &self.get(id)?.stage {
            RunStage::Up(Up::PostStart(hook)) | RunStage::Stopping { up: Up::PostStart(hook), .. } => Some(hook),
            RunStage::Up(_) | RunStage::Stopping { .. } | RunStage::Ended(_) => None,
        }
    }

    /// The stop of a run, if one is under way.
    pub fn stop(&self, id: &ContainerId) -> Option<&Stop> {
        match &self.get(id)?.stage {
            RunStage::Stopping { stop, .. } => Some(stop),
            RunStage::Up(_) | RunStage::Ended(_) => None,
        }
    }

    /// Returns true if the run was asked to stop.
    pub fn is_stopping(&self, id: &ContainerId) -> bool {
        self.stop(id).is_some()
    }

    /// Returns true if the preStop hook of the run must not be run any more.
    pub fn is_pre_stop_begun(&self, id: &ContainerId) -> bool {
        self.get(id).is_some_and(|run| matches!(run.stage, RunStage::Stopping { .. } | RunStage::Up(Up::PreStopDone)))
    }

    /// Returns true if the exit code of the run says nothing about its container.
    pub fn is_exit_ignored(&self, id: &ContainerId) -> bool {
        self.get(id).is_some_and(|run| run.exit_code == ExitCode::Ignored)
    }

    /// The time at which the end of the run was first seen.
    pub fn ended_at(&self, id: &ContainerId) -> Option<Moment> {
        self.get(id).and_then(Run::ended_at)
    }

    /// The time at which the last end of a run was first seen.
    pub fn last_end(&self) -> Option<Moment> {
        self.0.values().filter_map(Run::ended_at).max()
    }

    /// Takes note of what was observed: new ends, and runs that are gone.
    pub(super) fn observe(&mut self, observed: &ObservedPod, now: Now) {
        self.0.retain(|id, _| observed.containers.iter().any(|container| container.id == *id));
        for container in &observed.containers {
            let ended_at = match &container.state {
                ContainerState::Created | ContainerState::Running { .. } => continue,
                ContainerState::Exited { finished_at, .. } => *finished_at,
                ContainerState::Unknown { found_at, .. } => *found_at,
            };
            let run = self.entry(&container.id);
            if !matches!(run.stage, RunStage::Ended(_)) {
                run.stage = RunStage::Ended(now.moment_of(ended_at));
            }
        }
    }

    /// Forgets all stops: with their sandbox the containers are gone.
    pub(super) fn withdraw_stops(&mut self) {
        self.0.values_mut().for_each(Run::withdraw_stop);
    }

    /// Forgets the stops of an edit that was taken back: those of runs that are current again. A stop whose preStop hook was begun is
    /// pursued: the container may have given up its work already.
    pub(super) fn withdraw_stops_of_edit(&mut self, observed: &ObservedPod, is_current: impl Fn(&ContainerStatus) -> bool) {
        for run in observed.containers.iter().filter(|run| is_current(run)) {
            let is_withdrawn = self.stop(&run.id).is_some_and(|stop| stop.why.is_edit() && stop.pre_stop == PreStop::None);
            if is_withdrawn {
                self.entry(&run.id).withdraw_stop();
            }
        }
    }

    /// A run was asked to stop, by its hook or by its signal.
    pub(super) fn begin_stop(&mut self, id: &ContainerId, stop: Stop) {
        self.entry(id).begin_stop(stop);
    }

    /// A run got SIGKILL. Its exit code counts only if the container is to blame.
    pub(super) fn killed(&mut self, id: &ContainerId, now: Moment) {
        let is_to_blame = matches!(self.post_start(id), Some(PostStart::Failed(_))) || self.failed_probe(id).is_some();
        let run = self.entry(id);
        if !is_to_blame {
            run.exit_code = ExitCode::Ignored;
        }
        if let Some(stop) = run.stop_mut() {
            stop.killed = Some(now);
        }
    }

    /// Sets the state of a run's postStart hook.
    pub fn set_post_start(&mut self, id: &ContainerId, hook: PostStart) {
        if let Some(up) = self.entry(id).up_mut() {
            *up = Up::PostStart(hook);
        }
    }

    /// Takes over from an earlier daemon that the preStop hook of a run is over.
    pub(crate) fn set_pre_stop_done(&mut self, id: &ContainerId) {
        if let Some(up) = self.entry(id).up_mut() {
            *up = Up::PreStopDone;
        }
    }

    /// Takes note of a hook's end.
    pub(crate) fn hook_ended(&mut self, ended: &HookEnded) {
        let HookEnded { container: _, id, kind, result } = ended;
        let Some(run) = self.0.get_mut(id) else { return };
        match kind {
            HookKind::PostStart => {
                if let Some(up @ Up::PostStart(_)) = run.up_mut() {
                    *up = match result {
                        Ok(()) => Up::Serving,
                        Err(why) => Up::PostStart(PostStart::Failed(format!("PostStartHook failed: {why}"))),
                    };
                }
            }
            HookKind::PreStop => {
                if let Some(stop) = run.stop_mut() {
                    stop.pre_stop = PreStop::Ended;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_sys_async::clock::Clock;
    use proptest::prelude::*;

    fn id() -> ContainerId {
        ContainerId::new("web")
    }

    fn stop(why: StopReason) -> Stop {
        Stop { deadline: Moment::default(), not_before: Moment::default(), pre_stop: PreStop::None, killed: None, why }
    }

    fn nothing() -> ObservedPod {
        ObservedPod {
            uid: podstead_pod::PodUid::new("uid"),
            sandbox: None,
            containers: Vec::new(),
            given: BTreeMap::new(),
            plugged: BTreeMap::new(),
        }
    }

    #[test]
    fn withdrawn_stop_returns_to_stage_before() {
        let mut runs = Runs::default();
        runs.set_post_start(&id(), PostStart::Running);
        runs.begin_stop(&id(), stop(StopReason::DefinitionChanged));
        assert!(runs.is_stopping(&id()));
        assert_eq!(runs.post_start(&id()), Some(&PostStart::Running));
        runs.withdraw_stops();
        assert!(!runs.is_stopping(&id()));
        assert_eq!(runs.post_start(&id()), Some(&PostStart::Running));
        assert!(runs.is_exit_ignored(&id()), "its signal cannot be called back");
    }

    #[test]
    fn exit_code_of_failed_container_counts() {
        let mut runs = Runs::default();
        runs.set_post_start(&id(), PostStart::Failed("no".to_owned()));
        runs.begin_stop(&id(), stop(StopReason::PostStartFailed));
        runs.killed(&id(), Moment::default());
        assert!(!runs.is_exit_ignored(&id()));
        runs.begin_stop(&id(), stop(StopReason::PodEnds));
        assert!(runs.is_exit_ignored(&id()));
    }

    #[test]
    fn inherited_pre_stop_is_not_repeated() {
        let mut runs = Runs::default();
        runs.set_pre_stop_done(&id());
        runs.begin_stop(&id(), stop(StopReason::DefinitionChanged));
        runs.withdraw_stops();
        assert!(runs.is_pre_stop_begun(&id()));
    }

    #[test]
    fn run_that_is_gone_is_forgotten() {
        let mut runs = Runs::default();
        runs.begin_stop(&id(), stop(StopReason::PodEnds));
        runs.observe(&nothing(), Clock::starting_at(jiff::Timestamp::UNIX_EPOCH).now());
        assert_eq!(runs, Runs::default());
    }

    #[derive(Clone, Copy, Debug)]
    enum Event {
        PostStart,
        Stop(StopReason),
        Killed,
        Withdrawn,
    }

    proptest! {
        #[test]
        fn ended_run_stays_ended(
            events in prop::collection::vec(
                prop_oneof![
                    Just(Event::PostStart),
                    Just(Event::Stop(StopReason::PodEnds)),
                    Just(Event::Stop(StopReason::LivenessFailed)),
                    Just(Event::Killed),
                    Just(Event::Withdrawn),
                ],
                0..12,
            )
        ) {
            let mut runs = Runs::default();
            let end = Moment::default();
            runs.entry(&id()).stage = RunStage::Ended(end);
            let mut was_ignored = false;
            for event in events {
                match event {
                    Event::PostStart => runs.set_post_start(&id(), PostStart::Owed),
                    Event::Stop(why) => runs.begin_stop(&id(), stop(why)),
                    Event::Killed => runs.killed(&id(), end),
                    Event::Withdrawn => runs.withdraw_stops(),
                }
                prop_assert_eq!(runs.ended_at(&id()), Some(end));
                prop_assert!(!runs.is_stopping(&id()) && runs.post_start(&id()).is_none());
                prop_assert!(runs.is_exit_ignored(&id()) || !was_ignored);
                was_ignored = runs.is_exit_ignored(&id());
            }
        }
    }
}
