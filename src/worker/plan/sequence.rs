//! In which order containers start: init containers one after the other, sidecars among them, then main containers (kubelet rules D6 to D8).

use super::PlanInput;
use super::standing::{Due, Place, Standing, latest, standing};
use crate::definition::ContainerDefinition;
use podstead_container::ContainerStatus;
use podstead_pod::containers::ContainerKind;
use podstead_probe::ProbeKind;
use podstead_status::PodResult;

/// A container that has to be started now or later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next<'a> {
    /// Its definition.
    pub(super) container: &'a ContainerDefinition,
    /// Kind of start.
    pub(super) due: Due<'a>,
    /// Its run of an earlier definition, which has to stop first.
    pub(super) outdated: Option<&'a ContainerStatus>,
    /// Its incomplete run, which has to be removed first.
    pub(super) half_made: Option<&'a ContainerStatus>,
    /// An init container has to end first.
    pub(super) is_later: bool,
    /// True if later containers wait until it runs: a sidecar of a pod that is being initialised.
    pub(super) holds_others: bool,
}

impl Next<'_> {
    /// Returns true if a startup probe decides when it has started.
    pub(super) fn has_startup_probe(&self) -> bool {
        self.container.probes.iter().any(|probe| probe.kind == ProbeKind::Startup)
    }

    /// Returns true if the start applies a change, rather than restarting a container that exited by itself.
    pub(super) fn is_change(&self) -> bool {
        self.due.ended_at.is_none()
    }
}

/// Containers that are still to be started.
#[derive(Debug)]
pub(super) struct Sequence<'a> {
    /// Result of the pod, if nothing is left to do for it.
    pub(super) result: Option<PodResult>,
    /// In the order of their start.
    pub(super) next: Vec<Next<'a>>,
    /// Run although all containers are to be restarted; nothing is started before they are gone.
    pub(super) surpassed: Vec<&'a ContainerStatus>,
    /// A main container of this definition and sandbox was started: init containers are over for good.
    pub(super) is_initialized: bool,
}

/// Looks at all containers, for the place where they shall run.
pub(super) fn sequence<'a>(input: &PlanInput<'a>, place: Place) -> Sequence<'a> {
    let definition = input.definition;
    let is_here = |run: &ContainerStatus| place.is_of(run);
    let main_base = definition.containers.iter().find(|container| container.kind == ContainerKind::Main).map(|main| &main.hash);
    let is_initialized =
        input.observed.containers.iter().any(|run| {
            run.kind == ContainerKind::Main && is_here(run) && main_base.is_some_and(|hash| hash.has_base_of(&run.hash))
        });
    // Progress is judged from the last init container that has run: those before it were done then.
    let reached = definition.containers.iter().rposition(|container| {
        container.kind != ContainerKind::Main
            && latest(input, container).is_some_and(|run| is_here(run) && container.hash.is(&run.hash))
    });

    let (mut next, mut surpassed) = (Vec::new(), Vec::new());
    let mut result = None;
    let mut is_blocked = false;
    // Main containers start in the order of the spec, each when the one before is started and its hook is done (kubelet rule D8).
    let mut holds_first = false;
    let (mut mains, mut succeeded, mut failed) = (0, 0, 0);
    for (index, container) in definition.containers.iter().enumerate() {
        let is_past = is_initialized || reached.is_some_and(|reached| index < reached);
        if container.kind == ContainerKind::Init && is_past {
            continue;
        }
        let (due, outdated, half_made) = match standing(input, container, place) {
            Standing::Running(run) => {
                let is_started = input.state.runs.post_start(&run.id).is_none();
                let has_answered = input.state.runs.is_started(definition, run);
                is_blocked |= match container.kind {
                    ContainerKind::Init => true,
                    // Later containers wait until the sidecar's startup probe succeeded (kubelet rule D7).
                    ContainerKind::Sidecar => !(is_past || is_started && has_answered),
                    ContainerKind::Main => false,
                };
                holds_first |= container.kind == ContainerKind::Main && !is_started;
                mains += usize::from(container.kind == ContainerKind::Main);
                continue;
            }
            Standing::Succeeded | Standing::Failed if container.kind == ContainerKind::Main => {
                mains += 1;
                let is_success = standing(input, container, place) == Standing::Succeeded;
                succeeded += usize::from(is_success);
                failed += usize::from(!is_success);
                continue;
            }
            Standing::Succeeded => continue,
            Standing::Failed => {
                result = Some(PodResult::failed());
                continue;
            }
            Standing::Outdated(run) => (Due { previous: Some(run), ended_at: None }, Some(run), None),
            Standing::Surpassed(run) => {
                surpassed.push(run);
                (Due { previous: Some(run), ended_at: None }, None, None)
            }
            Standing::HalfMade(run) => (Due { previous: None, ended_at: None }, None, Some(run)),
            Standing::Due(due) => (due, None, None),
        };
        mains += usize::from(container.kind == ContainerKind::Main);
        let keeps_alive = container.kind == ContainerKind::Sidecar && is_past;
        next.push(Next {
            container,
            due,
            outdated,
            half_made,
            is_later: (is_blocked && !keeps_alive) || (holds_first && due.previous.is_none()),
            holds_others: container.kind == ContainerKind::Sidecar && !is_past,
        });
        is_blocked |= container.kind == ContainerKind::Init;
    }
    if mains > 0 && succeeded + failed == mains {
        result = Some(if failed == 0 { PodResult::succeeded() } else { PodResult::failed() });
    }
    Sequence { result, next, surpassed, is_initialized }
}
