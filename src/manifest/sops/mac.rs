//! The digest that binds the values of a document together.

use ring::digest::{Context, SHA512};
use std::fmt;

/// Put before everything by documents whose MAC is over sealed values only, so that one kind cannot be taken for the other.
const SEALED_ONLY: [u8; 32] = [
    0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b, 0x0b, 0x97, 0x5b, 0x3b, 0xf4,
    0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
];

/// SHA-512 over all values of a document, or of all documents of a file, in their order.
#[derive(Clone)]
pub struct Mac(Context);

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mac")
    }
}

impl Mac {
    /// Over nothing yet. `is_of_sealed_only` is `mac_only_encrypted`.
    pub fn new(is_of_sealed_only: bool) -> Self {
        let mut context = Context::new(&SHA512);
        if is_of_sealed_only {
            context.update(&SEALED_ONLY);
        }
        Self(context)
    }

    /// Adds a value as SOPS spells it.
    pub fn add(&mut self, value: &str) {
        self.0.update(value.as_bytes());
    }

    /// As it is sealed in the document.
    pub fn finish(self) -> String {
        hex::encode_upper(self.0.finish())
    }
}
