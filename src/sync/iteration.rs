//! One turn of the sync loop. Its inputs are arguments, so that a test drives it turn by turn.

use super::heartbeat::Heartbeat;
use super::housekeeping::Housekeeping;
use podstead_container::PodLifecycleEvent;
use podstead_mux::{PodOp, PodUpdate, SourcesReady};
use podstead_pod::PodUid;
use podstead_pod::objects::ObjectKind;
use podstead_worker::halt::Command;
use podstead_worker::{PodWorkers, Step};
use std::ops::ControlFlow;
use tokio::sync::{mpsc, watch};
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

/// Everything that the loop listens to.
#[derive(Debug)]
pub struct SyncInputs {
    /// Operations of the mux.
    pub updates: mpsc::Receiver<PodUpdate>,
    /// Lifecycle events of the runtime.
    pub events: mpsc::UnboundedReceiver<PodLifecycleEvent>,
    /// Pods whose background work ended.
    pub pokes: mpsc::UnboundedReceiver<PodUid>,
    /// Orders of operators.
    pub commands: mpsc::Receiver<Command>,
    /// Counts images that became present (see [`podstead_runtime::ImageService::arrivals`]).
    pub arrivals: watch::Receiver<u64>,
    /// The slow safety net: every pod looks again, housekeeping runs.
    pub tick: Interval,
    /// Heartbeat for the service manager.
    pub heartbeat: Heartbeat,
    /// The daemon shall stop. Pods go on.
    pub shutdown: CancellationToken,
}

/// Reason why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to.
    Shutdown,
    /// The mux or the runtime went away: nothing can be done without them.
    InputClosed(&'static str),
}

/// Waits for one thing to happen and acts on it.
pub async fn sync_loop_iteration(
    inputs: &mut SyncInputs,
    workers: &mut PodWorkers,
    ready: &mut SourcesReady,
    housekeeping: &mut Housekeeping,
) -> ControlFlow<Ended> {
    // Every arm is cancel-safe: `recv`, `changed`, `tick`, `due` and `step` take nothing out before they win.
    tokio::select! {
        () = inputs.shutdown.cancelled() => return ControlFlow::Break(Ended::Shutdown),
        update = inputs.updates.recv() => match update {
            Some(update) => apply(&update, workers, ready, housekeeping).await,
            None => return ControlFlow::Break(Ended::InputClosed("config operations")),
        },
        event = inputs.events.recv() => match event {
            Some(event) => {
                tracing::debug!(uid = %event.uid, event = ?event.kind, "lifecycle event");
                workers.look(&event.uid);
            }
            None => return ControlFlow::Break(Ended::InputClosed("lifecycle events")),
        },
        Some(uid) = inputs.pokes.recv() => workers.look(&uid),
        Some(command) = inputs.commands.recv() => workers.command(command),
        Ok(()) = inputs.arrivals.changed() => workers.look_where_images_are_missing(),
        _ = inputs.tick.tick() => {
            workers.look_at_all();
            clean_up(workers, ready, housekeeping).await;
        }
        () = inputs.heartbeat.due() => inputs.heartbeat.beat(),
        step = workers.step() => match step {
            // What waits for the deletion of their data, such as an ordinal of a StatefulSet, need not wait for the next tick.
            Step::ClaimsGivenUp if ready.all() => housekeeping.reclaim().await,
            Step::ClaimsGivenUp | Step::Other => {}
        },
    }
    ControlFlow::Continue(())
}

async fn apply(update: &PodUpdate, workers: &mut PodWorkers, ready: &mut SourcesReady, housekeeping: &mut Housekeeping) {
    let was_ready = ready.all();
    match update.op {
        PodOp::Remove => {
            for desired in &update.pods {
                workers.remove(&desired.uid);
            }
        }
        PodOp::Add | PodOp::Update | PodOp::Reconcile => {
            for desired in &update.pods {
                workers.sync(desired.clone());
            }
        }
    }
    workers.objects_changed(&update.objects);
    ready.observe(update);
    let is_first = ready.all() && !was_ready;
    if is_first {
        tracing::info!("all sources completed their first sync");
        workers.objects_settled();
    }
    let has_claims = update.objects.iter().any(|name| name.kind == ObjectKind::PersistentVolumeClaim);
    if is_first || has_claims {
        clean_up(workers, ready, housekeeping).await;
    }
}

async fn clean_up(workers: &PodWorkers, ready: &SourcesReady, housekeeping: &mut Housekeeping) {
    if ready.all() {
        housekeeping.weigh(workers.burstable_milli());
        housekeeping.turn(|uid| workers.knows(uid)).await;
    }
}
