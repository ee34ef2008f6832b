//! `manifest::decode` answers any bytes without a panic and without contradicting itself.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

use libfuzzer_sys::fuzz_target;
use podstead_manifest::{self as manifest, Decoded, Ignored, Limits};
use std::collections::HashSet;

fuzz_target!(|bytes: &[u8]| {
    let Decoded { objects, problems, broken, patches, broken_patches, removed, touched, ignored } =
        manifest::decode("fuzz", bytes, &Limits::default());
    assert!(removed.is_empty() && touched.is_empty());
    assert!((broken.is_empty() && broken_patches.is_empty()) || !problems.is_empty());
    let is_nothing = broken.is_empty() && objects.is_empty() && patches.is_empty() && broken_patches.is_empty();
    // Kinds that are refused by name are no part of the content.
    assert!(problems.iter().all(|problem| problem.code == "unsupported-kind") || !is_nothing);
    let keys: HashSet<_> = objects.iter().map(|object| &object.key).collect();
    assert_eq!(keys.len(), objects.len());
    assert!(broken.iter().flatten().all(|key| !keys.contains(key)));
    for problem in problems.iter().chain(&Ignored::warnings(ignored.iter())) {
        assert!(!problem.to_string().contains(char::is_control));
    }
});
