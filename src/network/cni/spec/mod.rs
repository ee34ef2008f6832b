//! The words of the Container Network Interface (versions 0.3.0 to 1.1.0 of its specification). **Pure**.
//!
//! In: texts of configurations, of plugins' answers and of annotations, none of them trusted. Out: typed values; what plugins are called
//! with ([`invocation`]); the annotation that tells what a pod has ([`report`]). What is wrong is said with its place.

pub(crate) mod capability;
pub(crate) mod conflist;
pub(crate) mod fault;
pub(crate) mod invocation;
pub(crate) mod report;
pub(crate) mod result;
pub(crate) mod selection;
pub(crate) mod version;

/// Whether a text may name a network or a container (the specification's expression).
pub(crate) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.len() <= 253
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// Whether a text may name an interface: what the kernel takes, and no blanks or control characters.
pub(crate) fn is_interface_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'%');
    !text.is_empty() && text.len() <= 15 && text != "." && text != ".." && text.bytes().all(is_plain)
}

/// A text of somebody else's for a message: one line, of a bounded length.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 1000;
    let mut line: String = text.trim().chars().take(MAX_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim().chars().nth(MAX_CHARS).is_some() {
        line.push_str("...");
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_networks_and_interfaces_have_no_surprises() {
        assert!(is_name("a") && is_name("plant.vlan-7_x") && !is_name("") && !is_name("-a") && !is_name("a/b") && !is_name("a b"));
        assert!(is_interface_name("net1") && is_interface_name("eth0.7") && !is_interface_name("sixteen-letters-"));
        assert!(!is_interface_name("") && !is_interface_name("..") && !is_interface_name("a/b") && !is_interface_name("a b"));
        assert_eq!(quoted(" a\nb\u{7} "), "a b");
        assert!(quoted(&"x".repeat(5000)).len() < 1010);
    }
}
