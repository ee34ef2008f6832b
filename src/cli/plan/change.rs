//! Planned change of one pod.

use super::host::HostPod;
use podstead_container::ObservedPod;
use podstead_pod::objects::references;
use podstead_pod::{DesiredPod, PodFullName};
use podstead_sys_async::clock::Now;
use podstead_worker::backoff::BackoffPolicy;
use podstead_worker::definition::{DefinitionContext, PodDefinition, has_same_content};
use podstead_worker::phase::WorkPhase;
use podstead_worker::plan::{Action, PlanInput, compute_pod_actions};
use podstead_worker::state::health::{Health, RunState};
use podstead_worker::state::{PodState, Step, VolumeWork};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Kind of change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It is new on this host.
    Create,
    /// It is changed in place.
    Update,
    /// It had finished: it goes, and comes back as a new one.
    Recreate,
    /// It goes.
    Remove,
    /// It does not change.
    Keep,
}

impl Change {
    /// In one word.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Recreate => "recreate",
            Self::Remove => "remove",
            Self::Keep => "keep",
        }
    }
}

/// One pod of the forecast.
#[derive(Debug)]
pub(super) struct PodChange {
    pub(super) full_name: PodFullName,
    /// Place of its current or previous manifest.
    pub(super) origin: String,
    pub(super) change: Change,
    pub(super) actions: Vec<Action>,
    /// Objects that it waits for, and why it cannot use them.
    pub(super) missing: Vec<String>,
}

/// Relevant settings of the daemon.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) crash_loop: BackoffPolicy,
    /// Current context of definitions.
    pub(super) before: DefinitionContext,
    /// As it would be.
    pub(super) after: DefinitionContext,
    pub(super) now: Now,
}

impl Settings {
    /// True if an object that the pod refers to would change.
    pub(super) fn sees_other_objects(&self, desired: &DesiredPod) -> bool {
        !self.after.objects.seen_by(&desired.source).agrees(&self.before.objects, &references(&desired.pod))
    }
}

/// A pod that the host does not have.
pub(super) fn create(desired: Arc<DesiredPod>, settings: &Settings) -> PodChange {
    let (actions, missing) = fresh_actions(&desired, settings);
    PodChange { full_name: desired.full_name.clone(), origin: desired.origin.to_string(), change: Change::Create, actions, missing }
}

/// A pod that the host has and the manifests do not.
pub(super) fn remove(pod: &HostPod, settings: &Settings) -> PodChange {
    let desired = &pod.record.desired;
    let actions = removal_actions(pod, settings);
    let (full_name, origin) = (desired.full_name.clone(), desired.origin.to_string());
    PodChange { full_name, origin, change: Change::Remove, actions, missing: Vec::new() }
}

/// A pod that both have.
pub(super) fn update(pod: &HostPod, desired: Arc<DesiredPod>, settings: &Settings) -> PodChange {
    let before = &pod.record.desired;
    let (full_name, origin) = (desired.full_name.clone(), desired.origin.to_string());
    let is_same = has_same_content(&before.pod, &desired.pod);
    let (change, actions, missing) = if is_same && (pod.record.result.is_some() || !settings.sees_other_objects(&desired)) {
        (Change::Keep, Vec::new(), Vec::new())
    } else if pod.record.result.is_some() {
        let mut actions = removal_actions(pod, settings);
        let (fresh, missing) = fresh_actions(&desired, settings);
        actions.extend(fresh);
        (Change::Recreate, actions, missing)
    } else {
        let old = PodDefinition::new(Arc::new(before.clone()), &settings.before);
        let mut new = PodDefinition::new(desired, &settings.after);
        for container in &mut new.containers {
            let was = old.container(&container.name).and_then(|old| old.hash.environment.as_ref());
            if let Some(environment) = &mut container.hash.environment {
                // The same as before, whatever the record has: it is keyed with the daemon's own key.
                environment.is_sure &= was != Some(environment);
            }
        }
        let mut state = running_state(pod, settings);
        if is_same {
            state.reassess(&old, &new, &pod.observed);
        } else {
            state.redefine(&old, &new, &pod.observed);
        }
        let actions = actions(&new, &pod.observed, &WorkPhase::Sync, &state, settings);
        let change = if is_same && actions.is_empty() { Change::Keep } else { Change::Update };
        (change, actions, missing(&new))
    };
    PodChange { full_name, origin, change, actions, missing }
}

/// The actions for a pod that does not exist yet, and the objects that it waits for.
fn fresh_actions(desired: &Arc<DesiredPod>, settings: &Settings) -> (Vec<Action>, Vec<String>) {
    let definition = PodDefinition::new(Arc::clone(desired), &settings.after);
    let nothing = ObservedPod {
        uid: desired.uid.clone(),
        sandbox: None,
        containers: Vec::new(),
        given: BTreeMap::new(),
        plugged: BTreeMap::new(),
    };
    (actions(&definition, &nothing, &WorkPhase::Sync, &PodState::default(), settings), missing(&definition))
}

/// Objects that the pod waits for, without duplicates.
fn missing(definition: &PodDefinition) -> Vec<String> {
    let of_containers = definition.containers.iter().filter_map(|container| container.missing.clone());
    let missing: BTreeSet<String> = of_containers.chain(definition.missing_files.clone()).collect();
    missing.into_iter().collect()
}

fn removal_actions(pod: &HostPod, settings: &Settings) -> Vec<Action> {
    let definition = PodDefinition::new(Arc::new(pod.record.desired.clone()), &settings.after);
    let mut phase = WorkPhase::Sync;
    phase.remove(definition.grace, settings.now.moment);
    let state = PodState { record: Step::Open, ..running_state(pod, settings) };
    actions(&definition, &pod.observed, &phase, &state, settings)
}

/// The state of a pod whose worker has prepared everything.
fn running_state(pod: &HostPod, settings: &Settings) -> PodState {
    let volumes = VolumeWork { step: Step::Done, were_prepared: true, ..VolumeWork::default() };
    let mut state = PodState { record: Step::Done, volumes, ..PodState::default() };
    state.observe(&pod.observed, settings.now);
    state.network.step = Step::Done;
    for run in &pod.observed.containers {
        // What runs is taken for healthy: what its probes say now is the daemon's to act on.
        state.runs.entry(&run.id).health = Health::Known(RunState::unprobed(settings.now.moment));
    }
    state
}

fn actions(
    definition: &PodDefinition,
    observed: &ObservedPod,
    phase: &WorkPhase,
    state: &PodState,
    settings: &Settings,
) -> Vec<Action> {
    let input = PlanInput { definition, observed, phase, state, crash_loop: &settings.crash_loop, now: settings.now };
    compute_pod_actions(input).actions
}
