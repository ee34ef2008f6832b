//! All connections of a shim.

use super::client::{Client, ReadEnd, Role};
use super::poller::{ClientKey, Poller};
use podstead_container::protocol::ToClient;
use podstead_container::protocol::frame::FrameKind;
use std::collections::BTreeMap;

/// The connections. What a client had a part in, e.g. its exec, is not known here: who is told that one has gone ends that.
#[derive(Debug, Default)]
pub(super) struct Clients(BTreeMap<ClientKey, Client>);

impl Clients {
    pub(super) fn insert(&mut self, key: ClientKey, client: Client) {
        self.0.insert(key, client);
    }

    pub(super) fn get(&self, key: ClientKey) -> Option<&Client> {
        self.0.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: ClientKey) -> Option<&mut Client> {
        self.0.get_mut(&key)
    }

    /// Ends a connection.
    pub(super) fn remove(&mut self, key: ClientKey, poller: &mut Poller) -> Option<Client> {
        let client = self.0.remove(&key)?;
        client.unregister(poller);
        Some(client)
    }

    /// Sends a message. Nothing to a client that has gone before.
    pub(super) fn send(&mut self, key: ClientKey, message: &ToClient, poller: &Poller) -> ReadEnd {
        self.0.get_mut(&key).map_or(ReadEnd::Open, |client| client.send(message, poller))
    }

    /// Sends a frame. Nothing to a client that has gone before.
    pub(super) fn send_frame(&mut self, key: ClientKey, kind: FrameKind, payload: &[u8], poller: &Poller) -> ReadEnd {
        self.0.get_mut(&key).map_or(ReadEnd::Open, |client| client.send_frame(kind, payload, poller))
    }

    /// Clients that get events.
    pub(super) fn subscribers(&self) -> Vec<ClientKey> {
        let subscribed = |client: &Client| matches!(client.role, Role::Requests { subscribed: true });
        self.0.iter().filter(|(_, client)| subscribed(client)).map(|(key, _)| *key).collect()
    }

    /// Shows output to attached clients, and returns those that have gone. One that does not keep up misses output and is told how much:
    /// the log has it all, and the container must not wait.
    pub(super) fn show(&mut self, attached: &[ClientKey], kind: FrameKind, output: &[u8], poller: &Poller) -> Vec<ClientKey> {
        let mut gone = Vec::new();
        for key in attached {
            let Some(client) = self.0.get_mut(key) else { continue };
            if client.is_congested() {
                client.missed += output.len() as u64;
                continue;
            }
            let mut end = ReadEnd::Open;
            if client.missed > 0 {
                let notice = format!(
                    "\r\n[podstead: {} bytes skipped: the client reads too slowly]\r\n",
                    std::mem::take(&mut client.missed)
                );
                end = client.send_frame(FrameKind::Stderr, notice.as_bytes(), poller);
            }
            if end == ReadEnd::Closed || client.send_frame(kind, output, poller) == ReadEnd::Closed {
                gone.push(*key);
            }
        }
        gone
    }
}
