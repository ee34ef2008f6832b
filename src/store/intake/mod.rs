//! The task between the sources and the mux: reports in, durable SETs out.
//!
//! It owns the undelta store and the last good record of every source. What it hands on is on disk before (promise P3). A report that
//! fails, or an emptiness that may be a missing mount, leaves the last good set in force and is reported (promise P2). A source that people
//! hold (`podstead suspend`, `rollback`) stays at what is in force, whatever it reports.
//!
//! In: `(SourceId, SourceReport)` from all sources, wishes of [`IntakeHandle`]. Out: [`Set`]s for `podstead_mux::run`, the state of each
//! source to its [`SourceStatusSink`], each distinct problem once to the log and to the events. Spawned by the daemon.

mod attempt;
mod configure;
mod request;
mod revisions;
mod source;
mod source_state;
mod times;
mod told;

pub use request::IntakeHandle;

#[cfg(test)]
mod tests;

use super::{CheckContext, Set};
use crate::SourceStatusSink;
use configure::Configuration;
pub use configure::IntakeConfigurator;
use podstead_artifact::{SourceReport, Wakers};
use podstead_pod::SourceId;
use podstead_sys::layout::Paths;
use podstead_sys::write_ahead::WriteAheadLog;
use podstead_telemetry::Traces;
use podstead_telemetry::events::EventRecorder;
use request::Request;
pub use source::IntakeSource;
use source_state::SourceState;
use std::sync::Arc;
use times::Times;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The task before it runs.
#[derive(Debug)]
pub struct Intake {
    paths: Paths,
    states: Vec<SourceState>,
    requests: mpsc::Receiver<Request>,
    configuration: Configuration,
}

impl Intake {
    /// The task for `sources`, in order of precedence, and the handle to it.
    pub fn new(
        sources: Vec<IntakeSource>,
        paths: &Paths,
        check: CheckContext,
        status: Arc<dyn SourceStatusSink>,
        events: Arc<dyn EventRecorder>,
    ) -> (Self, IntakeHandle) {
        let (handle, requests) = IntakeHandle::new();
        let configuration = Configuration::new(paths.clone(), check, status, events);
        let states: Vec<SourceState> = sources.into_iter().map(|source| configuration.state_of(source)).collect();
        // A source that is configured is never unknown to readers, however soon they ask.
        states.iter().for_each(SourceState::publish);
        (Self { paths: paths.clone(), states, requests, configuration }, handle)
    }

    /// Records in `traces` when revisions were read, by the `sources`, and accepted.
    #[must_use]
    pub fn traced(mut self, traces: Traces, sources: Wakers) -> Self {
        let times = Times { sources, traces };
        self.states.iter_mut().for_each(|state| state.time(times.clone()));
        self.configuration.time(times);
        self
    }

    /// Makes what the sources accept durable by way of this log.
    #[must_use]
    pub fn log_to(mut self, write_ahead: WriteAheadLog) -> Self {
        self.states.iter_mut().for_each(|state| state.log_to(write_ahead.clone()));
        self.configuration.log_to(write_ahead);
        self
    }

    /// Emits the last good sets, before any source has been read.
    async fn restore(&mut self, sets: &mpsc::Sender<Set>) -> Result<(), Unwanted> {
        self.forget_others().await;
        for index in 0..self.states.len() {
            if let Some(set) = self.states[index].restore().await {
                self.hand_on(set, sets).await?;
            }
        }
        Ok(())
    }

    /// Passes a set to the mux, and records the time.
    async fn hand_on(&mut self, set: Set, sets: &mpsc::Sender<Set>) -> Result<(), Unwanted> {
        let (source, revision) = (set.source.clone(), set.revision.clone());
        sets.send(set).await.map_err(|_| Unwanted)?;
        if let Some(state) = self.states.iter_mut().find(|state| *state.id() == source) {
            state.handed_on(revision);
        }
        Ok(())
    }

    /// Returns the handle to replace the sources.
    pub fn configurator(&self) -> IntakeConfigurator {
        self.configuration.handle()
    }

    fn next_retry(&self) -> Option<Instant> {
        self.states.iter().filter_map(SourceState::retry_at).min()
    }
}

/// Nobody receives SETs any more.
struct Unwanted;

/// Runs until all senders of `reports`, or the receiver of `sets`, are dropped.
///
/// `reports` needs no more than one place per source. With `sets` of bound 1, sources are held back while the mux is busy.
pub async fn run(mut intake: Intake, mut reports: mpsc::Receiver<(SourceId, SourceReport)>, sets: mpsc::Sender<Set>) {
    if intake.restore(&sets).await.is_err() {
        return;
    }
    loop {
        let retry = intake.next_retry();
        // All arms are cancel-safe: `recv` takes nothing out when it is dropped.
        let set = tokio::select! {
            report = reports.recv() => match report {
                Some((source, report)) => match intake.states.iter_mut().find(|state| *state.id() == source) {
                    Some(state) => state.take(report).await,
                    None => None,
                },
                None => return,
            },
            Some(request) = intake.requests.recv() => {
                let Request { source, order } = request;
                match intake.states.iter_mut().find(|state| *state.id() == source) {
                    Some(state) => state.fulfil(order).await,
                    None => {
                        order.refuse(source);
                        None
                    }
                }
            }
            configure = intake.configuration.next() => {
                if intake.configure(configure, &sets).await.is_err() {
                    return;
                }
                None
            }
            () = tokio::time::sleep_until(retry.unwrap_or_else(Instant::now)), if retry.is_some() => {
                match intake.states.iter_mut().find(|state| state.retry_at() == retry) {
                    Some(state) => state.try_again().await,
                    None => None,
                }
            }
        };
        if let Some(set) = set
            && intake.hand_on(set, &sets).await.is_err()
        {
            return;
        }
    }
}
