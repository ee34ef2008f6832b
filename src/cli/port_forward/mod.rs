//! `podstead port-forward`: ports of this machine, connected to ports of a pod.
//!
//! Each connection uses a separate connection to the daemon. If the pod is replaced or the daemon restarts, open connections are closed,
//! and new connections reach the current pod.

mod ports;

use super::Context;
use super::client::{Client, Target};
use super::pods::{PodNamespaceArgs, name_of, pod_target};
use super::workloads::{choose_pod, service_meant};
use clap::Args;
use ports::{ForwardedPort, PortPair};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};

/// Pause after a failed accept (out of file descriptors), so that the error is not a hot loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// Bytes copied at once.
const PIECE: usize = 32 << 10;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct PortForwardArgs {
    /// Local addresses to listen on: localhost, or IP addresses
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', default_value = "localhost")]
    address: Vec<ListenAddress>,
    #[command(flatten)]
    namespace: PodNamespaceArgs,
    /// Name of the pod, of which the "-<node>" suffix may be omitted; or a workload or a Service, such as deploy/web
    pod: String,
    /// Local port and port of the pod or the Service (number or name); 80: the same local port; :80: any free local port
    #[arg(required = true, value_name = "[LOCAL:]REMOTE")]
    ports: Vec<PortPair>,
}

/// Address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListenAddress {
    /// Both loopback addresses, as far as this machine has them.
    Localhost,
    Ip(IpAddr),
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "localhost" => Ok(Self::Localhost),
            _ => text.parse().map(Self::Ip).map_err(|_| "expected localhost or an IP address".to_owned()),
        }
    }
}

pub(super) fn run(args: &PortForwardArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    context.block_on(async {
        let namespace = args.namespace.namespace.as_deref();
        let service = service_meant(&client, &args.pod, namespace).await?;
        let pod = choose_pod(&client, &args.pod, namespace).await?;
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Unknown");
        if phase != "Running" {
            anyhow::bail!("unable to forward port because pod {} is not running. Current status={phase}", name_of(&pod));
        }
        let ports: Result<Vec<_>, _> = args.ports.iter().map(|port| port.resolve(&pod, service.as_ref())).collect();
        let ports = ports.map_err(anyhow::Error::msg)?;
        let mut stops = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?];
        let mut listeners = Vec::new();
        for port in ports {
            for address in &args.address {
                listeners.extend(listen(*address, port).await?);
            }
        }
        for (listener, port) in listeners {
            let target = pod_target(&pod, &["portforward"]).with("port", &port.remote.to_string());
            tokio::spawn(accept(listener, port, client.clone(), target));
        }
        let [interrupt, terminate, hangup] = &mut stops;
        // Cancel-safe: any signal is the end.
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Listens and says where.
async fn listen(address: ListenAddress, mut port: ForwardedPort) -> anyhow::Result<Vec<(TcpListener, ForwardedPort)>> {
    let (ips, all): (&[IpAddr], bool) = match &address {
        ListenAddress::Localhost => (&[IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)], false),
        ListenAddress::Ip(ip) => (std::slice::from_ref(ip), true),
    };
    let mut listeners = Vec::new();
    let mut failure = None;
    for ip in ips {
        let wanted = SocketAddr::new(*ip, port.local);
        match TcpListener::bind(wanted).await {
            Ok(listener) => {
                let bound = listener.local_addr()?;
                // The other family has the same port.
                port.local = bound.port();
                writeln!(io::stdout(), "Forwarding from {bound} -> {}", port.remote)?;
                listeners.push((listener, port));
            }
            Err(error) => {
                failure.get_or_insert((wanted, error));
            }
        }
    }
    match failure {
        // A machine without IPv6 has half of localhost; one with another server on half of it would have both answer.
        Some((wanted, error)) if all || listeners.is_empty() || error.kind() == io::ErrorKind::AddrInUse => {
            Err(anyhow::Error::new(error).context(format!("unable to listen on {wanted}")))
        }
        Some(_) | None => Ok(listeners),
    }
}

async fn accept(listener: TcpListener, port: ForwardedPort, client: Client, target: Target) {
    let target = Arc::new(target);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                say(&format!("Handling connection for {}", port.local));
                tokio::spawn(carry(stream, port, client.clone(), Arc::clone(&target)));
            }
            Err(error) => {
                say(&format!("cannot accept a connection: {error}"));
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn carry(mut stream: TcpStream, port: ForwardedPort, client: Client, target: Arc<Target>) {
    match client.open_raw((*target).clone()).await {
        Ok(mut daemon) => {
            // Ends when both directions have ended, or on an error, which both ends notice.
            tokio::io::copy_bidirectional_with_sizes(&mut stream, &mut daemon, PIECE, PIECE).await.ok();
        }
        Err(error) => say(&format!(
            "an error occurred forwarding {} -> {}: {}",
            port.local,
            port.remote,
            podstead_telemetry::error_chain(&error)
        )),
    }
}

fn say(text: &str) {
    // A closed stderr is not an error.
    writeln!(io::stderr(), "{text}").ok();
}
