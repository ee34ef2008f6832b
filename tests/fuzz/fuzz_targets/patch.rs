//! Any patch is applied to any object, or refused, without a panic; what comes of it is an object that can be read, of the same identity.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

use libfuzzer_sys::fuzz_target;
use podstead_manifest::{self as manifest, Limits, PatchesByObject};

fuzz_target!(|input: (&[u8], &[u8])| {
    let (base, patches) = input;
    let limits = Limits { max_nodes: 10_000, ..Limits::default() };
    let patches = manifest::decode("patch", patches, &limits).patches;
    let before = manifest::decode("base", base, &limits);
    let mut by_object = PatchesByObject::new();
    for object in &before.objects {
        let found = patches.iter().filter(|patch| patch.target().selects(&object.key)).cloned();
        by_object.insert(object.key.clone(), found.collect());
    }
    let after = manifest::decode_patched("base", base, &limits, &manifest::sops::Opening::default(), &by_object);
    let outcomes = after.objects.len() + after.removed.len() + after.broken.iter().flatten().count();
    assert_eq!(outcomes, before.objects.len() + before.broken.iter().flatten().count(), "every object comes to one end");
    for problem in &after.problems {
        assert!(!problem.to_string().contains(char::is_control));
    }
});
