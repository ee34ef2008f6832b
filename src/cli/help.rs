//! `podstead help`.

use anyhow::bail;
use clap::{Args, Command};
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct HelpArgs {
    /// Subcommand, such as get pods
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
}

/// Prints what `--help` of the subcommand prints.
pub(super) fn run(args: &HelpArgs, command: Command) -> anyhow::Result<ExitCode> {
    let mut found = command.clone();
    for word in &args.words {
        let name = found.get_name().to_owned();
        let Some(next) = found.find_subcommand(word).cloned() else {
            bail!("{name} has no subcommand {word:?}; podstead help lists all subcommands");
        };
        found = next;
    }
    let words = ["podstead".to_owned()].into_iter().chain(args.words.iter().cloned()).chain(["--help".to_owned()]);
    // The help is an error for clap, since nothing was parsed.
    let help = command.try_get_matches_from(words).err();
    write!(io::stdout(), "{}", help.map(|help| help.render().to_string()).unwrap_or_default())?;
    Ok(ExitCode::SUCCESS)
}
