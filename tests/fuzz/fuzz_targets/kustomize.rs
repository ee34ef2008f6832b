//! Any files are built or refused, without a panic and within the limits; what is printed can be read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use podstead_manifest::Limits;
use podstead_manifest::kustomize::{BuildLimits, build};
use std::collections::BTreeMap;

const PATHS: [&str; 8] = [
    "kustomization.yaml",
    "r.yaml",
    "p.yaml",
    "base/kustomization.yaml",
    "base/r.yaml",
    "component/kustomization.yaml",
    "data.txt",
    "c.yaml",
];

fuzz_target!(|input: Vec<(u8, Vec<u8>)>| {
    let limits = BuildLimits { manifest: Limits { max_nodes: 5000, ..Limits::default() }, max_objects: 100, ..BuildLimits::default() };
    let mut files = BTreeMap::new();
    for (path, bytes) in input {
        files.insert(PATHS[usize::from(path) % PATHS.len()].to_owned(), bytes);
    }
    let built = build(&files, "", &limits);
    assert!(built.objects.is_empty() || !built.has_failed());
    for problem in &built.problems {
        assert!(!problem.to_string().contains(char::is_control));
    }
    for object in &built.objects {
        assert!(built.read.contains(object.origin().file.as_str()), "{object:?}");
        for problem in object.decode("default", &limits.manifest).problems {
            assert!(!problem.to_string().contains(char::is_control));
        }
    }
});
