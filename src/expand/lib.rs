//! Workloads to pods: SETs with Deployments, StatefulSets, Jobs and the like in, SETs with the pods that they want now out.
//!
//! `podstead_workload` decides; this crate gives it the memory, the observations and the time, and acts on its decisions in this order (W91):
//! memory to disk, changed SETs to the mux, statuses and events.

mod handle;
mod shown;

pub use handle::{ExpandHandle, RunNowError};
pub use shown::{ShownSchedule, ShownWorkload, WorkloadSink};
