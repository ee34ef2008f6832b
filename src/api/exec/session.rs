//! One exec or attach: copies between the WebSocket and the runtime's streams until one of them ends.

use super::channels::{ClientMessage, Ending, ServerMessage};
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use podstead_runtime::{ExecInput, ExecOutput, ExecSession};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Time for the client to close its end after the result was sent.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of input read ahead of the process; more than the buffer of a unix socket (212,992 unless configured).
const MAX_AHEAD: usize = 1 << 20;
/// Overhead of a message besides its bytes.
const SMALL_INPUT: usize = 64;

/// Runs until the process ended or the client left. A client that leaves drops the session, which kills an exec.
pub(super) async fn connect<S: AsyncRead + AsyncWrite + Unpin>(socket: WebSocketStream<S>, session: ExecSession) {
    let (mut sink, mut stream) = socket.split();
    let ExecSession { input, mut output } = session;
    // Cancel-safe: whichever side ends first ends the session, nothing of the other is needed any more.
    let told = tokio::select! {
        told = send_output(&mut output, &mut sink) => told,
        () = receive_input(&mut stream, input) => false,
    };
    if told {
        let close = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        if sink.send(Message::Close(Some(close))).await.is_ok() {
            // The client reads the ending first and closes then; a close from our side alone could overtake it.
            tokio::time::timeout(CLOSE_TIMEOUT, async { while let Some(Ok(_)) = stream.next().await {} }).await.ok();
        }
    }
}

/// Returns true if the result was sent to the client.
async fn send_output<S: AsyncRead + AsyncWrite + Unpin>(
    output: &mut mpsc::Receiver<ExecOutput>,
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
) -> bool {
    loop {
        let message = match output.recv().await {
            Some(ExecOutput::Stdout(bytes)) => ServerMessage::Stdout(bytes),
            Some(ExecOutput::Stderr(bytes)) => ServerMessage::Stderr(bytes),
            Some(ExecOutput::Exited(code)) => ServerMessage::Ended(Ending::Exited(code)),
            None => {
                ServerMessage::Ended(Ending::Failed("the container has ended, and the exit code of the process is unknown".into()))
            }
        };
        if sink.send(Message::Binary(message.encode())).await.is_err() {
            return false;
        }
        if matches!(message, ServerMessage::Ended(_)) {
            return true;
        }
    }
}

/// Copies input; returns when the client has left.
///
/// A process that does not read its input holds the client up, but must not hide that the client has left. What a client that was
/// killed had written is in the kernel's buffer before its end: so some input is read ahead, more than such a buffer holds.
async fn receive_input<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut SplitStream<WebSocketStream<S>>,
    input: mpsc::Sender<ExecInput>,
) {
    let mut ahead: VecDeque<ExecInput> = VecDeque::new();
    let mut bytes_ahead = 0;
    loop {
        // Cancel-safe: a message is in `ahead` before the next await, and a permit that is not used is given back.
        tokio::select! {
            permit = input.reserve(), if !ahead.is_empty() => {
                if let Some(next) = ahead.pop_front() {
                    bytes_ahead -= size_of_input(&next);
                    // A process that takes no more input may still have output: the client learns of its end there.
                    if let Ok(permit) = permit {
                        permit.send(next);
                    }
                }
            }
            message = stream.next(), if bytes_ahead < MAX_AHEAD => match message {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(message)) => if let Some(next) = decode(message) {
                    bytes_ahead += size_of_input(&next);
                    ahead.push_back(next);
                },
            },
        }
    }
}

fn decode(message: Message) -> Option<ExecInput> {
    let bytes = match message {
        Message::Binary(bytes) => bytes,
        Message::Text(text) => Bytes::from(text),
        Message::Close(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => return None,
    };
    Some(match ClientMessage::decode(&bytes)? {
        ClientMessage::Stdin(bytes) => ExecInput::Stdin(bytes),
        ClientMessage::CloseStdin => ExecInput::CloseStdin,
        ClientMessage::Resize(size) => ExecInput::Resize(size.width, size.height),
    })
}

/// Bytes that an input counts as; more than none, so that a flood of resizes is bounded too.
fn size_of_input(input: &ExecInput) -> usize {
    match input {
        ExecInput::Stdin(bytes) => bytes.len() + SMALL_INPUT,
        ExecInput::CloseStdin | ExecInput::Resize(..) => SMALL_INPUT,
    }
}
