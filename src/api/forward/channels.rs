//! `v4.channel.k8s.io` as client libraries speak it: for the n-th port of the query, channel 2n has its data and 2n+1 says what went wrong.
//! The first message of each has the port, little-endian. A connection cannot be ended in one direction only.

use super::door::Door;
use super::{OUTGOING, PIECE};
use crate::failure::ApiFailure;
use crate::request::Query;
use crate::upgrade::Stream;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// The protocol.
pub(super) const V4: &str = "v4.channel.k8s.io";
/// Its name with some clients.
pub(super) const OLD: &str = "portforward.k8s.io";
/// Ports of one query; a channel's number has a byte.
const MAX_PORTS: usize = 64;
/// Pieces on their way to a pod, for each port.
const UPLOADS: usize = 8;

/// The ports of the query, `ports=80&ports=443` or `ports=80,443`.
pub(super) fn ports(query: &Query) -> Result<Vec<u16>, ApiFailure> {
    let texts = query.all("ports").join(",");
    let ports: Option<Vec<u16>> = texts.split(',').map(|port| port.parse().ok().filter(|port| *port > 0)).collect();
    match ports {
        Some(ports) if ports.len() <= MAX_PORTS => Ok(ports),
        Some(_) => Err(ApiFailure::bad_request(format!("more than {MAX_PORTS} ports requested"))),
        None => {
            Err(ApiFailure::bad_request(format!("invalid value {texts:?} for ports: expected port numbers, as in ?ports=80,443")))
        }
    }
}

/// Serves until all connections have ended or the client leaves.
pub(super) async fn serve(socket: WebSocketStream<Stream>, door: Arc<Door>, ports: Vec<u16>) {
    let (mut sink, mut stream) = socket.split();
    let (outgoing, mut queue) = mpsc::channel::<Bytes>(OUTGOING);
    let mut tasks = JoinSet::new();
    let mut uploads = Vec::new();
    for (channel, port) in (0..=u8::MAX).step_by(2).zip(ports) {
        let (sender, receiver) = mpsc::channel(UPLOADS);
        uploads.push(sender);
        tasks.spawn(carry(Arc::clone(&door), port, channel, receiver, outgoing.clone()));
    }
    drop(outgoing);
    let write = async {
        // Ends with the last connection.
        while let Some(bytes) = queue.recv().await {
            if sink.send(Message::Binary(bytes)).await.is_err() {
                break;
            }
        }
    };
    let read = async {
        while let Some(Ok(message)) = stream.next().await {
            let bytes = match message {
                Message::Binary(bytes) => bytes,
                Message::Close(_) => break,
                Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
            };
            let Some(channel) = bytes.first().filter(|channel| **channel % 2 == 0) else { continue };
            if let Some(uploads) = uploads.get(usize::from(channel / 2)) {
                // A pod that takes no more is noticed by its connection.
                uploads.send(bytes.slice(1..)).await.ok();
            }
        }
    };
    // Cancel-safe: either the last connection has ended or the client has left.
    tokio::select! {
        () = write => {}
        () = read => {}
    }
    sink.close().await.ok();
}

async fn carry(door: Arc<Door>, port: u16, channel: u8, mut uploads: mpsc::Receiver<Bytes>, outgoing: mpsc::Sender<Bytes>) {
    let message = |channel: u8, bytes: &[u8]| {
        let mut message = BytesMut::with_capacity(bytes.len() + 1);
        message.put_u8(channel);
        message.put_slice(bytes);
        message.freeze()
    };
    // A client that has left is noticed by the one who reads from it.
    for channel in [channel, channel + 1] {
        outgoing.send(message(channel, &port.to_le_bytes())).await.ok();
    }
    let connection = match door.open(port).await {
        Ok(connection) => connection,
        Err(error) => {
            let text = podstead_telemetry::error_chain(&error).to_string();
            outgoing.send(message(channel + 1, text.as_bytes())).await.ok();
            return;
        }
    };
    let (mut from_pod, mut to_pod) = connection.stream.into_split();
    let upload = async {
        while let Some(bytes) = uploads.recv().await {
            if to_pod.write_all(&bytes).await.is_err() {
                break;
            }
        }
        // The client will not say anything more; the pod may.
        std::future::pending::<()>().await;
    };
    let download = async {
        loop {
            let mut bytes = BytesMut::with_capacity(PIECE + 1);
            bytes.put_u8(channel);
            match from_pod.read_buf(&mut (&mut bytes).limit(PIECE)).await {
                Ok(length) if length > 0 => {
                    if outgoing.send(bytes.freeze()).await.is_err() {
                        return;
                    }
                }
                Ok(_) | Err(_) => return,
            }
        }
    };
    // Cancel-safe: a connection that the pod has ended takes nothing any more.
    tokio::select! {
        () = upload => {}
        () = download => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_one_parameter_or_many() {
        let ports = |query| ports(&Query::parse(Some(query))).map_err(|failure| failure.message);
        assert_eq!(ports("ports=80&ports=443"), Ok(vec![80, 443]));
        assert_eq!(ports("ports=80,443"), Ok(vec![80, 443]));
        for wrong in ["", "ports=", "ports=0", "ports=80,http", "ports=65536"] {
            assert!(ports(wrong).is_err(), "{wrong}");
        }
        let many = vec!["1"; MAX_PORTS + 1].join(",");
        assert!(ports(&format!("ports={many}")).is_err());
    }
}
