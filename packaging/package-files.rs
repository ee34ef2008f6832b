//! Writes what a package holds beside the binaries and is made from the code: manual pages, completions, and the licences of all crates
//! that are built in for a target. `cargo run --example package-files -- DIRECTORY TARGET`.
#![expect(clippy::print_stderr, reason = "a tool for the terminal")]

use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const SHIM_PAGE: &str = r#".TH podstead-shim 8 "" "podstead" "podstead"
.SH NAME
podstead\-shim \- run one pod of podstead
.SH DESCRIPTION
The daemon starts one shim for each pod. The shim is the parent process of the containers of the pod. It writes their logs and exit codes,
so that the daemon can be restarted and upgraded without affecting them. It is not meant to be started by users. SIGTERM stops the pod.
.SH SEE ALSO
.BR podstead (8)
"#;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, target] = arguments.as_slice() else {
        eprintln!("usage: package-files DIRECTORY TARGET");
        return ExitCode::from(2);
    };
    match write_all(Path::new(out), target) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("package-files: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(out: &Path, target: &str) -> io::Result<()> {
    fs::create_dir_all(out)?;
    let mut command = podstead::cli::command();
    command.build();
    manual(&command, "podstead", out)?;
    fs::write(out.join("podstead-shim.8"), SHIM_PAGE)?;
    for (shell, name) in [(Shell::Bash, "podstead.bash"), (Shell::Zsh, "_podstead"), (Shell::Fish, "podstead.fish")] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut podstead::cli::command(), "podstead", &mut script);
        fs::write(out.join(name), script)?;
    }
    fs::write(out.join("copyright"), copyright(target)?)
}

/// A page for the command, and one for each below it.
fn manual(command: &clap::Command, name: &str, out: &Path) -> io::Result<()> {
    let mut page = Vec::new();
    let titled = command.clone().name(name.to_owned()).display_name(name);
    Man::new(titled)
        .title(name)
        .section("8")
        .source(concat!("podstead ", env!("CARGO_PKG_VERSION")))
        .manual("podstead")
        .render(&mut page)?;
    fs::write(out.join(format!("{name}.8")), page)?;
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set() && subcommand.get_name() != "help") {
        manual(subcommand, &format!("{name}-{}", subcommand.get_name()), out)?;
    }
    Ok(())
}

/// One crate that is built in.
struct Built {
    name: String,
    version: String,
    licence: String,
    directory: PathBuf,
}

/// In the machine-readable form of Debian (DEP-5): our own licence, then each crate with its expression, then the texts, each once.
fn copyright(target: &str) -> io::Result<String> {
    let mut page = String::from(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: podstead\n\
         Comment: The binaries are linked statically with the crates below, and with the GNU C Library, libseccomp, libelf (LGPL-2.1 or\n \
         later; LGPL-3 or GPL-2 for libelf), zlib, and libgit2 (GPL-2 with an exception for linking). Everything that is needed to build\n \
         and link them anew is in podstead's source and in Debian's archive.\n\n\
         Files: *\n\
         Copyright: the podstead authors\n\
         License: Apache-2.0\n On Debian systems, the full text of the Apache License, version 2.0, is in /usr/share/common-licenses/Apache-2.0.\n",
    );
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for built in built_in(target)? {
        let mut holders = BTreeSet::new();
        for (file, text) in licence_files(&built)? {
            holders.extend(text.lines().map(str::trim).filter(|line| is_holder(line)).map(ToOwned::to_owned));
            if !file.to_lowercase().contains("apache") {
                texts
                    .entry(without_common_licences(&paragraphs(&text)))
                    .or_default()
                    .insert(format!("{} {}", built.name, built.version));
            }
        }
        if holders.is_empty() {
            holders.insert(format!("the authors of {}", built.name));
        }
        let holders: Vec<String> = holders.into_iter().collect();
        page.push_str(&format!(
            "\nFiles: {}-{}/*\nCopyright: {}\nLicense: {}\nComment: a crate of crates.io\n",
            built.name,
            built.version,
            holders.join("\n "),
            built.licence.replace(" OR ", " or ").replace(" AND ", " and ").replace('/', " or ")
        ));
    }
    for (number, (text, crates)) in texts.into_iter().enumerate() {
        let crates: Vec<String> = crates.into_iter().collect();
        page.push_str(&format!("\nLicense: text-{}\nComment: of {}\n", number + 1, crates.join(", ")));
        for line in text.lines() {
            page.push_str(if line.trim().is_empty() { " ." } else { " " });
            page.push_str(line.trim_end());
            page.push('\n');
        }
    }
    Ok(page)
}

