//! Probes: what containers are asked, when, and what their answers mean (kubelet rule D15); and the actions that lifecycle hooks share.
//!
//! ```text
//!   worker ----> ProberHandle::declare ----> Prober: Schedule (pure) ----> checks ----> the container, the pod's address
//!     ^  ^            runs, probes              |  ^                         |
//!     |  +------ poke: something changed <------+  +--------- Answer <-------+
//!     +--------- ProberHandle::health
//! ```
//!
//! * [`spec`]: what a probe is (pure). [`health`]: what probes say (pure). [`schedule`]: who is asked when, and what answers count (pure).
//! * [`Prober`] is one task for all probes of all pods, spawned by the daemon. It wakes for the next check, not for each probe, and wakes
//!   a worker only when something changed.
//! * [`action`]: one exec, HTTP, TCP or gRPC check, against a container or the address of its pod.
//!
//! Nothing in here decides what becomes of a container: the worker's plan does, from [`health`].

pub mod action;
#[cfg(any(test, feature = "testing"))]
pub mod fake;
pub mod health;
pub mod schedule;
pub mod spec;

mod check;
mod prober;

#[cfg(test)]
mod prober_test;

pub use health::{PodHealth, ProbeFailure, ProbeHealth, ProbeResult, RunHealth};
pub use prober::{Prober, ProberHandle, Probes};
pub use schedule::{ProbedPod, ProbedRun};
pub use spec::{ProbeKind, ProbeSpec, Timing, probe_grace, probes};
