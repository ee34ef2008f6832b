//! The sync loop: one task, one select over config operations, lifecycle events of the runtime, sync ticks and housekeeping.
//!
//! In: [`crate::mux::PodUpdate`]s, [`crate::runtime::PodLifecycleEvent`]s. Out: work for the pod workers that it owns, one per pod.
