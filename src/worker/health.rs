//! Evaluation of a pod's probe results: the runs that have started, are ready or must be stopped, and the probes to run. **Pure**.

use super::definition::PodDefinition;
use super::execute::subject;
use super::memory::PodMemory;
use super::phase::WorkPhase;
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
    /// When its program was executed.
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

impl PodMemory {
    /// Takes in what the probes say of the runs that are observed.
    pub fn take_in_health(&mut self, definition: &PodDefinition, observed: &ObservedPod, health: &PodHealth, now: Now) {
        self.health.retain(|id, _| observed.containers.iter().any(|run| run.id == *id));
        for run in &observed.containers {
            let ContainerState::Running { started_at, .. } = &run.state else { continue };
            let has =
                |kind| probes_of(definition, observed, run).is_some_and(|probes| probes.iter().any(|probe| probe.kind == kind));
            let known = self.health.entry(run.id.clone()).or_insert_with(|| {
                let since = now.moment_of(*started_at);
                // An earlier daemon saved nothing, or there was none.
                let is_old = self.is_adopting && now.moment.since(since) > OLD_ENOUGH;
                let is_started = is_old || !has(ProbeKind::Startup);
                RunState { is_started, is_ready: is_old || !has(ProbeKind::Readiness), ..RunState::unprobed(since) }
            });
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
        }
        self.is_adopting = false;
    }

    /// Returns true if the run has started according to its startup probe. Without observations, its definition decides.
    pub fn is_started(&self, definition: &PodDefinition, run: &ContainerStatus) -> bool {
        let has_startup_probe = || {
            definition
                .container(&run.name)
                .is_some_and(|container| container.probes.iter().any(|probe| probe.kind == ProbeKind::Startup))
        };
        self.health.get(&run.id).map_or_else(|| !has_startup_probe(), |known| known.is_started)
    }

    /// The probe that wants the run stopped, or had it stopped.
    pub fn failed_probe(&self, id: &ContainerId) -> Option<ProbeKind> {
        self.health.get(id).and_then(|known| known.failed)
    }

    /// The running containers that are not ready, for the pod's status.
    pub fn unready(&self, observed: &ObservedPod) -> BTreeMap<ContainerName, Unready> {
        let running = observed.containers.iter().filter(|run| matches!(run.state, ContainerState::Running { .. }));
        let unready = running.filter_map(|run| {
            let known = self.health.get(&run.id).filter(|known| !known.is_ready)?;
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
            let known = self.health.get(&run.id).filter(|_| !self.post_starts.contains_key(&run.id))?;
            let probed = ProbedRun {
                subject: subject(&definition.desired, Some(&run.name)),
                started_at: known.since,
                is_ending: is_ending || self.stops.contains_key(&run.id),
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
