//! The TLS port for kubectl: on 127.0.0.1 and ::1, for clients with a token.
//!
//! A connection is greeted first: a few at one time, which have seconds for handshake and first request. With a valid token it is one of the established
//! ones, so that clients without a token cannot keep those with one away. Where more are waiting, the oldest guest has to go before its time is up:
//! a crowd that only holds connections delays others for a moment, not for minutes. Of the established ones each user has a share.

use super::Backend;
use super::access::{Caller, Share, Shares, check_origin};
use super::dispatch::answer;
use super::failure::ApiFailure;
use super::request::{Connection, Counted};
use super::respond::{self, Body};
use super::server::ACCEPT_PAUSE;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use podstead_sys_async::tcp_listener;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

/// Connections that have shown no valid token yet.
const MAX_GREETINGS: usize = 16;
/// Time that a guest has in any case; handshake and request of a client on this host take milliseconds.
const WELCOME: Duration = Duration::from_millis(100);
/// Connections with a valid token. Each watch, log or exec holds one.
const MAX_CONNECTIONS: usize = 72;
/// Those of them that are kept for root.
const FOR_ROOT: usize = 8;
/// Longest time for a handshake, and for the head of a request; also how long an idle connection is kept.
const GREETING: Duration = Duration::from_secs(5);
/// Largest head of a request; an exec with a long command is the biggest.
const MAX_HEAD_BYTES: usize = 128 << 10;
/// Pause before an address that cannot be had is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// Serves the API at `port` of both loopback addresses until the future is dropped. Without a certificate it serves nothing.
pub async fn serve_tls(port: u16, backend: Backend) -> Infallible {
    let Some(acceptor) = backend.access.server().map(|server| TlsAcceptor::from(Arc::clone(&server.tls))) else {
        return std::future::pending().await;
    };
    let port = Arc::new(Port {
        backend,
        acceptor,
        greetings: Arc::new(Semaphore::new(MAX_GREETINGS)),
        guests: Mutex::default(),
        connections: Shares::new(MAX_CONNECTIONS, FOR_ROOT),
        number: port,
    });
    let v6 = Arc::clone(&port).serve(IpAddr::V6(Ipv6Addr::LOCALHOST));
    let v4 = Arc::clone(&port).serve(IpAddr::V4(Ipv4Addr::LOCALHOST));
    // Neither ends.
    tokio::select! {
        never = v4 => match never {},
        never = v6 => match never {},
    }
}

struct Port {
    backend: Backend,
    acceptor: TlsAcceptor,
    greetings: Arc<Semaphore>,
    /// Connections that were let in as greetings, the oldest first. Some are over or established by now.
    guests: Mutex<VecDeque<Guest>>,
    connections: Shares,
    number: u16,
}

/// A connection that had no valid token when it came.
struct Guest {
    since: Instant,
    seat: Weak<Mutex<Seat>>,
    leave: Arc<Notify>,
}

/// Permit of a connection.
enum Seat {
    /// No valid token was seen.
    Greeting(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit),
    /// A valid token was seen.
    Established(#[expect(dead_code, reason = "held, not read")] Share),
    /// No valid token was seen in time; the connection ends.
    Dismissed,
}

impl Port {
    async fn serve(self: Arc<Self>, address: IpAddr) -> Infallible {
        let address = SocketAddr::new(address, self.number);
        let listener = tcp_listener::listen(address, RETRY, |error| {
            tracing::warn!(%address, %error, "cannot listen for API requests; retrying");
        })
        .await;
        tracing::info!(%address, "serving the API over TLS");
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            self.accept(&listener, &mut connections).await;
        }
    }

