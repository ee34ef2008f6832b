//! Everything about a Pod that can be known without a host. **Pure**: no files, no clock, no environment, no tokio.
//!
//! Owns: names and identity ([`identity`]), defaulting, create-validation, the support table of every field, the container hash,
//! environment expansion, resource formulas, host files (hosts, resolv.conf, hostname).
//! In: a decoded [`Pod`] from [`crate::manifest`]. Out: a defaulted, validated Pod with kubelet-style name and annotations.

pub mod identity;
pub mod resources;
pub mod security;

pub use identity::{ContainerId, ContainerName, NodeName, PodFullName, PodUid, SourceId};
pub use k8s_openapi::api::core::v1::Pod;
