//! Exit codes, and the errors that lead to them.

use super::{client, pods, workloads};

/// The command failed, or its answer is no.
pub(super) const EXIT_FAILED: u8 = 1;

/// The command was not understood, or the daemon could not be asked.
pub(super) const EXIT_UNUSABLE: u8 = 2;

pub(super) fn is_unreachable(error: &anyhow::Error) -> bool {
    let is = |error: &client::ClientError| matches!(error, client::ClientError::Unreachable(_));
    error.chain().any(|cause| {
        let direct = cause.downcast_ref::<client::ClientError>();
        let of_pod = cause.downcast_ref::<pods::FindPodError>().and_then(|error| match error {
            pods::FindPodError::Client(error) => Some(error),
            pods::FindPodError::Name(_) => None,
        });
        let of_workload = cause.downcast_ref::<workloads::FindWorkloadError>().and_then(workloads::FindWorkloadError::client);
        [direct, of_pod, of_workload].into_iter().flatten().any(is)
    })
}
