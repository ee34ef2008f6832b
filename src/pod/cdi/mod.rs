//! Host devices by name: the Container Device Interface (CDI).
//!
//! In: the annotations `cdi.k8s.io/<anything>` of a pod, whose values name devices (`vendor.com/class=name`, several with commas between),
//! and the texts of the spec files that describe them. Out: what is added to each container of the pod ([`ContainerEdits`]). Files are read
//! by the worker when a container starts; nothing here touches the host.

mod name;
mod resolve;
mod spec;

pub use name::{DeviceName, NameError, annotated};
pub use resolve::{ResolveError, SpecFile, resolve};
pub use spec::{CdiSpec, ContainerEdits, DeviceNode, DeviceType, HookName, MAX_SPEC_BYTES, SpecError, SpecHook, SpecMount};
