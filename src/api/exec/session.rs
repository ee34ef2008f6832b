//! One exec or attach: copies between the WebSocket and the runtime's streams until one of them ends.

use super::channels::{ClientMessage, Ending, ServerMessage};
use crate::runtime::{ExecInput, ExecOutput, ExecSession};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// How long a client has to close its end after it was told the ending.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

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

/// Returns whether the client was told how it ended.
async fn send_output<S: AsyncRead + AsyncWrite + Unpin>(
    output: &mut mpsc::Receiver<ExecOutput>,
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
) -> bool {
    loop {
        let message = match output.recv().await {
            Some(ExecOutput::Stdout(bytes)) => ServerMessage::Stdout(bytes),
            Some(ExecOutput::Stderr(bytes)) => ServerMessage::Stderr(bytes),
            Some(ExecOutput::Exited(code)) => ServerMessage::Ended(Ending::Exited(code)),
            None => ServerMessage::Ended(Ending::Failed("the container is gone, and how the process ended is not known".into())),
        };
        if sink.send(Message::Binary(message.encode())).await.is_err() {
            return false;
        }
        if matches!(message, ServerMessage::Ended(_)) {
            return true;
        }
    }
}

/// Returns when the client has left.
async fn receive_input<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut SplitStream<WebSocketStream<S>>,
    input: mpsc::Sender<ExecInput>,
) {
    while let Some(Ok(message)) = stream.next().await {
        let bytes = match message {
            Message::Binary(bytes) => bytes,
            Message::Text(text) => bytes::Bytes::from(text),
            Message::Close(_) => return,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
        };
        let Some(message) = ClientMessage::decode(&bytes) else { continue };
        let input_message = match message {
            ClientMessage::Stdin(bytes) => ExecInput::Stdin(bytes),
            ClientMessage::CloseStdin => ExecInput::CloseStdin,
            ClientMessage::Resize(size) => ExecInput::Resize(size.width, size.height),
        };
        // A process that takes no more input may still have output: the client learns of its end there.
        input.send(input_message).await.ok();
    }
}
