//! Connections to a pod, or to the host that an action names.

use podstead_sys::netns_socket::tcp_socket_in;
use podstead_telemetry::error_chain;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use tokio::net::{TcpSocket, TcpStream, lookup_host};

/// Address of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodAddress {
    /// From the host, at this address: that of the pod, or of the host for a pod on its network.
    OfPod(IpAddr),
    /// At 127.0.0.1 in the network namespace pinned there: the pod has nothing but `lo`.
    Inside(Arc<Path>),
}

impl PodAddress {
    /// The way to a pod with these addresses, primary first, and this network namespace (`None` with the host's).
    pub fn new(pod_ips: &[IpAddr], netns: Option<&Path>) -> Self {
        match (pod_ips.first(), netns) {
            (Some(ip), _) => PodAddress::OfPod(*ip),
            (None, Some(netns)) => PodAddress::Inside(netns.into()),
            (None, None) => PodAddress::OfPod(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        }
    }

    /// The pod's address as its own processes and messages name it.
    pub fn ip(&self) -> IpAddr {
        match self {
            PodAddress::OfPod(ip) => *ip,
            PodAddress::Inside(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }
}

/// `host:port` with brackets around an IPv6 address.
pub fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Opens a connection to `port` of the pod, or of `host` from this host. The error is a sentence in the kubelet's words.
pub(super) async fn connect(pod: &PodAddress, host: Option<&str>, port: u16) -> Result<TcpStream, String> {
    let Some(host) = host else {
        let address = SocketAddr::new(pod.ip(), port);
        return dial(pod, address).await.map_err(|error| dial_failed(address, &error));
    };
    let addresses: Vec<SocketAddr> = match lookup_host((host, port)).await {
        Ok(addresses) => addresses.collect(),
        Err(error) => return Err(format!("dial tcp: lookup {host}: {error}")),
    };
    let mut failure = format!("dial tcp: lookup {host}: no addresses");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = dial_failed(address, &error),
        }
    }
    Err(failure)
}

async fn dial(pod: &PodAddress, address: SocketAddr) -> io::Result<TcpStream> {
    match pod {
        PodAddress::OfPod(_) => TcpStream::connect(address).await,
        PodAddress::Inside(netns) => {
            let netns = Arc::clone(netns);
            let socket = tokio::task::spawn_blocking(move || tcp_socket_in(&netns, address)).await.map_err(io::Error::other)??;
            TcpSocket::from_std_stream(socket).connect(address).await
        }
    }
}

fn dial_failed(address: SocketAddr, error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => {
            format!("dial tcp {address}: connect: {}", nix::errno::Errno::from_raw(number).desc().to_lowercase())
        }
        None => format!("dial tcp {address}: {}", error_chain(error)),
    }
}
