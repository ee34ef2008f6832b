//! `docs/reference/cli.md`: every subcommand with its arguments and options, as clap knows them.

use super::{cell, compare};
use clap::{Arg, Command};

const HEAD: &str = "\
# Commands

This page lists all subcommands of `podstead` with their arguments and options.

Data is written to standard output, all messages to standard error. Exit codes:

| code | meaning |
|---|---|
| 0 | success |
| 1 | the command failed, or its answer is no: no such pod, problems in manifests, a plan with changes |
| 2 | invalid arguments, or the daemon could not be reached |

`exec` and `attach` exit with the exit code of the process.

## Output formats

`-o` of commands that list objects takes these; commands that write sentences have `text` instead of `table`, `wide` and `name`.

| format | output |
|---|---|
| `table`, `wide` | columns for people, and more of them |
| `name` | a line with `TYPE/NAME` for each object |
| `json`, `yaml` | the objects as the API has them |
| `jsonpath=TEMPLATE`, `jsonpath-file=FILE` | text by a JSONPath template, such as `'{range .items[*]}{.metadata.name}{\"\\n\"}{end}'` |
| `custom-columns=HEADING:PATH,...`, `custom-columns-file=FILE` | a table with these columns, such as `NAME:.metadata.name,IP:.status.podIP` |

Templates are those of kubectl: fields, `[0]`, `[1:3]`, `[*]`, `['a','b']`, `..`, filters such as `[?(@.type=='Ready')]`, `range` and `end`, and quoted
text. Missing fields are empty. A path alone may stand without braces: `-o jsonpath=.status.podIP`. Several objects are in `.items`, as with
`-o json`. `custom-columns` has a row for each object; of `status` for each pod, of `doctor` for each finding, of `history` for each revision, of
`plan` for each pod. Templates may have 64 KiB.

Each subcommand has a manual page, such as `man podstead-get-pods`. `podstead completion` prints completion scripts for bash, zsh and fish. This page is
generated from the code with `UPDATE=1 cargo test --test cli reference`.
";

fn page() -> String {
    let mut command = podstead::cli::command();
    command.build();
    let mut page = HEAD.to_owned();
    page.push_str("\n## Global options\n\nAll subcommands accept these options.\n\n");
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
        page.extend(["\nAliases: ", &aliases.join(", "), ".\n"]);
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
fn page_of_commands_follows_command_line() {
    compare("reference/cli.md", &page());
}
