//! Connections of one client in one SPDY connection.
//!
//! A connection is two streams with the same `requestid`: first `error`, by which we say what went wrong, then `data`. Without flow control a
//! stream whose pod does not read holds up the others after some pieces, as it does with the kubelet.

use super::PIECE;
use super::door::Door;
use crate::spdy::{self, Decoder, Frame, FrameError};
use crate::spdy_headers::{HeaderError, Headers, Reader, Writer};
use bytes::{BufMut, Bytes};
use futures_util::{Stream, StreamExt};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Connections of one client at one time, and error streams that wait for their data stream.
const MAX_STREAMS: usize = 256;
/// Pieces on their way to a pod, for each connection.
const UPLOADS: usize = 8;

/// Reasons for ending a session before the client disconnects.
#[derive(Debug, thiserror::Error)]
enum SessionError {
    #[error("read a frame")]
    Frame(#[from] FrameError),
    #[error("read a stream's headers")]
    Headers(#[from] HeaderError),
    #[error("the client has disconnected")]
    Left,
}

/// One connection.
#[derive(Debug)]
struct Carried {
    error_stream: u32,
    /// `None` when the client has sent all.
    uploads: Option<mpsc::Sender<Bytes>>,
    task: AbortHandle,
}

struct Session {
    door: Arc<Door>,
    outgoing: mpsc::Sender<Bytes>,
    reader: Reader,
    writer: Writer,
    /// Error streams whose data stream has not come, by request.
    waiting: HashMap<String, u32>,
    carried: HashMap<u32, Carried>,
    tasks: JoinSet<()>,
}

/// Serves until the client leaves; all its connections end then.
pub(super) async fn serve(mut incoming: impl Stream<Item = Bytes> + Unpin, outgoing: mpsc::Sender<Bytes>, door: Arc<Door>) {
    let ended = async {
        let mut decoder = Decoder::default();
        let mut session = Session {
            door,
            outgoing,
            reader: Reader::new(),
            writer: Writer::new()?,
            waiting: HashMap::new(),
            carried: HashMap::new(),
            tasks: JoinSet::new(),
        };
        while let Some(bytes) = incoming.next().await {
            decoder.push(&bytes);
            while let Some(frame) = decoder.next()? {
                session.take(frame).await?;
            }
        }
        Ok::<(), SessionError>(())
    };
    if let Err(error) = ended.await {
        tracing::debug!(error = %podstead_telemetry::error_chain(&error), "a portforward session ended early");
    }
}

impl Session {
    async fn take(&mut self, frame: Frame) -> Result<(), SessionError> {
        match frame {
            Frame::Open { stream, headers } => {
                let headers = self.reader.read(&headers)?;
                let answer = match self.open(stream, &headers) {
                    true => spdy::reply(stream, &self.writer.none()?),
                    false => spdy::refuse(stream),
                };
                self.send(answer).await?;
            }
            Frame::Data { stream, bytes, is_last } => {
                let Some(carried) = self.carried.get_mut(&stream) else { return Ok(()) };
                if let Some(uploads) = carried.uploads.as_ref().filter(|_| !bytes.is_empty()) {
                    // A pod that takes no more is noticed by its connection.
                    uploads.send(bytes).await.ok();
                }
                if is_last {
                    carried.uploads = None;
                }
            }
            Frame::Reset { stream } => {
                self.waiting.retain(|_, waiting| *waiting != stream);
                if let Some(carried) = self.carried.remove(&stream) {
                    carried.task.abort();
                    // kubectl waits for the end of what went wrong, also after it has given up.
                    self.send(spdy::last(carried.error_stream, b"")).await?;
                }
            }
            // A message that does not fit may be dropped, because the client still processes earlier ones.
            Frame::Ping { id } => drop(self.outgoing.try_send(spdy::pong(id))),
        }
        Ok(())
    }

    async fn send(&self, frame: Bytes) -> Result<(), SessionError> {
        self.outgoing.send(frame).await.map_err(|_| SessionError::Left)
    }

    /// Takes a stream in; whether it has a meaning and there is room for it.
    fn open(&mut self, stream: u32, headers: &Headers) -> bool {
        while self.tasks.try_join_next().is_some() {}
        self.carried.retain(|_, carried| !carried.task.is_finished());
        let Some(request) = headers.get("requestid") else { return false };
        match headers.get("streamtype") {
            Some("error") if self.waiting.len() < MAX_STREAMS => {
                self.waiting.insert(request.to_owned(), stream);
                true
            }
            Some("data") if self.carried.len() < MAX_STREAMS => {
                let port = headers.get("port").and_then(|port| port.parse().ok());
                let (Some(error_stream), Some(port)) = (self.waiting.remove(request), port) else { return false };
                let (uploads, queue) = mpsc::channel(UPLOADS);
                let ends = Ends { door: Arc::clone(&self.door), port, stream, error_stream, outgoing: self.outgoing.clone() };
                let task = self.tasks.spawn(ends.carry(queue));
                self.carried.insert(stream, Carried { error_stream, uploads: Some(uploads), task });
                true
            }
            Some(_) | None => false,
        }
    }
}

/// Ends of one connection.
struct Ends {
    door: Arc<Door>,
    port: u16,
    stream: u32,
    error_stream: u32,
    outgoing: mpsc::Sender<Bytes>,
}

impl Ends {
    async fn carry(self, uploads: mpsc::Receiver<Bytes>) {
        let connection = match self.door.open(self.port).await {
            Ok(connection) => connection,
            Err(error) => {
                let message = podstead_telemetry::error_chain(&error).to_string();
                self.end(message.as_bytes()).await;
                return;
            }
        };
        let (from_pod, to_pod) = connection.stream.into_split();
        tokio::join!(upload(uploads, to_pod), self.download(from_pod));
    }

    async fn download(&self, mut from_pod: OwnedReadHalf) {
        loop {
            let mut frame = spdy::open_data(self.stream, PIECE);
            match from_pod.read_buf(&mut (&mut frame).limit(PIECE)).await {
                Ok(length) if length > 0 => {
                    if self.outgoing.send(spdy::close_data(frame, false)).await.is_err() {
                        return;
                    }
                }
                Ok(_) | Err(_) => break,
            }
        }
        self.end(b"").await;
    }

    /// Ends both streams; what went wrong goes first.
    async fn end(&self, message: &[u8]) {
        for frame in [spdy::last(self.error_stream, message), spdy::last(self.stream, b"")] {
            // A client that has left needs no end.
            self.outgoing.send(frame).await.ok();
        }
    }
}

async fn upload(mut uploads: mpsc::Receiver<Bytes>, mut to_pod: OwnedWriteHalf) {
    while let Some(bytes) = uploads.recv().await {
        if to_pod.write_all(&bytes).await.is_err() {
            return;
        }
    }
    // One that is gone already needs no end.
    to_pod.shutdown().await.ok();
}
