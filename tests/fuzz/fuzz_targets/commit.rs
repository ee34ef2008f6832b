//! `trust::signed_parts` answers any bytes without a panic, and neither invents nor loses bytes of what it takes apart.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

use libfuzzer_sys::fuzz_target;
use podstead_trust::{ObjectKind, signed_parts};

fuzz_target!(|bytes: &[u8]| {
    let Ok(parts) = signed_parts(bytes) else { return };
    match parts.kind {
        ObjectKind::Tag { .. } => assert_eq!([parts.payload, parts.signature].concat(), bytes),
        ObjectKind::Commit => {
            // The header's name, and a space before each line.
            let lines = parts.signature.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(bytes.len(), parts.payload.len() + "gpgsig".len() + lines + parts.signature.len());
        }
    }
});
