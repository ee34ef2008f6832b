//! From a resolved [`ContainerSpec`](super::ContainerSpec) to an OCI runtime spec. **Pure**.
