//! The cluster, where there is one: mirror pods, the Node, its Lease, events. Optional: without `upstream` in the configuration nothing of
//! this exists, not a thread, not a connection.
//!
//! In: pods as they are published, events, facts of the host; what an API server says. Out: requests to it, and
//! [`podstead_status::UpstreamStatus`]. Nothing comes back into the daemon: whatever the cluster says or does not say, no container is
//! touched and nothing waits. [`start`] gives it a thread of its own.
//!
//! * [`plan`] decides, **pure**.
//! * [`cluster`] is what is asked of an API server; [`client`] asks a real one, as a kubeconfig says.
//! * [`run`] carries out what is planned: it watches, queues, paces and retries.
//! * [`facts`] asks the host what it is.

pub mod client;
pub mod cluster;
pub mod facts;
pub mod plan;
pub mod run;
mod thread;

pub use thread::start;
