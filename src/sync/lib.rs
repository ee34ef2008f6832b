//! The sync loop: one task, one select over config operations, lifecycle events of the runtime, ends of background work and a slow tick.
//!
//! In: [`PodUpdate`](podstead_mux::PodUpdate)s of the mux (bound 8: it is read as fast as it is written),
//! [`PodLifecycleEvent`](podstead_container::PodLifecycleEvent)s (unbounded: a runtime must not be held up, and each is small).
//! Out: turns of the pod workers that it owns, one per pod. The daemon spawns it, once, after [`Recovered::look`].
//!
//! The kubelet ticks each second, relists containers each second and keeps house every two; here events come from the shims, so one
//! tick a minute is the safety net, and an idle host is idle.

pub mod heartbeat;
mod housekeeping;
mod iteration;
mod recover;

#[cfg(test)]
mod tests;

pub use heartbeat::{Heartbeat, Pulse};
pub use housekeeping::Housekeeping;
pub use iteration::{Ended, SyncInputs, sync_loop_iteration};
pub use recover::{RecoverError, Recovered};

use podstead_mux::SourcesReady;
use podstead_worker::PodWorkers;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior};

/// Period after which every pod is checked although no event came (kubelet rule C8).
pub const TICK: Duration = Duration::from_secs(60);

/// The tick; the first one comes after one period.
pub fn tick() -> Interval {
    let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + TICK, TICK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// Runs the loop until it is asked to stop or cannot go on. Turns under way are finished; pods are left as they are. `heard` is told once,
/// when every source was heard.
pub async fn run(
    mut inputs: SyncInputs,
    mut workers: PodWorkers,
    mut ready: SourcesReady,
    mut housekeeping: Housekeeping,
    heard: oneshot::Sender<()>,
) -> Ended {
    let mut heard = Some(heard);
    loop {
        if let Some(heard) = heard.take_if(|_| ready.all()) {
            // The receiver may be gone.
            heard.send(()).ok();
        }
        if let ControlFlow::Break(ended) = sync_loop_iteration(&mut inputs, &mut workers, &mut ready, &mut housekeeping).await {
            workers.drain().await;
            return ended;
        }
    }
}
