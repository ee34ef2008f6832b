//! Encryption of what a source keeps on disk of what it fetched: it may hold Secrets.
//!
//! A line that names the format, a nonce, and ChaCha20-Poly1305 ciphertext. Where it was fetched from is authenticated with it, so that
//! what was fetched elsewhere does not count.

use podstead_sys::machine_key::MachineKey;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use std::io;

/// A kind of file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seal {
    /// The first line.
    pub(crate) format: &'static [u8],
    /// Purpose of the key that is derived from this host's.
    pub(crate) purpose: &'static str,
}

impl Seal {
    fn cipher(self, key: &MachineKey) -> io::Result<LessSafeKey> {
        let key =
            UnboundKey::new(&CHACHA20_POLY1305, &key.derive(self.purpose)).map_err(|_| io::Error::other("set up the cipher"))?;
        Ok(LessSafeKey::new(key))
    }

    /// The content of a file.
    pub(crate) fn seal(self, key: &MachineKey, origin: &str, mut text: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| io::Error::other("get random bytes"))?;
        self.cipher(key)?
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(origin), &mut text)
            .map_err(|_| io::Error::other("encrypt what was fetched"))?;
        Ok([self.format, &nonce, &text].concat())
    }

    /// The text in a file; `None` if it is not of this kind, of this key or of this origin.
    pub(crate) fn open(self, key: &MachineKey, origin: &str, file: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = file.strip_prefix(self.format)?.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let length = self.cipher(key).ok()?.open_in_place(nonce, Aad::from(origin), &mut sealed).ok()?.len();
        sealed.truncate(length);
        Some(sealed)
    }
}
