//! Asking for a body: one conditional request, and a second one where one is not enough.

use super::MAX_BODY;
use super::content;
use super::error::PollError;
use super::memory::Validators;
use crate::http_client::{HttpAnswer, HttpClient, HttpRequest, shown};
use bytes::Bytes;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, DATE, ETAG, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use reqwest::{StatusCode, Url};
use std::time::Duration;

/// Validators made of times of a second's resolution cannot tell two changes within it.
const STAMP_RESOLUTION: Duration = Duration::from_secs(2);

/// The largest signature that is worth reading.
const MAX_SIGNATURE: u64 = 64 << 10;

/// An answer to a conditional request.
#[derive(Debug)]
pub(super) enum Answered {
    /// 304.
    NotModified,
    /// A body that can be manifests, and how to ask whether it changed.
    Body(Bytes, Validators),
}

/// Asks for the body; conditionally with `validators`.
pub(super) async fn body(
    client: &HttpClient,
    url: &Url,
    timeout: Duration,
    validators: &Validators,
) -> Result<Answered, PollError> {
    let mut request = HttpRequest::get(url.clone(), timeout);
    request.headers.insert(ACCEPT, HeaderValue::from_static("application/yaml, application/json;q=0.9, */*;q=0.8"));
    request.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    request.unpack = Some(MAX_BODY);
    let unconditional = request.clone();
    let Validators { etag, last_modified } = validators;
    for (name, value) in [(IF_NONE_MATCH, etag), (IF_MODIFIED_SINCE, last_modified)] {
        if let Some(value) = value.as_ref().and_then(|value| HeaderValue::from_str(value).ok()) {
            request.headers.insert(name, value);
        }
    }
    let answer = client.send(request).await.map_err(PollError::Http)?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::NOT_MODIFIED if !validators.is_empty() => return Ok(Answered::NotModified),
        _ => return Err(PollError::Http(answer.unwanted())),
    }
    let whole = answer.tells_its_end();
    let validators = validators_of(&answer);
    let content_type = answer.header(CONTENT_TYPE).map(str::to_owned);
    let body = answer.body(MAX_BODY).await.map_err(PollError::Http)?;
    let refuse = |reason: String| PollError::Content { url: shown(url), reason };
    if let Some(reason) = content::problem(content_type.as_deref(), &body) {
        return Err(refuse(reason));
    }
    if !whole {
        let again = client.send(unconditional).await.map_err(PollError::Http)?;
        let again = match again.status() {
            StatusCode::OK => again.body(MAX_BODY).await.map_err(PollError::Http)?,
            _ => return Err(PollError::Http(again.unwanted())),
        };
        if again != body {
            return Err(refuse("declares no length, and two responses differ".into()));
        }
    }
    Ok(Answered::Body(body, validators))
}

/// Asks for the signature: at the first of these places that has something.
pub(super) async fn signature(client: &HttpClient, urls: Vec<Url>, timeout: Duration) -> Result<Bytes, PollError> {
    let mut urls = urls.into_iter().peekable();
    loop {
        // There is one at least; nothing is asked for nowhere.
        let Some(url) = urls.next() else { return Ok(Bytes::new()) };
        let request = HttpRequest { unpack: Some(MAX_SIGNATURE), ..HttpRequest::get(url, timeout) };
        let answer = client.send(request).await.map_err(PollError::NoSignature)?;
        match answer.status() {
            StatusCode::OK => return answer.body(MAX_SIGNATURE).await.map_err(PollError::NoSignature),
            StatusCode::NOT_FOUND | StatusCode::GONE if urls.peek().is_some() => {}
            _ => return Err(PollError::NoSignature(answer.unwanted())),
        }
    }
}

/// Returns the validators of a response; none if it could have changed within the resolution of its stamp (RFC 9110,
/// 8.8.2.2; servers make entity tags of times, too).
fn validators_of(answer: &HttpAnswer) -> Validators {
    let header = |name: HeaderName| answer.header(name).map(str::to_owned);
    validators(header(ETAG), header(LAST_MODIFIED), header(DATE).as_deref())
}

fn validators(etag: Option<String>, last_modified: Option<String>, date: Option<&str>) -> Validators {
    let time = |text: &str| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok();
    let old_enough = match (last_modified.as_deref().and_then(time), date.and_then(time)) {
        (Some(modified), Some(date)) => Duration::try_from(date.duration_since(modified)).is_ok_and(|age| age >= STAMP_RESOLUTION),
        // Without the server's time, a stamp cannot be told to be old.
        (Some(_), None) => false,
        (None, _) => true,
    };
    if old_enough { Validators { etag, last_modified } } else { Validators::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_that_may_hide_a_change_are_not_used() {
        let (etag, modified) = (Some("\"1-2\"".to_owned()), Some("Sun, 06 Nov 1994 08:49:37 GMT".to_owned()));
        let used = |date: Option<&str>| !validators(etag.clone(), modified.clone(), date).is_empty();
        assert!(used(Some("Sun, 06 Nov 1994 08:49:39 GMT")));
        assert!(!used(Some("Sun, 06 Nov 1994 08:49:38 GMT")));
        assert!(!used(Some("Sun, 06 Nov 1994 08:49:37 GMT")));
        assert!(!used(Some("Sun, 06 Nov 1994 08:00:00 GMT")), "a change in the future");
        assert!(!used(None));
        assert!(!validators(etag.clone(), None, None).is_empty(), "a tag without a time is the server's own");
        assert!(validators(None, None, None).is_empty());
    }
}
