//! Causes and fixes for pods and workloads that do not run, for `podstead status` and `podstead doctor`.
//!
//! [`gather`] asks the daemon for what a pod's status does not say (warnings, the last line of a log); [`explain`] is pure and makes
//! troubles of it.

mod advice;
mod ending;
mod evidence;
mod explain;
mod workload;

pub(super) use ending::ending;
pub(super) use evidence::{Evidence, gather};
pub(super) use explain::explain;
pub(super) use workload::{WorkloadTrouble, explain_workloads, is_attempt_of_a_job, is_of_a_manifest, owner_of};
