//! Error report of a plugin. **Pure**.

use super::quoted;
use serde_json::Value;
use std::fmt;

/// The plugin cannot do what it is there for at present (STATUS).
pub(crate) const NOT_AVAILABLE: u64 = 50;
/// The same, and what is connected has limits.
pub(crate) const LIMITED: u64 = 51;

/// A plugin's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The specification's number, or one of the plugin's own from 100.
    pub(crate) code: u64,
    /// The error.
    pub(crate) message: String,
    /// More of it; may be empty.
    pub(crate) details: String,
}

impl Fault {
    /// Reads what a plugin printed to its standard output; `None` if it is no error of the specification.
    pub(crate) fn parse(output: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(output).ok()?;
        let code = value.get("code")?.as_u64()?;
        let text = |field: &str| quoted(value.get(field).and_then(Value::as_str).unwrap_or_default());
        Some(Self { code, message: text("msg"), details: text("details") })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meaning = match self.code {
            1 => " (incompatible CNI version)",
            2 => " (unsupported field in the configuration)",
            3 => " (unknown container)",
            4 => " (invalid environment)",
            5 => " (input or output)",
            6 => " (undecodable configuration)",
            7 => " (invalid configuration)",
            11 => " (try again later)",
            NOT_AVAILABLE => " (not available)",
            LIMITED => " (not available, limited connectivity)",
            _ => "",
        };
        write!(f, "code {}{meaning}", self.code)?;
        for text in [&self.message, &self.details].into_iter().filter(|text| !text.is_empty()) {
            write!(f, ": {text}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_with_code_message_and_details() {
        let fault =
            Fault::parse(br#"{"cniVersion": "1.0.0", "code": 7, "msg": "no\nmaster", "details": "eth9", "more": 1}"#).unwrap();
        assert_eq!(fault.to_string(), "code 7 (invalid configuration): no master: eth9");
        assert_eq!(Fault::parse(br#"{"code": 100, "msg": "x"}"#).unwrap().to_string(), "code 100: x");
        for other in [&b""[..], b"panic: nil", b"{}", b"[1]", br#"{"code": "7"}"#] {
            assert_eq!(Fault::parse(other), None);
        }
    }
}
