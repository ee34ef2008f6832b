//! Making HTTP responses.

use super::failure::ApiFailure;
use bytes::Bytes;
use futures_util::Stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode, header};
use serde::Serialize;
use std::convert::Infallible;

/// Body of every response.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Result of a handler; a failure becomes a `Status` object.
pub(super) type Answer = Result<Response<Body>, ApiFailure>;

const JSON: &str = "application/json";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

fn with_body(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

/// A body that is known whole.
pub(super) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// 200 with a JSON document.
pub(super) fn json(value: &impl Serialize) -> Answer {
    let bytes = serde_json::to_vec(value).map_err(|error| ApiFailure::internal(format!("encode the response: {error}")))?;
    Ok(with_body(StatusCode::OK, JSON, whole(bytes)))
}

/// 201 with a JSON document.
pub(super) fn created(value: &impl Serialize) -> Answer {
    let mut response = json(value)?;
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// 200 with JSON that is encoded already.
pub(super) fn json_bytes(bytes: impl Into<Bytes>) -> Answer {
    Ok(with_body(StatusCode::OK, JSON, whole(bytes)))
}

/// 200 with what is encoded already in another form.
pub(super) fn bytes(content_type: &'static str, bytes: Vec<u8>) -> Answer {
    Ok(with_body(StatusCode::OK, content_type, whole(bytes)))
}

/// 200 with JSON in pieces, or JSON documents line by line.
pub(super) fn json_stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Answer {
    Ok(with_body(StatusCode::OK, JSON, streamed(pieces)))
}

/// 200 with text.
pub(super) fn text(text: impl Into<Bytes>) -> Answer {
    Ok(with_body(StatusCode::OK, TEXT, whole(text)))
}

/// 200 with a page for a browser, which must do with it what `policy` allows and keep no copy.
pub(super) fn page(html: String, policy: &str) -> Answer {
    let mut response = with_body(StatusCode::OK, HTML, whole(html));
    let policy = HeaderValue::from_str(policy).map_err(|error| ApiFailure::internal(format!("encode the policy: {error}")))?;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

/// 200 with metrics in Prometheus' text format.
pub(super) fn metrics(text: String) -> Answer {
    Ok(with_body(StatusCode::OK, METRICS, whole(text)))
}

/// 200 with text in pieces.
pub(super) fn text_stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Answer {
    Ok(with_body(StatusCode::OK, TEXT, streamed(pieces)))
}

fn streamed(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    use futures_util::StreamExt;
    StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece)))).boxed_unsync()
}

/// A failure as a response.
pub(super) fn failure(failure: &ApiFailure) -> Response<Body> {
    let code = StatusCode::from_u16(failure.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = with_body(code, JSON, whole(failure.status_object().to_string()));
    let more = match failure.code {
        401 => Some((header::WWW_AUTHENTICATE, "Bearer")),
        // Clients of Kubernetes wait that many seconds and try again.
        429 => Some((header::RETRY_AFTER, "1")),
        _ => None,
    };
    if let Some((name, value)) = more {
        response.headers_mut().insert(name, header::HeaderValue::from_static(value));
    }
    response
}
