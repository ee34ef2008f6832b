//! Stops and starts of a pod by an operator.

use super::phase::WorkPhase;
use super::pod_worker::PodWorker;
use super::record::{Halt, PodRecord, RecordError};
use super::services::Services;
use super::state::Step;
use podstead_pod::PodUid;
use podstead_telemetry::error_chain;
use podstead_telemetry::events::EventType;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Order of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Stop the containers, and keep them stopped.
    Stop,
    /// Start a stopped pod.
    Start,
    /// Record that this incarnation is to be replaced, so that the next daemon replaces it if this one ends before.
    Replace,
    /// End this incarnation, which is not wanted any more, after this time at most. An end under way can only come closer.
    End(Duration),
}

/// Reason why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// No worker has the pod.
    #[error("the pod is not there any more")]
    Gone,
    /// It ends or has ended.
    #[error("the pod has ended or is being removed; podstead restart makes it anew")]
    Ended,
    /// The order could not be made durable; nothing changed.
    #[error("the order cannot be recorded, and nothing changed: {0}")]
    NotRecorded(String),
}

/// Order for one pod. The answer comes when the order is durable, not when it is carried out.
#[derive(Debug)]
pub struct Command {
    /// The pod.
    pub uid: PodUid,
    /// The order.
    pub order: Order,
    /// Receiver of the result.
    pub answer: oneshot::Sender<Result<(), OrderError>>,
}

/// Order and the receiver of its result.
pub(super) type Given = (Order, oneshot::Sender<Result<(), OrderError>>);

impl PodWorker {
    /// Takes orders. Each is durable before it is answered or has an effect.
    pub(super) async fn obey(&mut self, services: &Arc<Services>, orders: Vec<Given>) {
        for (order, answer) in orders {
            let result = match order {
                Order::Stop => self.halt(services).await,
                Order::Start => self.start(services).await,
                Order::Replace => self.record_replacement(services).await,
                Order::End(grace) => self.end(services, grace).await,
            };
            // The operator may have gone.
            answer.send(result).ok();
        }
    }

    async fn halt(&mut self, services: &Arc<Services>) -> Result<(), OrderError> {
        match self.phase {
            WorkPhase::Halted => return Ok(()),
            WorkPhase::Sync => {}
            WorkPhase::Terminating(_) | WorkPhase::Terminated(_) => return Err(OrderError::Ended),
        }
        let halt = Halt { since: services.clock.now().wall, boot_id: services.boot_id.clone(), until: None };
        self.record_halt(services, Some(halt)).await?;
        self.phase.halt();
        self.tell(services, None, EventType::Normal, "PodStopped", "Stopped by an operator");
        Ok(())
    }

    async fn start(&mut self, services: &Arc<Services>) -> Result<(), OrderError> {
        match self.phase {
            WorkPhase::Sync => return Ok(()),
            WorkPhase::Halted => {}
            WorkPhase::Terminating(_) | WorkPhase::Terminated(_) => return Err(OrderError::Ended),
        }
        let halt = self.record.halt.clone().map(|halt| halt.ended(services.clock.now().wall));
        self.record_halt(services, halt).await?;
        self.phase.start();
        self.tell(services, None, EventType::Normal, "PodStarted", "Started by an operator");
        Ok(())
    }

    /// Records the incarnation as removed. Its REMOVE follows, from the mux of this daemon or of the next one.
    async fn record_replacement(&mut self, services: &Arc<Services>) -> Result<(), OrderError> {
        if self.record.is_removed {
            return Ok(());
        }
        let mut record = self.record.clone();
        record.is_removed = true;
        self.write_record(services, record).await
    }

    async fn end(&mut self, services: &Arc<Services>, grace: Duration) -> Result<(), OrderError> {
        self.record_replacement(services).await?;
        self.phase.remove(grace, services.clock.now().moment);
        Ok(())
    }

    /// Writes the record with this halt. If that fails, the record in memory stays as it was.
    async fn record_halt(&mut self, services: &Arc<Services>, halt: Option<Halt>) -> Result<(), OrderError> {
        let mut record = self.record.clone();
        record.halt = halt;
        self.write_record(services, record).await
    }

    /// Replaces the record on disk, then the one in memory.
    async fn write_record(&mut self, services: &Arc<Services>, record: PodRecord) -> Result<(), OrderError> {
        let (written_record, shared) = (record.clone(), Arc::clone(services));
        let written = tokio::task::spawn_blocking(move || written_record.write(&shared.paths, &shared.write_ahead)).await;
        let failed = match written {
            Ok(Ok(())) => {
                self.state.record = Step::Done;
                self.record = record;
                return Ok(());
            }
            Ok(Err(error)) => recording_failed(&error),
            Err(error) => error.to_string(),
        };
        Err(OrderError::NotRecorded(failed))
    }

    /// Lets a stop of an earlier daemon stay in force, or ends it because the host was booted since.
    pub(super) fn recover_halt(&mut self, services: &Arc<Services>) {
        let Some(halt) = self.record.halt.clone().filter(Halt::is_in_force) else { return };
        if halt.boot_id == services.boot_id || !services.starts_stopped_at_boot {
            self.phase.halt();
        } else {
            self.record.halt = Some(halt.ended(services.clock.now().wall));
            self.state.record = Step::Open;
        }
    }

    /// Starts a stopped pod because its definition changed; the record is written with the new definition.
    pub(super) fn start_for_edit(&mut self, services: &Arc<Services>) {
        if self.phase == WorkPhase::Halted {
            self.phase.start();
            self.record.halt = self.record.halt.take().map(|halt| halt.ended(services.clock.now().wall));
            self.tell(services, None, EventType::Normal, "PodStarted", "Started because its definition changed");
        }
    }
}

fn recording_failed(error: &RecordError) -> String {
    error_chain(error).to_string()
}
