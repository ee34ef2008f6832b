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
mod input;
mod resize;
mod sequence;
mod standing;
mod stop;
mod sync;
mod unhealthy;

pub use action::{Action, Ahead, PodActions, StopReason};
pub(super) use end::is_stopped;
pub use input::PlanInput;
pub(super) use resize::resize_state;
pub(super) use standing::surpassed;
pub(super) use stop::LEAST_GRACE;

use super::phase::WorkPhase;

/// Computes the next steps for a pod.
pub fn compute_pod_actions(input: PlanInput<'_>) -> PodActions {
    match input.phase {
        WorkPhase::Sync => sync::plan(input),
        WorkPhase::Halted => end::plan_halted(input),
        WorkPhase::Terminating(termination) => end::plan_terminating(input, termination),
        WorkPhase::Terminated(cause) => end::plan_terminated(input, cause),
    }
}
