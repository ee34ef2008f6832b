//! Encrypted values: detection, parsing and plain types.

use super::SopsError;

/// A value after it was opened.
#[derive(Clone, PartialEq)]
pub enum Plain {
    /// `str`, `time`, or `bytes` that are text.
    Text(String),
    /// `int`.
    Int(i64),
    /// `float`. Of JSON, every number is one.
    Float(f64),
    /// `bool`.
    Bool(bool),
}

impl std::fmt::Debug for Plain {
    /// Without the value.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Plain")
    }
}

impl Plain {
    /// As the type that it says it was.
    #[cfg_attr(not(feature = "sops"), expect(dead_code, reason = "nothing is opened"))]
    pub(super) fn new(text: String, kind: &str) -> Result<Self, SopsError> {
        match kind {
            "str" | "bytes" | "time" => Ok(Self::Text(text)),
            "int" => text.parse().map(Self::Int).map_err(|_| SopsError::Malformed),
            "float" => text.parse().map(Self::Float).map_err(|_| SopsError::Malformed),
            "bool" => match text.as_str() {
                "True" | "true" => Ok(Self::Bool(true)),
                "False" | "false" => Ok(Self::Bool(false)),
                _ => Err(SopsError::Malformed),
            },
            _ => Err(SopsError::Malformed),
        }
    }
}

/// Reports whether a text is a sealed value.
pub fn is_sealed(text: &str) -> bool {
    text.starts_with("ENC[AES256_GCM,") && text.ends_with(']')
}

/// The parts of a sealed value, in base64 but for the kind.
#[cfg_attr(not(feature = "sops"), expect(dead_code, reason = "nothing is opened"))]
pub(super) struct Parts<'a> {
    pub(super) data: &'a str,
    pub(super) nonce: &'a str,
    pub(super) tag: &'a str,
    pub(super) kind: &'a str,
}

/// Parses an encrypted value.
#[cfg_attr(not(feature = "sops"), expect(dead_code, reason = "nothing is opened"))]
pub(super) fn parts(sealed: &str) -> Option<Parts<'_>> {
    let mut fields = sealed.strip_prefix("ENC[AES256_GCM,")?.strip_suffix(']')?.split(',');
    let mut next = |name: &str| fields.next()?.strip_prefix(name);
    let parts = Parts { data: next("data:")?, nonce: next("iv:")?, tag: next("tag:")?, kind: next("type:")? };
    fields.next().is_none().then_some(parts)
}
