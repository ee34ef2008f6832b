//! Evaluation of a pod's probe results: the runs that have started, are ready or must be stopped, and the probes to run. **Pure**.

use super::run::Runs;
use crate::definition::PodDefinition;
use crate::event_subject::subject;
use crate::phase::WorkPhase;
use podstead_container::{ContainerState, ContainerStatus, ObservedPod, SandboxState};
use podstead_pod::{ContainerId, ContainerName};
use podstead_probe::action::PodAddress;
use podstead_probe::{PodHealth, ProbeFailure, ProbeKind, ProbeResult, ProbeSpec, ProbedPod, ProbedRun};
use podstead_status::Unready;
use podstead_sys_async::clock::{Moment, Now};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Age at which a newly found run counts as started and ready until it is probed (kubelet rule D15).
const OLD_ENOUGH: Duration = Duration::from_secs(10);

/// Probe state of one run of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunState {
    /// The time at which its program was executed.
    pub since: Moment,
    /// Its startup probe succeeded, or it has none.
    pub is_started: bool,
    /// It has started, and its readiness probe, if it has one, says so.
    pub is_ready: bool,
    /// The probe that wants it stopped. Stays when it is stopped.
    pub failed: Option<ProbeKind>,
    /// The last check that failed, of the probe that keeps it from being ready.
    pub failure: Option<ProbeFailure>,
}

impl RunState {
    /// A run about which its probes say nothing.
    pub const fn unprobed(since: Moment) -> Self {
        Self { since, is_started: true, is_ready: true, failed: None, failure: None }
    }
}

/// Results of a run's probes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Not asked for yet.
    #[default]
    Unknown,
    /// The run is of an earlier daemon, which saved nothing: its age decides.
    Inherited,
    /// These.
    Known(RunState),
}

impl Health {
    /// The results, if there are any.
    pub const fn known(&self) -> Option<&RunState> {
        match self {
            Health::Known(known) => Some(known),
            Health::Unknown | Health::Inherited => None,
        }
    }
}

impl Runs {
    /// Takes over the probe results that an earlier daemon saved; `None` if it saved nothing that can be read.
    pub(crate) fn inherit_health(&mut self, observed: &ObservedPod, mut saved: Option<BTreeMap<ContainerId, RunState>>) {
        for run in &observed.containers {
            self.entry(&run.id).health = match &mut saved {
                None => Health::Inherited,
                Some(saved) => saved.remove(&run.id).map_or(Health::Unknown, Health::Known),
            };
        }
    }

    /// Takes over the results of the probes of the runs that are observed.
    pub(crate) fn apply_health(&mut self, definition: &PodDefinition, observed: &ObservedPod, health: &PodHealth, now: Now) {
        for run in &observed.containers {
            let ContainerState::Running { started_at, .. } = &run.state else { continue };
            let has =
                |kind| probes_of(definition, observed, run).is_some_and(|probes| probes.iter().any(|probe| probe.kind == kind));
            let slot = &mut self.entry(&run.id).health;
            let mut known = match slot {
                Health::Known(known) => known.clone(),
                Health::Unknown | Health::Inherited => {
                    let since = now.moment_of(*started_at);
                    let is_old = *slot == Health::Inherited && now.moment.since(since) > OLD_ENOUGH;
                    let is_started = is_old || !has(ProbeKind::Startup);
                    RunState { is_started, is_ready: is_old || !has(ProbeKind::Readiness), ..RunState::unprobed(since) }
                }
            };
            let said = health.get(&run.id);
            let probe = |kind| said.and_then(|said| said.get(&kind));
            let holds = |kind, otherwise: bool| probe(kind).map_or(otherwise, |probe| probe.result == ProbeResult::Success);
            known.is_started = holds(ProbeKind::Startup, known.is_started || !has(ProbeKind::Startup));
            known.is_ready = known.is_started && holds(ProbeKind::Readiness, known.is_ready || !has(ProbeKind::Readiness));
            let has_failed = |kind: &ProbeKind| probe(*kind).is_some_and(|probe| probe.result == ProbeResult::Failure);
            let stoppers = [ProbeKind::Liveness, ProbeKind::Startup];
            known.failed = known.failed.or_else(|| stoppers.into_iter().find(has_failed));
            let blamed = if known.is_started { ProbeKind::Readiness } else { ProbeKind::Startup };
            known.failure = probe(blamed).and_then(|probe| probe.failure.clone()).filter(|_| !known.is_ready);
            *slot = Health::Known(known);
        }
    }

    fn health(&self, id: &ContainerId) -> Option<&RunState> {
        self.get(id)?.health.known()
    }

    /// Returns true if the run has started according to its startup probe. Without observations, its definition decides.
    pub fn is_started(&self, definition: &PodDefinition, run: &ContainerStatus) -> bool {
        let has_startup_probe = || {
            definition
                .container(&run.name)
                .is_some_and(|container| container.probes.iter().any(|probe| probe.kind == ProbeKind::Startup))
        };
        self.health(&run.id).map_or_else(|| !has_startup_probe(), |known| known.is_started)
    }

    /// The probe that wants the run stopped, or had it stopped.
    pub fn failed_probe(&self, id: &ContainerId) -> Option<ProbeKind> {
        self.health(id).and_then(|known| known.failed)
    }

    /// The running containers that are not ready, for the pod's status.
    pub fn unready(&self, observed: &ObservedPod) -> BTreeMap<ContainerName, Unready> {
        let running = observed.containers.iter().filter(|run| matches!(run.state, ContainerState::Running { .. }));
        let unready = running.filter_map(|run| {
            let known = self.health(&run.id).filter(|known| !known.is_ready)?;
            let why = known.failure.as_ref().map(|failure| (failure.message.clone(), failure.at));
            Some((run.name.clone(), Unready { is_started: known.is_started, why }))
        });
        unready.collect()
    }

    /// The probes that the prober must run. `None` while nothing can be asked.
    pub fn probed_pod(
        &self,
        definition: &PodDefinition,
        observed: &ObservedPod,
        phase: &WorkPhase,
        ips: &[IpAddr],
    ) -> Option<ProbedPod> {
        let sandbox = observed.sandbox.as_ref().filter(|sandbox| sandbox.state == SandboxState::Ready)?;
        let is_ending = *phase != WorkPhase::Sync;
        let runs = observed.containers.iter().filter(|run| matches!(run.state, ContainerState::Running { .. }));
        let runs = runs.filter_map(|run| {
            // Before its postStart hook is done, a container is asked nothing.
            let known = self.health(&run.id).filter(|_| self.post_start(&run.id).is_none())?;
            let probed = ProbedRun {
                subject: subject(&definition.desired, Some(&run.name)),
                started_at: known.since,
                is_ending: is_ending || self.is_stopping(&run.id),
                probes: probes_of(definition, observed, run).map(<[Arc<ProbeSpec>]>::to_vec),
                was_started: known.is_started,
                was_ready: known.is_ready,
            };
            Some((run.id.clone(), probed))
        });
        Some(ProbedPod { address: PodAddress::new(ips, sandbox.netns.as_deref()), runs: runs.collect() })
    }
}

/// The probes of a run. `None` for a run of an earlier definition, whose probes are not known any more.
fn probes_of<'a>(definition: &'a PodDefinition, observed: &ObservedPod, run: &ContainerStatus) -> Option<&'a [Arc<ProbeSpec>]> {
    let container = definition.container(&run.name)?;
    (container.kind == run.kind && container.is_run_by(run, observed)).then_some(container.probes.as_slice())
}
