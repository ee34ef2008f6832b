//! Replacing the sources while the intake runs.

use super::source_state::SourceState;
use super::times::Times;
use super::{Intake, IntakeSource, Unwanted};
use crate::last_good::forget_others;
use crate::{CheckContext, Set, SourceStatusSink};
use podstead_manifest::sops::Opening;
use podstead_pod::SourceId;
use podstead_sys::layout::Paths;
use podstead_sys::write_ahead::WriteAheadLog;
use podstead_telemetry::events::EventRecorder;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Requests to change the configuration, with a channel for the confirmation.
#[derive(Debug)]
pub(super) enum Configure {
    /// Other sources, in order of precedence.
    Sources { sources: Vec<IntakeSource>, done: oneshot::Sender<()> },
    /// Other keys for encrypted manifests.
    Opening { opening: Arc<Opening>, done: oneshot::Sender<()> },
}

/// Handle to replace the sources.
#[derive(Clone, Debug)]
pub struct IntakeConfigurator(mpsc::Sender<Configure>);

impl IntakeConfigurator {
    /// Replaces the sources. What is kept of those that stay stays in force; the last good sets of those that go are forgotten, on disk
    /// too. When it returns, reports of new sources will be taken in and those of removed ones will not. Returns also when the intake
    /// has ended.
    pub async fn configure(&self, sources: Vec<IntakeSource>) {
        let (done, is_done) = oneshot::channel();
        if self.0.send(Configure::Sources { sources, done }).await.is_ok() {
            // An error means that the intake has ended.
            is_done.await.ok();
        }
    }

    /// Opens encrypted manifests with these keys from now on, and tries those again that could not be opened. Returns also when the
    /// intake has ended.
    pub async fn open_with(&self, opening: Arc<Opening>) {
        let (done, is_done) = oneshot::channel();
        if self.0.send(Configure::Opening { opening, done }).await.is_ok() {
            is_done.await.ok();
        }
    }
}

/// Common settings of the sources, and the channel of requests to replace them.
#[derive(Debug)]
pub(super) struct Configuration {
    paths: Paths,
    /// Makes what the sources accept durable.
    pub(super) write_ahead: WriteAheadLog,
    check: CheckContext,
    status: Arc<dyn SourceStatusSink>,
    events: Arc<dyn EventRecorder>,
    times: Times,
    sender: mpsc::Sender<Configure>,
    wishes: mpsc::Receiver<Configure>,
}

impl Configuration {
    pub(super) fn new(
        paths: Paths,
        check: CheckContext,
        status: Arc<dyn SourceStatusSink>,
        events: Arc<dyn EventRecorder>,
    ) -> Self {
        let (sender, wishes) = mpsc::channel(1);
        Self { paths, write_ahead: WriteAheadLog::none(), check, status, events, times: Times::default(), sender, wishes }
    }

    /// Makes what the sources accept durable by way of this log.
    pub(super) fn log_to(&mut self, write_ahead: WriteAheadLog) {
        self.write_ahead = write_ahead;
    }

    /// Records the times of revisions there from now on.
    pub(super) fn time(&mut self, times: Times) {
        self.times = times;
    }

    pub(super) fn state_of(&self, source: IntakeSource) -> SourceState {
        let check = CheckContext {
            allow: source.allow.clone(),
            requirements: source.requirements.clone(),
            substitute: source.substitute.clone(),
            layers: source.layers.clone(),
            keeps_names: source.keeps_names,
            ..self.check.clone()
        };
        let (status, events) = (self.status.clone(), self.events.clone());
        let mut state = SourceState::new(source, &self.paths, Arc::new(check), status, events, self.times.clone());
        state.log_to(self.write_ahead.clone());
        state
    }

    pub(super) fn handle(&self) -> IntakeConfigurator {
        IntakeConfigurator(self.sender.clone())
    }

    /// Receives the next request. Cancel-safe; never ends, because a sender is kept here.
    pub(super) async fn next(&mut self) -> Configure {
        match self.wishes.recv().await {
            Some(wish) => wish,
            None => std::future::pending().await,
        }
    }
}

impl Intake {
    /// Carries out a request.
    pub(super) async fn configure(&mut self, wish: Configure, sets: &mpsc::Sender<Set>) -> Result<(), Unwanted> {
        let done = match wish {
            Configure::Sources { sources, done } => {
                self.replace_states(sources, sets).await?;
                done
            }
            Configure::Opening { opening, done } => {
                self.configuration.check.opening = Arc::clone(&opening);
                for index in 0..self.states.len() {
                    if let Some(set) = self.states[index].open_with(Arc::clone(&opening)).await {
                        self.hand_on(set, sets).await?;
                    }
                }
                done
            }
        };
        // Nobody may be waiting any more.
        done.send(()).ok();
        Ok(())
    }

    /// Replaces the states. Those of new sources begin with what lies on disk under their name, if anything does.
    async fn replace_states(&mut self, sources: Vec<IntakeSource>, sets: &mpsc::Sender<Set>) -> Result<(), Unwanted> {
        let mut before = std::mem::take(&mut self.states);
        let mut restored = Vec::new();
        for source in sources {
            let known = before.iter().position(|state| *state.id() == source.id);
            let state = match known.map(|index| before.swap_remove(index)) {
                Some(mut state) if state.judges_as(&source) => {
                    state.describe(source);
                    state
                }
                // What is in force is judged anew by what the source may use now, as at a start.
                Some(_) | None => {
                    let mut state = self.configuration.state_of(source);
                    restored.extend(state.restore().await);
                    state
                }
            };
            self.states.push(state);
        }
        for state in before {
            state.dismiss();
        }
        self.forget_others().await;
        for set in restored {
            self.hand_on(set, sets).await?;
        }
        Ok(())
    }

    /// Removes what is on disk of sources that are not configured.
    pub(super) async fn forget_others(&self) {
        let (paths, write_ahead) = (self.paths.clone(), self.configuration.write_ahead.clone());
        let configured: Vec<SourceId> = self.states.iter().map(|state| state.id().clone()).collect();
        match tokio::task::spawn_blocking(move || forget_others(&paths, &configured, &write_ahead)).await {
            Ok(Ok(forgotten)) => {
                for source in forgotten {
                    tracing::info!(%source, "source is no longer configured: removed its last good set");
                }
            }
            Ok(Err(error)) => tracing::warn!(%error, "cannot remove the last good sets of sources that are no longer configured"),
            Err(error) => tracing::error!(%error, "cannot remove the last good sets of sources that are no longer configured"),
        }
    }
}
