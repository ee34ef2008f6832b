//! Opening the streams of exec and attach.

use super::error::message_of;
use super::{Client, ClientError, Target};
use bytes::Bytes;
use futures_util::SinkExt;
use hyper::header::{HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use podstead_api::channels::{self, ClientMessage};
use tokio::net::UnixStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

impl Client {
    /// Opens a WebSocket; a refusal has the daemon's message.
    pub(crate) async fn open(&self, target: Target) -> Result<WebSocketStream<UnixStream>, ClientError> {
        let stream = self.connect().await?;
        let failed = |source: Error| ClientError::Session { source: Box::new(source) };
        let mut request = format!("ws://podstead{}", target.uri()).into_client_request().map_err(failed)?;
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(channels::V5));
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((mut socket, _)) => {
                // Input without bytes: the daemon need not find out whether this client reads. If it has left, reading tells so.
                socket.send(Message::Binary(ClientMessage::Stdin(Bytes::new()).encode())).await.ok();
                Ok(socket)
            }
            Err(Error::Http(response)) => {
                let code = response.status().as_u16();
                let body = response.body().as_deref().unwrap_or_default();
                Err(ClientError::Refused { code, message: message_of(body, code) })
            }
            Err(error) => Err(failed(error)),
        }
    }
}
