//! Signs that something changed, for `podstead status --watch`: the watches of the API.

use crate::client::{Client, ClientError, OWN, Target};
use crate::object_type::ObjectType;
use crate::pods::{ServedList, collection};
use crate::watch::watch;
use podstead_api::WORKLOAD_KINDS;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Time in which changes are taken together: a rollout is many of them.
const TOGETHER: Duration = Duration::from_millis(200);

/// Watches of all that the status is made of.
#[derive(Debug)]
pub(super) struct Changes {
    /// Ended with this.
    watches: JoinSet<ClientError>,
    signs: mpsc::Receiver<()>,
}

impl Changes {
    /// Begins to watch. What changes after this returns is seen.
    pub(super) async fn watch(client: &Client) -> Result<Self, ClientError> {
        let (sender, signs) = mpsc::channel(1);
        let mut watches = JoinSet::new();
        let workloads = WORKLOAD_KINDS.map(|kind| ObjectType::Workload(kind).collection(None));
        let others = [collection("pods", None), collection("events", None), Target::new(OWN, &["sources"])];
        for target in others.into_iter().chain(workloads) {
            let list: ServedList = client.get(target.clone()).await?;
            let mut events = watch(client, target, &list.metadata.resource_version).await?;
            let sender = sender.clone();
            watches.spawn(async move {
                loop {
                    match events.next().await {
                        // A sign that waits to be seen stands for this one too.
                        Ok(_) => drop(sender.try_send(())),
                        Err(error) => return error,
                    }
                }
            });
        }
        Ok(Self { watches, signs })
    }

    /// Waits for a change, but no longer than `limit`. An error if a watch has ended.
    pub(super) async fn next(&mut self, limit: Duration) -> Result<(), ClientError> {
        // Cancel-safe: a sign stays in its queue, and an ended watch in its set.
        tokio::select! {
            Some(()) = self.signs.recv() => tokio::time::sleep(TOGETHER).await,
            Some(Ok(error)) = self.watches.join_next() => return Err(error),
            () = tokio::time::sleep(limit) => {}
        }
        while self.signs.try_recv().is_ok() {}
        Ok(())
    }
}
