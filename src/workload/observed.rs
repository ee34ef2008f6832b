//! Pods of a workload as this host observed them last.

use crate::moment::Moment;

/// The phase of a pod, as in its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not all containers have started.
    Pending,
    /// All containers have started.
    Running,
    /// All containers ended with exit code 0 and none restarts.
    Succeeded,
    /// All containers ended, at least one of them with another exit code, and none restarts.
    Failed,
}

/// A container that ended and does not run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerEnd {
    /// Its name.
    pub container: String,
    /// True for init containers.
    pub is_init: bool,
    /// Its exit code.
    pub exit_code: i32,
    /// The reason in its status, such as `Error`, `OOMKilled` or `ContainerStatusUnknown`.
    pub reason: String,
}

/// A condition of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCondition {
    /// Its type, such as `DisruptionTarget`.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
}

/// A pod that exists, as it was observed last. A pod that is wanted and that nobody has observed yet exists and is not available (W94).
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedPod {
    /// Its name. Names of a workload's pods end in numbers that are not reused while a pod of the name exists (W7, W9).
    pub name: String,
    /// Its phase.
    pub phase: Phase,
    /// Since when the condition Ready is true, as this boot observed it.
    pub ready_since: Option<Moment>,
    /// It is being stopped.
    pub is_terminating: bool,
    /// Restarts of its containers, init containers included, those after a power cut not included (W53).
    pub restarts: u32,
    /// Containers that ended.
    pub ends: Vec<ContainerEnd>,
    /// The time of its end, if its phase is final.
    pub ended_at: Option<Moment>,
    /// Its conditions.
    pub conditions: Vec<PodCondition>,
    /// The annotation `controller.kubernetes.io/pod-deletion-cost`; 0 without.
    pub deletion_cost: i32,
}

impl ObservedPod {
    /// True when the phase is final.
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// True when it may serve: neither ended nor being stopped.
    pub fn is_active(&self) -> bool {
        !self.is_terminal() && !self.is_terminating
    }
}
