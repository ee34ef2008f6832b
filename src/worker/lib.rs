//! One worker per pod: latest wins, never two syncs of a pod at once (kubelet rules C5 to C10).
//!
//! ```text
//!   sync loop ---> PodWorkers ---> PodWorker::turn ---> plan (pure) ---> Executor ---> runtime image volume network
//!                  queue, names,        |  ^              |                  |
//!                  timers               |  +-- PodState <+------ Outcome <--+
//!                                       +--> status (pure) ---> PodStatusSink
//! ```
//!
//! [`PodWorkers`] is owned by the sync loop and serialises turns. A turn looks ([`Runtime::observe`](podstead_runtime::Runtime::observe)),
//! plans ([`compute_pod_actions`](plan::compute_pod_actions), a pure function of definition, observation, state and time), executes,
//! and looks again until the plan is empty; then it publishes the status. Nothing in a turn waits for a pull or for a container to stop:
//! both go on in the background and their end asks for another turn. So a turn is short and needs no cancelling, and a new definition
//! takes effect with the next turn.

pub mod active;
pub mod backoff;
pub mod definition;
pub mod exclusion;
#[cfg(any(test, feature = "testing"))]
pub mod fakes;
pub mod halt;
pub mod hook;
mod hook_action;
pub mod phase;
pub mod plan;
pub mod queue;
pub mod record;
pub mod remains;
pub mod state;

mod assemble;
mod cdi;
mod device_watch;
mod event_subject;
mod execute;
mod fetch;
mod host_addresses;
mod host_devices;
mod measure;
mod plug;
mod plugged;
mod pod_worker;
mod pod_workers;
mod process;
mod publish;
mod references;
mod saved;
mod services;
mod timing;

pub use device_watch::DeviceWatch;
pub use host_addresses::HostAddresses;
pub use pod_workers::{PodWorkers, Step};
pub use services::{Incarnations, ServiceVariables, Services};
