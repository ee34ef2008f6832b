//! `podstead_trust::AllowedSigners::parse` answers any bytes without a panic, with signers or with reasons that fit a line.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(problems) = podstead_trust::AllowedSigners::parse(bytes) {
        assert!(!problems.is_empty());
        let lines = bytes.split(|byte| *byte == b'\n').count();
        for problem in problems {
            assert!(problem.line as usize <= lines);
            assert!(!problem.to_string().contains(char::is_control));
        }
    }
});
