//! The grammars of names. Each rule answers with the sentence that completes "invalid value x: ...".

use std::net::{IpAddr, Ipv4Addr};

/// `Ok`, or what the text must be.
pub(super) type Rule = Result<(), &'static str>;

fn rule(holds: bool, otherwise: &'static str) -> Rule {
    if holds { Ok(()) } else { Err(otherwise) }
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// `alphanumeric([inner]*alphanumeric)?`
fn is_bounded(text: &str, alphanumeric: fn(u8) -> bool, inner: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(|byte| alphanumeric(*byte)))
        && bytes.iter().all(|byte| alphanumeric(*byte) || inner.contains(byte))
}

fn is_label(text: &str) -> bool {
    is_bounded(text, is_lower_alphanumeric, b"-")
}

/// RFC 1123 label: container and volume names, namespaces, host names.
pub(super) fn dns_label(text: &str) -> Rule {
    rule(
        text.len() <= 63 && is_label(text),
        "must be 1 to 63 lower-case letters, digits or '-', starting and ending with a letter or digit",
    )
}

/// RFC 1123 subdomain: object names.
pub(super) fn dns_subdomain(text: &str) -> Rule {
    rule(
        text.len() <= 253 && text.split('.').all(is_label),
        "must be 1 to 253 lower-case letters, digits, '-' or '.', each part between dots starting and ending with a letter or digit",
    )
}

/// UID of a pod: it names directories and cgroups.
pub(super) fn uid(text: &str) -> Rule {
    rule(text.len() <= 63 && is_label(text), "must be at most 63 lower-case letters, digits or dashes, as in a UUID")
}

/// A search domain: a subdomain in which labels may begin with an underscore, with or without the dot at its end.
pub(super) fn search_domain(text: &str) -> Rule {
    let inner = text.strip_suffix('.').unwrap_or(text);
    let label = |label: &str| is_bounded(label, |byte| is_lower_alphanumeric(byte) || byte == b'_', b"-");
    rule(
        text == "." || (inner.len() <= 253 && inner.split('.').all(label)),
        "must be a domain of lower-case letters, digits, '-', '_' and '.', at most 253 long",
    )
}

fn is_name_part(text: &str) -> bool {
    text.len() <= 63 && is_bounded(text, |byte| byte.is_ascii_alphanumeric(), b"-_.")
}

/// Key of a label or annotation: `[prefix/]name`.
pub(super) fn qualified_name(text: &str) -> Rule {
    const MESSAGE: &str = "must be a name of 1 to 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit, optionally behind a DNS subdomain and '/'";
    match text.split_once('/') {
        Some((prefix, name)) => rule(dns_subdomain(prefix).is_ok() && is_name_part(name), MESSAGE),
        None => rule(is_name_part(text), MESSAGE),
    }
}

/// Value of a label.
pub(super) fn label_value(text: &str) -> Rule {
    rule(
        text.is_empty() || is_name_part(text),
        "must be empty or 1 to 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit",
    )
}

/// Name of an environment variable.
pub(super) fn environment_name(text: &str) -> Rule {
    rule(text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'='), "must be printable ASCII without '='")
}

/// Name of a port (IANA service name).
pub(super) fn port_name(text: &str) -> Rule {
    let holds = text.len() <= 15 && is_label(text) && !text.contains("--") && text.bytes().any(|byte| byte.is_ascii_lowercase());
    rule(
        holds,
        "must be 1 to 15 lower-case letters, digits or single '-', with at least one letter, starting and ending with a letter or digit",
    )
}

/// Key of a ConfigMap or Secret.
pub(super) fn config_key(text: &str) -> Rule {
    let holds = (1..=253).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && text != "."
        && !text.starts_with("..");
    rule(holds, "must be 1 to 253 letters, digits, '-', '_' or '.', not '.' and not starting with '..'")
}

/// Name of an HTTP header.
pub(super) fn header_name(text: &str) -> Rule {
    rule(
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-".contains(&byte)),
        "must be letters, digits and '-'",
    )
}

/// Name of a sysctl, with dots or slashes.
pub(super) fn sysctl_name(text: &str) -> Rule {
    let holds = text.len() <= 253 && text.split(['.', '/']).all(|part| is_bounded(part, is_lower_alphanumeric, b"-_"));
    rule(holds, "must be a sysctl such as net.ipv4.tcp_syncookies")
}

/// A port number.
pub(super) fn port_number(port: i32) -> Rule {
    rule((1..=65535).contains(&port), "must be between 1 and 65535")
}

/// A user or group id.
pub(super) fn id(id: i64) -> Rule {
    rule((0..=i64::from(i32::MAX)).contains(&id), "must be between 0 and 2147483647")
}

/// Permission bits of a file.
pub(super) fn file_mode(mode: i32) -> Rule {
    rule((0..=0o777).contains(&mode), "must be between 0 and 0777 (octal)")
}

