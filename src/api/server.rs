//! Connections: accept, limits, time-outs, and who is at the other end.

use super::access::{Caller, Shares, check_origin};
use super::dispatch::answer;
use super::failure::ApiFailure;
use super::request::{Connection, Counted};
use super::{ApiSocket, Backend, respond};
use hyper::body::Incoming;
use hyper::header;
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
/// Those of them that are kept for root.
const FOR_ROOT: usize = 32;
/// Connections beyond the share of their user that are told so; more are closed without a word.
const MAX_REFUSALS: usize = 16;
/// Longest time for the request of one that is refused to arrive.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest time for the head of a request to arrive; also how long an idle connection is kept.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest head of a request; an exec with a long command is the biggest.
const MAX_HEAD_BYTES: usize = 128 << 10;
/// Pause after a failed accept (out of file descriptors), so that the error is not a hot loop.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves requests until the future is dropped; then all connections are closed.
pub async fn serve(socket: ApiSocket, backend: Backend) -> Infallible {
    let door = Arc::new(Door {
        backend,
        shares: Shares::new(MAX_CONNECTIONS, FOR_ROOT),
        refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
    });
    let mut connections = JoinSet::new();
    tracing::info!(socket = %socket.path().display(), "serving the API");
    loop {
        // Connections that ended are forgotten here, so that the set does not grow.
        while connections.try_join_next().is_some() {}
        match socket.listener.accept().await {
            Ok((stream, _)) => {
                if let Some(client) = door.admit(&stream) {
                    connections.spawn(Arc::clone(&door).connection(stream, client));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to the API");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

struct Door {
    backend: Backend,
    shares: Shares,
    refusals: Arc<Semaphore>,
}

/// A client of the socket.
struct Client {
    caller: Caller,
    /// Place that counts the connection.
    counted: Counted,
    /// The answer to each request, for a client beyond the share of its user.
    refusal: Option<ApiFailure>,
}

impl Door {
    /// The client of a connection; `None` for one that is closed at once.
    fn admit(&self, stream: &UnixStream) -> Option<Client> {
        let caller = peer(stream).inspect_err(|error| tracing::warn!(%error, "cannot identify an API client")).ok()?;
        match self.shares.take(caller.uid) {
            Ok(share) => Some(Client { caller, counted: Counted(Arc::new(share)), refusal: None }),
            Err(none) => {
                let refusal = self.backend.access.no_share(&caller, none);
                tracing::debug!(peer = %caller, error = refusal.message, "a connection to the API is refused");
                let permit = Arc::clone(&self.refusals).try_acquire_owned().ok()?;
                Some(Client { caller, counted: Counted(Arc::new(permit)), refusal: Some(refusal) })
            }
        }
    }

    async fn connection(self: Arc<Self>, stream: UnixStream, client: Client) {
        let shown = client.caller.clone();
        let timeout = if client.refusal.is_none() { HEADER_TIMEOUT } else { REFUSAL_TIMEOUT };
        let client = Arc::new(client);
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let (door, client) = (Arc::clone(&self), Arc::clone(&client));
            async move { Ok::<_, Infallible>(door.request(&client, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(timeout)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        if let Err(error) = connection.await {
            // A client that goes away in the middle of a watch or a log is everyday.
            tracing::debug!(peer = %shown, %error, "a connection to the API ended early");
        }
    }

    async fn request(&self, client: &Client, mut request: hyper::Request<Incoming>) -> hyper::Response<respond::Body> {
        if let Some(refusal) = &client.refusal {
            let mut response = respond::failure(refusal);
            response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
            return response;
        }
        request.extensions_mut().insert(client.counted.clone());
        // Also here: `ssh -L` makes the socket a port of a laptop, where there may be a browser.
        match check_origin(request.method(), request.headers(), self.backend.node.as_str()) {
            Ok(()) => answer(&self.backend, &client.caller, Connection::Socket, request).await,
            Err(failure) => respond::failure(&failure),
        }
    }
}

/// The process at the other end, as the kernel names it.
fn peer(stream: &UnixStream) -> std::io::Result<Caller> {
    let credentials = stream.peer_cred()?;
    let mut gids = peer_groups(stream)?;
    gids.push(credentials.gid());
    Ok(Caller { uid: credentials.uid(), pid: credentials.pid(), gids: gids.into(), limit: None })
}
