//! Bundles: whatever is in a file ends in a document within its limits, or in an error, and only content with the right digest is given out.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

#[path = "../../../src/source/bundle/archive.rs"]
mod archive;
#[path = "../../../src/source/bundle/document.rs"]
mod document;

use archive::{read_blob, read_head, verify_content};
use document::BundleDocument;
use libfuzzer_sys::fuzz_target;
use podstead_container::digest::Digest;
use podstead_image::list_job::Here;
use std::fs::File;
use std::io::Write as _;

/// A file in memory, of this process alone.
fn file(bytes: &[u8]) -> File {
    let path = format!("/dev/shm/podstead-fuzz-bundle-{}", std::process::id());
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
    file
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(document) = BundleDocument::parse(bytes) {
        let written = serde_json::to_vec(&document).unwrap();
        assert_eq!(BundleDocument::parse(&written).unwrap(), document);
        assert_eq!(document.bundled_images().images.len(), document.images.len());
    }
    let file = file(bytes);
    let Ok(head) = read_head(&file, &Here) else { return };
    if let Ok(content) = read_blob(&file, &Here, &head.document, head.document.manifests) {
        assert_eq!(Digest::of(&content), head.document.manifests);
    }
    verify_content(&file, &Here, &head.document).ok();
});
