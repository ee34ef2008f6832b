//! Signers of verified signatures. **Pure**.

use super::key::Fingerprint;
use std::fmt;

/// Signer of a verified signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// The principals of the line of the allowed signers file, as written there; the name of an OpenPGP key, as its owner wrote it.
    pub principal: String,
    /// The key; of OpenPGP the primary one.
    pub key: Fingerprint,
}

impl fmt::Display for Signer {
    /// `ann@example.org (SHA256:...)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.principal.escape_debug(), self.key)
    }
}
