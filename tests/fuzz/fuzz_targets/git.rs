//! Answers of git servers: lists of references, answers and packs end in a value or an error, in pieces of any size alike.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

// The protocol is visible to `git` of podstead-source only, so the module around it is built here.
#[path = "git_modules/git.rs"]
mod git;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    git::answer_anything(bytes, usize::from(piece).max(1));
});
