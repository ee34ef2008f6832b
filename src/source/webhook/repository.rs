//! Comparison of repository addresses. **Pure**.

/// Compares host and path: `https://git.lan/a/b.git`, `git@git.lan:a/b` and `ssh://git@git.lan:2222/a/b/` are the same repository. Ports
/// differ between protocols of one host, and so does nothing else.
pub fn same_repository(one: &str, other: &str) -> bool {
    match (host_and_path(one), host_and_path(other)) {
        (Some((host, path)), Some((other_host, other_path))) => host.eq_ignore_ascii_case(other_host) && path == other_path,
        (None, _) | (_, None) => false,
    }
}

/// Of a URL or of scp's form; `None` for what names no host or no path.
fn host_and_path(address: &str) -> Option<(&str, &str)> {
    let address = address.trim();
    let (authority, path) = match address.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?,
        None if address.starts_with('/') => return None,
        None => address.split_once(':')?,
    };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // The colons of an IPv6 address are in brackets.
    let host = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        Some(_) | None => host,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (!host.is_empty() && !path.is_empty()).then_some((host, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_same_repository_has_many_addresses() {
        let all = [
            "https://git.lan/a/b.git",
            "https://me@GIT.lan/a/b",
            "http://git.lan:3000/a/b/",
            "git@git.lan:a/b.git",
            "git@git.lan:/a/b",
            "ssh://git@git.lan:2222/a/b.git",
            "git.lan:a/b",
        ];
        for one in all {
            for other in all {
                assert!(same_repository(one, other), "{one} {other}");
            }
        }
        for other in [
            "https://git.lan/a/c.git",
            "https://other.lan/a/b.git",
            "https://git.lan/a/b/c",
            "/a/b",
            "",
            "git.lan",
            "https://git.lan/",
        ] {
            assert!(!same_repository(all[0], other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn no_address_makes_it_panic(one in "\\PC{0,40}", other in "[a-z:/@.\\[\\]]{0,30}") {
            same_repository(&one, &other);
            prop_assert_eq!(same_repository(&one, &other), same_repository(&other, &one));
        }
    }
}
