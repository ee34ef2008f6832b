//! Names of the API of StorageClasses, of which there are none: a claim is a directory of this host. `kubectl get pv,pvc,sc` and screens of clients ask
//! for them.

/// The API group.
pub(super) const GROUP: &str = "storage.k8s.io";

/// The version of it, as objects have it.
pub(super) const API_VERSION: &str = "storage.k8s.io/v1";

/// The kind.
pub(super) const KIND: &str = "StorageClass";

/// The plural, as in paths.
pub(super) const PLURAL: &str = "storageclasses";

/// The plural with the group, as messages have it.
pub(super) const QUALIFIED: &str = "storageclasses.storage.k8s.io";
