//! A pod that shall run: which sandbox it needs, and which containers are stopped and started.
//!
//! Pull before stop (promise P5): a container whose definition changed goes on until everything that its new definition needs is
//! there. Where the whole pod has to go (another sandbox, an edited init container), everything that all containers need.

use super::hooks::tend_post_starts;
use super::resize::resize;
use super::sequence::{Next, Sequence, sequence};
use super::standing::Place;
use super::stop::{Grace, reason_of_change, stop_in_order, stop_one};
use super::unhealthy::stop_unhealthy;
use super::{Action, Ahead, PlanInput, PodActions, StopReason};
use crate::backoff::{BackoffPolicy, Failure};
use crate::state::{ImageWork, Measuring, Step};
use podstead_container::{ContainerState, ContainerStatus, SandboxState};
use podstead_pod::ContainerName;
use podstead_pod::containers::ContainerKind;
use podstead_status::{PodResult, Waiting, reason};
use podstead_sys_async::clock::Moment;
use podstead_telemetry::kubernetes_duration;
use std::collections::BTreeSet;

/// Plans a pod that shall run.
pub(super) fn plan(input: PlanInput<'_>) -> PodActions {
    let mut plan = SyncPlan { input, out: PodActions::default() };
    plan.fill();
    plan.out
}

/// The sandbox that containers shall run in.
enum Target {
    /// The one that lives.
    Living(u32),
    /// A new sandbox: there is none, or it is lost.
    Missing(u32),
    /// A new sandbox instead of the living one.
    Other(u32),
}

/// Progress of record and volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preparation {
    /// All is there or can be tried now.
    Complete,
    /// They are there for an earlier definition: what has not changed may be restarted.
    OfEarlierDefinition,
    /// They are not there.
    Missing,
}

impl Preparation {
    fn allows(self, next: &Next<'_>) -> bool {
        match self {
            Preparation::Complete => true,
            Preparation::OfEarlierDefinition => !next.is_change(),
            Preparation::Missing => false,
        }
    }
}

struct SyncPlan<'a> {
    input: PlanInput<'a>,
    out: PodActions,
}

impl<'a> SyncPlan<'a> {
    fn fill(&mut self) {
        if self.is_over_deadline() {
            let message = "Pod was active on the node longer than the specified deadline".to_owned();
            let result = PodResult { succeeded: false, reason: Some(reason::DEADLINE_EXCEEDED.to_owned()), message: Some(message) };
            self.out.actions.push(Action::Finish(result));
            return;
        }
        if let Some(message) = self.exceeds_storage() {
            let result = PodResult { succeeded: false, reason: Some(reason::EVICTED.to_owned()), message: Some(message) };
            self.out.actions.push(Action::Finish(result));
            return;
        }
        let target = self.target();
        let (attempt, is_new) = match target {
            Target::Living(attempt) => (attempt, false),
            Target::Missing(attempt) | Target::Other(attempt) => (attempt, true),
        };
        let place = Place::of(&self.input, attempt, is_new);
        let Sequence { result, next, surpassed, is_initialized } = sequence(&self.input, place);
        if let Some(result) = result {
            self.out.actions.push(Action::Finish(result));
            return;
        }
        let is_clear = !self.has_lost_sandbox() || self.stop_sandbox();
        if self.stop_surpassed(&surpassed) {
            return;
        }
        let preparation = self.prepare(&next);
        let is_open: Vec<bool> = next.iter().map(|next| self.is_prepared(preparation, next) && self.is_open(next)).collect();
        let all_open = is_open.iter().all(|is_open| *is_open);
        let starts = self.startable(&next, &is_open);
        let goes_on = match target {
            Target::Living(_) => {
                tend_post_starts(&mut self.out, &self.input);
                stop_unhealthy(&mut self.out, &self.input);
                let outdated: Vec<_> = next.iter().filter_map(|next| next.outdated).chain(self.surplus()).collect();
                let goes_on = if is_initialized || outdated.is_empty() {
                    self.stop_changed(&next, &starts)
                } else {
                    self.stop_together(&outdated, all_open)
                };
                resize(&mut self.out, &self.input);
                goes_on
            }
            Target::Missing(_) => is_clear,
            Target::Other(_) => {
                let running: Vec<_> = self.input.running().collect();
                self.stop_together(&running, all_open || running.is_empty()) && self.stop_sandbox()
            }
        };
        let has_sandbox = !is_new || (goes_on && preparation == Preparation::Complete && self.create(attempt));
        if has_sandbox && !self.set_up_network(is_new) {
            self.wait_for_network(&starts);
        } else if has_sandbox {
            for start in starts.iter().filter(|start| goes_on || !start.is_change()) {
                self.start(start, place.round);
            }
        }
        self.remove_dead();
        if next.iter().all(|next| next.outdated.is_none()) {
            self.trim_volumes();
        }
        self.measure_storage();
    }