/// The crates that the binaries for `target` are linked from.
fn built_in(target: &str) -> io::Result<Vec<Built>> {
    let tree = cargo(&[
        "tree",
        "--locked",
        "--package",
        "podstead",
        "--target",
        target,
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ])?;
    let used: BTreeSet<(String, String)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.trim_start_matches('v').to_owned()))
        })
        .collect();
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--locked", "--format-version", "1"])?)?;
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut built = Vec::new();
    for package in packages {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        if package["source"].is_null() || !used.contains(&(name.clone(), version.clone())) {
            continue;
        }
        let directory = Path::new(&text("manifest_path")).parent().map(Path::to_owned).unwrap_or_default();
        built.push(Built { name, version, licence: text("license"), directory });
    }
    Ok(built)
}

fn cargo(arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(env!("CARGO")).args(arguments).stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("cargo {arguments:?}: {}", output.status)));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

/// Names and contents of the files of a crate that look like a licence: at its top, and in the C sources that some bring along.
fn licence_files(built: &Built) -> io::Result<Vec<(String, String)>> {
    let depth = if built.name.ends_with("-sys") { 2 } else { 0 };
    let mut found = Vec::new();
    collect_licences(&built.directory, depth, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect_licences(directory: &Path, depth: usize, found: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_licence =
            ["license", "licence", "copying", "copyright", "unlicense"].iter().any(|word| name.to_lowercase().starts_with(word));
        if is_licence && entry.file_type()?.is_file() {
            found.push((name, String::from_utf8_lossy(&fs::read(entry.path())?).into_owned()));
        } else if depth > 0 && entry.file_type()?.is_dir() {
            collect_licences(&entry.path(), depth - 1, found)?;
        }
    }
    Ok(())
}

fn is_holder(line: &str) -> bool {
    let lower = line.to_lowercase();
    (lower.starts_with("copyright (c)")
        || lower.starts_with("copyright ©")
        || lower.starts_with("copyright 2")
        || lower.starts_with("copyright 1"))
        && !lower.contains("[yyyy]")
        && !lower.contains("{yyyy}")
}

/// The paragraphs of a licence, each in one line and without the lines that name a holder, so that equal licences are one text.
fn paragraphs(text: &str) -> Vec<String> {
    let paragraph = |paragraph: &str| {
        let words: Vec<&str> = paragraph.lines().filter(|line| !is_holder(line.trim())).flat_map(str::split_whitespace).collect();
        words.join(" ")
    };
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").split("\n\n").map(paragraph).filter(|words| !words.is_empty()).collect()
}

/// Licences that every Debian system has are not repeated. What stands before and after them stays: exceptions, and licences of parts.
fn without_common_licences(paragraphs: &[String]) -> String {
    const TITLES: [&str; 4] =
        ["GNU GENERAL PUBLIC LICENSE", "GNU LESSER GENERAL PUBLIC LICENSE", "GNU Free Documentation License", "Apache License"];
    const ENDS: [&str; 4] = [
        "Public License instead of this License.",
        "That's all there is to it!",
        "why-not-lgpl.html>.",
        "limitations under the License.",
    ];
    let is_long = paragraphs.iter().map(String::len).sum::<usize>() > 9_000;
    let (mut kept, mut left_out, mut within) = (Vec::new(), false, false);
    for paragraph in paragraphs {
        // Some fence what they quote.
        let bare = paragraph.trim_matches(|sign: char| sign == '~' || sign.is_whitespace());
        if is_long && !within && TITLES.iter().any(|title| bare.starts_with(title)) {
            (within, left_out) = (true, true);
        }
        if !within {
            kept.push(wrapped(paragraph));
        } else if ENDS.iter().any(|end| bare.ends_with(end)) {
            within = false;
        }
    }
    if left_out {
        kept.push("The full texts of the licences named here are in /usr/share/common-licenses on Debian systems.".to_owned());
    }
    kept.join("\n\n")
}

fn wrapped(paragraph: &str) -> String {
    let mut lines = vec![String::new()];
    for word in paragraph.split(' ') {
        let current = lines.len() - 1;
        if !lines[current].is_empty() && lines[current].len() + word.len() > 96 {
            lines.push(word.to_owned());
        } else {
            if !lines[current].is_empty() {
                lines[current].push(' ');
            }
            lines[current].push_str(word);
        }
    }
    lines.join("\n")
}