    async fn accept(self: &Arc<Self>, listener: &TcpListener, connections: &mut JoinSet<()>) {
        match listener.accept().await {
            Ok((stream, _)) => {
                let seat = Arc::new(Mutex::new(Seat::Greeting(self.greeting().await)));
                let leave = Arc::new(Notify::new());
                self.guests().push_back(Guest { since: Instant::now(), seat: Arc::downgrade(&seat), leave: Arc::clone(&leave) });
                let port = Arc::clone(self);
                connections.spawn(async move {
                    tokio::select! {
                        () = leave.notified() => tracing::debug!("a connection to the API without a token gave way to a newer one"),
                        () = port.connection(stream, seat) => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a TLS connection to the API");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    fn guests(&self) -> MutexGuard<'_, VecDeque<Guest>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A free permit for a greeting, or that of the oldest guest once that had its time.
    async fn greeting(&self) -> OwnedSemaphorePermit {
        loop {
            let since = {
                let mut guests = self.guests();
                guests.retain(Guest::is_waiting);
                guests.front().map_or_else(Instant::now, |guest| guest.since)
            };
            let free = Arc::clone(&self.greetings).acquire_owned();
            // Both may be given up at any time: a waiting acquire holds nothing.
            tokio::select! {
                biased;
                Ok(permit) = free => return permit,
                () = tokio::time::sleep_until(since + WELCOME) => {
                    if let Some(guest) = self.guests().pop_front() {
                        guest.dismiss();
                    }
                }
            }
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, seat: Arc<Mutex<Seat>>) {
        // Small answers would wait for the acknowledgement of others.
        stream.set_nodelay(true).ok();
        let stream = match tokio::time::timeout(GREETING, self.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake with the API failed"),
            Err(_) => return tracing::debug!("a TLS handshake with the API took too long"),
        };
        let port = Arc::clone(&self);
        let service = service_fn(move |request: Request<Incoming>| {
            let (port, seat) = (Arc::clone(&port), Arc::clone(&seat));
            let mut request = request;
            request.extensions_mut().insert(Counted(Arc::clone(&seat) as _));
            async move { Ok::<_, Infallible>(port.request(&seat, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(GREETING)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a TLS connection to the API ended early");
        }
    }

    async fn request(&self, seat: &Mutex<Seat>, request: Request<Incoming>) -> Response<Body> {
        match self.admit(seat, &request) {
            Ok(caller) => answer(&self.backend, &caller, Connection::Tls, request).await,
            Err(failure) => {
                let mut response = respond::failure(&failure);
                // Whoever has no token does not keep a connection either.
                response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
                response
            }
        }
    }

    /// The client, if its request has a valid token; then its connection is an established one.
    fn admit(&self, seat: &Mutex<Seat>, request: &Request<Incoming>) -> Result<Caller, ApiFailure> {
        check_origin(request.method(), request.headers(), self.backend.node.as_str())?;
        let caller = self.backend.access.caller_of(bearer(request).unwrap_or_default())?;
        let mut seat = seat.lock().unwrap_or_else(PoisonError::into_inner);
        match *seat {
            Seat::Greeting(_) => {
                let share = self.connections.take(caller.uid);
                *seat = Seat::Established(share.map_err(|none| self.backend.access.no_share(&caller, none))?);
            }
            Seat::Established(_) => {}
            Seat::Dismissed => return Err(ApiFailure::too_many("too many connections without a token".to_owned())),
        }
        Ok(caller)
    }
}

impl Guest {
    fn is_waiting(&self) -> bool {
        self.seat.upgrade().is_some_and(|seat| matches!(*seat.lock().unwrap_or_else(PoisonError::into_inner), Seat::Greeting(_)))
    }

    /// Ends the connection, unless it has shown a token by now. Its permit is free at once.
    fn dismiss(&self) {
        let Some(seat) = self.seat.upgrade() else { return };
        let mut seat = seat.lock().unwrap_or_else(PoisonError::into_inner);
        if let Seat::Greeting(_) = *seat {
            *seat = Seat::Dismissed;
            self.leave.notify_one();
        }
    }
}

/// The token of `Authorization: Bearer`.
fn bearer(request: &Request<Incoming>) -> Option<&str> {
    let (scheme, token) = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
