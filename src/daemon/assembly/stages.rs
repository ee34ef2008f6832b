//! The tasks that must not end while the daemon lives.

use anyhow::anyhow;
use std::convert::Infallible;
use tokio::task::JoinSet;

/// The tasks that run.
#[derive(Debug, Default)]
pub(super) struct Stages(JoinSet<&'static str>);

impl Stages {
    /// Starts a task that ends only if something went wrong. `what` names it in an error.
    pub(super) fn start<T>(&mut self, what: &'static str, stage: impl Future<Output = T> + Send + 'static) {
        self.0.spawn(async move {
            stage.await;
            what
        });
    }

    /// Starts a task that has no end.
    pub(super) fn start_endless(&mut self, stage: impl Future<Output = Infallible> + Send + 'static) {
        self.0.spawn(async move { match stage.await {} });
    }

    /// Waits for a task that ended, which is an error.
    pub(super) async fn ended(&mut self) -> anyhow::Error {
        match self.0.join_next().await {
            Some(Ok(what)) => anyhow!("{what} ended unexpectedly"),
            Some(Err(error)) => anyhow::Error::new(error).context("a stage failed"),
            None => anyhow!("no stage is running"),
        }
    }
}
