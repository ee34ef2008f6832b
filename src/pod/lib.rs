//! Everything about a Pod that can be known without a host. **Pure**: no files, no clock, no environment, no tokio.
//!
//! In: a decoded [`Pod`] from `podstead-manifest`. Out of [`admit`]: a defaulted, validated Pod with its name on this node, and all
//! [`FieldProblem`]s. What the others ask about an admitted Pod:
//!
//! * [`containers`]: its containers by role and name, pull policy, grace, stop signal; [`restart`]: what follows an exit.
//! * [`hash`]: what an edit changes. [`identity`]: names.
//! * [`annotations`]: those in podstead's domain.
//! * [`claims`]: volumes that outlive it.
//! * [`objects`]: ConfigMaps and Secrets as pods see them; [`sharing`]: which source reaches which of them.
//! * [`mod@env`]: environment, command, arguments. [`host_files`]: host name, `/etc/hosts`, `/etc/resolv.conf`.
//! * [`cdi`]: host devices by name.
//! * [`nfs`]: mounts of NFS volumes.
//! * [`storage`]: what it may use of the host's disk.
//! * [`resources`]: quality of service, cgroup values, OOM score; [`quantity`]: exact amounts. [`security`]: what a container may do.
//! * [`standards`]: the Pod Security Standards.

mod admit;
mod admit_context;
pub mod annotations;
pub mod cdi;
pub mod claims;
pub mod containers;
pub mod defaults;
mod desired;
pub mod devices;
pub mod env;
mod field;
pub mod files;
pub mod hash;
pub mod host_files;
pub mod host_ports;
pub mod identity;
pub mod networks;
pub mod nfs;
pub mod objects;
mod origin;
mod packed_text;
pub mod pull_secrets;
pub mod quantity;
pub mod resources;
pub mod restart;
pub mod security;
pub mod sharing;
pub mod signal;
pub mod standards;
pub mod storage;
mod support;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod validate;

#[cfg(test)]
mod property_test;

pub use admit::{
    Admitted, admit, admit_named, admit_owned, judge_labels, judge_template, judge_workload, remove_stamped_annotations,
    static_pod_name,
};
pub use admit_context::AdmitContext;
pub use desired::{DesiredPod, Revision};
pub use field::{FieldProblem, code};
pub use identity::{ContainerId, ContainerName, NodeName, PodFullName, PodUid, SourceId};
pub use k8s_openapi::api::core::v1::Pod;
pub use origin::{Origin, Position, Severity};
pub use packed_text::PackedText;
pub use smol_str::SmolStr;
pub use support::{field_note, is_safe_sysctl};

/// The namespace of objects that are written without one, where nothing else is said.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The newest release of Kubernetes whose rules are followed: its major and its minor number.
pub const KUBERNETES_RELEASE: (u32, u32) = (1, 36);

/// The version that clients are told, of the API and of the node alike, such as `v1.36.0+podstead.0.1.0`: the [release](KUBERNETES_RELEASE), and podstead's own.
pub fn kubernetes_version() -> String {
    let (major, minor) = KUBERNETES_RELEASE;
    format!("v{major}.{minor}.0+podstead.{}", env!("CARGO_PKG_VERSION"))
}
