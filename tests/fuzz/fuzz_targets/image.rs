//! What registries and archives send: names, manifests, configurations and tar streams end in a value or an error.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

#[path = "../../../src/image/digest.rs"]
mod digest;
#[path = "../../../src/image/document.rs"]
mod document;
#[path = "../../../src/image/image_config.rs"]
mod image_config;
#[path = "../../../src/image/reference.rs"]
mod reference;
#[path = "../../../src/image/tar.rs"]
mod tar;

use document::{Configuration, Manifest, parse_saved};
use reference::Reference;
use tar::{Streamed, TarReader};
use image_config::ImageConfig;
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
