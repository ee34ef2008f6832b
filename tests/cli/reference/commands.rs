//! `docs/reference/cli.md`: every subcommand with its arguments and options, as clap knows them.

use super::{cell, compare};
use clap::{Arg, Command};

const HEAD: &str = "\
# Commands

Data goes to standard output, everything else to standard error. Exit codes: 0 done; 1 what was asked for is not so or could not be done (no such
pod, problems in manifests, a plan that is not empty); 2 the command was not understood, or the daemon could not be asked. `exec` and `attach`
end with the code of the process.

Each subcommand has a manual page, `man podstead-get-pods`. `podstead completion` prints completions for bash, zsh and fish. This page is made from
the command line itself by `UPDATE=1 cargo test --test cli reference`.
";

fn page() -> String {
    let mut command = podstead::cli::command();
    command.build();
    let mut page = HEAD.to_owned();
    page.push_str("\n## Everywhere\n\nEvery subcommand takes these.\n\n");
    page.push_str(&table(command.get_arguments().filter(|argument| argument.is_global_set())));
    page.push_str("\n`podstead` without a subcommand is `podstead status`.\n");
    for subcommand in command.get_subcommands() {
        add(&mut page, "podstead", subcommand);
    }
    page
}

fn add(page: &mut String, parent: &str, command: &Command) {
    // clap's own `help` and what is there for podstead itself.
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string).unwrap_or_default();
    page.extend(["\n## ", &name, "\n\n", &sentence(&paragraphs(&about)), "\n"]);
    let below: Vec<_> =
        command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help").collect();
    let own = || command.get_arguments().filter(|argument| !argument.is_global_set() && !argument.is_hide_set());
    let own = || own().filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()));
    if below.is_empty() || own().next().is_some() {
        let usage = command.clone().render_usage().to_string();
        page.extend(["\n```text\n", usage.trim_start_matches("Usage:").trim(), "\n```\n"]);
    }
    if own().next().is_some() {
        page.push('\n');
        page.push_str(&table(own()));
    }
    let aliases: Vec<String> = command.get_visible_aliases().map(|alias| format!("`{alias}`")).collect();
    if !aliases.is_empty() {
        page.extend(["\nAlso: ", &aliases.join(", "), ".\n"]);
    }
    if let Some(more) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        page.extend(["\n", &paragraphs(&more.to_string()), "\n"]);
    }
    for subcommand in below {
        add(page, &name, subcommand);
    }
}

/// Arguments first, in their order, then options.
fn table<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let (positional, options): (Vec<_>, Vec<_>) = arguments.partition(|argument| argument.is_positional());
    let mut table = String::from("| argument | meaning |\n|---|---|\n");
    for argument in positional.into_iter().chain(options) {
        table.extend(["| ", &written(argument), " | ", &meaning(argument), " |\n"]);
    }
    table
}

/// As it stands on the command line.
fn written(argument: &Arg) -> String {
    let takes_value = argument.get_action().takes_values();
    let values: Vec<String> = argument.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>")).collect();
    let value = if takes_value && !argument.is_positional() { format!(" {}", values.join(" ")) } else { String::new() };
    let short = argument.get_short().map(|short| format!("`-{short}`"));
    let long = argument.get_long().map(|long| format!("`--{long}{value}`"));
    if argument.is_positional() {
        let many = argument.get_num_args().is_some_and(|number| number.max_values() > 1);
        return format!("`{}{}`", values.join(" "), if many { "..." } else { "" });
    }
    [short, long].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let (help, said) = default_said(&help);
    let mut parts = vec![cell(help)];
    if argument.get_action().takes_values() {
        let possible: Vec<_> = argument.get_possible_values().into_iter().filter(|value| !value.is_hide_set()).collect();
        let explained = |value: &clap::builder::PossibleValue| match value.get_help() {
            Some(help) => format!("`{}` ({})", value.get_name(), cell(&help.to_string())),
            None => format!("`{}`", value.get_name()),
        };
        if !possible.is_empty() {
            parts.push(possible.iter().map(explained).collect::<Vec<_>>().join(", "));
        }
        let defaults: Vec<_> = argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
        match said {
            Some(said) => parts.push(format!("default: {}", cell(said))),
            None if !defaults.is_empty() && !argument.is_hide_default_value_set() => {
                parts.push(format!("default: {}", defaults.join(" ")))
            }
            None => {}
        }
        if let Some(variable) = argument.get_env() {
            parts.push(format!("environment: `{}`", variable.to_string_lossy()));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

/// The help without `[default: ...]` at its end, and what that says.
fn default_said(help: &str) -> (&str, Option<&str>) {
    match help.trim_end().strip_suffix(']').and_then(|help| help.rsplit_once("[default: ")) {
        Some((help, said)) => (help.trim_end(), Some(said)),
        None => (help, None),
    }
}

/// Lines that are indented are what one types.
fn paragraphs(text: &str) -> String {
    let mut out = Vec::new();
    for paragraph in text.trim_end().split("\n\n") {
        if paragraph.lines().all(|line| line.starts_with("  ")) {
            out.push(format!("```text\n{paragraph}\n```"));
        } else {
            out.push(paragraph.lines().map(cell).collect::<Vec<_>>().join("\n"));
        }
    }
    out.join("\n\n")
}

/// clap has no full stop at the end.
fn sentence(text: &str) -> String {
    if text.ends_with(['.', '`']) { text.to_owned() } else { format!("{text}.") }
}

#[test]
fn the_page_of_commands_is_made_from_the_command_line() {
    compare("reference/cli.md", &page());
}
