//! The `podstead-shim` command: one per pod; also the short-lived helper that creates containers.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    podstead_shim::run(&arguments)
}
