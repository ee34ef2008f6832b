//! Matching of a Secret's entries with an image: the rules of the kubelet's `credentialprovider`. **Pure**.
//!
//! An entry is named by a registry, with or without a scheme, and may go on with a path (`registry.lan/team`): it is for the images whose
//! name begins so. Each part of the host between dots may have wildcards (`*.registry.lan`), the port has to be the same. An entry for
//! `index.docker.io` is for the images of Docker Hub that no other entry is for.

use podstead_container::reference::{DEFAULT_HOST, Reference};

/// Name of Docker Hub where `docker login` writes it.
pub(super) const HUB: &str = "index.docker.io";

/// The name of an entry as it is compared: without scheme, and without the `/v1/` or `/v2/` that some tools write.
pub(super) fn key(written: &str) -> String {
    let rest = written.strip_prefix("https://").or_else(|| written.strip_prefix("http://")).unwrap_or(written);
    let (host, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let path = ["/v1/", "/v2/"].iter().find_map(|version| path.starts_with(version).then(|| &path[3..])).unwrap_or(path);
    match path {
        "" | "/" => host.to_owned(),
        path => format!("{host}{path}"),
    }
}

/// Returns true if an entry of that key is for the image.
pub(super) fn is_for(key: &str, image: &Reference) -> bool {
    let (pattern, path) = key.find('/').map_or((key, ""), |slash| key.split_at(slash));
    let ((pattern, pattern_port), (host, port)) = (split_port(pattern), split_port(image.host()));
    let (patterns, parts): (Vec<&str>, Vec<&str>) = (pattern.split('.').collect(), host.split('.').collect());
    pattern_port == port
        && patterns.len() == parts.len()
        && format!("/{}", image.repository()).starts_with(path)
        && patterns.iter().zip(parts).all(|(pattern, part)| matches(pattern.as_bytes(), part.as_bytes()))
}

/// Returns true if the image is on Docker Hub.
pub(super) fn is_of_hub(image: &Reference) -> bool {
    image.host() == DEFAULT_HOST
}

fn split_port(host: &str) -> (&str, &str) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        Some(_) | None => (host, ""),
    }
}

/// Go's `filepath.Match` for text without slashes: `*`, `?`, `[a-c]`, `[^a]` and `\`. A pattern that is none matches nothing. Takes at
/// most the product of both lengths: only the last `*` is ever tried again.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        let next = match (pattern, text) {
            ([b'*', rest @ ..], text) => {
                star = Some((rest, text));
                Some((rest, text))
            }
            ([], []) => return true,
            (pattern, [first, after @ ..]) => one(pattern, *first).map(|rest| (rest, after)),
            ([_, ..], []) => None,
        };
        (pattern, text) = match (next, star) {
            (Some(next), _) => next,
            (None, Some((rest, [_, after @ ..]))) => {
                star = Some((rest, after));
                (rest, after)
            }
            (None, Some((_, [])) | None) => return false,
        };
    }
}

/// The rest of a pattern without `*` in front, if it begins with something that the character matches.
fn one(pattern: &[u8], character: u8) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', class @ ..] => in_class(class, character).and_then(|(is_in, rest)| is_in.then_some(rest)),
        [b'\\', wanted, rest @ ..] | [wanted, rest @ ..] => (*wanted == character).then_some(rest),
    }
}

/// Matches a character with a class, and returns the rest after `]`; `None` for a class that does not end.
fn in_class(class: &[u8], character: u8) -> Option<(bool, &[u8])> {
    let (negated, mut rest) = match class {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut found = false;
    let mut is_first = true;
    loop {
        rest = match rest {
            [b']', rest @ ..] if !is_first => return Some((found != negated, rest)),
            [low, b'-', high, rest @ ..] if *high != b']' => {
                found |= (*low..=*high).contains(&character);
                rest
            }
            [b'\\', only, rest @ ..] | [only, rest @ ..] => {
                found |= *only == character;
                rest
            }
            [] => return None,
        };
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn entries_are_for_images_as_the_kubelet_has_it() {
        // From the tables of the kubelet's TestURLsMatch and TestDockerKeyringForGlob, and of its documentation of imagePullSecrets.
        for (written, image, expected) in [
            ("r.lan", "r.lan/a", true),
            ("https://r.lan", "r.lan/a/b:1", true),
            ("http://r.lan/v1/", "r.lan/a", true),
            ("https://r.lan/v2/", "r.lan/a", true),
            ("r.lan/v2/team", "r.lan/team/a", true),
            ("r.lan/team", "r.lan/team/a", true),
            ("r.lan/team", "r.lan/other/a", false),
            ("r.lan/team", "r.lan/teams/a", true),
            ("r.lan:5000", "r.lan/a", false),
            ("r.lan", "r.lan:5000/a", false),
            ("r.lan:5000", "r.lan:5000/a", true),
            ("*.lan", "r.lan/a", true),
            ("*.lan:5000", "r.lan:5000/a", true),
            ("*.lan", "a.r.lan/a", false),
            ("*.*.lan", "a.r.lan/a", true),
            ("*.lan", "lan.r/a", false),
            ("r*.lan", "registry.lan/a", true),
            ("*s*t*y.lan", "registry.lan/a", true),
            ("*s*t*x.lan", "registry.lan/a", false),
            ("?.lan", "r.lan/a", true),
            ("?.lan", "rr.lan/a", false),
            ("[a-r].lan", "r.lan/a", true),
            ("[^a-q].lan", "r.lan/a", true),
            ("[^r].lan", "r.lan/a", false),
            ("[r.lan", "r.lan/a", false),
            ("*", "r.lan/a", false),
            ("docker.io", "nginx", true),
            ("docker.io/me", "me/app", true),
            ("docker.io/me", "nginx", false),
            ("127.0.0.1:5000", "127.0.0.1:5000/a", true),
            ("[::1]:5000", "[::1]:5000/a", false),
        ] {
            assert_eq!(is_for(&key(written), &image.parse().unwrap()), expected, "{written} for {image}");
        }
        assert_eq!(key("https://index.docker.io/v1/"), HUB);
    }

    proptest! {
        #[test]
        fn no_name_of_an_entry_makes_it_panic(written in "\\PC{0,40}|[a-c*?\\[\\]\\\\^/:.-]{0,20}") {
            is_for(&key(&written), &"a.b:5000/c".parse().unwrap());
        }
    }
}
