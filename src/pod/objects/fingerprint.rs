//! Fingerprints: comparison of values without keeping them.

use ring::hmac;
use std::fmt;

/// Key of this host's fingerprints. With it, data on disk reveal nothing about a value, not even by trying all passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct FingerprintKey([u8; 32]);

impl FingerprintKey {
    /// A key from 32 random, or derived, bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FingerprintKey")
    }
}

/// Stands for values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// 128 bits in hexadecimal.
    pub value: String,
    /// True if the values are final: nothing is missing, and no source that has yet to deliver could change them. One that is not sure
    /// differs from none.
    pub is_sure: bool,
}

impl Fingerprint {
    /// Returns true if values with the recorded fingerprint may be the same.
    pub fn may_be(&self, recorded: &str) -> bool {
        !self.is_sure || self.value == recorded
    }
}

/// Takes values one after the other.
#[derive(Debug)]
pub struct Fingerprinting(hmac::Context);

impl Fingerprinting {
    /// Starts a fingerprint with this host's key.
    pub fn new(key: &FingerprintKey) -> Self {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key.0));
        context.update(b"podstead environment 1\n");
        Self(context)
    }

    /// Adds a text, told apart from its neighbours.
    pub fn add(&mut self, text: &str) {
        self.0.update(&text.len().to_le_bytes());
        self.0.update(text.as_bytes());
    }

    /// Adds the number of what follows, or that nothing does.
    pub fn count(&mut self, number: usize) {
        self.0.update(&number.to_le_bytes());
    }

    /// The fingerprint of all texts that were added.
    pub fn finish(self, is_sure: bool) -> Fingerprint {
        let tag = self.0.sign();
        Fingerprint { value: hex::encode(tag.as_ref().get(..16).unwrap_or_default()), is_sure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: u8, texts: &[&str]) -> String {
        let mut fingerprinting = Fingerprinting::new(&FingerprintKey::new([key; 32]));
        texts.iter().for_each(|text| fingerprinting.add(text));
        fingerprinting.finish(true).value
    }

    #[test]
    fn it_depends_on_key_and_texts_and_where_they_are_cut() {
        assert_eq!(of(1, &["ab", "c"]), of(1, &["ab", "c"]));
        assert_ne!(of(1, &["ab", "c"]), of(1, &["a", "bc"]));
        assert_ne!(of(1, &["ab"]), of(2, &["ab"]));
    }

    #[test]
    fn one_that_is_not_sure_may_be_any() {
        let sure = Fingerprint { value: "a".into(), is_sure: true };
        assert!(sure.may_be("a") && !sure.may_be("b"));
        assert!(Fingerprint { is_sure: false, ..sure }.may_be("b"));
    }
}
