//! SSH and OpenPGP signatures of commits, tags and manifests, verified against a file of allowed signers or a keyring; signatures of images by
//! public keys ([`image`]).
//!
//! **Pure.** In: bytes that came from elsewhere (a commit object, a `.sig` beside a manifest, a file of who may sign) and the time to
//! judge them at. Out: the [`Signer`], or a [`TrustError`] that says which part of the chain does not hold. Verification is `ring`'s;
//! formats are OpenSSH's (`PROTOCOL.sshsig`, "ALLOWED SIGNERS" of ssh-keygen(1)), git's and, with the cargo feature
//! `openpgp`, those of RFC 9580.
//!
//! A signature says *who* made a revision, not that it is the newest nor which branch it belongs to: the sources prevent that older signed
//! content comes back.

mod allowed_signers;
mod commit;
mod error;
pub mod image;
mod judged_at;
mod key;
mod openpgp;
mod signer;
mod sshsig;
mod trusted;
mod wire;

pub use allowed_signers::{AllowedSigners, SignersProblem};
pub use commit::{ObjectKind, SignedParts, signed_parts};
pub use error::{NOT_BUILT_IN, TrustError};
pub use judged_at::judged_at;
pub use key::Fingerprint;
pub use openpgp::{Keyring, KeyringProblem};
pub use signer::Signer;
pub use sshsig::SshSignature;
pub use trusted::Trusted;

use jiff::Timestamp;

/// The namespace of git's signatures.
pub const GIT_NAMESPACE: &str = "git";
/// The namespace of detached signatures of manifests, made by `ssh-keygen -Y sign -n podstead`. One of our own, so that no signature that
/// somebody made over a file for another purpose deploys it.
pub const DOCUMENT_NAMESPACE: &str = "podstead";
/// The namespace of signatures of bundles, made by `ssh-keygen -Y sign -n podstead-bundle`. Another one than that of manifests: who may sign
/// these need not be allowed to bring images.
pub const BUNDLE_NAMESPACE: &str = "podstead-bundle";

/// Verifies an SSH signature (armoured, as `ssh-keygen -Y sign` writes it) over `signed`: made for exactly `namespace`, by a key that
/// `signers` has for that namespace and that is valid at `at` (see [`judged_at`]).
pub fn verify(
    signers: &AllowedSigners,
    namespace: &str,
    signed: &[u8],
    signature: &[u8],
    at: Timestamp,
) -> Result<Signer, TrustError> {
    let signature = SshSignature::parse(signature)?;
    if signature.namespace() != namespace.as_bytes() {
        let found = key::shown(signature.namespace());
        return Err(TrustError::OtherNamespace { wanted: namespace.to_owned(), found });
    }
    // Check that the signer is allowed before verifying the signature: unknown keys do not reach the cryptography.
    let signer = signers.signer(signature.key(), namespace, at)?;
    signature.verify(signed)?;
    Ok(signer)
}
