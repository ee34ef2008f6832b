//! The `podstead` command: daemon and client in one binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    podstead_cli::main()
}
