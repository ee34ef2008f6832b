//! The whole status of a pod.

use super::condition::conditions;
use super::container::container_status;
use super::input::StatusInput;
use super::message::cut_messages;
use super::phase::{Counted, PodPhase, pod_phase};
use k8s_openapi::api::core::v1::{ContainerStatus, HostIP, PodIP, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use podstead_container::ContainerState;
use podstead_pod::containers::{self, ContainerKind};
use podstead_pod::resources::{QosClass, qos_class};
use podstead_pod::restart::ExitPolicy;

/// Computes what the API shows of a pod. The same input always gives the same status.
pub fn pod_status(input: &StatusInput<'_>) -> PodStatus {
    let pod = &input.desired.pod;
    let mut inits: Vec<(ContainerKind, ContainerStatus)> = Vec::new();
    for (kind, container) in containers::init(pod) {
        inits.push((kind, container_status(input, kind, container)));
    }
    let mut mains: Vec<ContainerStatus> =
        containers::main(pod).map(|container| container_status(input, ContainerKind::Main, container)).collect();

    let total = inits.len() + mains.len();
    for status in inits.iter_mut().map(|(_, status)| status).chain(&mut mains) {
        cut_messages(status, total);
    }
    let exits: Vec<ExitPolicy> = containers::all(pod).map(|(kind, container)| ExitPolicy::of(pod, kind, container)).collect();
    let statuses =
        inits.iter().map(|(kind, status)| (*kind, status)).chain(mains.iter().map(|status| (ContainerKind::Main, status)));
    let counted = statuses.zip(&exits).map(|((kind, status), exits)| (kind, Counted { status, exits }));
    let of_kind = |wanted| counted.clone().filter(move |(kind, _)| *kind == wanted).map(|(_, counted)| counted).collect::<Vec<_>>();
    let [init_containers, sidecars, main_containers] =
        [ContainerKind::Init, ContainerKind::Sidecar, ContainerKind::Main].map(of_kind);
    let main_has_run = has_started_main(input);
    let phase = pod_phase(&init_containers, &sidecars, &main_containers, main_has_run, input.result, input.shall_run);
    let uninitialized: Vec<&str> = inits
        .iter()
        .filter(|(kind, status)| !main_has_run && !is_done(*kind, status))
        .map(|(_, status)| status.name.as_str())
        .collect();
    let sidecars = inits.iter().filter(|(kind, _)| *kind == ContainerKind::Sidecar).map(|(_, status)| status);
    let waited_for: Vec<&ContainerStatus> = sidecars.chain(&mains).collect();

    let conditions = conditions(input, phase, &waited_for, &uninitialized);

    let is_over = matches!(phase, PodPhase::Succeeded | PodPhase::Failed);
    let result = input.result.filter(|_| is_over);
    // As the kubelet lists them, whatever the order of the spec; init containers stay in theirs.
    mains.sort_by(|one, other| one.name.cmp(&other.name));
    let pod_ips: Vec<String> = if is_over { Vec::new() } else { input.pod_ips.iter().map(ToString::to_string).collect() };
    let host_ips: Vec<String> = input.host_ips.iter().map(ToString::to_string).collect();
    let qos = match qos_class(pod) {
        QosClass::Guaranteed => "Guaranteed",
        QosClass::Burstable => "Burstable",
        QosClass::BestEffort => "BestEffort",
    };
    PodStatus {
        phase: Some(phase.as_str().to_owned()),
        reason: result.and_then(|result| result.reason.clone()),
        message: result.and_then(|result| result.message.clone()),
        conditions: Some(conditions),
        start_time: input.started_at.map(Time),
        qos_class: Some(qos.to_owned()),
        host_ip: host_ips.first().cloned(),
        host_ips: (!host_ips.is_empty()).then(|| host_ips.into_iter().map(|ip| HostIP { ip }).collect()),
        pod_ip: pod_ips.first().cloned(),
        pod_ips: (!pod_ips.is_empty()).then(|| pod_ips.into_iter().map(|ip| PodIP { ip }).collect()),
        init_container_statuses: (!inits.is_empty()).then(|| inits.into_iter().map(|(_, status)| status).collect()),
        container_statuses: Some(mains),
        ..PodStatus::default()
    }
}

/// Returns true if a main container was started in the present sandbox, so that init containers are done. What is known of a sandbox that
/// is gone says nothing about the one that came after it, nor what ended before all containers were restarted about those that follow.
fn has_started_main(input: &StatusInput<'_>) -> bool {
    let Some(observed) = input.observed else { return false };
    let present = observed.sandbox.as_ref().map(|sandbox| sandbox.spec.attempt);
    let mut mains = observed.containers.iter().filter(|run| run.kind == ContainerKind::Main);
    mains.any(|run| {
        let is_over = input.surpassed.contains(&run.id) && !matches!(run.state, ContainerState::Running { .. });
        present.is_none_or(|present| run.sandbox_attempt == present) && !is_over
    })
}

/// Returns true if the next container may start after this init container or sidecar.
fn is_done(kind: ContainerKind, status: &ContainerStatus) -> bool {
    match kind {
        ContainerKind::Init => status.ready,
        ContainerKind::Sidecar | ContainerKind::Main => status.started == Some(true),
    }
}
