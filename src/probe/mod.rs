//! Checks of containers: probes and the actions that probes and lifecycle hooks share.
//!
//! * [`action`]: one exec, HTTP, TCP or gRPC check, against a container or the address of its pod.

pub mod action;
