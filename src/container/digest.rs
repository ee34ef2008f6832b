//! SHA-256 digests, the names of all content. **Pure**.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A SHA-256 digest; written `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// Reason why a text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// No `algorithm:` in front.
    #[error("digest {0:?} has no algorithm")]
    NoAlgorithm(String),
    /// Registries may use others; none does.
    #[error("digest {0:?} is not sha256, the only algorithm supported")]
    Algorithm(String),
    /// Not 64 lower-case hexadecimal digits.
    #[error("digest {0:?} is not 64 lower-case hexadecimal digits")]
    Digits(String),
}

impl Digest {
    /// The digest of `content`.
    pub fn of(content: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(content);
        hasher.finish()
    }

    /// The 64 digits: used as file name.
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }

    /// The 32 bytes.
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// From the bare 64 digits.
    pub fn from_hex(digits: &str) -> Result<Self, DigestError> {
        let mut bytes = [0; 32];
        let lower = !digits.bytes().any(|byte| byte.is_ascii_uppercase());
        if digits.len() != 64 || !lower || hex::decode_to_slice(digits, &mut bytes).is_err() {
            return Err(DigestError::Digits(digits.to_owned()));
        }
        Ok(Self(bytes))
    }

    /// The chain id of a layer: names the layer together with everything below it (OCI image specification).
    pub fn chain(parent: Option<Digest>, diff_id: Digest) -> Self {
        match parent {
            None => diff_id,
            Some(parent) => Self::of(format!("{parent} {diff_id}").as_bytes()),
        }
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        match text.split_once(':') {
            None => Err(DigestError::NoAlgorithm(text.to_owned())),
            Some(("sha256", digits)) => Self::from_hex(digits).map_err(|_| DigestError::Digits(text.to_owned())),
            Some(_) => Err(DigestError::Algorithm(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Digests content that arrives in pieces.
#[derive(Clone)]
pub struct Hasher(ring::digest::Context);

impl Hasher {
    /// Takes the next piece.
    pub fn update(&mut self, content: &[u8]) {
        self.0.update(content);
    }

    /// The digest of all pieces.
    pub fn finish(self) -> Digest {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.finish().as_ref());
        Digest(bytes)
    }
}

impl Default for Hasher {
    fn default() -> Self {
        Self(ring::digest::Context::new(&ring::digest::SHA256))
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_reads_back_as_it_is_written() {
        assert_eq!(Digest::of(b"").to_string(), EMPTY);
        assert_eq!(EMPTY.parse::<Digest>().unwrap(), Digest::of(b""));
        assert_eq!(serde_json::from_str::<Digest>(&format!("{EMPTY:?}")).unwrap(), Digest::of(b""));
    }

    #[test]
    fn whatever_is_not_exactly_a_digest_is_refused() {
        for text in [
            "",
            "sha256:",
            "sha256:00",
            "sha512:00",
            "md5",
            &EMPTY.to_uppercase(),
            &EMPTY.replace('e', "E"),
            &EMPTY.replace('e', "/"),
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_chain_id_of_the_lowest_layer_is_its_diff_id_and_others_hash_parent_and_diff_id() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        assert_eq!(Digest::chain(None, a), a);
        assert_eq!(Digest::chain(Some(a), b), Digest::of(format!("{a} {b}").as_bytes()));
        assert_ne!(Digest::chain(Some(a), b), Digest::chain(Some(b), a));
    }
}
