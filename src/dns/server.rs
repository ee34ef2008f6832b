//! Serves DNS queries.

use super::alias::Alias;
use super::forward::{Forwarder, write_message};
use super::limits::{Limits, Use};
use super::message::{self, Decision, MAX_QUERY, Transport};
use super::zone::Zone;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::time::Instant;

/// Time that an idle connection is kept.
const IDLE: Duration = Duration::from_secs(10);
/// Before a socket that fails is asked again.
const PAUSE: Duration = Duration::from_millis(100);

/// The clients that may send queries.
pub trait Askers: Send + Sync + std::fmt::Debug + 'static {
    /// Returns true if this is the address of a pod.
    fn is_pod(&self, address: IpAddr) -> bool;
}

/// State shared by all sockets.
#[derive(Debug)]
pub(super) struct Server {
    zone: watch::Receiver<Arc<Zone>>,
    forwarder: Forwarder,
    askers: Arc<dyn Askers>,
    limits: Mutex<Limits>,
    /// Rotation of the first address of a name.
    turn: AtomicUsize,
    started: Instant,
}

/// Something limited, given back when it is dropped.
#[derive(Debug)]
struct Taken {
    server: Arc<Server>,
    what: Use,
    from: IpAddr,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.server.limits().end(self.what, self.from);
    }
}

impl Server {
    /// Answers from the zone of every moment, and asks `forwarder` for what is not in it.
    pub(super) fn new(zone: watch::Receiver<Arc<Zone>>, forwarder: Forwarder, askers: Arc<dyn Askers>) -> Self {
        let (limits, turn, started) = (Mutex::default(), AtomicUsize::new(0), Instant::now());
        Self { zone, forwarder, askers, limits, turn, started }
    }

    fn limits(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the address may send queries. Loopback stands for this host: pods on its network cannot be told from its other
    /// processes.
    fn may_ask(&self, from: IpAddr) -> bool {
        from.is_loopback() || self.askers.is_pod(from)
    }

    fn take(self: &Arc<Self>, what: Use, from: IpAddr) -> Option<Taken> {
        let is_free = self.limits().begin(what, from, self.started.elapsed());
        is_free.then(|| Taken { server: Arc::clone(self), what, from })
    }

    fn decide(&self, query: &[u8], from: IpAddr, transport: Transport) -> Decision {
        if !self.limits().ask(from, self.started.elapsed()) {
            return Decision::Drop;
        }
        let zone = Arc::clone(&self.zone.borrow());
        message::decide(query, &zone, transport, self.turn.fetch_add(1, Ordering::Relaxed))
    }

    /// Asks the host's name servers for a query, or for the name that its name stands for.
    async fn ask(&self, query: &[u8], alias: Option<Box<Alias>>, transport: Transport) -> Vec<u8> {
        let question = alias.as_ref().map_or(query, |alias| &alias.question);
        let answer = self.forwarder.ask(question, transport).await;
        match alias {
            Some(alias) => alias.reply(query, answer.as_deref(), transport),
            None => answer.unwrap_or_else(|| message::failure(query, transport)),
        }
    }

    /// Answers datagrams for ever.
    pub(super) async fn serve_datagrams(self: Arc<Self>, socket: UdpSocket) -> Infallible {
        let socket = Arc::new(socket);
        // One byte more than is read: what is longer is refused.
        let mut buffer = vec![0; MAX_QUERY + 1];
        loop {
            let (length, from) = match socket.recv_from(&mut buffer).await {
                Ok(received) => received,
                Err(error) => {
                    tracing::warn!(%error, "cannot receive DNS queries from pods");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            if !self.may_ask(from.ip()) {
                continue;
            }
            let query = &buffer[..length];
            let alias = match self.decide(query, from.ip(), Transport::Udp) {
                Decision::Drop => continue,
                Decision::Reply(reply) => {
                    // A full buffer loses it, as any datagram may be lost.
                    drop(socket.try_send_to(&reply, from));
                    continue;
                }
                Decision::Forward => None,
                Decision::Follow(alias) => Some(alias),
            };
            match self.take(Use::Forward, from.ip()) {
                None => drop(socket.try_send_to(&message::failure(query, Transport::Udp), from)),
                Some(taken) => {
                    let (server, socket, query) = (Arc::clone(&self), Arc::clone(&socket), query.to_vec());
                    tokio::spawn(async move {
                        let reply = server.ask(&query, alias, Transport::Udp).await;
                        socket.send_to(&reply, from).await.ok();
                        drop(taken);
                    });
                }
            }
        }
    }

    /// Answers through connections for ever.
    pub(super) async fn serve_connections(self: Arc<Self>, listener: TcpListener) -> Infallible {
        loop {
            let (stream, from) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept DNS connections from pods");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            if !self.may_ask(from.ip()) {
                continue;
            }
            if let Some(taken) = self.take(Use::Connection, from.ip()) {
                let server = Arc::clone(&self);
                tokio::spawn(async move {
                    if let Err(error) = server.serve(stream, from).await {
                        tracing::debug!(%from, %error, "DNS connection closed");
                    }
                    drop(taken);
                });
            }
        }
    }

    async fn serve(self: &Arc<Self>, mut stream: TcpStream, from: SocketAddr) -> io::Result<()> {
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        loop {
            let query = tokio::time::timeout(IDLE, read_query(&mut stream)).await.map_err(late)??;
            let (ready, alias) = match self.decide(&query, from.ip(), Transport::Tcp) {
                Decision::Drop => return Ok(()),
                Decision::Reply(reply) => (Some(reply), None),
                Decision::Forward => (None, None),
                Decision::Follow(alias) => (None, Some(alias)),
            };
            let reply = match ready {
                Some(reply) => reply,
                None => match self.take(Use::Forward, from.ip()) {
                    Some(_taken) => self.ask(&query, alias, Transport::Tcp).await,
                    None => message::failure(&query, Transport::Tcp),
                },
            };
            tokio::time::timeout(IDLE, write_message(&mut stream, &reply)).await.map_err(late)??;
        }
    }
}

async fn read_query(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = usize::from(stream.read_u16().await?);
    if length > MAX_QUERY {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the query is too long"));
    }
    let mut query = vec![0; length];
    stream.read_exact(&mut query).await?;
    Ok(query)
}
