//! The stream of files between the WebSocket and the thread that reads or makes the files.

use super::super::{Socket, close, session_error};
use crate::printable::printable;
use anyhow::anyhow;
use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use podstead_api::channels::{self, ClientMessage, ServerMessage};
use std::io::{self, Read, Write};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

/// Pieces on the way.
const QUEUE: usize = 8;
/// Bytes that are sent at once.
const PIECE: usize = 64 << 10;
/// Bytes of messages that are kept.
const MAX_MESSAGES: usize = 64 << 10;

/// A queue of pieces.
pub(super) fn pieces() -> (mpsc::Sender<Bytes>, mpsc::Receiver<Bytes>) {
    mpsc::channel(QUEUE)
}

/// End of the process in the container.
#[derive(Debug)]
pub(super) struct Ending {
    how: channels::Ending,
    messages: Vec<u8>,
}

impl Ending {
    fn new() -> Self {
        Self {
            how: channels::Ending::Failed("the daemon closed the session before the end of the copy".to_owned()),
            messages: Vec::new(),
        }
    }

    /// Takes a message; `true`: the process has ended.
    fn take(&mut self, message: Option<ServerMessage>) -> bool {
        match message {
            Some(ServerMessage::Stderr(bytes)) => {
                let room = MAX_MESSAGES.saturating_sub(self.messages.len());
                self.messages.extend_from_slice(&bytes[..bytes.len().min(room)]);
                false
            }
            Some(ServerMessage::Ended(how)) => {
                self.how = how;
                true
            }
            Some(ServerMessage::Stdout(_)) | None => false,
        }
    }

    /// Reason why it failed. If it did not, its messages are written to stderr.
    pub(super) fn reason(&self) -> Option<anyhow::Error> {
        let text = String::from_utf8_lossy(&self.messages).into_owned();
        let lines: Vec<String> = text.lines().map(printable).filter(|line| !line.is_empty()).collect();
        match &self.how {
            channels::Ending::Exited(0) => {
                // A closed stderr is not an error.
                lines.iter().for_each(|line| drop(writeln!(io::stderr(), "{line}")));
                None
            }
            channels::Ending::Exited(_) if !lines.is_empty() => Some(anyhow!(lines.join("; "))),
            channels::Ending::Exited(code) => Some(anyhow!("the process that copies in the container exited with code {code}")),
            channels::Ending::Failed(message) => Some(anyhow!(printable(message))),
        }
    }
}

/// Sends all pieces, then waits for the end of the process.
pub(super) async fn send(socket: Socket, mut pieces: mpsc::Receiver<Bytes>) -> anyhow::Result<Ending> {
    let (mut sink, mut stream) = socket.split();
    let mut ending = Ending::new();
    let mut is_open = true;
    loop {
        // Cancel-safe: a piece is sent whole once it is taken, and messages stay in the socket.
        let message = tokio::select! {
            piece = pieces.recv(), if is_open => {
                let message = piece.map_or(ClientMessage::CloseStdin, ClientMessage::Stdin);
                is_open = !matches!(message, ClientMessage::CloseStdin);
                // When it fails, the process has ended; how, is about to be read.
                is_open &= sink.send(Message::Binary(message.encode())).await.is_ok();
                continue;
            }
            message = stream.next() => message,
        };
        match message {
            Some(Ok(Message::Binary(bytes))) if ending.take(ServerMessage::decode(&bytes)) => break,
            Some(Ok(Message::Close(_))) | None => break,
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(session_error(error).into()),
        }
    }
    close(&mut sink, &mut stream).await;
    Ok(ending)
}

/// Takes all output, until the process ends or nobody wants more.
pub(super) async fn receive(socket: Socket, pieces: mpsc::Sender<Bytes>) -> anyhow::Result<Ending> {
    let (mut sink, mut stream) = socket.split();
    let mut ending = Ending::new();
    loop {
        match stream.next().await {
            Some(Ok(Message::Binary(bytes))) => {
                let message = ServerMessage::decode(&bytes);
                if let Some(ServerMessage::Stdout(bytes)) = message {
                    if pieces.send(bytes).await.is_err() {
                        // The reason is the other side's.
                        ending.how = channels::Ending::Exited(0);
                        return Ok(ending);
                    }
                } else if ending.take(message) {
                    break;
                }
            }
            Some(Ok(Message::Close(_))) | None => break,
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(session_error(error).into()),
        }
    }
    close(&mut sink, &mut stream).await;
    Ok(ending)
}

/// Reads what comes from the queue.
#[derive(Debug)]
pub(super) struct PieceReader {
    pieces: mpsc::Receiver<Bytes>,
    present: Bytes,
}

impl PieceReader {
    /// To be used in a thread that may wait.
    pub(super) fn new(pieces: mpsc::Receiver<Bytes>) -> Self {
        Self { pieces, present: Bytes::new() }
    }
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.present.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.present = piece,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.present.len());
        buffer[..count].copy_from_slice(&self.present.split_to(count));
        Ok(count)
    }
}

/// Writes to the queue.
#[derive(Debug)]
pub(super) struct PieceWriter {
    pieces: mpsc::Sender<Bytes>,
    present: BytesMut,
}

impl PieceWriter {
    /// To be used in a thread that may wait.
    pub(super) fn new(pieces: mpsc::Sender<Bytes>) -> Self {
        Self { pieces, present: BytesMut::with_capacity(PIECE) }
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PIECE - self.present.len());
        self.present.extend_from_slice(&bytes[..count]);
        if self.present.len() == PIECE {
            self.flush()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.present.is_empty() {
            return Ok(());
        }
        let piece = self.present.split().freeze();
        self.present.reserve(PIECE);
        self.pieces.blocking_send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
