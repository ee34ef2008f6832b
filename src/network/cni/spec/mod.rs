//! Data types of the Container Network Interface (versions 0.3.0 to 1.1.0 of its specification). **Pure**.
//!
//! In: texts of configurations and of plugins' answers, none of them trusted. Out: typed values; what plugins are called
//! with ([`invocation`]); the annotation that tells what a pod has ([`report`]). What is wrong is said with its place.

pub(crate) mod capability;
pub(crate) mod conflist;
pub(crate) mod fault;
pub(crate) mod invocation;
pub(crate) mod report;
pub(crate) mod result;
pub(crate) mod version;

pub(crate) use podstead_pod::networks::{is_name, network, quoted};
