//! Publishes the state of a worker's pod: status, definition and probes. What a next daemon must repeat of it is saved before.

use super::event_subject::subject;
use super::phase::{Cause, Termination, WorkPhase};
use super::plan::{PlanInput, resize_state, surpassed};
use super::pod_worker::PodWorker;
use super::saved::{self, SavedHealth};
use super::services::Services;
use super::state::Step;
use k8s_openapi::api::core::v1::PodStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use podstead_container::{ObservedPod, SandboxState};
use podstead_pod::DesiredPod;
use podstead_pod::identity::ANNOTATION_NETWORK_STATUS;
use podstead_probe::ProbedPod;
use podstead_runtime::PodNetworkStatus;
use podstead_status::{Resize, StatusInput, pod_status, reason};
use podstead_telemetry::error_chain;
use podstead_telemetry::events::EventType;
use std::sync::Arc;

/// State of a pod as others saw it last.
#[derive(Debug, Default)]
pub(super) struct Published {
    /// Its status.
    pub(super) status: Option<PodStatus>,
    /// The definition as it is published once the pod is no longer wanted: with the time by which it will be gone.
    deleted: Option<Arc<DesiredPod>>,
    /// The definition, if its network has more to report than addresses.
    annotated: Annotated,
    /// The pod as last given to the prober.
    probed: Option<ProbedPod>,
    /// The last event about content missing from volumes.
    pub(super) missing_files: Option<String>,
}

/// State of a pod as a next daemon would find it.
#[derive(Debug, Default)]
pub(super) struct Saved {
    /// Its conditions.
    pub(super) conditions: Option<PodStatus>,
    /// Results of its probes.
    health: SavedHealth,
}

/// Returns true if the status reports that the host can never provide the requested resources.
fn is_infeasible(status: &PodStatus) -> bool {
    status.conditions.iter().flatten().any(|condition| condition.reason.as_deref() == Some(reason::INFEASIBLE))
}

impl PodWorker {
    /// The definition to be published: that of a pod which is being removed has `deletionTimestamp`, computed once.
    fn as_shown(&mut self, services: &Arc<Services>) -> &Arc<DesiredPod> {
        let WorkPhase::Terminating(termination @ Termination { cause: Cause::Removed(_), .. }) = &self.phase else {
            return self.published.deleted.as_ref().unwrap_or(&self.definition.desired);
        };
        let now = services.clock.now();
        let left = (termination.began + termination.grace).since(now.moment);
        self.published.deleted.get_or_insert_with(|| {
            let mut desired = (*self.definition.desired).clone();
            let metadata = &mut Arc::make_mut(&mut desired.pod).metadata;
            metadata.deletion_timestamp = Some(Time(now.wall + left));
            metadata.deletion_grace_period_seconds = i64::try_from(termination.grace.as_secs()).ok();
            Arc::new(desired)
        })
    }

    /// Computes the status, saves when its conditions changed, and publishes it.
    pub(super) async fn publish(&mut self, services: &Arc<Services>, observed: &ObservedPod) {
        let status = self.status(services, observed);
        let shown = Arc::clone(self.as_shown(services));
        let shown = self.published.annotated.of(&shown, self.state.network.report.as_deref());
        self.save_conditions(services, &status).await;
        services.statuses.publish(&shown, status.clone());
        self.published.status = Some(status);
    }

    fn status(&self, services: &Services, observed: &ObservedPod) -> PodStatus {
        let is_ready = observed.sandbox.as_ref().is_some_and(|sandbox| sandbox.state == SandboxState::Ready);
        let host_ips = services.host_addresses.get(services.clock.now().moment);
        // Those of a pod on the host's network change with the host's.
        let pod_ips = if self.definition.sandbox.namespaces.host_network { &host_ips } else { &self.state.network.ips };
        let crash_loop = services.crash_loop();
        let input = PlanInput {
            definition: &self.definition,
            observed,
            phase: &self.phase,
            state: &self.state,
            crash_loop: &crash_loop,
            now: services.clock.now(),
        };
        let (resize, surpassed) = (resize_state(&input), surpassed(&input));
        if let Some(Resize::Infeasible(why)) = &resize
            && !self.published.status.as_ref().is_some_and(is_infeasible)
        {
            let subject = subject(&self.definition.desired, None);
            services.events.record(&subject, EventType::Warning, "ResizeInfeasible", &format!("Pod resize Infeasible: {why}"));
        }
        pod_status(&StatusInput {
            desired: &self.definition.desired,
            observed: Some(observed),
            waiting: &self.waiting,
            starting: &self.starting,
            result: self.record.result.as_ref(),
            shall_run: matches!(self.phase, WorkPhase::Sync | WorkPhase::Halted),
            unready: &self.state.runs.unready(observed),
            sandbox_ready: is_ready && self.state.is_connected(),
            pod_ips,
            host_ips: &host_ips,
            surpassed: &surpassed,
            resize: resize.as_ref(),
            plugged: self.devices.shown.as_ref(),
            started_at: self.state.active.started_at,
            previous: self.published.status.as_ref().or(self.saved.conditions.as_ref()),
            now: services.clock.now().wall,
        })
    }

