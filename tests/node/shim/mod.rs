//! The runtime by itself: shims, helpers and real processes, without a daemon around them.

mod confinement;
mod crash;
mod exec;
mod generated_spec;
mod harness;
mod host_shutdown;
mod lifecycle;
mod logs;
mod protocol;
mod sandbox;
mod setup;
