//! `podstead completion`: a script for the shell.

use clap::{Args, Command, ValueEnum};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Shells that scripts exist for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(super) fn run(args: &CompletionArgs, command: &mut Command) -> anyhow::Result<ExitCode> {
    let generator = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    clap_complete::generate(generator, command, "podstead", &mut std::io::stdout());
    Ok(ExitCode::SUCCESS)
}
