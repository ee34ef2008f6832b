//! Waiting until a client reads what is sent to it.
//!
//! kubectl 1.30 to 1.33 reads from the connection before it has made its streams, and discards what arrives for a stream that is not
//! there yet ("Unknown stream id"; kubernetes/kubernetes#131203). So a ping is sent first: its answer shows that the client reads,
//! and the streams are there a moment later. Anything else that the client sends comes from a stream, and ends the wait.

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Time for the answer to the ping; a client that does not answer pings gets its output then.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Least and most time between the answer and the first output; between them, as long as the answer took.
const SETTLING: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// Waits until the client is ready for output. Returns what it has sent meanwhile, or `Err` when it has left.
pub(super) async fn wait_until_ready<S: AsyncRead + AsyncWrite + Unpin>(
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    stream: &mut SplitStream<WebSocketStream<S>>,
) -> Result<Option<Message>, ()> {
    let asked = Instant::now();
    sink.send(Message::Ping(bytes::Bytes::new())).await.map_err(drop)?;
    match next_within(ANSWER_TIMEOUT, stream).await? {
        Some(Message::Pong(_)) => next_within(asked.elapsed().clamp(SETTLING.0, SETTLING.1), stream).await,
        other => Ok(other),
    }
}

/// The next message, or `None` when none came in this time; `Err` when the client has left. Cancel-safe: a message is taken whole or
/// not at all.
async fn next_within<S: AsyncRead + AsyncWrite + Unpin>(
    time: Duration,
    stream: &mut SplitStream<WebSocketStream<S>>,
) -> Result<Option<Message>, ()> {
    match tokio::time::timeout(time, stream.next()).await {
        Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => Err(()),
        Ok(Some(Ok(message))) => Ok(Some(message)),
        Err(_) => Ok(None),
    }
}
