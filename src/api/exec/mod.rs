//! `exec` and `attach`: a process' streams over a WebSocket.

pub mod channels;
mod session;

use super::access::Caller;
use super::failure::ApiFailure;
use super::published::PublishedPod;
use super::request::Query;
use super::respond::Answer;
use super::upgrade::{WebSocketHandshake, asks_for};
use super::{Backend, log};
use hyper::Request;
use hyper::body::Incoming;
use podstead_container::{ContainerState, ContainerStatus, ExecSpec};
use podstead_runtime::RuntimeError;

/// Size of a terminal until the client sends its own.
const DEFAULT_TERMINAL: (u16, u16) = (80, 24);

impl From<&RuntimeError> for ApiFailure {
    fn from(error: &RuntimeError) -> Self {
        let message = podstead_telemetry::error_chain(error).to_string();
        match error {
            RuntimeError::NotFound(_) => Self { code: 404, reason: "NotFound", message, subject: None },
            RuntimeError::ShimGone { .. } | RuntimeError::Failed { .. } => Self::internal(message),
        }
    }
}

/// Runs a process in a container. The process is started before the connection is upgraded, so that a failure to start it is an
/// ordinary answer.
pub(super) async fn exec(
    backend: &Backend,
    peer: &Caller,
    pod: &PublishedPod,
    query: &Query,
    request: Request<Incoming>,
) -> Answer {
    let handshake = handshake(&request)?;
    let args = query.all("command");
    let Some(program) = args.first().cloned() else {
        return Err(ApiFailure::bad_request("the parameter command is missing: ?command=..."));
    };
    let container = running_container(backend, pod, query).await?;
    let tty = query.flag("tty")?;
    let columns = query.number("columns", "a number of columns")?.unwrap_or(DEFAULT_TERMINAL.0);
    let rows = query.number("rows", "a number of rows")?.unwrap_or(DEFAULT_TERMINAL.1);
    let spec = ExecSpec { args, tty: tty.then_some((columns, rows)), stdin: query.flag("stdin")? };
    // Only the program: arguments may be secrets.
    tracing::info!(pod = %pod.desired.full_name, container = %container.name, %peer, program, "exec");
    let session = backend.runtime.exec(&pod.desired.uid, &container.id, &spec).await;
    let session = session.map_err(|error| ApiFailure::from(&error))?;
    handshake.accept(request, |socket| session::connect(socket, session))
}

/// Connects to the streams of a container.
pub(super) async fn attach(
    backend: &Backend,
    peer: &Caller,
    pod: &PublishedPod,
    query: &Query,
    request: Request<Incoming>,
) -> Answer {
    let handshake = handshake(&request)?;
    let container = running_container(backend, pod, query).await?;
    tracing::info!(pod = %pod.desired.full_name, container = %container.name, %peer, "attach");
    let session = backend.runtime.attach(&pod.desired.uid, &container.id).await;
    let session = session.map_err(|error| ApiFailure::from(&error))?;
    handshake.accept(request, |socket| session::connect(socket, session))
}

/// Checks that the client can speak as needed.
fn handshake(request: &Request<Incoming>) -> Result<WebSocketHandshake, ApiFailure> {
    if !asks_for(request, "websocket") {
        return Err(ApiFailure::bad_request(
            "exec and attach need a WebSocket: use kubectl 1.31 or later (older versions use SPDY), or podstead exec",
        ));
    }
    let speaks = format!("{} and {}", channels::V5, channels::V4);
    WebSocketHandshake::of(request, channels::negotiate, &speaks)
}

/// The container that the query names, as the runtime knows it now; it must run.
async fn running_container(backend: &Backend, pod: &PublishedPod, query: &Query) -> Result<ContainerStatus, ApiFailure> {
    let name = log::container_name(pod, query.get("container"))?;
    let observed = backend.runtime.observe(&pod.desired.uid).await.map_err(|error| ApiFailure::from(&error))?;
    let newest = observed.into_iter().flat_map(|pod| pod.containers).rfind(|container| container.name.as_str() == name);
    match newest {
        Some(container) if matches!(container.state, ContainerState::Running { .. }) => Ok(container),
        Some(_) | None => {
            Err(ApiFailure::bad_request(format!("container {name:?} of pod {:?} is not running", pod.desired.full_name.name)))
        }
    }
}
