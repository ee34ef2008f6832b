//! Why something is not trusted.

use super::Fingerprint;
use jiff::Timestamp;

/// Why a signature, or what it is taken from, is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// There is nothing to verify.
    #[error("it is not signed")]
    Unsigned,
    /// A signature that is not an SSH signature.
    #[error("it has {format}, which is not supported in this build: sign with an SSH key (gpg.format=ssh)")]
    OtherFormat {
        /// The format with its article, e.g. `an OpenPGP signature`.
        format: &'static str,
    },
    /// More bytes than a signature, a commit or a tag has.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// What.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Not a commit or tag as git writes it.
    #[error("the {what} is malformed: {fault}")]
    MalformedObject {
        /// `commit` or `tag` where that could be told, else `object`.
        what: &'static str,
        /// What is wrong.
        fault: &'static str,
    },
    /// Not an SSH signature as OpenSSH writes it.
    #[error("the signature is malformed: {fault}")]
    MalformedSignature {
        /// What is wrong.
        fault: &'static str,
    },
    /// A key, signature or hash algorithm that is not taken.
    #[error("the signature uses {what} {name:?}: {reason}")]
    Algorithm {
        /// `key`, `algorithm` or `hash`.
        what: &'static str,
        /// Its name, shortened.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// Made for another purpose.
    #[error("the signature is for namespace {found:?}, not {wanted:?}")]
    OtherNamespace {
        /// What it should be for.
        wanted: String,
        /// What it is for.
        found: String,
    },
    /// No line of the allowed signers file has the key.
    #[error("the signing key {key} is not an allowed signer")]
    UnknownKey {
        /// The key.
        key: Fingerprint,
    },
    /// The key's line excludes the namespace.
    #[error("the key {key} of {principal} is not allowed to sign for namespace {namespace:?}")]
    NamespaceNotAllowed {
        /// The key.
        key: Fingerprint,
        /// Whose it is.
        principal: String,
        /// The namespace.
        namespace: String,
    },
    /// The key's time has not begun.
    #[error("the key {key} of {principal} is valid only from {from} on, and it is {at} (is the host's clock right?)")]
    NotYetValid {
        /// The key.
        key: Fingerprint,
        /// Whose it is.
        principal: String,
        /// When it begins to be valid.
        from: Timestamp,
        /// The time that it was judged at.
        at: Timestamp,
    },
    /// The key's time is over.
    #[error("the key {key} of {principal} was valid only until {until}, and it is {at}")]
    Expired {
        /// The key.
        key: Fingerprint,
        /// Whose it is.
        principal: String,
        /// When it ended to be valid.
        until: Timestamp,
        /// The time that it was judged at.
        at: Timestamp,
    },
    /// The key is allowed, and what was signed is something else.
    #[error("the signature by key {key} does not match: the content was changed after it was signed")]
    Mismatch {
        /// The key.
        key: Fingerprint,
    },
}
