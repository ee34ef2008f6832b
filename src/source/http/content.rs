//! Check whether a response can contain manifests at all. **Pure**.
//!
//! The intake validates the manifests. This check is about responses that are something else: a login page, an error message, the
//! listing of a directory. They say nothing about what shall run.

/// Types that are never manifests. Others are accepted: servers name YAML in many ways, or send no type at all.
const REFUSED_TYPES: &[&str] = &["audio/", "font/", "image/", "multipart/", "video/", "application/pdf", "application/zip"];

/// Returns the problem with a response of this `Content-Type` and body, as text after "response from URL"; `None` if there is none.
pub(super) fn problem(content_type: Option<&str>, body: &[u8]) -> Option<String> {
    let essence = content_type.and_then(|text| text.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase();
    let page = matches!(essence.as_str(), "text/html" | "application/xhtml+xml");
    if page || begins_with_markup(body) {
        return Some("is a web page, not manifests (login page or captive portal?)".to_owned());
    }
    if REFUSED_TYPES.iter().any(|refused| essence.starts_with(refused)) {
        return Some(format!("has content type {essence:?}, which is not one of manifests"));
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Some("is empty; to run no pods, serve a List without items".to_owned());
    }
    // Every object has both, and every list of objects. Without them it is not worth the attempt.
    let has = |word: &str| memchr::memmem::find(body, word.as_bytes()).is_some();
    if !has("apiVersion") || !has("kind") {
        return Some("contains no Kubernetes objects (no apiVersion and kind)".to_owned());
    }
    None
}

fn begins_with_markup(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    body.trim_ascii_start().first() == Some(&b'<')
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &[u8] = b"apiVersion: v1\nkind: Pod\n";

    #[test]
    fn manifests_are_believed_whatever_they_are_called() {
        for name in
            [None, Some("text/plain; charset=utf-8"), Some("application/octet-stream"), Some("application/x-yaml"), Some("?")]
        {
            assert_eq!(problem(name, POD), None, "{name:?}");
        }
        assert_eq!(problem(Some("application/json"), br#"{"apiVersion":"v1","kind":"List","items":[]}"#), None);
    }

    #[test]
    fn what_is_something_else_is_named() {
        for (name, body, word) in [
            (Some("text/HTML; charset=utf-8"), POD, "captive portal"),
            (None, b"\xef\xbb\xbf \n<!DOCTYPE html><p>apiVersion kind".as_slice(), "captive portal"),
            (Some("image/png"), POD, "\"image/png\""),
            (None, b"", "empty"),
            (None, b" \r\n\t\n", "empty"),
            (None, b"Error: backend is down", "no Kubernetes objects"),
            (Some("application/json"), b"{\"message\":\"not found\"}", "no Kubernetes objects"),
            (None, &[0, 159, 146, 150], "no Kubernetes objects"),
        ] {
            let found = problem(name, body);
            assert!(found.as_ref().is_some_and(|text| text.contains(word)), "{name:?}: {found:?}");
        }
    }
}
