//! `podstead_manifest::change`: a body and a patch after each other are answered without a panic and within their limits, and an edit of a file leaves
//! the object that was wanted.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

use libfuzzer_sys::fuzz_target;
use podstead_manifest::Limits;
use podstead_manifest::change::{LIMITS, PatchForm, carried, drop_unknown_fields, located, patched, read_body, removed, replaced};

fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (file, patch) = (&bytes[..at], bytes.get(at + 1..).unwrap_or_default());
    let limits = Limits { max_bytes: 1 << 16, max_documents: 16, ..LIMITS };
    let patch = read_body(patch, &limits).map(|body| body.value).unwrap_or_default();
    for object in located(file, "default", &limits) {
        for form in [PatchForm::Json, PatchForm::Merge, PatchForm::Strategic] {
            let Ok(mut new) = patched(&object.key.kind, &object.value, &patch, form) else { continue };
            drop_unknown_fields(&object.key.kind, &mut new);
            let wanted = carried(&object.value, &object.value, &new);
            if let Some(text) = replaced(file, &object, &wanted, &limits)
                && text.bytes.len() < limits.max_bytes
            {
                let again = located(&text.bytes, "default", &limits);
                assert!(again.is_empty() || again.iter().any(|found| found.value == wanted) || *object.key.kind != wanted["kind"]);
            }
        }
        removed(file, &object, &limits);
    }
});