    /// Saves the conditions for the next daemon if they changed. Before they are published: what was shown once is shown again.
    async fn save_conditions(&mut self, services: &Services, status: &PodStatus) {
        let conditions = saved::conditions_to_save(status);
        if self.saved.conditions.as_ref() == Some(&conditions) {
            return;
        }
        let (paths, uid) = (services.paths.clone(), self.definition.desired.uid.clone());
        let content = conditions.clone();
        let write = move || saved::write_conditions(&paths, &uid, &content);
        if saved::save(&self.definition.desired.uid, "condition transition times", write).await {
            self.saved.conditions = Some(conditions);
        }
    }

    /// Applies the results of probes, and gives the prober the probes to run.
    pub(super) fn look_at_health(&mut self, services: &Arc<Services>, observed: &ObservedPod) {
        let (uid, now) = (&self.definition.desired.uid, services.clock.now());
        self.state.runs.apply_health(&self.definition, observed, &services.probes.health(uid), now);
        let is_probed =
            self.published.probed.is_some() || self.definition.containers.iter().any(|container| !container.probes.is_empty());
        // Before the network is looked at again, the pod's address is not known.
        if !is_probed || self.state.network.step != Step::Done {
            return;
        }
        let probed = if self.definition.sandbox.namespaces.host_network {
            self.state.runs.probed_pod(&self.definition, observed, &self.phase, &services.host_addresses.get(now.moment))
        } else {
            self.state.runs.probed_pod(&self.definition, observed, &self.phase, &self.state.network.ips)
        };
        if self.published.probed == probed {
            return;
        }
        match &probed {
            Some(probed) => services.probes.declare(uid, probed.clone()),
            None => services.probes.forget(uid),
        }
        self.published.probed = probed;
    }

    /// Saves the probe results, if the pod is probed, for the next daemon.
    pub(super) async fn save_health(&mut self, services: &Arc<Services>) {
        let health = if self.published.probed.is_some() { saved::health_to_save(&self.state.runs) } else { SavedHealth::new() };
        if health == self.saved.health {
            return;
        }
        let (paths, uid) = (services.paths.clone(), self.definition.desired.uid.clone());
        let content = health.clone();
        if saved::save(&self.definition.desired.uid, "probe results", move || saved::write_health(&paths, &uid, &content)).await {
            self.saved.health = health;
        }
    }

    /// Asks for the addresses that a living sandbox has, so that the first status after a start of the daemon shows them. Setting the
    /// network up asks again, and says what is wrong.
    pub(super) async fn recall_addresses(&mut self, services: &Services, observed: &ObservedPod) {
        let living = observed.sandbox.as_ref().filter(|sandbox| sandbox.state == SandboxState::Ready);
        let Some(sandbox) = living.filter(|_| self.state.network.ips.is_empty()) else { return };
        let desired = &self.definition.desired;
        match services.network.status(&desired.uid, &desired.pod, sandbox.netns.as_deref()).await {
            Ok(PodNetworkStatus { ips, report, dns }) => {
                (self.state.network.ips, self.state.network.report, self.state.network.dns) = (ips, report, dns);
            }
            Err(error) => {
                tracing::debug!(pod = %desired.full_name, error = %error_chain(&error), "cannot read the pod's addresses yet")
            }
        }
    }
}

/// Made once for each definition and report.
#[derive(Debug, Default)]
pub(super) struct Annotated(Option<Made>);

#[derive(Debug)]
struct Made {
    from: Arc<DesiredPod>,
    report: String,
    shown: Arc<DesiredPod>,
}

impl Annotated {
    /// The definition with this report of the pod's network.
    pub(super) fn of(&mut self, desired: &Arc<DesiredPod>, report: Option<&str>) -> Arc<DesiredPod> {
        let Some(report) = report else {
            self.0 = None;
            return Arc::clone(desired);
        };
        if let Some(made) = self.0.as_ref().filter(|made| Arc::ptr_eq(&made.from, desired) && made.report == report) {
            return Arc::clone(&made.shown);
        }
        let mut shown = (**desired).clone();
        let annotations = Arc::make_mut(&mut shown.pod).metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION_NETWORK_STATUS.to_owned(), report.to_owned());
        let shown = Arc::new(shown);
        self.0 = Some(Made { from: Arc::clone(desired), report: report.to_owned(), shown: Arc::clone(&shown) });
        shown
    }
}
