//! The start of a CronJob by hand: `POST .../namespaces/NAMESPACE/cronjobs/NAME/run` of podstead's own group.

use crate::Backend;
use crate::failure::ApiFailure;
use crate::resource::workload_resource;
use crate::respond::{self, Answer};
use crate::route::PodPath;
use podstead_expand::RunNowError;
use podstead_workload::object::WorkloadKind;
use serde::{Deserialize, Serialize};

/// Result of starting a CronJob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobRunAnswer {
    /// Name of the Job, in the namespace of the CronJob.
    pub job: String,
}

/// Starts a run of a CronJob.
pub(crate) async fn run_now(backend: &Backend, path: &PodPath) -> Answer {
    let expand = backend.expand.as_ref().ok_or_else(|| ApiFailure::unavailable("this daemon does not run workloads"))?;
    let job = expand.run_now(&path.namespace, &path.name).await.map_err(|error| failure(&error, &path.name))?;
    respond::json(&JobRunAnswer { job })
}

fn failure(error: &RunNowError, name: &str) -> ApiFailure {
    let resource = workload_resource(WorkloadKind::CronJob).qualified;
    match error {
        RunNowError::NotFound(_) => ApiFailure::not_found(resource, name),
        RunNowError::Exists(_) => ApiFailure::already_exists(error.to_string()).about(resource, name),
        RunNowError::Unusable(_) => ApiFailure::conflict(error.to_string()).about(resource, name),
        RunNowError::Stopping => ApiFailure::unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_their_codes() {
        let of = |error: RunNowError| {
            let failure = failure(&error, "dump");
            (failure.code, failure.message)
        };
        assert_eq!(of(RunNowError::NotFound("dump".into())), (404, r#"cronjobs.batch "dump" not found"#.into()));
        let exists = "job dump-1 exists: a CronJob can be run by hand once a minute";
        assert_eq!(of(RunNowError::Exists("dump-1".into())), (409, exists.into()));
        assert_eq!(of(RunNowError::Unusable("the clock is not credible".into())), (409, "the clock is not credible".into()));
        assert_eq!(of(RunNowError::Stopping), (503, "the daemon is stopping".into()));
    }
}
