//! Trusted signers of both formats.

use super::{AllowedSigners, Keyring, Signer, TrustError, openpgp, sshsig, verify};
use jiff::Timestamp;

/// Trusted signers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trusted {
    /// With SSH keys.
    pub ssh: Option<AllowedSigners>,
    /// With OpenPGP keys.
    pub openpgp: Option<Keyring>,
    /// Namespace of SSH signatures. OpenPGP signatures have none.
    pub namespace: String,
}

impl Trusted {
    /// Verifies `signature` over `signed`, by a key that may sign at `at` (see [`super::judged_at`]).
    pub fn verify(&self, signed: &[u8], signature: &[u8], at: Timestamp) -> Result<Signer, TrustError> {
        let Self { ssh, openpgp: keyring, namespace } = self;
        match (openpgp::is_signature(signature), keyring, ssh) {
            (true, Some(keyring), _) => keyring.verify(signed, signature, at),
            (true, None, _) if cfg!(not(feature = "openpgp")) => Err(TrustError::NotBuiltIn),
            (true, None, _) => Err(TrustError::NoSigners { format: "an OpenPGP signature", field: "openpgpKeyringFile" }),
            (false, _, Some(signers)) => verify(signers, namespace, signed, signature, at),
            (false, _, None) if signature.starts_with(sshsig::BEGIN) => {
                Err(TrustError::NoSigners { format: "an SSH signature", field: "allowedSignersFile" })
            }
            (false, _, None) => Err(TrustError::MalformedSignature { fault: "it is not an OpenPGP signature" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_for_which_nobody_is_named_says_what_to_do() {
        let trusted = Trusted { ssh: None, openpgp: None, namespace: "git".into() };
        let refused = |signature: &[u8]| trusted.verify(b"", signature, Timestamp::UNIX_EPOCH).unwrap_err().to_string();
        assert!(refused(b"-----BEGIN SSH SIGNATURE-----\n").contains("has no allowedSignersFile"));
        for openpgp in [b"-----BEGIN PGP SIGNATURE-----\n".as_slice(), &[0xc2, 0]] {
            let word = if cfg!(feature = "openpgp") { "has no openpgpKeyringFile" } else { "build it with --features openpgp" };
            assert!(refused(openpgp).contains(word), "{}", refused(openpgp));
        }
        assert!(refused(b"<html>").contains("malformed"));
    }
}
