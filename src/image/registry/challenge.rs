//! `WWW-Authenticate`: the authentication that a registry requires (RFC 9110, RFC 6750 and the distribution project's token specification). **Pure**.

/// Challenge of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User name and password with each request.
    Basic,
    /// A token from `realm`.
    Bearer {
        /// URL of the token server.
        realm: String,
        /// For its `service` parameter.
        service: Option<String>,
        /// For its `scope` parameter.
        scope: Option<String>,
    },
}

/// The best challenge of a header that can be met: Bearer before Basic.
pub(super) fn parse(header: &str) -> Option<Challenge> {
    let mut basic = None;
    for (scheme, parameters) in schemes(header) {
        let value = |name: &str| parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone());
        if scheme.eq_ignore_ascii_case("bearer")
            && let Some(realm) = value("realm")
        {
            return Some(Challenge::Bearer { realm, service: value("service"), scope: value("scope") });
        }
        if scheme.eq_ignore_ascii_case("basic") {
            basic = Some(Challenge::Basic);
        }
    }
    basic
}

type Parameters = Vec<(String, String)>;

/// `Scheme a=b, c="d, e", Other f=g` cut into schemes with their parameters.
fn schemes(header: &str) -> Vec<(String, Parameters)> {
    let mut schemes: Vec<(String, Parameters)> = Vec::new();
    for part in split_outside_quotes(header) {
        let part = part.trim();
        // A part begins a scheme if a space that is not the one of `key = value` stands before any `=`.
        let (scheme, parameter) = match (part.find(' '), part.find('=')) {
            (Some(space), None) => (Some(&part[..space]), part[space..].trim()),
            (Some(space), Some(equals)) if space < equals && !part[space..equals].trim().is_empty() => {
                (Some(&part[..space]), part[space..].trim())
            }
            (None, None) if !part.is_empty() => (Some(part), ""),
            _ => (None, part),
        };
        if let Some(scheme) = scheme {
            schemes.push((scheme.to_owned(), Vec::new()));
        }
        if let (Some((key, value)), Some((_, parameters))) = (parameter.split_once('='), schemes.last_mut()) {
            parameters.push((key.trim().to_owned(), unquote(value.trim())));
        }
    }
    schemes
}

fn split_outside_quotes(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn unquote(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"') else { return value.to_owned() };
    let mut text = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => text.extend(characters.next()),
            character => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Option<Challenge> {
        Some(Challenge::Bearer { realm: realm.into(), service: service.map(Into::into), scope: scope.map(Into::into) })
    }

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let docker = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/nginx:pull,push""#;
        let docker_wanted =
            bearer("https://auth.docker.io/token", Some("registry.docker.io"), Some("repository:library/nginx:pull,push"));
        for (header, wanted) in [
            (docker, docker_wanted),
            (r#"Basic realm="Registry Realm""#, Some(Challenge::Basic)),
            ("Basic", Some(Challenge::Basic)),
            (r#"bearer REALM=http://t/x , Service = "a \"b\"""#, bearer("http://t/x", Some("a \"b\""), None)),
            (r#"Basic realm="a", Bearer realm="http://t""#, bearer("http://t", None, None)),
            (r#"Negotiate, Basic realm="x, Bearer realm=y""#, Some(Challenge::Basic)),
            ("Bearer", None),
            (r#"Digest realm="x""#, None),
            ("", None),
            (r#"Bearer realm="unfinished"#, bearer("unfinished", None, None)),
        ] {
            assert_eq!(parse(header), wanted, "{header}");
        }
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(header in "\\PC{0,60}|[A-Za-z=\", \\\\]{0,40}") {
            parse(&header);
        }
    }
}
