//! Signatures of OpenPGP (`gpg --detach-sign`, `git commit -S`), verified against a keyring. Only with the cargo feature `openpgp` can any
//! be verified; without it, that is said.
//!
//! In: the bytes of a keyring and of a signature. Out: the [`Signer`](super::Signer), or why not. The formats (RFC 9580, keys and
//! signatures of version 4) are read here, the arithmetic is `ring`'s.
//!
//! As in gpg and git: a key is valid if it has a valid self-signature, is not revoked and not expired; a
//! subkey if it is bound for signing, has a back signature, is not expired and not revoked. Trust signatures of
//! others do not matter: a key is trusted because it is in the file. Stricter: SHA-1, MD5 and everything weaker than SHA-256 is refused
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

/// First line of an armoured signature.
pub(super) const BEGIN: &[u8] = b"-----BEGIN PGP SIGNATURE-----";

/// Reports whether these bytes look like an OpenPGP signature, armoured or binary.
pub(super) fn is_signature(bytes: &[u8]) -> bool {
    // The first bit of each packet is set, which no text begins with.
    bytes.starts_with(BEGIN) || bytes.first().is_some_and(|first| *first >= 0x80)
}

/// Problem with a keyring file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyringProblem(pub(super) String);
