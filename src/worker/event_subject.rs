//! The name of a pod or container in events.

use podstead_pod::containers::{self, ContainerKind};
use podstead_pod::{ContainerName, DesiredPod};
use podstead_telemetry::events::Subject;

/// The pod, or one of its containers.
pub(crate) fn subject(desired: &DesiredPod, container: Option<&ContainerName>) -> Subject {
    let field_path = |name: &ContainerName| match containers::find(&desired.pod, name.as_str()) {
        Some((ContainerKind::Init | ContainerKind::Sidecar, _)) => format!("spec.initContainers{{{name}}}"),
        Some((ContainerKind::Main, _)) | None => format!("spec.containers{{{name}}}"),
    };
    Subject::Pod { uid: desired.uid.clone(), full_name: desired.full_name.clone(), field_path: container.map(field_path) }
}
