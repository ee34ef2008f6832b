//! The resolver of pods: they find each other by name, and everything else through the host's name servers.
//!
//! ```text
//!   statuses of pods --> records --> zone (watch) --+
//!   resolv.conf ------> settings --> servers (watch) |
//!                                        |          v
//!   pod -> gateway:53 (rules) -> sockets -> server: limits, message (decides) -> answer
//!                                        +-- forward -> the host's name servers
//! ```
//!
//! Owns its sockets, opened before anything else asks for them, and the tasks behind them. In: what is published of pods (through
//! [`Records`], a status sink), the host's `resolv.conf`. Out: answers to pods, and to nobody else. The daemon spawns [`Resolver::run`]; it
//! never ends. While the daemon is away, there are no answers.
//!
//! What is decided is decided in pure modules: `zone`, `message`, `alias`, `exchange`, `limits`, `upstreams`.

mod alias;
mod exchange;
mod forward;
mod limits;
mod listeners;
mod message;
mod records;
mod server;
mod services;
mod settings;
mod sockets;
mod upstreams;
mod zone;

pub use listeners::Listeners;
pub use records::Records;
pub use server::Askers;
pub use services::{NamesOfServices, ServiceNames};
pub use settings::SettingsFiles;
pub use sockets::{SocketError, Sockets};

use forward::Forwarder;
use server::Server;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Sockets, and what is answered through them.
#[derive(Debug)]
pub struct Resolver {
    sockets: Vec<Sockets>,
    further: mpsc::UnboundedReceiver<Sockets>,
    records: Arc<Records>,
    settings: SettingsFiles,
    askers: Arc<dyn Askers>,
}

impl Resolver {
    /// Puts it together. Questions that have come to the sockets wait until it runs. `further` come while it does, see [`Listeners`].
    pub fn new(
        sockets: Vec<Sockets>,
        further: mpsc::UnboundedReceiver<Sockets>,
        records: Arc<Records>,
        settings: SettingsFiles,
        askers: Arc<dyn Askers>,
    ) -> Self {
        Self { sockets, further, records, settings, askers }
    }

    /// Answers until the daemon ends. Returns if one of its tasks does, which is a mistake.
    pub async fn run(self) {
        let Self { sockets, mut further, records, settings, askers } = self;
        let (sender, servers) = watch::channel(settings.name_servers());
        let server = Arc::new(Server::new(records.zone(), Forwarder::new(servers), askers));
        let mut tasks = JoinSet::new();
        tasks.spawn(settings.follow(sender));
        tasks.spawn(records.follow_sharing());
        sockets.into_iter().for_each(|sockets| serve(&server, sockets, &mut tasks));
        loop {
            tokio::select! {
                Some(sockets) = further.recv() => serve(&server, sockets, &mut tasks),
                Some(_) = tasks.join_next() => return,
                else => return,
            }
        }
    }
}

fn serve(server: &Arc<Server>, sockets: Sockets, tasks: &mut JoinSet<Infallible>) {
    let Sockets { port: _, udp, tcp } = sockets;
    for socket in udp {
        tasks.spawn(Arc::clone(server).serve_datagrams(socket));
    }
    for listener in tcp {
        tasks.spawn(Arc::clone(server).serve_connections(listener));
    }
}
