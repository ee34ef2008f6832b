//! Documents that claim to be encrypted with SOPS: opened or refused, without a panic; nothing that was not sealed for the key is believed.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

use libfuzzer_sys::fuzz_target;
use podstead_manifest::{self as manifest, Decoded, Limits};
use podstead_manifest::sops::{Identities, Opening, Unopened};
use std::sync::LazyLock;

/// Made for the tests.
const IDENTITY: &str = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
static IDENTITIES: LazyLock<Identities> = LazyLock::new(|| Identities::parse(IDENTITY).unwrap());

fuzz_target!(|bytes: &[u8]| {
    for unopened in [Unopened::Refused, Unopened::Noted] {
        let opening = Opening { identities: IDENTITIES.clone(), unopened };
        let Decoded { objects, problems, broken, .. } = manifest::decode_sealed("fuzz", bytes, &Limits::default(), &opening);
        assert!(broken.is_empty() || !problems.is_empty());
        assert!(objects.len() <= bytes.len());
        assert!(problems.iter().all(|problem| !problem.to_string().contains(char::is_control)));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        Identities::parse(text).ok();
    }
});
