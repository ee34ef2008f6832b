//! Requests that a browser makes for a page of somebody else: cross-site, or by a name that was rebound to this host (Q10). **Pure**.

use crate::failure::ApiFailure;
use hyper::{HeaderMap, Method, header};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Content types of bodies that clients send. None of them is one that a page may send to another site without asking first.
const BODIES: [&str; 7] = [
    "application/json",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];

/// Refuses a foreign `Origin`, a `Host` that is not a name of this API, and a body of a type that forms send.
pub(crate) fn check_origin(method: &Method, headers: &HeaderMap, node: &str) -> Result<(), ApiFailure> {
    let text = |name| headers.get(name).map(|value: &header::HeaderValue| value.to_str().unwrap_or("\u{fffd}"));
    let host = text(header::HOST);
    if let Some(host) = host
        && !is_own_name(host, node)
    {
        return Err(ApiFailure::forbidden(format!(
            "Host {host:?} is not a name of this API: use an address, localhost or {node}.podstead"
        )));
    }
    if let Some(origin) = text(header::ORIGIN) {
        let site = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        if site.is_none() || site != host {
            return Err(ApiFailure::forbidden(format!("requests of pages of {origin:?} are refused")));
        }
    }
    let is_write = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
    if let Some(content_type) = text(header::CONTENT_TYPE).filter(|_| is_write) {
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        if !BODIES.iter().any(|known| known.eq_ignore_ascii_case(kind)) {
            return Err(ApiFailure::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                BODIES.join(", ")
            )));
        }
    }
    Ok(())
}

/// Refuses a request to act as another user (`--as`): what it answered would not be what that user may do.
pub(crate) fn refuse_impersonation(headers: &HeaderMap) -> Result<(), ApiFailure> {
    let Some((name, value)) = headers.iter().find(|(name, _)| name.as_str().starts_with("impersonate-")) else { return Ok(()) };
    let asked = value.to_str().unwrap_or("\u{fffd}");
    let resource = if name == "impersonate-group" { "groups" } else { "users" };
    Err(ApiFailure::forbidden(format!(
        "{resource} {asked:?} is forbidden: at this host nobody acts as another user (--as): podstead kubeconfig --role=ROLE gives kubectl less"
    )))
}

/// An address, or a name that no other site can have.
fn is_own_name(host: &str, node: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(address, port)| address.parse::<Ipv6Addr>().is_ok() && is_port(port));
    }
    let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
    let is_own = name.parse::<Ipv4Addr>().is_ok()
        || ["localhost", "podstead"].iter().any(|own| own.eq_ignore_ascii_case(name))
        || name.strip_suffix(".podstead").is_some_and(|name| name.eq_ignore_ascii_case(node));
    is_own && is_port(port)
}

/// Nothing, or a colon and a number.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: Method, headers: &[(&'static str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        headers.iter().for_each(|(name, value)| drop(map.insert(*name, value.parse().unwrap())));
        check_origin(&method, &map, "edge1").map_or_else(|failure| failure.code, |()| 200)
    }

    #[test]
    fn host_is_a_name_that_nobody_can_rebind() {
        for host in [
            "127.0.0.1:6443",
            "127.0.0.1",
            "[::1]:6443",
            "[::1]",
            "localhost:1",
            "podstead",
            "edge1.podstead",
            "EDGE1.podstead:6443",
        ] {
            assert_eq!(check(Method::GET, &[("host", host)]), 200, "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "edge2.podstead", "127.0.0.1.evil.example", "[::1", "localhost:x", ""]
        {
            assert_eq!(check(Method::GET, &[("host", host)]), 403, "{host}");
        }
        assert_eq!(check(Method::GET, &[]), 200);
    }

    #[test]
    fn origin_is_the_host_itself() {
        let with = |origin| check(Method::GET, &[("host", "127.0.0.1:6443"), ("origin", origin)]);
        assert_eq!(with("https://127.0.0.1:6443"), 200);
        for origin in ["https://evil.example", "null", "https://127.0.0.1", "https://127.0.0.1:80", ""] {
            assert_eq!(with(origin), 403, "{origin}");
        }
    }

    #[test]
    fn nobody_acts_as_another_user() {
        let with = |name: &'static str| {
            let mut map = HeaderMap::new();
            map.insert(name, "anna".parse().unwrap());
            refuse_impersonation(&map).map_err(|failure| (failure.code, failure.message))
        };
        for (name, resource) in [
            ("impersonate-user", "users"),
            ("impersonate-uid", "users"),
            ("impersonate-extra-scopes", "users"),
            ("impersonate-group", "groups"),
        ] {
            let (code, message) = with(name).unwrap_err();
            assert!(code == 403 && message.starts_with(&format!("{resource} \"anna\" is forbidden: ")), "{message}");
        }
        assert_eq!(with("user-agent"), Ok(()));
    }

    #[test]
    fn forms_cannot_write() {
        for (kind, code) in [
            ("application/json", 200),
            ("application/json; charset=utf-8", 200),
            ("application/vnd.kubernetes.protobuf", 200),
            ("text/plain", 415),
            ("application/x-www-form-urlencoded", 415),
            ("multipart/form-data; boundary=x", 415),
        ] {
            assert_eq!(check(Method::POST, &[("content-type", kind)]), code, "{kind}");
        }
    }
}
