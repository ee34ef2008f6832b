//! The grammars of names that Services have. Each is `Ok`, or the rule that the text breaks.

const LABEL: &str = "must be 1 to 63 lower-case letters, digits or '-', starting and ending with a letter or digit";
const SUBDOMAIN: &str =
    "must be 1 to 253 lower-case letters, digits, '-' or '.', each part between dots starting and ending with a letter or digit";
const QUALIFIED_NAME: &str = "must be a name of 1 to 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit, optionally behind a DNS subdomain and '/'";
const LABEL_VALUE: &str = "must be empty or 1 to 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit";
const PORT_NAME: &str = "must be 1 to 15 lower-case letters, digits or single '-', with at least one letter, starting and ending with a letter or digit";

/// `Ok`, or the rule that a text breaks.
pub type Rule = Result<(), &'static str>;

fn rule(holds: bool, otherwise: &'static str) -> Rule {
    if holds { Ok(()) } else { Err(otherwise) }
}

fn is_bounded(text: &str, is_end: impl Fn(u8) -> bool, inner: &[u8]) -> bool {
    let bytes = text.as_bytes();
    [bytes.first(), bytes.last()].iter().all(|end| end.is_some_and(|byte| is_end(*byte)))
        && bytes.iter().all(|byte| is_end(*byte) || inner.contains(byte))
}

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(|label| is_bounded(label, is_lower, b"-"))
}

fn is_name_part(text: &str) -> bool {
    text.len() <= 63 && is_bounded(text, |byte| byte.is_ascii_alphanumeric(), b"-_.")
}

/// RFC 1123 label.
pub fn dns_label(text: &str) -> Rule {
    rule(text.len() <= 63 && is_bounded(text, is_lower, b"-"), LABEL)
}

/// RFC 1123 subdomain.
pub fn dns_subdomain(text: &str) -> Rule {
    rule(is_subdomain(text), SUBDOMAIN)
}

/// `[prefix/]name`: keys of labels, application protocols, classes.
pub fn qualified_name(text: &str) -> Rule {
    let holds = match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name_part(name),
        None => is_name_part(text),
    };
    rule(holds, QUALIFIED_NAME)
}

/// Value of a label.
pub fn label_value(text: &str) -> Rule {
    rule(text.is_empty() || is_name_part(text), LABEL_VALUE)
}

/// Name of a container's port.
pub fn port_name(text: &str) -> Rule {
    let has_letter = text.bytes().any(|byte| byte.is_ascii_lowercase());
    rule(text.len() <= 15 && is_bounded(text, is_lower, b"-") && !text.contains("--") && has_letter, PORT_NAME)
}
