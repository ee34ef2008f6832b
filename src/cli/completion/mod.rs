//! `podstead completion`: a script for the shell.

pub(super) mod names;

use clap::{Args, Command, ValueEnum};
use std::io::{self, Write};
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

/// Adds names of pods and the like to the words that the generated function knows.
const BASH_NAMES: &str = r#"
_podstead_with_names() {
    _podstead "$@"
    local name
    while IFS= read -r name; do
        COMPREPLY+=("$name")
    done < <("${COMP_WORDS[0]}" complete-names -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)
}
complete -F _podstead_with_names -o nosort -o bashdefault -o default podstead
"#;

const ZSH_NAMES: &str = r#"
_podstead_with_names() {
    _podstead "$@"
    local -a names
    names=("${(@f)$("${words[1]}" complete-names -- "${(@)words[1,CURRENT]}" 2>/dev/null)}")
    (( ${#names[1]} )) && compadd -a names
}
compdef _podstead_with_names podstead
"#;

const FISH_NAMES: &str = r#"
complete -c podstead -f -a '(podstead complete-names -- (commandline -opc) (commandline -ct) 2>/dev/null)'
"#;

pub(super) fn run(args: &CompletionArgs, command: &mut Command) -> anyhow::Result<ExitCode> {
    let (generator, names) = match args.shell {
        Shell::Bash => (clap_complete::Shell::Bash, BASH_NAMES),
        Shell::Zsh => (clap_complete::Shell::Zsh, ZSH_NAMES),
        Shell::Fish => (clap_complete::Shell::Fish, FISH_NAMES),
    };
    // The generator panics if it cannot write, as into a pipe that is closed.
    let mut script = Vec::new();
    clap_complete::generate(generator, command, "podstead", &mut script);
    script.extend_from_slice(names.as_bytes());
    io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
