//! Workloads to pods: SETs with Deployments, StatefulSets, Jobs and the like in, SETs with the pods that they want now out.
//!
//! ```text
//! store --SETs--> task --SETs with pods--> mux ... workers --statuses--> Observations --> api
//!                 |  ^                                                        |
//!      memory <---+  +----------------------- observations -------------------+
//!      on disk       +-- both clocks, images that came, requests
//! ```
//!
//! `podstead_workload` decides on one object. [`plan`] (pure) keeps all of them with their memory, says whose object counts where two sources have
//! one, and makes SETs of what is wanted. [`task`] acts on a plan in this order (W91 in `docs/contributing/workload-rules.md`): memory to disk,
//! SETs to the mux, objects and events to readers. A crash before the first leaves nothing done; after it the same input gives the same SET.

mod handle;
mod images;
mod memory;
mod memory_file;
mod observations;
pub mod plan;
pub mod preview;
mod shown;
pub mod task;

pub use handle::{ExpandHandle, RunNowError};
pub use images::{ClaimData, TemplateImages};
pub use observations::{Clocks, Observations, WORKLOAD_ANNOTATION, owner};
pub use plan::{KnownPod, Warm};
pub use shown::{CONTROLLER_REVISION, ShownSchedule, ShownWorkload, WorkloadSink};
pub use task::{ExpandLinks, ExpandTask, run};
