//! Inputs of a plan.

use crate::backoff::BackoffPolicy;
use crate::definition::PodDefinition;
use crate::phase::WorkPhase;
use crate::state::PodState;
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
    pub(super) fn living_sandbox(&self) -> Option<&'a SandboxStatus> {
        self.observed.sandbox.as_ref().filter(|sandbox| sandbox.state == SandboxState::Ready)
    }

    /// Containers that run, oldest first. In a sandbox that is gone nothing runs, regardless of records.
    pub(super) fn running(&self) -> impl Iterator<Item = &'a ContainerStatus> + use<'a> {
        let attempt = self.living_sandbox().map(|sandbox| sandbox.spec.attempt);
        self.observed.containers.iter().filter(move |container| {
            matches!(container.state, ContainerState::Running { .. }) && attempt == Some(container.sandbox_attempt)
        })
    }
}
