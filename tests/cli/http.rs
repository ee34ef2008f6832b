//! Raw requests, as any HTTP client would make them.

use crate::host::Host;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;

/// The Accept header of kubectl.
pub(crate) const TABLE: &str =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

impl Host {
    async fn request(&self, method: Method, uri: &str, accept: &str, body: &str) -> Response<Incoming> {
        let stream = tokio::net::UnixStream::connect(self.socket()).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::builder().method(method).uri(uri).header("host", "podstead").header("accept", accept);
        sender.send_request(request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()).await.unwrap()
    }

    /// Sends a request; returns status code and body.
    pub(crate) fn send(&self, method: Method, uri: &str, body: &str) -> (u16, Value) {
        self.tokio.block_on(async {
            let response = self.request(method, uri, "application/json", body).await;
            let code = response.status().as_u16();
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            (code, serde_json::from_slice(&bytes).unwrap_or_else(|_| Value::String(crate::host::text(&bytes))))
        })
    }

    /// Sends a request without a body and with these headers instead of the usual ones; returns status code and body.
    pub(crate) fn send_with(&self, method: &str, uri: &str, headers: &[(&str, &str)]) -> (u16, Value) {
        self.tokio.block_on(async {
            let stream = tokio::net::UnixStream::connect(self.socket()).await.unwrap();
            let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let request = Request::builder().method(method).uri(uri);
            let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            let response = sender.send_request(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
            let code = response.status().as_u16();
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            (code, serde_json::from_slice(&bytes).unwrap_or_else(|_| Value::String(crate::host::text(&bytes))))
        })
    }

    /// GET that must succeed.
    pub(crate) fn get(&self, uri: &str) -> Value {
        let (code, body) = self.send(Method::GET, uri, "");
        assert_eq!(code, 200, "{uri}: {body}");
        body
    }

    /// GET of a table.
    pub(crate) fn get_table(&self, uri: &str) -> Value {
        self.tokio.block_on(async {
            let response = self.request(Method::GET, uri, TABLE, "").await;
            serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
        })
    }

    /// Opens a stream of JSON lines.
    pub(crate) fn stream(&self, uri: &str, accept: &str) -> JsonLines<'_> {
        let response = self.tokio.block_on(self.request(Method::GET, uri, accept, ""));
        assert_eq!(response.status(), 200, "{uri}");
        JsonLines { host: self, body: response.into_body(), buffer: Vec::new() }
    }
}

/// A watch under way.
pub(crate) struct JsonLines<'a> {
    host: &'a Host,
    body: Incoming,
    buffer: Vec<u8>,
}

impl Iterator for JsonLines<'_> {
    type Item = Value;

    /// The next line, within a deadline; `None` when the stream ends.
    fn next(&mut self) -> Option<Value> {
        self.host.tokio.block_on(async {
            loop {
                if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = self.buffer.drain(..=end).collect();
                    return Some(serde_json::from_slice(&line).unwrap());
                }
                let frame = tokio::time::timeout(crate::host::PATIENCE, self.body.frame()).await.expect("a line in time")?;
                if let Ok(bytes) = frame.unwrap().into_data() {
                    self.buffer.extend_from_slice(&bytes);
                }
            }
        })
    }
}
