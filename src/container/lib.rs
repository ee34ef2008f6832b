//! The contract between the daemon and the shim: specifications, observed states, records on disk, the protocol, cgroups.
//!
//! Both sides depend on it, and neither on the other. Without tokio, since the shim has none.

pub mod cgroup;
pub mod digest;
mod exec;
mod image_config;
pub mod kernel;
mod observed;
pub mod oci;
pub mod protocol;
pub mod record;
pub mod reference;
mod spec;

pub use exec::{CopyJob, ExecSpec};
pub use image_config::{ImageConfig, ImageLease, ProcessUser, ResolvedImage};
pub use observed::*;
pub use spec::*;
