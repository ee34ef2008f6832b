//! The plan: a pure function from what a pod shall be, what is observed and what is remembered to the next steps.
//!
//! * [`standing`]: where one container stands.
//! * [`sync`]: a pod that shall run: its sandbox, and which containers are stopped and started.
//! * [`resize`]: changing what a pod and its running containers are given.
//! * [`sequence`]: in which order containers start (kubelet rules D6 to D8).
//! * [`hooks`]: what is done right after a container's start.
//! * [`stop`]: in which order they stop (rule D12), and the way from signal to SIGKILL.
//! * [`unhealthy`]: containers that their probes want stopped.
//! * [`end`]: a pod that ends, has ended or was stopped by an operator.
//!
//! A plan is optimistic: it lists all steps that can be foreseen, as if each succeeded. The executor goes as far as it gets and asks
//! for a new plan. So the same function serves the worker, `podstead plan` and the golden tests.

mod action;
mod end;
mod hooks;
mod resize;
mod sequence;
mod standing;
mod stop;
mod sync;
mod unhealthy;

pub use action::{Action, PodActions, StopReason};
pub(super) use end::is_stopped;
pub(super) use resize::resize_state;
pub(super) use standing::surpassed;
pub(super) use stop::LEAST_GRACE;

use super::backoff::BackoffPolicy;
use super::definition::PodDefinition;
use super::phase::WorkPhase;
use super::state::PodState;
use podstead_container::{ContainerState, ContainerStatus, ObservedPod, SandboxState, SandboxStatus};
use podstead_sys_async::clock::Now;

/// Inputs of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanInput<'a> {
    /// The desired state of the pod.
    pub definition: &'a PodDefinition,
    /// The observed state of the pod.
    pub observed: &'a ObservedPod,
    /// The phase: running, terminating or ended.
    pub phase: &'a WorkPhase,
    /// The state that the worker remembers.
    pub state: &'a PodState,
    /// Back-off of crashing containers.
    pub crash_loop: &'a BackoffPolicy,
    /// The time.
    pub now: Now,
}

impl<'a> PlanInput<'a> {
    /// The sandbox if it lives.
    fn living_sandbox(&self) -> Option<&'a SandboxStatus> {
        self.observed.sandbox.as_ref().filter(|sandbox| sandbox.state == SandboxState::Ready)
    }

    /// Containers that run, oldest first. In a sandbox that is gone nothing runs, regardless of records.
    fn running(&self) -> impl Iterator<Item = &'a ContainerStatus> + use<'a> {
        let attempt = self.living_sandbox().map(|sandbox| sandbox.spec.attempt);
        self.observed.containers.iter().filter(move |container| {
            matches!(container.state, ContainerState::Running { .. }) && attempt == Some(container.sandbox_attempt)
        })
    }
}

/// Computes the next steps for a pod.
pub fn compute_pod_actions(input: PlanInput<'_>) -> PodActions {
    match input.phase {
        WorkPhase::Sync => sync::plan(input),
        WorkPhase::Halted => end::plan_halted(input),
        WorkPhase::Terminating(termination) => end::plan_terminating(input, termination),
        WorkPhase::Terminated(cause) => end::plan_terminated(input, cause),
    }
}
