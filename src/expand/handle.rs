//! Requests to the task.

use podstead_manifest::ObjectKey;
use podstead_pod::sharing::Sharing;
use podstead_workload::host_fit::Host;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

/// Requests that may wait: operators and reloads of the configuration are rare.
const REQUESTS: usize = 16;

/// Request to the task.
#[derive(Debug)]
pub(crate) enum Request {
    /// Other sources, or another order of them.
    Configure(Sharing, oneshot::Sender<()>),
    /// Other labels of the host.
    Host(Host),
    /// Makes a pod of a workload anew; the answer is false where the workload does not do that.
    ReplacePod { owner: ObjectKey, pod: String, answer: oneshot::Sender<bool> },
    /// Lets an ended pod of a Job go; the answer is false for any other pod.
    ForgetEndedPod { owner: ObjectKey, pod: String, answer: oneshot::Sender<bool> },
    /// Starts a CronJob now.
    RunNow { namespace: String, name: String, answer: oneshot::Sender<Result<String, RunNowError>> },
}

/// A CronJob that cannot be started by hand.
#[derive(Debug, Error)]
pub enum RunNowError {
    /// No source has it.
    #[error("cronjobs.batch {0:?} not found")]
    NotFound(String),
    /// A Job of this minute exists.
    #[error("job {0} exists: a CronJob can be run by hand once a minute")]
    Exists(String),
    /// Its clock or its schedule cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The daemon is ending.
    #[error("the daemon is stopping")]
    Stopping,
}

/// Handle of the task.
#[derive(Clone, Debug)]
pub struct ExpandHandle {
    requests: mpsc::Sender<Request>,
}

impl ExpandHandle {
    /// The handle, and where the task reads its requests.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<Request>) {
        let (requests, received) = mpsc::channel(REQUESTS);
        (Self { requests }, received)
    }

    /// Replaces the configured sources. When it returns they count. Returns also when the task has ended.
    pub async fn configure(&self, sources: Sharing) {
        let (done, is_done) = oneshot::channel();
        if self.requests.send(Request::Configure(sources, done)).await.is_ok() {
            // An error means that the task has ended.
            is_done.await.ok();
        }
    }

    /// Replaces the labels of the host.
    pub async fn configure_host(&self, host: Host) {
        // An error means that the task has ended.
        self.requests.send(Request::Host(host)).await.ok();
    }

    /// Makes a pod of a workload anew, at the newest revision. When it returns true, that is recorded. False for a pod that the workload does
    /// not want, for those of Jobs, which count their pods themselves, and when the daemon is ending.
    pub async fn replace_pod(&self, owner: ObjectKey, pod: &str) -> bool {
        let (answer, answered) = oneshot::channel();
        let request = Request::ReplacePod { owner, pod: pod.to_owned(), answer };
        self.requests.send(request).await.is_ok() && answered.await.unwrap_or(false)
    }

    /// Lets an ended pod of a Job go, which stays counted. When it returns true, that is recorded. False for any other pod, and when the daemon
    /// is ending.
    pub async fn forget_ended_pod(&self, owner: ObjectKey, pod: &str) -> bool {
        let (answer, answered) = oneshot::channel();
        let request = Request::ForgetEndedPod { owner, pod: pod.to_owned(), answer };
        self.requests.send(request).await.is_ok() && answered.await.unwrap_or(false)
    }

    /// Starts a run of a CronJob now. Returns the name of its Job.
    pub async fn run_now(&self, namespace: &str, name: &str) -> Result<String, RunNowError> {
        let (answer, answered) = oneshot::channel();
        let request = Request::RunNow { namespace: namespace.to_owned(), name: name.to_owned(), answer };
        self.requests.send(request).await.map_err(|_| RunNowError::Stopping)?;
        answered.await.map_err(|_| RunNowError::Stopping)?
    }
}
