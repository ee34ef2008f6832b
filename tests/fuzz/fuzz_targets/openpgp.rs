//! `trust::Keyring::parse` and `Keyring::verify` answer any bytes without a panic, and nobody is trusted by chance.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use podstead_trust::{Keyring, NOT_BUILT_IN};

/// A key whose private half nobody has.
const NOBODY: &[u8] = b"-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawGNkRYJKwYBBAHaRw8BAQdA3RXzU4nPwQc6n0Yp+gJAGU29hWaeYHfe8p1F
VA0KNa+0Bm5vYm9keYiQBBMWCAA4FiEEFLopr5WGhE7H2a6DREIq6U47rKsFAmsB
jZECGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQREIq6U47rKvceQD/ZnWC
m8bUleucqIzzQZ6xh3iEUgGx6ViGOcHoP0sR2A0BAIHw8uzj7GB/0NP9rqlW0ATJ
DfYPDqmyulxxxM/Qs+0H
=PeNh
-----END PGP PUBLIC KEY BLOCK-----
";

fuzz_target!(|bytes: &[u8]| {
    let ring = Keyring::parse(NOBODY).unwrap();
    let error = ring.verify(b"text", bytes, Timestamp::UNIX_EPOCH).unwrap_err();
    assert!(!error.to_string().contains(char::is_control));
    match Keyring::parse(bytes) {
        // The bytes of a ring are no signature, and none of its keys has made one that nobody wrote.
        Ok(ring) => {
            let error = ring.verify(b"text", bytes, Timestamp::UNIX_EPOCH).unwrap_err();
            assert!(!error.to_string().contains(char::is_control));
        }
        Err(problem) => assert!(problem.to_string() != NOT_BUILT_IN),
    }
});
