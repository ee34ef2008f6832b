//! Conditions of a pod (kubelet rule D16). A pod that is evicted because it uses more than its own limits is not disrupted: there is no
//! `DisruptionTarget`, as on a kubelet.

use super::input::{Resize, StatusInput};
use super::phase::PodPhase;
use super::reason;
use k8s_openapi::api::core::v1::{ContainerStatus, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use podstead_container::ContainerState;
use podstead_pod::containers;

/// Value of a condition, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Verdict {
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Verdict {
    const TRUE: Verdict = Verdict { holds: true, reason: None, message: None };

    const fn of(holds: bool, reason: Option<&'static str>) -> Self {
        Self { holds, reason, message: None }
    }

    /// True if nothing is in the list.
    fn none_of(names: &[&str], what: &str, reason: &'static str) -> Self {
        if names.is_empty() {
            return Self::TRUE;
        }
        let message = format!("containers with {what}: [{}]", names.join(" "));
        Self { holds: false, reason: Some(reason), message: Some(message) }
    }
}

/// The conditions in Kubernetes' order. `waited_for` are the containers that have to be ready, `uninitialized` the names of the init
/// containers and sidecars that are not done.
pub(super) fn conditions(
    input: &StatusInput<'_>,
    phase: PodPhase,
    waited_for: &[&ContainerStatus],
    uninitialized: &[&str],
) -> Vec<PodCondition> {
    let initialized = match phase {
        PodPhase::Succeeded => Verdict::of(true, Some(reason::POD_COMPLETED)),
        PodPhase::Pending | PodPhase::Running | PodPhase::Failed => {
            Verdict::none_of(uninitialized, "incomplete status", reason::CONTAINERS_NOT_INITIALIZED)
        }
    };
    let containers_ready = match phase {
        PodPhase::Succeeded => Verdict::of(false, Some(reason::POD_COMPLETED)),
        PodPhase::Failed => Verdict::of(false, Some(reason::POD_FAILED)),
        PodPhase::Pending | PodPhase::Running => {
            let unready: Vec<&str> = waited_for.iter().filter(|status| !status.ready).map(|status| status.name.as_str()).collect();
            let mut verdict = Verdict::none_of(&unready, "unready status", reason::CONTAINERS_NOT_READY);
            // Beyond the kubelet's words: what the last check said, so that nobody has to look for the event.
            for (name, unready) in input.unready.iter().filter(|(name, _)| unready.contains(&name.as_str())) {
                if let (Some(message), Some((why, at))) = (&mut verdict.message, &unready.why) {
                    message.push_str(&format!("; {name}: {why} ({})", at.strftime("%FT%TZ")));
                }
            }
            verdict
        }
    };
    [
        ("PodReadyToStartContainers", Verdict::of(input.sandbox_ready, None)),
        ("Initialized", initialized),
        // Readiness gates are left out: nothing on this host could set the conditions that they name.
        ("Ready", containers_ready.clone()),
        ("ContainersReady", containers_ready),
        ("PodScheduled", Verdict::TRUE),
    ]
    .into_iter()
    .chain(resize(input))
    .chain(restarting(input, phase))
    .chain(plugged(input))
    .chain(outdated(input))
    .map(|(kind, verdict)| condition(input, kind, verdict))
    .collect()
}

/// Only while there is something to say.
fn resize(input: &StatusInput<'_>) -> Option<(&'static str, Verdict)> {
    Some(match input.resize? {
        Resize::Infeasible(why) => {
            ("PodResizePending", Verdict { holds: true, reason: Some(reason::INFEASIBLE), message: Some(why.clone()) })
        }
        Resize::InProgress(error) => {
            let reason = error.as_ref().map(|_| reason::ERROR);
            ("PodResizeInProgress", Verdict { holds: true, reason, message: error.clone() })
        }
    })
}

/// Reasons for which an edit of an image does not take effect.
const HINDRANCES: [&str; 6] = [
    reason::ERR_IMAGE_PULL,
    reason::IMAGE_PULL_BACK_OFF,
    reason::ERR_IMAGE_NEVER_PULL,
    reason::INVALID_IMAGE_NAME,
    reason::IMAGE_INSPECT_ERROR,
    reason::SIGNATURE_VALIDATION_FAILED,
];

/// Of a pod with a container that still runs as it was before an edit, since its image cannot be had.
fn outdated(input: &StatusInput<'_>) -> Option<(&'static str, Verdict)> {
    let mut running = input.observed?.containers.iter().filter(|run| matches!(run.state, ContainerState::Running { .. }));
    let (run, waiting) = running.find_map(|run| {
        let waiting = input.waiting.get(&run.name).filter(|waiting| HINDRANCES.contains(&waiting.reason))?;
        Some((run, waiting))
    })?;
    let message = format!("container {} still runs as before the last edit: {}", run.name, waiting.message);
    Some(("podstead.dev/Updated", Verdict { holds: false, reason: Some(waiting.reason), message: Some(message) }))
}

/// Of a pod that names devices that may be unplugged.
fn plugged(input: &StatusInput<'_>) -> Option<(&'static str, Verdict)> {
    let absent = &input.plugged?.absent;
    let verdict = match absent.is_empty() {
        true => Verdict::TRUE,
        false => Verdict { holds: false, reason: Some(reason::DEVICE_MISSING), message: Some(absent.join("; ")) },
    };
    Some(("podstead.dev/DevicesAttached", verdict))
}

/// Of a pod that may restart all its containers together: whether what is left of before is being killed for that.
fn restarting(input: &StatusInput<'_>, phase: PodPhase) -> Option<(&'static str, Verdict)> {
    let pod = &input.desired.pod;
    let rules = containers::all(pod).flat_map(|(_, container)| container.restart_policy_rules.iter().flatten());
    rules.into_iter().find(|rule| rule.action == "RestartAllContainers")?;
    let mut runs = input.observed.iter().flat_map(|observed| &observed.containers);
    let is_left = runs.any(|run| input.surpassed.contains(&run.id) && matches!(run.state, ContainerState::Running { .. }));
    let verdict = match phase {
        PodPhase::Succeeded => Verdict::of(false, Some(reason::POD_COMPLETED)),
        PodPhase::Failed => Verdict::of(false, Some(reason::POD_FAILED)),
        PodPhase::Pending | PodPhase::Running if is_left => Verdict {
            holds: true,
            reason: Some(reason::RESTART_ALL_CONTAINERS_STARTED),
            message: Some("container exited with restart policy rule".to_owned()),
        },
        PodPhase::Pending | PodPhase::Running => Verdict::of(false, None),
    };
    Some(("AllContainersRestarting", verdict))
}

/// A condition whose time of change is that of the status before, unless it changed.
fn condition(input: &StatusInput<'_>, kind: &str, verdict: Verdict) -> PodCondition {
    let status = if verdict.holds { "True" } else { "False" };
    let before = input
        .previous
        .and_then(|status| status.conditions.as_ref())
        .and_then(|conditions| conditions.iter().find(|condition| condition.type_ == kind))
        .filter(|condition| condition.status == status);
    let last_transition_time = before.and_then(|condition| condition.last_transition_time.clone()).or(Some(Time(input.now)));
    PodCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: verdict.reason.map(str::to_owned),
        message: verdict.message,
        last_transition_time,
        ..PodCondition::default()
    }
}
