//! The WebSocket handshake, server side.

use super::channels;
use super::session;
use crate::api::failure::ApiFailure;
use crate::api::respond::{Answer, whole};
use crate::runtime::ExecSession;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// Largest message from a client; they send stdin in pieces of some KiB.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// A request that can be upgraded.
#[derive(Debug)]
pub(super) struct Upgrade {
    accept_key: String,
    protocol: &'static str,
}

impl Upgrade {
    /// Checks the request; the failure says what this server speaks.
    pub(super) fn of(request: &Request<Incoming>) -> Result<Self, ApiFailure> {
        let headers = request.headers();
        if !names(headers, header::UPGRADE, "websocket") || !names(headers, header::CONNECTION, "upgrade") {
            return Err(ApiFailure::bad_request(
                "exec and attach need a WebSocket (kubectl 1.31 or newer; older ones speak SPDY only): use `podstead exec`",
            ));
        }
        let key = headers
            .get(header::SEC_WEBSOCKET_KEY)
            .filter(|_| headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|v| v == "13"));
        let key = key.ok_or_else(|| ApiFailure::bad_request("not a WebSocket handshake of version 13"))?;
        let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL);
        let protocol = channels::negotiate(offered.iter().filter_map(|value| value.to_str().ok())).ok_or_else(|| {
            ApiFailure::bad_request(format!(
                "none of the offered protocols is known; this server speaks {} and {}",
                channels::V5,
                channels::V4
            ))
        })?;
        Ok(Self { accept_key: derive_accept_key(key.as_bytes()), protocol })
    }

    /// Answers the handshake and connects the streams when the connection has been switched over.
    pub(super) fn accept(self, mut request: Request<Incoming>, session: ExecSession) -> Answer {
        let upgraded = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let stream = match upgraded.await {
                Ok(stream) => TokioIo::new(stream),
                Err(error) => {
                    tracing::debug!(%error, "a client left before its connection was upgraded");
                    return;
                }
            };
            let config =
                WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE_BYTES)).max_frame_size(Some(MAX_MESSAGE_BYTES));
            let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
            session::connect(socket, session).await;
        });
        let mut response = Response::new(whole(""));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(self.protocol));
        let accept = HeaderValue::from_str(&self.accept_key).map_err(|error| ApiFailure::internal(error.to_string()))?;
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        Ok(response)
    }
}

/// Whether a comma-separated header has a word, in any case.
fn names(headers: &HeaderMap, header: header::HeaderName, word: &str) -> bool {
    let values = headers.get_all(header);
    values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(word))
}
