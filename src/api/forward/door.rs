//! Connecting to a pod's loopback.

use crate::Backend;
use crate::published::PublishedPod;
use nix::errno::Errno;
use podstead_container::SandboxState;
use podstead_pod::PodUid;
use podstead_runtime::{Runtime, RuntimeError};
use podstead_sys::netns_socket::tcp_socket_in;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Connections that are carried at one time, of all clients.
const MAX_CONNECTIONS: usize = 1024;
static CONNECTIONS: Semaphore = Semaphore::const_new(MAX_CONNECTIONS);
/// Loopback answers at once, unless a packet rule in the pod drops the question.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Errors of a connection to a pod, with the messages of the kubelet.
#[derive(Debug, thiserror::Error)]
pub(super) enum DoorError {
    #[error("unable to forward port because pod {pod} is not running")]
    NotRunning { pod: String },
    #[error("get the status of pod {pod}")]
    Unknown {
        pod: String,
        #[source]
        source: RuntimeError,
    },
    #[error("too many forwarded connections: the limit is {MAX_CONNECTIONS}")]
    TooMany,
    #[error("error forwarding port {port} to pod {pod}, uid {uid}: connect to localhost:{port} in the pod: {}", words(.error))]
    Refused { port: u16, pod: String, uid: PodUid, error: io::Error },
}

/// Error text of the system, without its number.
fn words(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), |number| Errno::from_raw(number).desc().to_lowercase())
}

/// The way into one pod.
#[derive(Debug)]
pub(super) struct Door {
    runtime: Arc<dyn Runtime>,
    uid: PodUid,
    pod: String,
}

/// A connection; it counts while it lives.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    _permit: SemaphorePermit<'static>,
}

impl Door {
    pub(super) fn new(backend: &Backend, pod: &PublishedPod) -> Self {
        let desired = &pod.desired;
        Self { runtime: Arc::clone(&backend.runtime), uid: desired.uid.clone(), pod: desired.full_name.name.clone() }
    }

    /// The current network namespace of the pod; `None` for that of the host.
    pub(super) async fn find(&self) -> Result<Option<PathBuf>, DoorError> {
        let observed = self.runtime.observe(&self.uid).await;
        let observed = observed.map_err(|source| DoorError::Unknown { pod: self.pod.clone(), source })?;
        let sandbox = observed.and_then(|pod| pod.sandbox).filter(|sandbox| sandbox.state == SandboxState::Ready);
        sandbox.map(|sandbox| sandbox.netns).ok_or_else(|| DoorError::NotRunning { pod: self.pod.clone() })
    }

    /// Connects to a port, at 127.0.0.1 or else at ::1.
    pub(super) async fn open(&self, port: u16) -> Result<Connection, DoorError> {
        let permit = CONNECTIONS.try_acquire().map_err(|_| DoorError::TooMany)?;
        let netns = self.find().await?;
        let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
        match connect(netns.clone(), SocketAddr::new(v4, port)).await {
            Ok(stream) => Ok(Connection { stream, _permit: permit }),
            Err(error) => match connect(netns, SocketAddr::new(v6, port)).await {
                Ok(stream) => Ok(Connection { stream, _permit: permit }),
                Err(_) => Err(DoorError::Refused { port, pod: self.pod.clone(), uid: self.uid.clone(), error }),
            },
        }
    }
}

async fn connect(netns: Option<PathBuf>, address: SocketAddr) -> io::Result<TcpStream> {
    let connect = async {
        match netns {
            Some(netns) => {
                let made = tokio::task::spawn_blocking(move || tcp_socket_in(&netns, address)).await;
                TcpSocket::from_std_stream(made.map_err(io::Error::other)??).connect(address).await
            }
            None => TcpStream::connect(address).await,
        }
    };
    tokio::time::timeout(CONNECT_TIMEOUT, connect).await.unwrap_or_else(|_| Err(Errno::ETIMEDOUT.into()))
}
