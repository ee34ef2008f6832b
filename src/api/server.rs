//! Connections: accept, limits, time-outs, and who is at the other end.

use super::dispatch::answer;
use super::request::Peer;
use super::{ApiSocket, Backend};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
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
                connections.spawn(async move {
                    connection(stream, backend).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to the API");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: UnixStream, backend: Arc<Backend>) {
    let peer = match stream.peer_cred() {
        Ok(credentials) => Peer { uid: credentials.uid(), pid: credentials.pid() },
        Err(error) => {
            tracing::warn!(%error, "cannot identify an API client");
            return;
        }
    };
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let backend = Arc::clone(&backend);
        async move { Ok::<_, Infallible>(answer(&backend, peer, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        // A client that goes away in the middle of a watch or a log is everyday.
        tracing::debug!(%peer, %error, "a connection to the API ended early");
    }
}
