//! Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs: everything that can be decided about them without a host.
//!
//! **Pure**: no files, no clock, no environment, no tokio. The time and what was observed of pods are arguments; each kind has one function that
//! returns the pods that it wants now, its new memory, its status and the moment at which to look again. Rules are cited by their ids (W1, ...),
//! which `docs/contributing/workload-rules.md` holds with their sources.

pub mod adoption;
pub mod conditions;
pub mod context;
pub mod cron;
pub mod daemon_set;
pub mod defaults;
pub mod deployment;
pub mod event;
pub mod exclusive;
pub mod failure;
pub mod host_fit;
pub mod identity;
pub mod indexes;
pub mod job;
pub mod moment;
pub mod object;
pub mod observed;
pub mod problem;
pub mod rank;
pub mod replica_set;
pub mod revision;
pub mod schedule;
pub mod selector;
pub mod slots;
pub mod stateful_set;
pub mod template;
pub mod validate;

#[cfg(test)]
mod testing;
