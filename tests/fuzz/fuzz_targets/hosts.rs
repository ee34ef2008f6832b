//! `hosts.toml`: a file is read, or its fault has a line of the file.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

#[path = "../../../src/image/registry/hosts/hosts_file.rs"]
mod hosts_file;

use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match hosts_file::parse(text, Path::new("/certs")) {
        Ok(file) => {
            for host in file.hosts.iter().chain([&file.server]) {
                assert!(host.base.as_ref().is_none_or(|base| base.path().ends_with('/')));
                assert!(host.authorities.iter().all(|path| path.is_absolute()));
            }
        }
        Err(problem) => assert!(problem.line >= 1 && problem.line <= text.matches('\n').count() + 1),
    }
});
