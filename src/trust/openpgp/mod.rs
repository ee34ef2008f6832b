//! Signatures of OpenPGP (`gpg --detach-sign`, `git commit -S`), judged against a keyring. Only with the cargo feature `openpgp` can any be
//! verified; without it, that is said.
//!
//! In: the bytes of a keyring and of a signature. Out: the [`Signer`](super::Signer), or why not. The formats (RFC 9580, keys and
//! signatures of version 4) are read here, the arithmetic is `ring`'s.
//!
//! As gpg and git judge it: a key counts when its owner says so with a valid self-signature, has not revoked it and it has not ended; a
//! subkey when it is bound for signing, has signed that it belongs to its key, has not ended and is not revoked. Whether a key is trusted
//! by others does not count: that it is in the file does. Stricter: SHA-1, MD5 and what else is weaker than SHA-256 is refused
//! everywhere, also in self-signatures; a revocation counts whatever its reason, and also where it cannot be verified.

#[cfg(not(feature = "openpgp"))]
mod absent;
#[cfg(feature = "openpgp")]
mod armour;
#[cfg(feature = "openpgp")]
mod certificate;
#[cfg(feature = "openpgp")]
mod key;
#[cfg(feature = "openpgp")]
mod keyring;
#[cfg(feature = "openpgp")]
mod packet;
#[cfg(feature = "openpgp")]
mod signature;
#[cfg(all(test, feature = "openpgp"))]
mod tests;

#[cfg(not(feature = "openpgp"))]
pub use absent::Keyring;
#[cfg(feature = "openpgp")]
pub use keyring::Keyring;

/// Where a signature in armour begins.
pub(super) const BEGIN: &[u8] = b"-----BEGIN PGP SIGNATURE-----";

/// Whether these bytes would be an OpenPGP signature, in armour or binary.
pub(super) fn is_signature(bytes: &[u8]) -> bool {
    // The first bit of each packet is set, which no text begins with.
    bytes.starts_with(BEGIN) || bytes.first().is_some_and(|first| *first >= 0x80)
}

/// Why a file is no keyring.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyringProblem(pub(super) String);
