//! Errors of signature verification.

use super::Fingerprint;
use jiff::Timestamp;

/// Reason for refusing a signature or a signed object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// There is nothing to verify.
    #[error("not signed")]
    Unsigned,
    /// An OpenPGP signature, and this build verifies none.
    #[error("it has an OpenPGP signature, but {}", NOT_BUILT_IN)]
    NotBuiltIn,
    /// A signature in a format that the configuration names no signers for.
    #[error("it has {format}, but requireSignature has no {field}")]
    NoSigners {
        /// The format with its article.
        format: &'static str,
        /// The field that would name them.
        field: &'static str,
    },
    /// A signature of another kind.
    #[error("it has {format}, which is not supported; sign with an SSH key (gpg.format=ssh)")]
    OtherFormat {
        /// The format with its article, e.g. `an X.509 signature`.
        format: &'static str,
    },
    /// More bytes than a signature, a commit or a tag has.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// The object.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Not a commit or tag as git writes it.
    #[error("the {what} is malformed: {fault}")]
    MalformedObject {
        /// `commit` or `tag` where that is known, else `object`.
        what: &'static str,
        /// The reason.
        fault: &'static str,
    },
    /// Not a signature as OpenSSH or OpenPGP programs write it.
    #[error("the signature is malformed: {fault}")]
    MalformedSignature {
        /// The reason.
        fault: &'static str,
    },
    /// A key, signature or hash algorithm that is not supported.
    #[error("the signature uses {what} {name:?}: {reason}")]
    Algorithm {
        /// `key`, `algorithm` or `hash`.
        what: &'static str,
        /// Its name, shortened.
        name: String,
        /// The reason.
        reason: &'static str,
    },
    /// Made for another purpose.
    #[error("the signature is for namespace {found:?}, not {wanted:?}")]
    OtherNamespace {
        /// The expected namespace.
        wanted: String,
        /// The namespace of the signature.
        found: String,
    },
    /// No line of the allowed signers file has the key.
    #[error("the signing key {key} is not an allowed signer")]
    UnknownKey {
        /// The key.
        key: Fingerprint,
    },
    /// No key of the keyring has this fingerprint or identity.
    #[error("the signing key {issuer} is not in the keyring")]
    NotInKeyring {
        /// Key that the signature names, in hexadecimal digits.
        issuer: String,
    },
    /// An OpenPGP key that cannot or may not sign.
    #[error("the key {key} {reason}")]
    KeyUnusable {
        /// The key.
        key: Fingerprint,
        /// The reason, as the rest of the sentence.
        reason: &'static str,
    },
    /// Its owner has revoked the key.
    #[error("the key {key} of {principal} is revoked")]
    Revoked {
        /// The key; a subkey where only that is revoked.
        key: Fingerprint,
        /// Owner of the key.
        principal: String,
    },
    /// The signature itself has an end.
    #[error("the signature expired at {until}, and it is {at}")]
    SignatureExpired {
        /// End of its validity.
        until: Timestamp,
        /// Time of the check.
        at: Timestamp,
    },
    /// The key's line excludes the namespace.
    #[error("the key {key} of {principal} is not allowed to sign for namespace {namespace:?}")]
    NamespaceNotAllowed {
        /// The key.
        key: Fingerprint,
        /// Owner of the key.
        principal: String,
        /// The namespace.
        namespace: String,
    },
    /// The key's time has not begun.
    #[error("the key {key} of {principal} is not valid before {from}, and it is {at} (check the host's clock)")]
    NotYetValid {
        /// The key.
        key: Fingerprint,
        /// Owner of the key.
        principal: String,
        /// Start of its validity.
        from: Timestamp,
        /// Time of the check.
        at: Timestamp,
    },
    /// The key's time is over.
    #[error("the key {key} of {principal} expired at {until}, and it is {at}")]
    Expired {
        /// The key.
        key: Fingerprint,
        /// Owner of the key.
        principal: String,
        /// End of its validity.
        until: Timestamp,
        /// Time of the check.
        at: Timestamp,
    },
    /// The key is allowed, and what was signed is something else.
    #[error("the signature by key {key} does not match: the content was changed after it was signed")]
    Mismatch {
        /// The key.
        key: Fingerprint,
    },
}

/// Message where OpenPGP is needed but not built in.
pub const NOT_BUILT_IN: &str = "this podstead is built without OpenPGP; build it with --features openpgp, or sign with SSH keys \
                                (gpg.format=ssh) and name them in allowedSignersFile";
