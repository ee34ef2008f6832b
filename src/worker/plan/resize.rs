//! Changing what a pod and its running containers are given, without a restart (kubelet: in-place resize).
//!
//! A pod's cgroup must have room for its containers at every moment: it is made as wide as both the old and the new definition want it,
//! then the containers are changed, those that give memory back first, then the pod gets what its definition says.

use super::{Action, PlanInput, PodActions};
use crate::definition::ContainerDefinition;
use podstead_container::{CgroupResources, ContainerResources, ContainerStatus};
use podstead_status::Resize;

/// A container that runs as defined but is given something else.
struct Lagging<'a> {
    container: &'a ContainerDefinition,
    run: &'a ContainerStatus,
    /// Its present resources; `None` if they are unknown.
    given: Option<&'a ContainerResources>,
}

/// Adds the steps.
pub(super) fn resize(out: &mut PodActions, input: &PlanInput<'_>) {
    let Some(sandbox) = input.living_sandbox() else { return };
    if input.definition.infeasible.is_some() {
        return;
    }
    if let Some(failure) = input.state.sandbox.failure.as_ref().filter(|failure| !failure.is_due(input.now.moment)) {
        return out.wake_at(failure.retry_at);
    }
    let (present, wanted) = (&sandbox.spec.resources, &input.definition.sandbox.resources);
    let mut lagging = lagging(input);
    let is_last = |found: &Lagging<'_>| found.given.is_some_and(|given| !found.container.resources.lowers_memory(given));
    lagging.sort_by_key(is_last);
    let total = lagging.len();
    lagging.retain(|found| match &input.state.container(&found.container.name).resize {
        Some(failure) if !failure.is_due(input.now.moment) => {
            out.wake_at(failure.retry_at);
            false
        }
        Some(_) | None => true,
    });
    // Nothing but the pod: all at once.
    let room = if total == 0 { wanted.clone() } else { present.wider(wanted) };
    resize_sandbox(out, present, &room);
    for Lagging { container, run, .. } in &lagging {
        out.actions.push(Action::ResizeContainer {
            container: container.name.clone(),
            id: run.id.clone(),
            resources: Box::new(container.resources.clone()),
        });
    }
    if lagging.len() == total {
        resize_sandbox(out, &room, wanted);
    }
}

/// State of a resize, for the status.
pub(crate) fn resize_state(input: &PlanInput<'_>) -> Option<Resize> {
    let sandbox = input.living_sandbox()?;
    let lagging = lagging(input);
    if lagging.is_empty() && sandbox.spec.resources == input.definition.sandbox.resources {
        return None;
    }
    if let Some(reason) = &input.definition.infeasible {
        return Some(Resize::Infeasible(reason.clone()));
    }
    let of_containers = lagging.iter().filter_map(|found| input.state.container(&found.container.name).resize.as_ref());
    let error = of_containers.chain(&input.state.sandbox.failure).next().map(|failure| failure.message.clone());
    Some(Resize::InProgress(error))
}

fn resize_sandbox(out: &mut PodActions, present: &CgroupResources, wanted: &CgroupResources) {
    if present != wanted {
        out.actions.push(Action::ResizeSandbox(Box::new(wanted.clone())));
    }
}

fn lagging<'a>(input: &PlanInput<'a>) -> Vec<Lagging<'a>> {
    let runs = input.running().filter(|run| !input.state.runs.is_stopping(&run.id));
    runs.filter_map(|run| {
        let container = input.definition.container(&run.name)?;
        let given = input.observed.given.get(&run.id).map(Box::as_ref);
        let is_asked = container.kind == run.kind && container.is_run_by(run, input.observed);
        let lags = given.is_none_or(|given| !given.agrees(&container.resources));
        (is_asked && lags).then_some(Lagging { container, run, given })
    })
    .collect()
}