    /// Trims volumes once all running containers were made from the present definition, or have not changed.
    fn trim_volumes(&mut self) {
        let state = self.input.state;
        let is_wanted = state.volumes.has_surplus && self.surplus().is_empty();
        if is_wanted && self.is_due(state.cleanup.failure.as_ref()) {
            self.out.actions.push(Action::TrimVolumes);
        }
    }

    /// The storage limit that is exceeded, as a message.
    fn exceeds_storage(&self) -> Option<String> {
        let usage = self.input.state.storage.usage.as_ref()?;
        self.input.definition.storage.exceeded_by(usage)
    }

    /// Plans a measurement of the storage. A pod that never ran has written nothing.
    fn measure_storage(&mut self) {
        if self.input.definition.storage.is_empty() || self.input.observed.containers.is_empty() {
            return;
        }
        match self.input.state.storage.next {
            Measuring::UnderWay => {}
            Measuring::At(due) if due > self.input.now.moment => self.out.wake_at(due),
            Measuring::At(_) | Measuring::Due => self.out.actions.push(Action::MeasureStorage),
        }
    }

    fn is_over_deadline(&mut self) -> bool {
        let (Some(deadline), Some(since)) = (self.input.definition.active_deadline, self.input.state.active.since) else {
            return false;
        };
        let end = since + deadline;
        if self.input.now.moment < end {
            self.out.wake_at(self.input.state.active.record_at.map_or(end, |keep| keep.min(end)));
        }
        self.input.now.moment >= end
    }

    fn target(&self) -> Target {
        match &self.input.observed.sandbox {
            Some(sandbox) => match sandbox.state {
                SandboxState::Ready if self.input.definition.fits(&sandbox.spec) => Target::Living(sandbox.spec.attempt),
                SandboxState::Ready => Target::Other(sandbox.spec.attempt.saturating_add(1)),
                SandboxState::Lost | SandboxState::Stopped => Target::Missing(sandbox.spec.attempt.saturating_add(1)),
            },
            None => {
                let last = self.input.observed.containers.iter().map(|container| container.sandbox_attempt).max();
                Target::Missing(last.map_or(0, |attempt| attempt.saturating_add(1)))
            }
        }
    }

    fn has_lost_sandbox(&self) -> bool {
        self.input.observed.sandbox.as_ref().is_some_and(|sandbox| sandbox.state == SandboxState::Lost)
    }

    /// Clears the present sandbox away, unless that failed just now. Whether a new one may follow.
    fn stop_sandbox(&mut self) -> bool {
        let is_due = self.is_due(self.input.state.cleanup.failure.as_ref());
        if is_due {
            self.out.actions.push(Action::StopSandbox);
        }
        is_due
    }

    /// Returns true if a step that may have failed is done or can be retried now.
    fn is_due(&mut self, failure: Option<&Failure>) -> bool {
        match failure {
            Some(failure) if !failure.is_due(self.input.now.moment) => {
                self.out.wake_at(failure.retry_at);
                false
            }
            Some(_) | None => true,
        }
    }

    /// Plans a step of preparation. Whether what needs it may be planned too.
    fn step(&mut self, step: &Step, action: Action) -> bool {
        match step {
            Step::Done => true,
            Step::Open => {
                self.out.actions.push(action);
                true
            }
            Step::Failed(failure) => {
                let is_due = self.is_due(Some(failure));
                if is_due {
                    self.out.actions.push(action);
                }
                is_due
            }
        }
    }

