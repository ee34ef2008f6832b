//! Orders of operators on pods, handed to the stage that carries them out.

use async_trait::async_trait;
use podstead_api::{PodControl, PodControlError};
use podstead_expand::{ExpandHandle, owner};
use podstead_mux::MuxHandle;
use podstead_pod::DesiredPod;
use podstead_worker::halt::{Command, Order, OrderError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Handles of the stages.
#[derive(Debug)]
pub(super) struct Control {
    /// The sync loop, which has the workers.
    pub(super) commands: mpsc::Sender<Command>,
    /// The expansion, which names the pods of workloads.
    pub(super) expand: ExpandHandle,
    /// The mux, which gives UIDs.
    pub(super) mux: MuxHandle,
}

impl Control {
    async fn order(&self, pod: &DesiredPod, order: Order) -> Result<(), PodControlError> {
        let stopping = || PodControlError::Unavailable("the daemon is stopping".to_owned());
        let (answer, answered) = oneshot::channel();
        let command = Command { uid: pod.uid.clone(), order, answer };
        self.commands.send(command).await.map_err(|_| stopping())?;
        answered.await.map_err(|_| stopping())?.map_err(|error| match error {
            OrderError::Gone | OrderError::Ended => PodControlError::Conflict(error.to_string()),
            OrderError::NotRecorded(_) => PodControlError::Unavailable(error.to_string()),
        })
    }
}

#[async_trait]
impl PodControl for Control {
    async fn stop(&self, pod: &DesiredPod) -> Result<(), PodControlError> {
        self.order(pod, Order::Stop).await
    }

    async fn start(&self, pod: &DesiredPod) -> Result<(), PodControlError> {
        self.order(pod, Order::Start).await
    }

    async fn restart(&self, pod: &DesiredPod) -> Result<(), PodControlError> {
        let name = &pod.full_name;
        if let Some(owner) = owner(&pod.pod, &name.namespace)
            && self.expand.replace_pod(owner, &name.name).await
        {
            return Ok(());
        }
        match self.order(pod, Order::Replace).await {
            // A pod without a worker has no record that could bring it back.
            Ok(()) | Err(PodControlError::Conflict(_)) => {}
            Err(error @ PodControlError::Unavailable(_)) => return Err(error),
        }
        self.mux.recreate(pod.uid.clone()).await;
        Ok(())
    }

    async fn forget_ended(&self, pod: &DesiredPod) -> bool {
        match owner(&pod.pod, &pod.full_name.namespace) {
            Some(owner) => self.expand.forget_ended_pod(owner, &pod.full_name.name).await,
            None => false,
        }
    }

    async fn end(&self, pod: &DesiredPod, grace: Duration) -> Result<(), PodControlError> {
        self.order(pod, Order::End(grace)).await
    }
}
