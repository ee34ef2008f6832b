//! One exec or attach: copies between the WebSocket and the runtime's streams until one of them ends.

use super::channels::{ClientMessage, Ending, ServerMessage};
use super::input::{Ahead, PROBE};
use super::ready::wait_until_ready;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use podstead_runtime::{ExecInput, ExecOutput, ExecSession};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Time for the client to close its end after the result was sent.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs until the process ended or the client left. A client that leaves drops the session, which kills an exec.
pub(super) async fn connect<S: AsyncRead + AsyncWrite + Unpin>(socket: WebSocketStream<S>, session: ExecSession) {
    let (mut sink, mut stream) = socket.split();
    let ExecSession { input, mut output } = session;
    let Ok(first) = wait_until_ready(&mut sink, &mut stream).await else { return };
    let mut ahead = Ahead::default();
    if let Some(input) = first.and_then(decode) {
        ahead.push(input);
    }
    let (tell_held, held) = watch::channel(false);
    // Cancel-safe: whichever side ends first ends the session, nothing of the other is needed any more.
    let told = tokio::select! {
        told = send_output(&mut output, &mut sink, held) => told,
        () = receive_input(&mut stream, input, ahead, &tell_held) => false,
    };
    if told {
        let close = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        if sink.send(Message::Close(Some(close))).await.is_ok() {
            // The client reads the ending first and closes then; a close from our side alone could overtake it.
            tokio::time::timeout(CLOSE_TIMEOUT, async { while let Some(Ok(_)) = stream.next().await {} }).await.ok();
        }
    }
}

/// Returns true if the result was sent to the client. `held` tells that nothing of the client is read.
async fn send_output<S: AsyncRead + AsyncWrite + Unpin>(
    output: &mut mpsc::Receiver<ExecOutput>,
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    mut held: watch::Receiver<bool>,
) -> bool {
    loop {
        // Cancel-safe: an output that was taken is sent before the next turn.
        let said = tokio::select! {
            said = output.recv() => said,
            () = probe(&mut held) => match sink.send(Message::Ping(Bytes::new())).await {
                Ok(()) => continue,
                Err(_) => return false,
            },
        };
        let message = match said {
            Some(ExecOutput::Stdout(bytes)) => ServerMessage::Stdout(bytes),
            Some(ExecOutput::Stderr(bytes)) => ServerMessage::Stderr(bytes),
            Some(ExecOutput::Exited(code)) => ServerMessage::Ended(Ending::Exited(code)),
            None => ServerMessage::Ended(Ending::unknown()),
        };
        if sink.send(Message::Binary(message.encode())).await.is_err() {
            return false;
        }
        if matches!(message, ServerMessage::Ended(_)) {
            return true;
        }
    }
}

/// Waits until the client is to be asked whether it is there.
async fn probe(held: &mut watch::Receiver<bool>) {
    if held.wait_for(|is_held| *is_held).await.is_err() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(PROBE).await;
}

/// Copies input; returns when the client has left. Tells whether nothing of it is read.
async fn receive_input<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut SplitStream<WebSocketStream<S>>,
    input: mpsc::Sender<ExecInput>,
    mut ahead: Ahead,
    tell_held: &watch::Sender<bool>,
) {
    loop {
        let is_held = !ahead.has_room();
        tell_held.send_if_modified(|told| std::mem::replace(told, is_held) != is_held);
        // Cancel-safe: a message is in `ahead` before the next await.
        tokio::select! {
            () = ahead.forward(&input) => {}
            message = stream.next(), if ahead.has_room() => match message {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(message)) => if let Some(next) = decode(message) {
                    ahead.push(next);
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
