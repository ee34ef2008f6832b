//! Measures what a pod uses of the host's disk. Runs beside the pod's turns, since it may take as long as the disk takes.

use super::definition::PodDefinition;
use super::plan::Action;
use super::services::Services;
use podstead_container::ObservedPod;
use podstead_pod::PodUid;
use podstead_pod::storage::StorageUsage;
use podstead_volume::UsageRequest;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// A measurement that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    services: Arc<Services>,
    request: UsageRequest,
}

/// Result of a measurement.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) usage: StorageUsage,
    /// Duration of the measurement.
    pub(super) took: Duration,
}

impl Measurement {
    /// The measurement for an [`Action::MeasureStorage`]; `None` for another action.
    pub(super) fn asked_by(
        action: &Action,
        services: &Arc<Services>,
        definition: &PodDefinition,
        observed: &ObservedPod,
    ) -> Option<Self> {
        let Action::MeasureStorage = action else { return None };
        Some(Self { services: Arc::clone(services), request: request(services, definition, observed) })
    }

    /// Measures, and asks for a turn of the pod.
    pub(super) async fn run(self, results: mpsc::UnboundedSender<Box<Measured>>) {
        let begun = tokio::time::Instant::now();
        let usage = self.services.volumes.measure(&self.request).await;
        // Without a worker and a sync loop nothing goes on.
        results.send(Box::new(Measured { usage, took: begun.elapsed() })).ok();
        let uid: PodUid = self.request.uid;
        self.services.pokes.send(uid).ok();
    }
}

fn request(services: &Services, definition: &PodDefinition, observed: &ObservedPod) -> UsageRequest {
    let (desired, limits) = (&definition.desired, &definition.storage);
    let mut containers = Vec::new();
    for container in &definition.containers {
        let name = container.name.as_str();
        let counts = limits.pod.is_some() || limits.containers.iter().any(|(limited, _)| limited == name);
        // The newest run: what an earlier one left goes with it.
        let newest = observed.containers.iter().filter(|run| run.name == container.name).max_by_key(|run| run.attempt);
        let Some(run) = newest.filter(|_| counts) else { continue };
        let layer = services.paths.container_layer(&desired.uid, &run.id);
        let logs = services.paths.container_log(&desired.full_name, &desired.uid, name, run.attempt);
        let logs = logs.parent().map(Path::to_owned);
        containers.push((name.to_owned(), [layer].into_iter().chain(logs).collect()));
    }
    UsageRequest { uid: desired.uid.clone(), volumes: limits.measured_volumes(&desired.pod), containers }
}
