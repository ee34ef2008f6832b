//! `manifest::decode` answers any bytes without a panic and without contradicting itself.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

#[path = "../../../src/manifest/mod.rs"]
mod manifest;
#[path = "../../../src/sops/mod.rs"]
mod sops;

use libfuzzer_sys::fuzz_target;
use manifest::{Decoded, Limits};
use std::collections::HashSet;

fuzz_target!(|bytes: &[u8]| {
    let Decoded { objects, problems, broken } = manifest::decode("fuzz", bytes, &Limits::default());
    assert!(broken.is_empty() || !problems.is_empty());
    assert!(problems.is_empty() || !broken.is_empty() || !objects.is_empty());
    let keys: HashSet<_> = objects.iter().map(|object| &object.key).collect();
    assert_eq!(keys.len(), objects.len());
    assert!(broken.iter().flatten().all(|key| !keys.contains(key)));
    for problem in &problems {
        assert!(!problem.to_string().contains(char::is_control));
    }
});
