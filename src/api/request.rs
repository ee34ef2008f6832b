//! Properties of a request besides its route: query, accepted format, client.

use super::failure::ApiFailure;
use super::table::IncludeObject;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::{HeaderMap, header};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Largest body of a request; the biggest one is a `DeleteOptions` or the name of an image.
const MAX_BODY_BYTES: usize = 64 << 10;
/// Longest time for a body to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Kind of the connection that a request came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// The unix socket.
    Socket,
    /// The TLS port.
    Tls,
    /// The monitoring port, which has decided that the page is open.
    Monitoring,
}

/// Something that counts a connection and has to live as long as the connection, also after a switch of protocols.
#[derive(Clone)]
pub(super) struct Counted(#[expect(dead_code, reason = "held, not read")] pub(super) Arc<dyn Any + Send + Sync>);

/// The parameters of a query string, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(query: Option<&str>) -> Self {
        Self(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// The same with only the object of this name selected.
    pub(super) fn selecting(&self, name: &str) -> Self {
        self.requiring(&format!("metadata.name={name}"))
    }

    /// The same with one more requirement of the field selector.
    pub(super) fn requiring(&self, requirement: &str) -> Self {
        let mut parameters = self.0.clone();
        match parameters.iter_mut().find(|(key, _)| key == "fieldSelector") {
            Some((_, selector)) => *selector = format!("{selector},{requirement}"),
            None => parameters.push(("fieldSelector".to_owned(), requirement.to_owned())),
        }
        Self(parameters)
    }

    /// These parameters.
    pub(super) fn of(parameters: &[(&str, &str)]) -> Self {
        Self(parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    /// The first value of a parameter.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub(super) fn all(&self, name: &str) -> Vec<String> {
        self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.clone()).collect()
    }

    /// A boolean parameter; present without a value counts as true, as in Kubernetes.
    pub(super) fn flag(&self, name: &str) -> Result<bool, ApiFailure> {
        match self.get(name) {
            None | Some("false" | "0" | "False" | "FALSE") => Ok(false),
            Some("" | "true" | "1" | "True" | "TRUE") => Ok(true),
            Some(other) => Err(ApiFailure::bad_request(format!("invalid value {other:?} for {name}: expected true or false"))),
        }
    }

    /// A parameter that is a number, or a time, and so on.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str, what: &str) -> Result<Option<T>, ApiFailure> {
        match self.get(name) {
            None | Some("") => Ok(None),
            Some(text) => {
                let bad = |_| ApiFailure::bad_request(format!("invalid value {text:?} for {name}: expected {what}"));
                text.parse().map(Some).map_err(bad)
            }
        }
    }
}

/// Format of a `Table`, if the client accepts one.
pub(super) fn wants_table(headers: &HeaderMap, query: &Query) -> Option<IncludeObject> {
    let accept = headers.get_all(header::ACCEPT);
    let table = accept.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|form| {
        let mut parameters = form.split(';').map(str::trim);
        parameters.next() == Some("application/json") && parameters.any(|parameter| parameter == "as=Table")
    });
    table.then(|| IncludeObject::parse(query.get("includeObject")))
}

/// Reports whether a content type is Kubernetes' protobuf.
pub(super) fn is_protobuf(content_type: &str) -> bool {
    content_type.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/vnd.kubernetes.protobuf"))
}

/// Reads a request's body within limits of size and time.
pub(super) async fn read_body(body: Incoming) -> Result<Bytes, ApiFailure> {
    read_body_up_to(body, MAX_BODY_BYTES).await
}

/// As [`read_body`], with another limit of size.
pub(super) async fn read_body_up_to(body: Incoming, max_bytes: usize) -> Result<Bytes, ApiFailure> {
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, max_bytes).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(ApiFailure::too_large(format!("the request body is larger than {max_bytes} bytes")))
        }
        Ok(Err(error)) => Err(ApiFailure::bad_request(format!("cannot read the request body: {error}"))),
        Err(_) => Err(ApiFailure::timeout("timed out reading the request body")),
    }
}

/// Reads a request's body as JSON.
pub(super) async fn read_json<T: serde::de::DeserializeOwned>(body: Incoming) -> Result<T, ApiFailure> {
    let bytes = read_body(body).await?;
    serde_json::from_slice(&bytes).map_err(|error| ApiFailure::bad_request(format!("invalid request body: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_wanted_in_any_of_several_forms() {
        let mut headers = HeaderMap::new();
        let query = Query::parse(Some("includeObject=Object"));
        assert_eq!(wants_table(&headers, &query), None);
        let kubectl =
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        headers.insert(header::ACCEPT, kubectl.parse().unwrap());
        assert_eq!(wants_table(&headers, &query), Some(IncludeObject::Object));
        assert_eq!(wants_table(&headers, &Query::default()), Some(IncludeObject::Metadata));
    }

    #[test]
    fn parameters_are_decoded_and_checked() {
        let query = Query::parse(Some("command=sh&command=-c&command=a+%26%26%20b&stdin=true&tty=0&follow&tailLines=x"));
        assert_eq!(query.all("command"), ["sh", "-c", "a && b"]);
        assert_eq!(query.flag("stdin"), Ok(true));
        assert_eq!(query.flag("tty"), Ok(false));
        assert_eq!(query.flag("follow"), Ok(true));
        assert!(query.flag("tailLines").is_err());
        let error = query.number::<u64>("tailLines", "a number of lines").unwrap_err();
        assert_eq!(error.message, r#"invalid value "x" for tailLines: expected a number of lines"#);
    }
}
