//! `exec` and `attach`: a process' streams over a WebSocket, or over SPDY/3.1 for older clients.

pub mod channels;
mod input;
mod ready;
mod session;
mod spdy_session;

use super::access::Caller;
use super::failure::ApiFailure;
use super::published::PublishedPod;
use super::request::Query;
use super::respond::Answer;
use super::upgrade::{SPDY, STREAM_PROTOCOL, WebSocketHandshake, asks_for, switch, words};
use super::{Backend, log};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use podstead_container::{ContainerState, ContainerStatus, CopyJob, ExecSpec};
use podstead_runtime::{ExecSession, RuntimeError};
use spdy_session::Wanted;
use std::path::PathBuf;

/// `PATH_MAX`.
const MAX_PATH: usize = 4096;

/// Size of a terminal until the client sends its own.
const DEFAULT_TERMINAL: (u16, u16) = (80, 24);

impl From<&RuntimeError> for ApiFailure {
    fn from(error: &RuntimeError) -> Self {
        let message = podstead_telemetry::error_chain(error).to_string();
        match error {
            RuntimeError::NotFound(_) => Self { code: 404, reason: "NotFound", message, subject: None, causes: Vec::new() },
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
    let carrier = Carrier::of(&request, query)?;
    let spec = match copy_job(query)? {
        Some(job) => ExecSpec::copying(job),
        None => program(query)?,
    };
    let container = running_container(backend, pod, query).await?;
    // Only the program: arguments may be secrets.
    let program = spec.args.first().map(String::as_str).unwrap_or_default();
    tracing::info!(pod = %pod.desired.full_name, container = %container.name, %peer, program, "exec");
    let session = backend.runtime.exec(&pod.desired.uid, &container.id, &spec).await;
    let session = session.map_err(|error| ApiFailure::from(&error))?;
    carrier.accept(request, session)
}

fn program(query: &Query) -> Result<ExecSpec, ApiFailure> {
    let args = query.all("command");
    if args.is_empty() {
        return Err(ApiFailure::bad_request("the parameter command is missing: ?command=..."));
    }
    let tty = query.flag("tty")?;
    let columns = query.number("columns", "a number of columns")?.unwrap_or(DEFAULT_TERMINAL.0);
    let rows = query.number("rows", "a number of rows")?.unwrap_or(DEFAULT_TERMINAL.1);
    Ok(ExecSpec { args, tty: tty.then_some((columns, rows)), stdin: query.flag("stdin")?, copy: None })
}

/// Files to copy instead of a program to run: `?copyFrom=PATH`, or `?copyInto=PATH&name=NAME&preserve=true`.
fn copy_job(query: &Query) -> Result<Option<CopyJob>, ApiFailure> {
    let path = |text: &str| match text.len() {
        1..=MAX_PATH if !text.contains('\0') => Ok(PathBuf::from(text)),
        _ => Err(ApiFailure::bad_request(format!("a path to copy has 1 to {MAX_PATH} bytes, and no NUL"))),
    };
    match (query.get("copyFrom"), query.get("copyInto")) {
        (None, None) => Ok(None),
        (Some(from), None) => Ok(Some(CopyJob::From { path: path(from)? })),
        (None, Some(into)) => {
            let name = query.get("name").unwrap_or_default();
            if name.is_empty() || name.contains(['/', '\0']) || matches!(name, "." | "..") {
                return Err(ApiFailure::bad_request("copyInto needs the parameter name: the name of a file"));
            }
            let preserve = query.flag("preserve")?;
            Ok(Some(CopyJob::Into { path: path(into)?, name: name.to_owned(), preserve }))
        }
        (Some(_), Some(_)) => Err(ApiFailure::bad_request("copyFrom and copyInto exclude each other")),
    }
}

/// Connects to the streams of a container.
pub(super) async fn attach(
    backend: &Backend,
    peer: &Caller,
    pod: &PublishedPod,
    query: &Query,
    request: Request<Incoming>,
) -> Answer {
    let carrier = Carrier::of(&request, query)?;
    let container = running_container(backend, pod, query).await?;
    tracing::info!(pod = %pod.desired.full_name, container = %container.name, %peer, "attach");
    let session = backend.runtime.attach(&pod.desired.uid, &container.id).await;
    let session = session.map_err(|error| ApiFailure::from(&error))?;
    carrier.accept(request, session)
}

/// The protocol by which the client wants the streams.
enum Carrier {
    WebSocket(WebSocketHandshake),
    Spdy(Wanted),
}

impl Carrier {
    /// Checks that the client can speak as needed.
    fn of(request: &Request<Incoming>, query: &Query) -> Result<Self, ApiFailure> {
        if asks_for(request, SPDY) {
            let offered = words(request.headers(), &STREAM_PROTOCOL);
            if !offered.contains(&spdy_session::V4) {
                return Err(ApiFailure::bad_request(format!("{STREAM_PROTOCOL} must offer {}", spdy_session::V4)));
            }
            return Ok(Self::Spdy(Wanted {
                stdin: query.flag("stdin")?,
                stdout: query.flag("stdout")?,
                stderr: query.flag("stderr")?,
                tty: query.flag("tty")?,
            }));
        }
        if !asks_for(request, "websocket") {
            return Err(ApiFailure::bad_request("exec and attach need a WebSocket or SPDY/3.1: use kubectl or podstead exec"));
        }
        let speaks = format!("{} and {}", channels::V5, channels::V4);
        WebSocketHandshake::of(request, channels::negotiate, &speaks).map(Self::WebSocket)
    }

    /// Answers the handshake and serves the session when the connection has been switched over.
    fn accept(self, request: Request<Incoming>, session: ExecSession) -> Answer {
        match self {
            Self::WebSocket(handshake) => handshake.accept(request, |socket| session::connect(socket, session)),
            Self::Spdy(wanted) => {
                let protocol = [(STREAM_PROTOCOL, HeaderValue::from_static(spdy_session::V4))];
                switch(request, SPDY, protocol, move |stream| spdy_session::connect(stream, session, wanted))
            }
        }
    }
}

/// The container that the query names, as the runtime knows it now; it must run.
async fn running_container(backend: &Backend, pod: &PublishedPod, query: &Query) -> Result<ContainerStatus, ApiFailure> {
    let name = log::container_name(pod, query.get("container"))?;
    let observed = backend.runtime.observe(&pod.desired.uid).await.map_err(|error| ApiFailure::from(&error))?;
    let newest = observed.into_iter().flat_map(|pod| pod.containers).rfind(|container| container.name.as_str() == name);
    match newest {
        Some(container) if matches!(container.state, ContainerState::Running { .. }) => Ok(container),
        Some(_) | None => {
            let why = log::waiting_reason(pod, &name).map(|reason| format!(": {reason}")).unwrap_or_default();
            let pod = &pod.desired.full_name.name;
            Err(ApiFailure::bad_request(format!("container {name:?} of pod {pod:?} is not running{why}")))
        }
    }
}
