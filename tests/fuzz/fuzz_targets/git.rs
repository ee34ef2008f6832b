//! What git servers send: lists of references, answers and packs end in a value or an error, in pieces of any size alike.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

// The protocol is visible to `source::git` only, so the modules around it are built here.
#[path = "git_modules/source.rs"]
mod source;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    source::git::answer_anything(bytes, usize::from(piece).max(1));
});
