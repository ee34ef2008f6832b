//! Orders to stop, start and restart pods, as the sync loop takes them.

use async_trait::async_trait;
use podstead_pod::DesiredPod;
use std::fmt;
use std::time::Duration;

/// Orders of operators on pods.
#[async_trait]
pub trait PodControl: Send + Sync + fmt::Debug {
    /// Stops the pod until it is started. Durable when it returns.
    async fn stop(&self, pod: &DesiredPod) -> Result<(), PodControlError>;
    /// Starts a stopped pod.
    async fn start(&self, pod: &DesiredPod) -> Result<(), PodControlError>;
    /// Replaces the pod by a new one; a pod of a workload gets the newest revision of its template. Durable when it returns.
    async fn restart(&self, pod: &DesiredPod) -> Result<(), PodControlError>;
    /// Lets a pod of a Job go that has ended; the Job counts it still. Durable when it returns true; false for any other pod.
    async fn forget_ended(&self, pod: &DesiredPod) -> bool;
    /// Ends a pod that is not wanted any more after this time at most.
    async fn end(&self, pod: &DesiredPod, grace: Duration) -> Result<(), PodControlError>;
}

/// Reason why an order was refused.
#[derive(Debug, thiserror::Error)]
pub enum PodControlError {
    /// The state of the pod does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// It could not be recorded, or the daemon is stopping.
    #[error("{0}")]
    Unavailable(String),
}
