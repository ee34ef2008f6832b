//! Asking the daemon over its unix socket.

mod error;
mod lines;
mod raw;
mod websocket;

pub(super) use error::{ClientError, DaemonUnreachable};
pub(super) use lines::Lines;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use tokio::net::UnixStream;

/// Path of podstead's own resources.
pub(super) const OWN: &str = "/apis/podstead.dev/v1alpha1";

/// Media type of an answer in columns.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Asks one daemon; every request has a connection of its own.
///
/// One type because all requests share connection, credentials and time limits; kinds of connections have files of their own.
#[derive(Clone, Debug)]
pub(super) struct Client {
    socket: PathBuf,
}

/// A path with a query.
#[derive(Clone, Debug)]
pub(super) struct Target {
    path: String,
    query: Vec<(String, String)>,
    as_table: bool,
}

impl Target {
    /// Without a query so far. Segments are encoded: a name from the command line cannot become another path.
    pub(super) fn new(base: &str, segments: &[&str]) -> Self {
        let base = Self { path: base.to_owned(), query: Vec::new(), as_table: false };
        segments.iter().fold(base, |target, segment| target.below(segment))
    }

    /// One object of this collection.
    pub(super) fn below(mut self, segment: &str) -> Self {
        self.path.push('/');
        self.path.push_str(&encode_segment(segment));
        self
    }

    /// Adds a parameter.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.query.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a parameter if there is a value.
    pub(super) fn with_some(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, &value.to_string()),
            None => self,
        }
    }

    /// Adds a flag if it is set.
    pub(super) fn with_flag(self, name: &str, set: bool) -> Self {
        if set { self.with(name, "true") } else { self }
    }

    /// Asks for the columns of kubectl (`Table`).
    pub(super) fn in_columns(self) -> Self {
        Self { as_table: true, ..self }
    }

    fn uri(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        format!("{}?{query}", self.path)
    }
}

fn encode_segment(segment: &str) -> String {
    // In a query a space is a plus sign, in a path it is not.
    form_urlencoded::byte_serialize(segment.as_bytes()).collect::<String>().replace('+', "%20")
}

impl Client {
    /// Asks the daemon that listens at `socket`.
    pub(super) fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    async fn connect(&self) -> Result<UnixStream, ClientError> {
        UnixStream::connect(&self.socket).await.map_err(|error| DaemonUnreachable { socket: self.socket.clone(), error }.into())
    }

    /// Sends a request; an answer that is a failure is an error.
    async fn send(&self, method: Method, target: Target, body: Option<Vec<u8>>) -> Result<Response<Incoming>, ClientError> {
        let stream = self.connect().await?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|source| ClientError::Broken { source })?;
        // Ends with the response's body, or with the sender.
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(target.uri()).header(header::HOST, "podstead");
        if target.as_table {
            request = request.header(header::ACCEPT, TABLE);
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(Bytes::from(body.unwrap_or_default()))).map_err(ClientError::BadRequest)?;
        let response = sender.send_request(request).await.map_err(|source| ClientError::Broken { source })?;
        if response.status().is_success() { Ok(response) } else { Err(error::refusal(response).await) }
    }

    async fn whole(response: Response<Incoming>) -> Result<Bytes, ClientError> {
        let collected = response.into_body().collect().await;
        Ok(collected.map_err(|source| ClientError::Broken { source })?.to_bytes())
    }

    /// GET of a JSON document.
    pub(super) async fn get<T: DeserializeOwned>(&self, target: Target) -> Result<T, ClientError> {
        let bytes = Self::whole(self.send(Method::GET, target, None).await?).await?;
        serde_json::from_slice(&bytes).map_err(|source| ClientError::NotUnderstood { source })
    }

    /// GET of a document as it is, with its headers.
    pub(super) async fn get_whole(&self, target: Target) -> Result<Response<Bytes>, ClientError> {
        let (head, body) = self.send(Method::GET, target, None).await?.into_parts();
        Ok(Response::from_parts(head, Self::whole(Response::new(body)).await?))
    }

    /// GET of a text, or of JSON documents line by line.
    pub(super) async fn get_lines(&self, target: Target) -> Result<Lines, ClientError> {
        Ok(Lines::new(self.send(Method::GET, target, None).await?.into_body()))
    }

    /// POST of a JSON document, answered by another one.
    pub(super) async fn post<T: DeserializeOwned>(&self, target: Target, body: &impl serde::Serialize) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|source| ClientError::NotUnderstood { source })?;
        let bytes = Self::whole(self.send(Method::POST, target, Some(body)).await?).await?;
        serde_json::from_slice(&bytes).map_err(|source| ClientError::NotUnderstood { source })
    }

    /// POST of a JSON document, answered line by line.
    pub(super) async fn post_lines(&self, target: Target, body: &impl serde::Serialize) -> Result<Lines, ClientError> {
        let body = serde_json::to_vec(body).map_err(|source| ClientError::NotUnderstood { source })?;
        Ok(Lines::new(self.send(Method::POST, target, Some(body)).await?.into_body()))
    }

    /// DELETE.
    pub(super) async fn delete(&self, target: Target) -> Result<(), ClientError> {
        self.send(Method::DELETE, target, None).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_become_another_path() {
        let target =
            Target::new("/api/v1/namespaces", &["a/../b", "pods", "x?y z"]).with("command", "a b&c").with_flag("tty", false);
        assert_eq!(target.uri(), "/api/v1/namespaces/a%2F..%2Fb/pods/x%3Fy%20z?command=a+b%26c");
        assert_eq!(Target::new("/version", &[]).uri(), "/version");
    }
}
