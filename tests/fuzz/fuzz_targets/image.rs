//! Answers of registries and content of archives: names, manifests, configurations and tar streams end in a value or an error.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

#[path = "../../../src/image/document.rs"]
mod document;
#[path = "../../../src/image/tar.rs"]
mod tar;

use document::{Configuration, Manifest, parse_saved};
use podstead_container::reference::Reference;
use tar::{Streamed, TarReader};
use podstead_container::ImageConfig;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(reference) = text.parse::<Reference>()
    {
        // The full spelling names the same image.
        assert_eq!(reference.to_string().parse::<Reference>().unwrap(), reference);
    }
    Manifest::parse(bytes).ok();
    Configuration::parse(bytes, 3).ok();
    parse_saved(bytes).ok();
    let mut tar = TarReader::new(Streamed(bytes));
    while let Ok(Some(_)) = tar.next_entry() {
        while tar.chunk(1 << 20).is_ok_and(|chunk| !chunk.is_empty()) {}
    }
});
