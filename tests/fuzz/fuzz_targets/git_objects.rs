//! Objects of git: any bytes are a commit, a tag or a tree, or have a fault; what is read leads nowhere else.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

// The readers are visible to `git` of podstead-source only, so the module around them is built here.
#[path = "git_modules/objects.rs"]
mod git;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| git::read_anything(bytes));
