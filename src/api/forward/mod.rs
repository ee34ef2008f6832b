//! `portforward`: connections of clients, carried into pods.
//!
//! A connection is made to the pod's loopback, so that a server reaches its user whatever it listens on. In: a request that asks for one
//! of four protocols. `SPDY/3.1` (kubectl before 1.31), and the same inside of a WebSocket (kubectl since), carry any number of connections;
//! the WebSocket channels of client libraries carry one to each port of the query. [`RAW_PROTOCOL`], which `podstead port-forward`
//! speaks, carries one connection and nothing else: a failure to connect is an ordinary answer, each direction ends by
//! itself, and no connection can hold up another.

mod channels;
mod door;
mod session;

use super::Backend;
use super::access::Caller;
use super::failure::ApiFailure;
use super::published::PublishedPod;
use super::request::Query;
use super::respond::Answer;
use super::upgrade::{SPDY, STREAM_PROTOCOL, Stream, WebSocketHandshake, asks_for, switch, words};
use bytes::{Bytes, BytesMut};
use door::Door;
use futures_util::{SinkExt, StreamExt};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// One TCP connection, after the switch of protocols byte by byte.
pub const RAW_PROTOCOL: &str = "tcp.podstead.dev";
/// The protocol inside of SPDY.
const IN_SPDY: &str = "portforward.k8s.io";
/// SPDY inside of a WebSocket.
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
/// Bytes read at once.
const PIECE: usize = 32 << 10;
/// Pieces under way to the client; then connections wait for it.
const OUTGOING: usize = 16;

/// Carries connections to a pod.
pub(super) async fn forward(
    backend: &Backend,
    peer: &Caller,
    pod: &PublishedPod,
    query: &Query,
    request: Request<Incoming>,
) -> Answer {
    let door = Arc::new(Door::new(backend, pod));
    door.find().await.map_err(|error| ApiFailure::bad_request(error.to_string()))?;
    let log = |protocol| tracing::info!(pod = %pod.desired.full_name, %peer, protocol, "portforward");
    if asks_for(&request, RAW_PROTOCOL) {
        let port =
            query.number("port", "a port")?.ok_or_else(|| ApiFailure::bad_request("the parameter port is missing: ?port=..."))?;
        let mut connection = door.open(port).await.map_err(|error| ApiFailure::unavailable(error.to_string()))?;
        log(RAW_PROTOCOL);
        return switch(request, RAW_PROTOCOL, [], async move |mut client| {
            // Ends when both directions have ended, or one of them broke.
            tokio::io::copy_bidirectional_with_sizes(&mut client, &mut connection.stream, PIECE, PIECE).await.ok();
        });
    }
    if asks_for(&request, SPDY) {
        if !words(request.headers(), &STREAM_PROTOCOL).contains(&IN_SPDY) {
            return Err(ApiFailure::bad_request(format!("{STREAM_PROTOCOL} must be {IN_SPDY}")));
        }
        log(SPDY);
        let protocol = [(STREAM_PROTOCOL, HeaderValue::from_static(IN_SPDY))];
        return switch(request, SPDY, protocol, |stream| plain(stream, door));
    }
    if !asks_for(&request, "websocket") {
        return Err(ApiFailure::bad_request("port forwarding needs SPDY/3.1 or a WebSocket: use kubectl or podstead port-forward"));
    }
    let known = [TUNNEL, channels::V4, channels::OLD];
    // A client that offers none (kr8s) gets channels, as of an API server.
    let negotiate = |offered: &[&str]| match offered {
        [] => Some(""),
        offered => known.into_iter().find(|known| offered.contains(known)),
    };
    let handshake = WebSocketHandshake::of(&request, negotiate, &known.join(", "))?;
    if handshake.protocol == TUNNEL {
        log(TUNNEL);
        return handshake.accept(request, |socket| tunnelled(socket, door));
    }
    let ports = channels::ports(query)?;
    log(channels::V4);
    handshake.accept(request, |socket| channels::serve(socket, door, ports))
}

/// SPDY on a connection of its own.
async fn plain(stream: Stream, door: Arc<Door>) {
    let (reader, mut writer) = tokio::io::split(stream);
    let incoming = futures_util::stream::unfold(reader, async |mut reader| {
        let mut piece = BytesMut::with_capacity(PIECE);
        match reader.read_buf(&mut piece).await {
            Ok(length) if length > 0 => Some((piece.freeze(), reader)),
            Ok(_) | Err(_) => None,
        }
    });
    let incoming = std::pin::pin!(incoming);
    let (outgoing, mut queue) = mpsc::channel::<Bytes>(OUTGOING);
    let write = async {
        while let Some(bytes) = queue.recv().await {
            if writer.write_all(&bytes).await.is_err() {
                break;
            }
        }
    };
    // Cancel-safe: when the client has left, in one direction or the other, nothing is left to be done.
    tokio::select! {
        () = write => {}
        () = session::serve(incoming, outgoing, door) => {}
    }
}

/// SPDY inside of a WebSocket: its bytes, cut into messages anyhow.
async fn tunnelled(socket: WebSocketStream<Stream>, door: Arc<Door>) {
    let (mut sink, stream) = socket.split();
    let incoming = stream.take_while(|message| std::future::ready(!matches!(message, Ok(Message::Close(_)) | Err(_)))).filter_map(
        async |message| match message {
            Ok(Message::Binary(bytes)) => Some(bytes),
            Ok(_) | Err(_) => None,
        },
    );
    let incoming = std::pin::pin!(incoming);
    let (outgoing, mut queue) = mpsc::channel(OUTGOING);
    let write = async {
        while let Some(bytes) = queue.recv().await {
            if sink.send(Message::Binary(bytes)).await.is_err() {
                break;
            }
        }
    };
    // Cancel-safe as above.
    tokio::select! {
        () = write => {}
        () = session::serve(incoming, outgoing, door) => {}
    }
    sink.close().await.ok();
}
