//! The help of every subcommand, as files: a change of the command line is seen in a diff.
//!
//! `UPDATE=1 cargo test --test cli help` writes them anew.

use crate::host::text;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

fn help(subcommand: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podstead"));
    command.args(subcommand).arg("--help").env("COLUMNS", "100").env_remove("PODSTEAD_CONFIG").env_remove("PODSTEAD_SOCKET");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{subcommand:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Subcommands named in a help.
fn subcommands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn collect(subcommand: &[&str], found: &mut Vec<(String, String)>) {
    let help = help(subcommand);
    for name in subcommands(&help) {
        let mut deeper = subcommand.to_vec();
        deeper.push(&name);
        collect(&deeper, found);
    }
    let name = if subcommand.is_empty() { "podstead".to_owned() } else { format!("podstead-{}", subcommand.join("-")) };
    found.push((name, help));
}

#[test]
fn help_of_every_subcommand_is_recorded() {
    let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/help"));
    let mut found = Vec::new();
    collect(&[], &mut found);
    assert!(found.len() > 20, "{found:?}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(&directory).unwrap();
        found.iter().for_each(|(name, help)| std::fs::write(directory.join(format!("{name}.txt")), help).unwrap());
    }
    for (name, help) in &found {
        let written = std::fs::read_to_string(directory.join(format!("{name}.txt"))).unwrap_or_default();
        assert!(*help == written, "{name} --help is not as in tests/cli/help; UPDATE=1 writes it anew:\n{help}");
    }
    let files: BTreeSet<String> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().trim_end_matches(".txt").to_owned())
        .collect();
    assert_eq!(files, found.into_iter().map(|(name, _)| name).collect(), "files of subcommands that are gone");
}