/// An address. Unlike Go, Rust never took leading zeros in it.
pub(super) fn ip(text: &str) -> Rule {
    rule(text.parse::<IpAddr>().is_ok(), "must be an IP address such as 10.9.8.7 or 2001:db8::ffff")
}

/// Returns true if the address stands for all addresses of the host.
pub(super) fn is_unspecified_ip(text: &str) -> bool {
    text.is_empty() || text.parse::<IpAddr>().is_ok_and(|ip| ip == IpAddr::V4(Ipv4Addr::UNSPECIFIED) || ip.is_unspecified())
}

/// A path inside of something: relative and without steps out of it.
pub(super) fn inner_path(text: &str) -> Rule {
    rule(!text.starts_with('/'), "must be a relative path").and_then(|()| no_steps_back(text))
}

/// A path without `..`.
pub(super) fn no_steps_back(text: &str) -> Rule {
    rule(text.split('/').all(|part| part != ".."), "must not contain '..'")
}

/// A path for the kernel: it cannot hold a NUL.
pub(super) fn no_nul(text: &str) -> Rule {
    rule(!text.contains('\0'), "must not contain a NUL character")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: fn(&str) -> Rule, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(rule(text), Ok(()), "{text:?}");
        }
        for text in bad {
            assert!(rule(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn labels_and_subdomains_are_rfc_1123() {
        let (label, long) = ("a".repeat(63), "a".repeat(64));
        check(
            dns_label,
            &["a", "0", "a-b", "a--b", "123-abc", &label],
            &["", "-a", "a-", "A", "a.b", "a_b", "ä", " a", "a\n", &long],
        );
        let subdomain = format!("{}.b", "a".repeat(251));
        check(
            dns_subdomain,
            &["a", "a.b", "a-b.c0", "0.0", &subdomain],
            &["", ".", "a.", ".a", "a..b", "A.b", "a-.b", &format!("{subdomain}b")],
        );
        check(search_domain, &["a.b", "a.b.", ".", "_tcp.a", "a_b.c"], &["", "..", "a..b", "A", "-a"]);
    }

    #[test]
    fn keys_and_values_of_labels_have_their_grammar() {
        let (part, long) = ("a".repeat(63), "a".repeat(64));
        check(
            qualified_name,
            &["a", "A.b_c-d", "example.org/a", "0/0", &part],
            &["", "/", "a/", "/a", "a/b/c", "-a", "a-", "Example.org/a", "a b", "ü", &long],
        );
        check(label_value, &["", "a", "A.b_c", &part], &["-a", "a-", "a b", "a/b", &long]);
    }

    #[test]
    fn environment_names_are_printable_ascii() {
        check(environment_name, &["A", "a_b", "1", "a.b", "a-b", "a b", "!"], &["a=b", "a\n", "ä", "\u{7f}"]);
    }

    #[test]
    fn port_names_have_a_letter_and_no_double_hyphen() {
        check(
            port_name,
            &["http", "a", "http-80", "0a", "abcdefghijklmno"],
            &["", "80", "-a", "a-", "a--b", "A", "abcdefghijklmnop", "a_b"],
        );
    }

    #[test]
    fn config_keys_are_file_names() {
        check(config_key, &["a", "A.b-c_d", ".hidden", "a..b", "-"], &["", ".", "..", "..a", "a/b", "a b", &"a".repeat(254)]);
    }

    #[test]
    fn sysctls_are_written_with_dots_or_slashes() {
        check(
            sysctl_name,
            &["kernel.shmmax", "net/ipv4/tcp_x", "net.ipv4.conf.eth0-1.x"],
            &["", ".", "a.", "kernel..x", "Kernel.x", "a._b", "a b"],
        );
    }

    #[test]
    fn addresses_are_strict() {
        check(
            ip,
            &["10.0.0.1", "::", "2001:db8::1", "::ffff:1.2.3.4"],
            &["", "10.0.0", "010.0.0.1", "10.0.0.1/8", "fe80::1%eth0", "host"],
        );
        assert!(is_unspecified_ip("") && is_unspecified_ip("0.0.0.0") && is_unspecified_ip("::") && !is_unspecified_ip("10.0.0.1"));
    }

    #[test]
    fn inner_paths_do_not_lead_out() {
        check(inner_path, &["", "a", "a/b", "a..b", "...", "./a"], &["/a", "..", "a/..", "a/../b", "../a"]);
    }

    #[test]
    fn numbers_have_their_range() {
        assert!(port_number(1).is_ok() && port_number(65535).is_ok() && port_number(0).is_err() && port_number(65536).is_err());
        assert!(id(0).is_ok() && id(2_147_483_647).is_ok() && id(-1).is_err() && id(2_147_483_648).is_err());
        assert!(file_mode(0o777).is_ok() && file_mode(-1).is_err() && file_mode(0o1000).is_err());
    }

    #[test]
    fn header_names_are_letters_digits_and_hyphens() {
        check(header_name, &["X-A", "a"], &["", "a b", "a:", "ä"]);
    }
}
