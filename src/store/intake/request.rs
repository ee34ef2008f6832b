//! Operator commands for the intake, and their results.

use crate::history::{History, Hold, Resumed, RevisionDiff, RevisionError, RolledBack};
use crate::{PruneError, SourceControl};
use async_trait::async_trait;
use podstead_pod::SourceId;
use tokio::sync::{mpsc, oneshot};

/// Wishes that may wait: they come from people.
pub(super) const REQUESTS: usize = 4;

/// A command for one source.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) source: SourceId,
    pub(super) order: Order,
}

/// A command with a channel for its result.
#[derive(Debug)]
pub(super) enum Order {
    Prune(oneshot::Sender<Result<usize, PruneError>>),
    Suspend { command: String, answer: oneshot::Sender<Result<Hold, RevisionError>> },
    Resume(oneshot::Sender<Result<Resumed, RevisionError>>),
    RollBack { revision: Option<String>, command: String, answer: oneshot::Sender<Result<RolledBack, RevisionError>> },
    History(oneshot::Sender<Result<History, RevisionError>>),
    Diff { revision: Option<String>, answer: oneshot::Sender<Result<RevisionDiff, RevisionError>> },
}

impl Order {
    /// Answers that the source does not exist.
    pub(super) fn refuse(self, source: SourceId) {
        let unknown = || RevisionError::UnknownSource(source.clone());
        // An error means that nobody waits for the answer any more.
        match self {
            Self::Prune(answer) => answer.send(Err(PruneError::UnknownSource(source))).is_ok(),
            Self::Suspend { command: _, answer } => answer.send(Err(unknown())).is_ok(),
            Self::Resume(answer) => answer.send(Err(unknown())).is_ok(),
            Self::RollBack { revision: _, command: _, answer } => answer.send(Err(unknown())).is_ok(),
            Self::History(answer) => answer.send(Err(unknown())).is_ok(),
            Self::Diff { revision: _, answer } => answer.send(Err(unknown())).is_ok(),
        };
    }
}

/// Handle for operator commands (`podstead sync --prune`, `rollback` and so on).
#[derive(Clone, Debug)]
pub struct IntakeHandle {
    requests: mpsc::Sender<Request>,
}

impl IntakeHandle {
    /// A handle, and where its requests come out.
    pub(super) fn new() -> (Self, mpsc::Receiver<Request>) {
        let (requests, receiver) = mpsc::channel(REQUESTS);
        (Self { requests }, receiver)
    }

    /// `None` when the intake has ended.
    async fn ask<T>(&self, source: &SourceId, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Option<T> {
        let (answer, received) = oneshot::channel();
        self.requests.send(Request { source: source.clone(), order: order(answer) }).await.ok()?;
        received.await.ok()
    }
}

#[async_trait]
impl SourceControl for IntakeHandle {
    async fn prune(&self, source: &SourceId) -> Result<usize, PruneError> {
        self.ask(source, Order::Prune).await.unwrap_or(Err(PruneError::Ended))
    }

    async fn suspend(&self, source: &SourceId, command: &str) -> Result<Hold, RevisionError> {
        let command = command.to_owned();
        self.ask(source, |answer| Order::Suspend { command, answer }).await.unwrap_or(Err(RevisionError::Ended))
    }

    async fn resume(&self, source: &SourceId) -> Result<Resumed, RevisionError> {
        self.ask(source, Order::Resume).await.unwrap_or(Err(RevisionError::Ended))
    }

    async fn roll_back(&self, source: &SourceId, revision: Option<&str>, command: &str) -> Result<RolledBack, RevisionError> {
        let (revision, command) = (revision.map(str::to_owned), command.to_owned());
        self.ask(source, |answer| Order::RollBack { revision, command, answer }).await.unwrap_or(Err(RevisionError::Ended))
    }

    async fn history(&self, source: &SourceId) -> Result<History, RevisionError> {
        self.ask(source, Order::History).await.unwrap_or(Err(RevisionError::Ended))
    }

    async fn diff(&self, source: &SourceId, revision: Option<&str>) -> Result<RevisionDiff, RevisionError> {
        let revision = revision.map(str::to_owned);
        self.ask(source, |answer| Order::Diff { revision, answer }).await.unwrap_or(Err(RevisionError::Ended))
    }
}
