//! Settings that the stages are given: the bounds of sources, the pod network, the resolver, user ids, the cluster, pressure.
//!
//! As written in the configuration and checked field by field; the whole file, and what it says of sources and images, is read by
//! `podstead-config`. Pure.

pub mod allow;
pub mod api;
pub mod channels;
pub mod check;
pub mod dns;
mod error;
pub mod image_policy;
mod images;
pub mod network;
pub mod pressure;
mod range;
mod record;
pub mod requirements;
pub mod size;
mod standing;
pub mod upstream;
pub mod user_namespaces;

pub use allow::{Allow, HostPathBounds, WrittenAllow};
pub use api::{Account, ApiConfig, Role};
pub use channels::{Channels, WrittenPorts};
pub use dns::DnsConfig;
pub use error::{ConfigError, invalid};
pub use image_policy::{Demand, Demanded, ImagePolicy, RuleOrigin, SignatureDemand};
pub use network::{CniConfig, NetworkConfig, NetworkKind, NetworkMode};
pub use pressure::{PressureThresholds, Threshold};
pub use range::AddressRange;
pub use record::PolicyRecord;
pub use requirements::Requirements;
pub use standing::{ConfigStanding, HookStanding};
pub use upstream::{Taint, TaintEffect, UpstreamConfig};
pub use user_namespaces::{Clash, ID_FILES, IdRange, sentence};
