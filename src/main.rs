//! The `podstead` command: daemon, client and jobs in one binary.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match podstead::job::requested(&arguments) {
        Some(podstead::image::unpack_job::TASK) => podstead::image::unpack_job::run(),
        Some(podstead::image::list_job::TASK) => podstead::image::list_job::run(),
        Some(podstead::fetch::TASK) => podstead::fetch::run(),
        Some(podstead::source::git::job::TASK) => podstead::source::git::job::run(),
        Some(podstead::source::tree_job::TASK) => podstead::source::tree_job::run(),
        Some(podstead::volume::nfs::TASK) => podstead::volume::nfs::run(),
        Some(podstead::job::mounts::TASK) => podstead::job::mounts::run(),
        Some(podstead::job::program::TASK) => podstead::job::program::run(),
        Some(_) => ExitCode::FAILURE,
        None => podstead_cli::main(),
    }
}
