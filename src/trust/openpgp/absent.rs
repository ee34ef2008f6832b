//! Stubs for a build without OpenPGP.

use super::KeyringProblem;
use crate::{NOT_BUILT_IN, Signer, TrustError};
use jiff::Timestamp;

/// Keys that may sign; there are none in this build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keyring {}

impl Keyring {
    /// Fails, because this build reads no keyrings.
    pub fn parse(_: &[u8]) -> Result<Self, KeyringProblem> {
        Err(KeyringProblem(NOT_BUILT_IN.to_owned()))
    }

    /// Cannot be called.
    pub fn verify(&self, _: &[u8], _: &[u8], _: Timestamp) -> Result<Signer, TrustError> {
        match *self {}
    }
}