    /// Record, images and volumes.
    fn prepare(&mut self, next: &[Next<'a>]) -> Preparation {
        let state = self.input.state;
        let has_record = self.step(&state.record, Action::WriteRecord);
        if next.is_empty() {
            if self.input.definition.has_files {
                self.step(&state.volumes.step, Action::PrepareVolumes);
            }
            return Preparation::Complete;
        }
        self.out.ahead = self.ahead(next);
        for next in next {
            if self.backs_off_until(next).is_none() && self.is_image_due(next) {
                self.out.actions.push(Action::EnsureImage {
                    container: next.container.name.clone(),
                    reference: next.container.image.clone(),
                    policy: next.container.pull_policy,
                });
            }
        }
        for image in &self.input.definition.volume_images {
            if is_due(state.volumes.image(&image.volume), self.input.now.moment) {
                self.out.actions.push(Action::EnsureVolumeImage {
                    volume: image.volume.clone(),
                    reference: image.reference.clone(),
                    policy: image.policy,
                });
            }
        }
        let has_volumes = self.step(&state.volumes.step, Action::PrepareVolumes);
        if has_volumes && has_record && self.input.definition.missing_files.is_none() {
            Preparation::Complete
        } else if state.volumes.were_prepared {
            Preparation::OfEarlierDefinition
        } else {
            Preparation::Missing
        }
    }

    /// The images of an update: those of containers that run, and of new ones beside them. A container that does not run any more waits for its image.
    fn ahead(&self, next: &[Next<'a>]) -> Ahead {
        let runs = |name: &ContainerName| self.input.running().any(|run| run.name == *name);
        let was_there = |name: &ContainerName| self.input.observed.containers.iter().any(|run| run.name == *name);
        let is_update = next.iter().any(|next| runs(&next.container.name));
        let names = next.iter().map(|next| &next.container.name);
        let ahead = names.filter(|name| runs(name) || (is_update && !was_there(name)));
        let containers: BTreeSet<ContainerName> = ahead.cloned().collect();
        Ahead { volumes: !next.is_empty() && containers.len() == next.len(), containers }
    }

    fn is_image_due(&self, next: &Next<'_>) -> bool {
        is_due(&self.input.state.container(&next.container.name).image, self.input.now.moment)
    }

    /// Until when the container must not be restarted, if that is not over (kubelet rule D9).
    fn backs_off_until(&self, next: &Next<'_>) -> Option<Moment> {
        let ended_at = next.due.ended_at?;
        let crash_loop = self.input.state.container(&next.container.name).crash_loop.as_ref();
        let backoff =
            crash_loop.filter(|crash_loop| next.container.hash.is(&crash_loop.hash)).map(|crash_loop| &crash_loop.backoff);
        let earliest = self.input.crash_loop.earliest(backoff, ended_at);
        (earliest > self.input.now.moment).then_some(earliest)
    }

    /// Those of `next` that can be started as soon as sandbox and stops allow it.
    fn startable(&mut self, next: &[Next<'a>], is_open: &[bool]) -> Vec<Next<'a>> {
        let mut startable = Vec::new();
        let (mut is_held, mut is_pulling) = (false, false);
        for (next, is_open) in next.iter().zip(is_open) {
            let is_first = next.due.previous.is_none();
            let waits_for_others = next.is_later || is_held || (is_pulling && is_first);
            if *is_open && !waits_for_others {
                startable.push(*next);
                is_held |= next.holds_others && next.has_startup_probe();
            } else {
                is_held |= next.holds_others;
            }
            // Main containers start in the order of the spec: one that is about to be there is waited for.
            let image = &self.input.state.container(&next.container.name).image;
            is_pulling |= is_first
                && next.container.kind == ContainerKind::Main
                && matches!(image, ImageWork::Pulling { previous: None, .. });
        }
        startable
    }

    /// Returns true if record and volumes are ready for the container.
    fn is_prepared(&mut self, preparation: Preparation, next: &Next<'a>) -> bool {
        let is_prepared = preparation.allows(next);
        match (&self.input.definition.missing_files, &self.input.state.volumes.step) {
            (Some(missing), _) if !is_prepared => self.wait(next, reason::CONTAINER_CREATING, missing.clone()),
            (None, Step::Failed(failure)) if !is_prepared => self.wait(next, failure.reason, failure.message.clone()),
            (Some(_) | None, Step::Open | Step::Done | Step::Failed(_)) => {}
        }
        is_prepared
    }

    /// Returns true if nothing about the container itself prevents its start.
    fn is_open(&mut self, next: &Next<'a>) -> bool {
        let name = &next.container.name;
        let now = self.input.now.moment;
        let container = self.input.state.container(name);
        if let Some(until) = self.backs_off_until(next) {
            let pause = container.crash_loop.as_ref().map(|crash_loop| crash_loop.backoff.delay).unwrap_or_default();
            let message = format!(
                "back-off {} restarting failed container={name} pod={}({})",
                kubernetes_duration(pause),
                self.input.definition.desired.full_name,
                self.input.definition.desired.uid
            );
            self.wait(next, reason::CRASH_LOOP_BACK_OFF, message);
            self.out.wake_at(until);
            return false;
        }
        if let Some(missing) = &next.container.missing {
            // Nothing to try again: the object's coming asks for another plan.
            self.wait(next, reason::CREATE_CONTAINER_CONFIG_ERROR, missing.clone());
            return false;
        }
        if let Some(failure) = container.failure.as_ref().filter(|failure| !failure.is_due(now)) {
            self.wait(next, failure.reason, failure.message.clone());
            self.out.wake_at(failure.retry_at);
            return false;
        }
        let definition = self.input.definition;
        let mut is_open = self.is_image_there(next, &container.image, &next.container.image);
        for image in definition.images_mounted_by(name) {
            is_open &= self.is_image_there(next, self.input.state.volumes.image(&image.volume), &image.reference);
        }
        is_open
    }

    /// Returns true if the image is present or can be looked for now.
    fn is_image_there(&mut self, next: &Next<'a>, image: &ImageWork, reference: &str) -> bool {
        match image {
            ImageWork::Open | ImageWork::Present(_) => true,
            ImageWork::Pulling { previous, progress } => {
                match (previous, progress) {
                    // As the kubelet, until the image is there or fails anew.
                    (Some(failure), _) => self.wait_for_image(next, failure, reference),
                    (None, Some(progress)) => {
                        let message = format!("Pulling image \"{reference}\": {progress}");
                        self.wait(next, reason::CONTAINER_CREATING, message);
                    }
                    (None, None) => {}
                }
                false
            }
            ImageWork::Failed(failure) => {
                self.wait_for_image(next, failure, reference);
                self.is_due(Some(failure))
            }
        }
    }

    fn wait(&mut self, next: &Next<'_>, reason: &'static str, message: String) {
        // A container that waits for init containers reports only that.
        if !next.is_later {
            self.out.waiting.insert(next.container.name.clone(), Waiting { reason, message });
        }
    }

    fn wait_for_image(&mut self, next: &Next<'_>, failure: &Failure, reference: &str) {
        let is_backed_off = [reason::ERR_IMAGE_PULL, reason::SIGNATURE_VALIDATION_FAILED].contains(&failure.reason);
        if is_backed_off && failure.count > 1 {
            let message = format!("Back-off pulling image \"{}\": {}: {}", reference, failure.reason, failure.message);
            self.wait(next, reason::IMAGE_PULL_BACK_OFF, message);
        } else {
            self.wait(next, failure.reason, failure.message.clone());
        }
    }

    /// Running containers that are not in the pod any more.
    fn surplus(&self) -> Vec<&'a ContainerStatus> {
        let definition = self.input.definition;
        let is_defined =
            |run: &ContainerStatus| definition.container(&run.name).is_some_and(|container| container.kind == run.kind);
        self.input.running().filter(|run| !is_defined(run)).collect()
    }

    /// Stops each container whose new definition can be started, and those that are no longer in the pod once the new ones can.
    /// True if changed containers can be started: no other container has to end first.
    fn stop_changed(&mut self, next: &[Next<'a>], starts: &[Next<'a>]) -> bool {
        let grace = Grace::Each(self.input.definition.grace);
        let mut is_waiting = false;
        for start in starts {
            if let Some(run) = start.outdated {
                is_waiting |= stop_one(&mut self.out, &self.input, run, grace, reason_of_change(&self.input, run));
            }
        }
        // A stop that was begun goes on, even if its reason is gone.
        for run in
            next.iter().filter_map(|next| next.outdated).filter(|run| starts.iter().all(|start| start.outdated != Some(*run)))
        {
            if self.input.state.runs.is_stopping(&run.id) {
                is_waiting |= stop_one(&mut self.out, &self.input, run, grace, reason_of_change(&self.input, run));
            }
        }
        let is_new = |next: &&Next<'_>| next.due.previous.is_none();
        let has_new = next.iter().filter(is_new).count() == starts.iter().filter(is_new).count();
        for run in self.surplus() {
            if has_new || self.input.state.runs.is_stopping(&run.id) {
                is_waiting |= stop_one(&mut self.out, &self.input, run, grace, StopReason::NotInPod);
            }
        }
        !is_waiting
    }

    /// Stops all of `runs` once `is_ready`. Whether they are gone, as far as that can be foreseen.
    fn stop_together(&mut self, runs: &[&'a ContainerStatus], is_ready: bool) -> bool {
        let is_begun = runs.iter().any(|run| self.input.state.runs.is_stopping(&run.id));
        if !is_ready && !is_begun {
            return false;
        }
        let grace = Grace::Each(self.input.definition.grace);
        !stop_in_order(&mut self.out, &self.input, runs, grace, StopReason::PodChanged)
    }

    /// Ends what all containers' restart is waiting for. Whether there is something to wait for.
    fn stop_surpassed(&mut self, runs: &[&'a ContainerStatus]) -> bool {
        for run in runs {
            stop_one(&mut self.out, &self.input, run, Grace::Nothing, StopReason::AllRestart);
        }
        !runs.is_empty()
    }

    /// Plans the sandbox. Whether what needs it may be planned too.
    fn create(&mut self, attempt: u32) -> bool {
        let state = self.input.state;
        if let Some(lost_at) = state.sandbox.lost_at {
            let earliest = BackoffPolicy::retry().earliest(state.sandbox.losses.as_ref(), lost_at);
            if earliest > self.input.now.moment {
                self.out.wake_at(earliest);
                return false;
            }
        }
        let is_due = self.is_due(state.sandbox.failure.as_ref());
        if is_due {
            let gives_claims = self.input.definition.gives_claims();
            self.out.actions.push(Action::CreateSandbox { attempt, lost_at: state.sandbox.lost_at, gives_claims });
        }
        is_due
    }

    fn set_up_network(&mut self, is_new: bool) -> bool {
        let state = self.input.state;
        let step = if is_new && state.network.step == Step::Done { &Step::Open } else { &state.network.step };
        self.step(step, Action::SetUpNetwork)
    }

    fn wait_for_network(&mut self, starts: &[Next<'a>]) {
        if let Step::Failed(failure) = &self.input.state.network.step {
            for start in starts {
                self.wait(start, failure.reason, failure.message.clone());
            }
        }
    }

    fn start(&mut self, next: &Next<'a>, round: u32) {
        let container = next.container.name.clone();
        if let Some(run) = next.half_made {
            self.out.actions.push(Action::KillContainer { container: container.clone(), id: run.id.clone() });
            self.out.actions.push(Action::RemoveContainer { container: container.clone(), id: run.id.clone() });
        }
        // Over all roles of the name: the number names the log file.
        let runs = self.input.observed.containers.iter().filter(|run| run.name == container && next.half_made != Some(run));
        let attempt = runs.map(|run| run.attempt.saturating_add(1)).max().unwrap_or(0);
        self.out.actions.push(Action::StartContainer { container, attempt, round, ended_at: next.due.ended_at });
    }

    /// Keeps one dead run of each container, none of those that are not in the pod (kubelet rule D17).
    fn remove_dead(&mut self) {
        if !self.is_due(self.input.state.cleanup.failure.as_ref()) {
            return;
        }
        let definition = self.input.definition;
        let is_dead = |run: &&ContainerStatus| matches!(run.state, ContainerState::Exited { .. } | ContainerState::Unknown { .. });
        let dead: Vec<&ContainerStatus> = self.input.observed.containers.iter().filter(is_dead).collect();
        for run in &dead {
            let is_defined = definition.container(&run.name).is_some_and(|container| container.kind == run.kind);
            let is_newest =
                dead.iter().all(|other| other.name != run.name || other.kind != run.kind || other.attempt <= run.attempt);
            if !is_defined || !is_newest {
                self.out.actions.push(Action::RemoveContainer { container: run.name.clone(), id: run.id.clone() });
            }
        }
    }
}

/// Returns true if an image is to be looked for now.
fn is_due(image: &ImageWork, now: Moment) -> bool {
    match image {
        ImageWork::Open => true,
        ImageWork::Pulling { .. } | ImageWork::Present(_) => false,
        ImageWork::Failed(failure) => failure.is_due(now),
    }
}
