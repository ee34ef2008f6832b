//! Artifacts with manifests: what a registry sends as a manifest or as a layer ends in files within the limits, or in an error.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

#[path = "../../../src/source/around.rs"]
mod around;
#[path = "../../../src/source/oci/manifest.rs"]
mod manifest;
#[path = "../../../src/source/one_line.rs"]
mod one_line;
#[path = "../../../src/source/oci/tree/mod.rs"]
mod tree;
#[path = "../../../src/source/tree_rules.rs"]
mod tree_rules;

use libfuzzer_sys::fuzz_target;
use manifest::ArtifactManifest;
use tree_rules::ReadLimits;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(manifest) = ArtifactManifest::parse(bytes) {
        let summary = manifest.summary(None);
        assert!(!summary.subject.contains(char::is_control) && !summary.author.contains(char::is_control));
    }
    let limits = ReadLimits { max_file_bytes: 1 << 10, max_total_bytes: 1 << 12, max_files: 8, max_names: 64 };
    for path in ["", "a"] {
        let Ok(found) = tree::read(bytes, path, &limits) else { continue };
        let names: Vec<&String> = found.files.keys().chain(found.beside.keys()).chain(found.around.files.keys()).collect();
        assert!(names.iter().all(|name| !name.starts_with('/') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))));
        let contents = found.files.values().chain(found.beside.values()).chain(found.around.files.values());
        let sizes = contents.filter_map(|content| content.as_ref().ok());
        assert!(sizes.map(|content| content.len() as u64).sum::<u64>() <= limits.max_total_bytes);
    }
});
