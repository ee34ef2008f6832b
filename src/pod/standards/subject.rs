//! The pod as the controls check it: its containers of all three kinds with the paths of their fields.

use super::Version;
use crate::Pod;
use crate::containers::{list, spec};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EphemeralContainer, Lifecycle, PodSecurityContext, PodSpec, Probe, SecurityContext,
};
use std::collections::BTreeMap;

/// A pod and the version that it is judged by.
pub(super) struct Subject<'a> {
    pub(super) annotations: &'a BTreeMap<String, String>,
    pub(super) spec: &'a PodSpec,
    pub(super) context: Option<&'a PodSecurityContext>,
    pub(super) containers: Vec<Place<'a>>,
    pub(super) version: Version,
}

/// A container and the path of its entry.
pub(super) struct Place<'a> {
    pub(super) field: String,
    pub(super) name: &'a str,
    pub(super) context: Option<&'a SecurityContext>,
    pub(super) ports: &'a [ContainerPort],
    pub(super) probes: [(&'static str, Option<&'a Probe>); 3],
    pub(super) lifecycle: Option<&'a Lifecycle>,
}

static NO_ANNOTATIONS: BTreeMap<String, String> = BTreeMap::new();

impl<'a> Subject<'a> {
    pub(super) fn new(pod: &'a Pod, version: Version) -> Self {
        let spec = spec(pod);
        let own = |kind: &str, index: usize| format!("spec.{kind}[{index}]");
        let init = list(&spec.init_containers).iter().enumerate();
        let main = spec.containers.iter().enumerate();
        let ephemeral = list(&spec.ephemeral_containers).iter().enumerate();
        let containers = init
            .map(|(index, container)| Place::of_container(own("initContainers", index), container))
            .chain(main.map(|(index, container)| Place::of_container(own("containers", index), container)))
            .chain(ephemeral.map(|(index, container)| Place::of_ephemeral(own("ephemeralContainers", index), container)))
            .collect();
        Self {
            annotations: pod.metadata.annotations.as_ref().unwrap_or(&NO_ANNOTATIONS),
            spec,
            context: spec.security_context.as_ref(),
            containers,
            version,
        }
    }

    /// Tells if fields that a pod for Windows cannot have may be missing: since v1.25.
    pub(super) fn is_for_windows(&self) -> bool {
        self.version.includes(25) && self.spec.os.as_ref().is_some_and(|os| os.name == "windows")
    }

    /// Tells if rules about users are relaxed because the pod's users are none of the host's: since v1.35.
    pub(super) fn has_users_of_its_own(&self) -> bool {
        self.version.includes(35) && self.spec.host_users == Some(false)
    }

    /// Values of one field of the security contexts, the pod's first, with the paths of the contexts. Contexts without the field are left out.
    pub(super) fn in_contexts<T>(
        &self,
        of_pod: impl Fn(&'a PodSecurityContext) -> Option<T>,
        of_container: impl Fn(&'a SecurityContext) -> Option<T>,
    ) -> Vec<(String, T)> {
        let pod = self.context.and_then(of_pod).map(|value| ("spec.securityContext".to_owned(), value));
        let containers = self.containers.iter().filter_map(|place| Some((place.context_field(), of_container(place.context?)?)));
        pod.into_iter().chain(containers).collect()
    }
}

impl<'a> Place<'a> {
    fn of_container(field: String, container: &'a Container) -> Self {
        let Container { name, security_context, ports, liveness_probe, readiness_probe, startup_probe, lifecycle, .. } = container;
        Self {
            field,
            name,
            context: security_context.as_ref(),
            ports: list(ports),
            probes: probes(liveness_probe, readiness_probe, startup_probe),
            lifecycle: lifecycle.as_ref(),
        }
    }

    fn of_ephemeral(field: String, container: &'a EphemeralContainer) -> Self {
        let EphemeralContainer { name, security_context, ports, liveness_probe, readiness_probe, startup_probe, lifecycle, .. } =
            container;
        Self {
            field,
            name,
            context: security_context.as_ref(),
            ports: list(ports),
            probes: probes(liveness_probe, readiness_probe, startup_probe),
            lifecycle: lifecycle.as_ref(),
        }
    }

    pub(super) fn context_field(&self) -> String {
        format!("{}.securityContext", self.field)
    }
}

fn probes<'a>(
    liveness: &'a Option<Probe>,
    readiness: &'a Option<Probe>,
    startup: &'a Option<Probe>,
) -> [(&'static str, Option<&'a Probe>); 3] {
    [("livenessProbe", liveness.as_ref()), ("readinessProbe", readiness.as_ref()), ("startupProbe", startup.as_ref())]
}
