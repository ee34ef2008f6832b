//! Makes one check, and says in the kubelet's words what came of it.

use super::action::http::Asker;
use super::action::{Action, GrpcAnswer, PodAddress, authority, exec, grpc, http, tcp, within};
use super::schedule::Answer;
use super::spec::ProbeSpec;
use podstead_pod::{ContainerId, PodUid};
use podstead_runtime::Runtime;
use podstead_telemetry::error_chain;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Number of attempts for a check that cannot be made (kubelet rule D15).
const TRIES: usize = 3;

/// Result of a check, with a warning.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Checked {
    pub(super) answer: Answer,
    /// A success with a warning.
    pub(super) warning: Option<String>,
}

impl From<Answer> for Checked {
    fn from(answer: Answer) -> Self {
        Self { answer, warning: None }
    }
}

/// Subject of a check.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) uid: PodUid,
    pub(super) container: ContainerId,
    pub(super) address: PodAddress,
}

/// Makes the check of a probe. `execs` bounds the commands that run at once; waiting for it is not the container's fault and not
/// counted.
pub(super) async fn check(runtime: &Arc<dyn Runtime>, execs: &Semaphore, subject: &Subject, spec: &ProbeSpec) -> Checked {
    let limit = spec.timing.timeout;
    let address = &subject.address;
    match &spec.action {
        // Trying again would not help.
        Err(error) => Answer::Error(error.to_string()).into(),
        Ok(Action::Exec(command)) => {
            // The semaphore is never closed.
            let _place = execs.acquire().await.ok();
            run_command(runtime, subject, command, limit).await.into()
        }
        Ok(Action::Http(request)) => match within(limit, http::get(address, request, Asker::Probe)).await {
            Some(Ok(answer)) => judge(&answer),
            Some(Err(why)) => Answer::Failure(why).into(),
            None => Answer::Failure("context deadline exceeded (Client.Timeout exceeded while awaiting headers)".to_owned()).into(),
        },
        Ok(Action::Tcp(request)) => match within(limit, tcp::check(address, request)).await {
            Some(Ok(())) => Answer::Success.into(),
            Some(Err(why)) => Answer::Failure(why).into(),
            None => {
                let host = request.host.clone().unwrap_or_else(|| address.ip().to_string());
                Answer::Failure(format!("dial tcp {}: i/o timeout", authority(&host, request.port))).into()
            }
        },
        Ok(Action::Grpc(request)) => match within(limit, grpc::check(address, request)).await {
            Some(Ok(GrpcAnswer::Serving)) => Answer::Success.into(),
            Some(Ok(GrpcAnswer::NotServing(state))) => {
                Answer::Failure(format!("service unhealthy (responded with \"{state}\")")).into()
            }
            Some(Ok(GrpcAnswer::Status(grpc::UNIMPLEMENTED, message))) => {
                let what = "this server does not implement the grpc health protocol (grpc.health.v1.Health)";
                Answer::Failure(format!("error: {what}: {message}")).into()
            }
            Some(Ok(GrpcAnswer::Status(code, message))) => {
                Answer::Failure(format!("error: health rpc probe failed: code {code}: {message}")).into()
            }
            Some(Err(why)) => {
                let to = authority(&address.ip().to_string(), request.port);
                Answer::Failure(format!("error: failed to connect service \"{to}\": {why}")).into()
            }
            None => Answer::Failure(format!("timeout: health rpc did not complete within {limit:?}")).into(),
        },
    }
}

async fn run_command(runtime: &Arc<dyn Runtime>, subject: &Subject, command: &[String], limit: Duration) -> Answer {
    let mut problem = String::new();
    for _ in 0..TRIES {
        match within(limit, exec::run(runtime, &subject.uid, &subject.container, command)).await {
            Some(Ok(answer)) if answer.exit_code == 0 => return Answer::Success,
            Some(Ok(answer)) => return Answer::Failure(answer.output),
            None => return Answer::Failure(format!("command {command:?} timed out after {limit:?}")),
            Some(Err(error)) => problem = error_chain(&error).to_string(),
        }
    }
    Answer::Error(problem)
}

fn judge(answer: &http::HttpAnswer) -> Checked {
    match answer.status {
        200..300 => Answer::Success.into(),
        300..400 => {
            let warning = Some(format!("Probe terminated redirects, Response body: {}", answer.body));
            Checked { answer: Answer::Success, warning }
        }
        status => Answer::Failure(format!("HTTP probe failed with statuscode: {status}")).into(),
    }
}
