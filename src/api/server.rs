//! Connections: accept, limits, time-outs, and who is at the other end.

use super::access::{Caller, check_origin};
use super::dispatch::answer;
use super::request::{Connection, Counted};
use super::{ApiSocket, Backend, respond};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use podstead_sys::peer_groups::peer_groups;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections at one time. Each watch, log or exec holds one; more than this is a runaway client.
const MAX_CONNECTIONS: usize = 256;
/// Longest time for the head of a request to arrive; also how long an idle connection is kept.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest head of a request; an exec with a long command is the biggest.
const MAX_HEAD_BYTES: usize = 128 << 10;
/// Pause after a failed accept (out of file descriptors), so that the error is not a hot loop.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves requests until the future is dropped; then all connections are closed.
pub async fn serve(socket: ApiSocket, backend: Backend) -> Infallible {
    let backend = Arc::new(backend);
    let mut connections = JoinSet::new();
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    tracing::info!(socket = %socket.path().display(), "serving the API");
    loop {
        // Connections that ended are forgotten here, so that the set does not grow.
        while connections.try_join_next().is_some() {}
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return std::future::pending().await };
        match socket.listener.accept().await {
            Ok((stream, _)) => {
                let backend = Arc::clone(&backend);
                connections.spawn(async move { connection(stream, backend, Counted(Arc::new(slot))).await });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to the API");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: UnixStream, backend: Arc<Backend>, slot: Counted) {
    let caller = match peer(&stream) {
        Ok(caller) => Arc::new(caller),
        Err(error) => {
            tracing::warn!(%error, "cannot identify an API client");
            return;
        }
    };
    let shown = Arc::clone(&caller);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        let (backend, caller) = (Arc::clone(&backend), Arc::clone(&caller));
        request.extensions_mut().insert(slot.clone());
        async move {
            // Also here: `ssh -L` makes the socket a port of a laptop, where there may be a browser.
            match check_origin(request.method(), request.headers(), backend.node.as_str()) {
                Ok(()) => Ok::<_, Infallible>(answer(&backend, &caller, Connection::Socket, request).await),
                Err(failure) => Ok(respond::failure(&failure)),
            }
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        // A client that goes away in the middle of a watch or a log is everyday.
        tracing::debug!(peer = %shown, %error, "a connection to the API ended early");
    }
}

/// The process at the other end, as the kernel names it.
fn peer(stream: &UnixStream) -> std::io::Result<Caller> {
    let credentials = stream.peer_cred()?;
    let mut gids = peer_groups(stream)?;
    gids.push(credentials.gid());
    Ok(Caller { uid: credentials.uid(), pid: credentials.pid(), gids: gids.into(), limit: None })
}
