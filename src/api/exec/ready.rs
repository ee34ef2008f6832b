//! Waiting until a client reads what is sent to it.
//!
//! kubectl 1.30 to 1.33 reads from the connection before it has made its streams, and discards what arrives for a stream that is not
//! there yet ("Unknown stream id"; kubernetes/kubernetes#131203). So a ping is sent first: its answer shows that the client reads, and
//! the streams are there a moment later. A client that sends input has its streams, and does not wait.

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Time for the answer to the ping; a client that does not answer pings gets its output then.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Least time between the answer and the first output. Longer for a client that took longer to answer: it or its link is slow.
const LEAST_SETTLING: Duration = Duration::from_millis(10);
/// Most time between the answer and the first output.
const MOST_SETTLING: Duration = Duration::from_millis(200);

/// The client closed the connection, or it broke.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClientLeft;

/// Waits until the client is ready for output. Returns its first message, if one came meanwhile.
pub(super) async fn wait_until_ready<S: AsyncRead + AsyncWrite + Unpin>(
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    stream: &mut SplitStream<WebSocketStream<S>>,
) -> Result<Option<Message>, ClientLeft> {
    let asked = Instant::now();
    sink.send(Message::Ping(Bytes::new())).await.map_err(|_| ClientLeft)?;
    match next_within(ANSWER_TIMEOUT, stream).await? {
        Some(Message::Pong(_)) => next_within(asked.elapsed().clamp(LEAST_SETTLING, MOST_SETTLING), stream).await,
        first => Ok(first),
    }
}

/// The next message, or `None` when none came in this time. Cancel-safe: a message is taken whole or not at all.
async fn next_within<S: AsyncRead + AsyncWrite + Unpin>(
    time: Duration,
    stream: &mut SplitStream<WebSocketStream<S>>,
) -> Result<Option<Message>, ClientLeft> {
    match tokio::time::timeout(time, stream.next()).await {
        Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => Err(ClientLeft),
        Ok(Some(Ok(message))) => Ok(Some(message)),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::DuplexStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    type Socket = WebSocketStream<DuplexStream>;

    async fn pair() -> (Socket, Socket) {
        let (server, client) = tokio::io::duplex(4096);
        let server = WebSocketStream::from_raw_socket(server, Role::Server, None).await;
        (server, WebSocketStream::from_raw_socket(client, Role::Client, None).await)
    }

    /// The result, and the time that it took.
    async fn waited(server: Socket) -> (Result<Option<Message>, ClientLeft>, Duration) {
        let (mut sink, mut stream) = server.split();
        let start = Instant::now();
        let result = wait_until_ready(&mut sink, &mut stream).await;
        (result, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn output_follows_answer_after_a_moment() {
        let (server, mut client) = pair().await;
        let reads = tokio::spawn(async move { while client.next().await.is_some() {} });
        let (result, time) = waited(server).await;
        assert_eq!(result, Ok(None));
        assert!((LEAST_SETTLING..ANSWER_TIMEOUT).contains(&time), "{time:?}");
        reads.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn slow_client_gets_more_time() {
        let (server, mut client) = pair().await;
        let reads = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            while client.next().await.is_some() {}
        });
        let (result, time) = waited(server).await;
        assert_eq!(result, Ok(None));
        assert!((Duration::from_millis(200)..ANSWER_TIMEOUT).contains(&time), "{time:?}");
        reads.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn silent_client_gets_output_in_the_end() {
        let (server, client) = pair().await;
        let (result, time) = waited(server).await;
        assert_eq!(result, Ok(None));
        assert!(time >= ANSWER_TIMEOUT && time < 2 * ANSWER_TIMEOUT, "{time:?}");
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn input_is_kept_and_ends_the_wait() {
        let (server, mut client) = pair().await;
        let input = Message::Binary(Bytes::from_static(b"\0ls\n"));
        client.send(input.clone()).await.unwrap();
        let (result, time) = waited(server).await;
        assert_eq!(result, Ok(Some(input)));
        assert!(time < LEAST_SETTLING, "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_left_is_noticed() {
        let (server, mut client) = pair().await;
        client.close(None).await.unwrap();
        assert_eq!(waited(server).await.0, Err(ClientLeft));
    }
}
