//! Switching a connection over from HTTP to another protocol, server side.

use super::failure::ApiFailure;
use super::request::Counted;
use super::respond::{Answer, whole};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// SPDY, as `Upgrade` names it.
pub(super) const SPDY: &str = "SPDY/3.1";
/// Header with the protocol of the streams inside.
pub(super) const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
/// Largest WebSocket message from a client; they send pieces of some KiB.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// A connection that has been switched over.
pub(super) type Stream = TokioIo<Upgraded>;

/// A request for a WebSocket.
#[derive(Debug)]
pub(super) struct WebSocketHandshake {
    accept_key: HeaderValue,
    /// The subprotocol agreed upon; empty for none.
    pub(super) protocol: &'static str,
}

impl WebSocketHandshake {
    /// Checks the request; `negotiate` chooses among the subprotocols that the client offers (values of `Sec-WebSocket-Protocol`). The
    /// failure says what this server `speaks`.
    pub(super) fn of(
        request: &Request<Incoming>,
        negotiate: impl FnOnce(&[&str]) -> Option<&'static str>,
        speaks: &str,
    ) -> Result<Self, ApiFailure> {
        let headers = request.headers();
        let key = headers
            .get(header::SEC_WEBSOCKET_KEY)
            .filter(|_| headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13"));
        let key = key.ok_or_else(|| ApiFailure::bad_request("expected a WebSocket handshake, version 13"))?;
        let offered = words(headers, &header::SEC_WEBSOCKET_PROTOCOL);
        let unknown = || ApiFailure::bad_request(format!("none of the requested subprotocols is supported; supported: {speaks}"));
        let protocol = negotiate(&offered).ok_or_else(unknown)?;
        let accept_key = HeaderValue::from_str(&derive_accept_key(key.as_bytes()));
        Ok(Self { accept_key: accept_key.map_err(|error| ApiFailure::internal(error.to_string()))?, protocol })
    }

    /// Answers the handshake and serves the socket when the connection has been switched over.
    pub(super) fn accept<F>(
        self,
        request: Request<Incoming>,
        serve: impl FnOnce(WebSocketStream<Stream>) -> F + Send + 'static,
    ) -> Answer
    where
        F: Future<Output = ()> + Send,
    {
        let protocol = Some(self.protocol).filter(|protocol| !protocol.is_empty());
        let protocol = protocol.map(|protocol| (header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol)));
        let headers = protocol.into_iter().chain([(header::SEC_WEBSOCKET_ACCEPT, self.accept_key)]);
        switch(request, "websocket", headers, async |stream| {
            let config =
                WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE_BYTES)).max_frame_size(Some(MAX_MESSAGE_BYTES));
            serve(WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await).await;
        })
    }
}

/// True if the request asks to upgrade to this protocol.
pub(super) fn asks_for(request: &Request<Incoming>, protocol: &str) -> bool {
    let names = |header, word: &str| words(request.headers(), &header).iter().any(|part| part.eq_ignore_ascii_case(word));
    names(header::UPGRADE, protocol) && names(header::CONNECTION, "upgrade")
}

/// Answers that the protocol is switched, and serves the connection when it has been.
pub(super) fn switch<F>(
    mut request: Request<Incoming>,
    protocol: &'static str,
    more: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
    serve: impl FnOnce(Stream) -> F + Send + 'static,
) -> Answer
where
    F: Future<Output = ()> + Send,
{
    let upgraded = hyper::upgrade::on(&mut request);
    let counted = request.extensions_mut().remove::<Counted>();
    tokio::spawn(async move {
        let _counted = counted;
        match upgraded.await {
            Ok(stream) => serve(TokioIo::new(stream)).await,
            Err(error) => tracing::debug!(%error, "a client disconnected before its connection was upgraded"),
        }
    });
    let mut response = Response::new(whole(""));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(protocol));
    headers.extend(more);
    Ok(response)
}

/// The words of a header whose values are lists.
pub(super) fn words<'a>(headers: &'a HeaderMap, header: &HeaderName) -> Vec<&'a str> {
    let values = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).collect()
}
