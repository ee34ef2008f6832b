//! Signatures of images in registries and archives: documents, manifests and lists end in a value or an error, and nobody is trusted by
//! chance.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

#[path = "../../../src/image/policy/artifact.rs"]
mod artifact;
#[path = "../../../src/image/document.rs"]
pub mod document;

use libfuzzer_sys::fuzz_target;
use podstead_trust::image::{Bundle, ImageKey, KEYS_PER_FILE, SignatureFault, SimpleSigning, Subject};

/// A key whose private half nobody has kept.
const NOBODY: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAY4KzzIgUErd7/K7tAmABw2ceMCXmbCD258uBZ5hRRio=
-----END PUBLIC KEY-----
";

fn refused(result: Result<podstead_trust::image::Signed, SignatureFault>) {
    let text = result.unwrap_err().to_string();
    assert!(text.len() < 2000 && !text.contains(char::is_control), "{text}");
}

fuzz_target!(|bytes: &[u8]| {
    let keys = ImageKey::parse_file(NOBODY.as_bytes()).unwrap();
    let subject = Subject::of(b"{}");
    let (first, second) = bytes.split_at(bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0));
    if let Ok(document) = SimpleSigning::parse(second, &String::from_utf8_lossy(first)) {
        refused(document.verify(&keys, &subject));
    }
    if let Ok(bundle) = Bundle::parse(bytes) {
        bundle.is_about(&subject);
        refused(bundle.verify(&keys, &subject, &[]));
    }
    match ImageKey::parse_file(bytes) {
        Ok(keys) => assert!((1..=KEYS_PER_FILE).contains(&keys.len())),
        Err(problem) => assert!(!problem.to_string().contains(char::is_control)),
    }
    if let Ok(layers) = artifact::signatures(bytes) {
        assert!((1..=artifact::LOOKED_AT).contains(&layers.len()));
    }
    if let Ok((referrers, _)) = artifact::referrers(bytes) {
        assert!(referrers.len() <= artifact::LOOKED_AT);
    }
});
