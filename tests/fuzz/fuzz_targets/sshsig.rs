//! `trust::SshSignature::parse` and `trust::verify` answer any bytes without a panic, and nobody is trusted by chance.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use podstead_trust::{self as trust, AllowedSigners, SshSignature, TrustError};

/// A key whose private half nobody has: its point is the hash of a word.
const NOBODY: &[u8] = b"nobody ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGOCs8yIFBK3e/yu7QJgAcANnjAl5mwg9ufpLweYUUYq";

fuzz_target!(|bytes: &[u8]| {
    let parsed = SshSignature::parse(bytes);
    let signers = AllowedSigners::parse(NOBODY).unwrap();
    let verdict = trust::verify(&signers, trust::GIT_NAMESPACE, b"text", bytes, Timestamp::UNIX_EPOCH);
    let error = verdict.unwrap_err();
    assert!(parsed.is_ok() || parsed == Err(error.clone()));
    assert!(!error.to_string().contains(char::is_control));
});
