//! Publishing of a pod's status by its worker.

use super::conditions_file;
use super::execute::subject;
use super::phase::{Cause, Termination, WorkPhase};
use super::plan::{PlanInput, resize_state, surpassed};
use super::pod_worker::PodWorker;
use super::services::Services;
use k8s_openapi::api::core::v1::PodStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use podstead_container::{ObservedPod, SandboxState};
use podstead_pod::DesiredPod;
use podstead_status::{Resize, StatusInput, pod_status, reason};
use podstead_telemetry::events::EventType;
use std::sync::Arc;

/// Returns true if the status reports that the host can never provide the requested resources.
fn is_infeasible(status: &PodStatus) -> bool {
    status.conditions.iter().flatten().any(|condition| condition.reason.as_deref() == Some(reason::INFEASIBLE))
}

impl PodWorker {
    /// The definition to be published: that of a pod which is being removed has `deletionTimestamp`, computed once.
    fn as_shown(&mut self, services: &Arc<Services>) -> &Arc<DesiredPod> {
        let WorkPhase::Terminating(termination @ Termination { cause: Cause::Removed(_), .. }) = &self.phase else {
            return self.deleted.as_ref().unwrap_or(&self.definition.desired);
        };
        let now = services.clock.now();
        let left = (termination.began + termination.grace).since(now.moment);
        self.deleted.get_or_insert_with(|| {
            let mut desired = (*self.definition.desired).clone();
            let metadata = &mut Arc::make_mut(&mut desired.pod).metadata;
            metadata.deletion_timestamp = Some(Time(now.wall + left));
            metadata.deletion_grace_period_seconds = i64::try_from(termination.grace.as_secs()).ok();
            Arc::new(desired)
        })
    }

    /// Computes the status, keeps when its conditions changed, and publishes it.
    pub(super) async fn show(&mut self, services: &Arc<Services>, observed: &ObservedPod) {
        let is_ready = observed.sandbox.as_ref().is_some_and(|sandbox| sandbox.state == SandboxState::Ready);
        let host_ips = services.host_addresses.get(services.clock.now().moment);
        // Those of a pod on the host's network change with the host's.
        let pod_ips = if self.definition.sandbox.namespaces.host_network { &host_ips } else { &self.memory.pod_ips };
        let input = PlanInput {
            definition: &self.definition,
            observed,
            phase: &self.phase,
            memory: &self.memory,
            crash_loop: &services.crash_loop,
            now: services.clock.now(),
        };
        let (resize, surpassed) = (resize_state(&input), surpassed(&input));
        if let Some(Resize::Infeasible(why)) = &resize
            && !self.shown.as_ref().is_some_and(is_infeasible)
        {
            let subject = subject(&self.definition.desired, None);
            services.events.record(&subject, EventType::Warning, "ResizeInfeasible", &format!("Pod resize Infeasible: {why}"));
        }
        let status = pod_status(&StatusInput {
            desired: &self.definition.desired,
            observed: Some(observed),
            waiting: &self.waiting,
            starting: &self.starting,
            result: self.record.result.as_ref(),
            shall_run: matches!(self.phase, WorkPhase::Sync | WorkPhase::Halted),
            unready: &self.memory.unready(observed),
            sandbox_ready: is_ready && self.memory.is_connected(),
            pod_ips,
            host_ips: &host_ips,
            surpassed: &surpassed,
            resize: resize.as_ref(),
            started_at: self.memory.started_at,
            previous: self.shown.as_ref().or(self.kept_conditions.as_ref()),
            now: services.clock.now().wall,
        });
        let shown = Arc::clone(self.as_shown(services));
        let shown = self.annotated.of(&shown, self.memory.network_report.as_deref());
        self.keep_conditions(services, &status).await;
        services.statuses.publish(&shown, status.clone());
        self.shown = Some(status);
    }

    /// Keeps the conditions for the next daemon if they changed. Before they are shown: what was shown once is shown again.
    async fn keep_conditions(&mut self, services: &Arc<Services>, status: &PodStatus) {
        let conditions = conditions_file::to_keep(status);
        if self.kept_conditions.as_ref() == Some(&conditions) {
            return;
        }
        let (paths, uid) = (services.paths.clone(), self.definition.desired.uid.clone());
        let content = conditions.clone();
        match tokio::task::spawn_blocking(move || conditions_file::write(&paths, &uid, &content)).await {
            Ok(Ok(())) => self.kept_conditions = Some(conditions),
            // A pod of which nothing is on disk yet, or any more.
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {}
            Ok(Err(error)) => {
                tracing::warn!(pod = %self.definition.desired.full_name, %error, "cannot save condition transition times");
            }
            // The daemon is going.
            Err(_) => {}
        }
    }
}
