//! Signatures of container images by key, in the formats of cosign.
//!
//! **Pure.** In: a signature document that a registry or an archive delivered, the public keys that may sign, and the manifest or index that is to be
//! run. Out: the key that signed exactly that and what the signature states, or a [`SignatureFault`]. Two formats: simple signing
//! (a payload with the signature beside it) and the bundle of sigstore (a DSSE envelope with an in-toto statement, or a signature of
//! the manifest itself). Transparency logs are not asked: a key vouches alone.

mod bundle;
mod der;
mod key;
mod simple_signing;
#[cfg(test)]
mod tests;

pub use bundle::Bundle;
pub use key::{ImageKey, KEYS_PER_FILE, KeyFileProblem};
pub use simple_signing::SimpleSigning;

use ring::digest::{SHA256, digest};

/// Largest signature document in bytes: a payload or a bundle.
pub const DOCUMENT_MAX: usize = 256 << 10;
/// Predicate type of the statement that `cosign sign` signs.
pub const COSIGN_SIGN: &str = "https://sigstore.dev/cosign/sign/v1";

/// Longest text of a signature document that a message repeats.
const SHOWN_MAX: usize = 200;

/// Reason why a signature does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureFault {
    /// Not a signature document of its format.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// Larger than a signature document is.
    #[error("larger than {DOCUMENT_MAX} bytes")]
    TooLarge,
    /// A valid document of a kind that is not supported.
    #[error("not supported: {0}")]
    Unsupported(&'static str),
    /// None of the keys made it, or its content was changed.
    #[error("made by none of the keys")]
    OtherKey,
    /// Made by a certificate of a person or a build, and by none of the keys.
    #[error("made by none of the keys but with a certificate (keyless), which is not supported")]
    Keyless,
    /// Made by one of the keys, for other content.
    #[error("made by key {key} for other content ({found})")]
    OtherContent {
        /// The key, in words of its file.
        key: String,
        /// Digests that were signed.
        found: String,
    },
    /// An attestation that is no signature of an image.
    #[error("made by key {key} as an attestation of type {found:?}, which does not count as a signature")]
    OtherPredicate {
        /// The key.
        key: String,
        /// Its predicate type.
        found: String,
    },
}

/// The signed content: a manifest or an index.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    content: &'a [u8],
}

impl<'a> Subject<'a> {
    /// Of the bytes of a manifest or an index.
    pub fn of(content: &'a [u8]) -> Self {
        Self { content }
    }

    /// `sha256:` and 64 digits.
    fn digest(&self) -> String {
        format!("sha256:{}", hex::encode(digest(&SHA256, self.content)))
    }
}

/// A signature that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// Index of the key that made it.
    pub key: usize,
    /// Image name that it states; `None` where the format has none.
    pub name: Option<String>,
}

/// The first of the keys that made a signature over `message`.
fn signer(keys: &[ImageKey], message: &[u8], signature: &[u8]) -> Option<usize> {
    keys.iter().position(|key| key.verifies(message, signature))
}

/// Text of a document for a message: without control characters, of limited length.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(SHOWN_MAX).collect()
}
