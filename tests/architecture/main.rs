//! Holds the structure of `src/` to the rules that cargo does not check: purity, size, where `unsafe` may stand. Which crate may depend on
//! which is said by the Cargo.toml files.
//!
//! The rules are tables here; a change of structure is a change of a table, with a reason in the commit.
#![expect(clippy::unwrap_used, reason = "a test that cannot read the source has to fail")]

mod cases;
mod circles;
mod cited_rules;
mod parsers;
mod requests;
mod source_tree;
mod threat_model;
mod types;
mod workspace;

use source_tree::{SourceFile, source_files};

/// Crates, or parts of them, without files, clock, environment or tokio.
const PURE: &[&str] = &[
    "image/answers",
    "image/rate",
    "image/registry/origin",
    "image/slots/queue",
    "image/transfer/blocks",
    "image/transfer/pace",
    "image/transfer/retry",
    "jsonpath",
    "manifest",
    "pod",
    "source/git/protocol",
    "source/git/remote/url",
    "source/git/select",
    "artifact/layers",
    "settings",
    "status",
    "sys/netlink/expressions",
    "sys/netlink/maps",
    "sys/netlink/message",
    "sys/netlink/nftables",
    "sys/netlink/rtnetlink",
    "telemetry/correlator",
    "trust",
    "store/last_good/file",
    "store/policy",
    "store/revisions",
    "store/undelta",
    "mux/merge",
    "daemon/commit_status/course",
    "daemon/commit_status/verdict",
    "network/builtin/fixed_rules",
    "network/builtin/lease",
    "network/builtin/names",
    "network/builtin/ranges",
    "network/builtin/rules",
    "network/builtin/ruleset",
    "network/builtin/sets",
    "network/builtin/services/elements",
    "network/builtin/services/table",
    "upstream/plan",
    "probe/action/request",
    "probe/health",
    "probe/schedule",
    "network/cni/spec",
    "network/cni/plan",
    "network/cni/wish",
    "probe/spec",
    "worker/queue",
    "worker/phase",
    "service",
    "policy",
    "workload",
    "worker/backoff",
    "worker/plan",
    "container/oci",
];

/// Names that pure code must not use.
const IMPURE: &[&str] = &[
    "tokio::",
    "std::fs",
    "fs::read",
    "File::open",
    "std::env",
    "env::var",
    "std::process",
    "std::net::Tcp",
    "std::net::Udp",
    "Instant::now",
    "SystemTime",
    "Timestamp::now",
    "Zoned::now",
    "rand::",
    "thread::",
];

/// Lines that one file may have, tests included: one subject per file.
const MAX_LINES: usize = 800;

/// Lines that one function of the product may have: one screen.
const MAX_FUNCTION_LINES: usize = 80;

/// Files that are tables rather than logic and may be longer.
const TABLES: &[&str] =
    &["manifest/schema/table.rs", "pod/support/table.rs", "container/oci/seccomp_default.rs", "container/oci/seccomp/table.rs"];

/// Words that say nothing about what a file holds.
const BANNED_FILE_NAMES: &[&str] = &["util", "utils", "helper_functions", "helpers", "common", "misc", "manager", "data", "info"];

/// Words that begin a question; documentation begins with a noun phrase or a verb.
const QUESTIONS: &[&str] = &["What", "Whether", "Whose", "How", "Where", "Who"];

fn report(problems: Vec<String>) {
    assert!(problems.is_empty(), "{} problem(s):\n  {}", problems.len(), problems.join("\n  "));
}

#[test]
fn pure_modules_name_no_file_clock_environment_or_executor() {
    let mut problems = Vec::new();
    for file in source_files().iter().filter(|file| file.is_below(PURE)) {
        for (number, line) in file.product_lines() {
            for word in IMPURE.iter().filter(|word| line.contains(**word)) {
                problems.push(format!("{}:{number}: pure code names {word:?}", file.path));
            }
        }
    }
    report(problems);
}

#[test]
fn unsafe_stands_only_in_sys_and_in_the_shim() {
    let mut problems = Vec::new();
    for file in source_files().iter().filter(|file| !file.is_below(&["sys", "shim"])) {
        for (number, line) in file.code_lines() {
            if line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe" || word == "unsafe_code") {
                problems.push(format!("{}:{number}: unsafe outside src/sys and src/shim", file.path));
            }
        }
    }
    report(problems);
}

#[test]
fn files_hold_one_concept_each() {
    let files = source_files();
    let long = |file: &&SourceFile| !TABLES.contains(&file.path.as_str()) && file.text.lines().count() > MAX_LINES;
    report(files.iter().filter(long).map(|file| format!("{}: {} lines", file.path, file.text.lines().count())).collect());
}

#[test]
fn functions_fit_on_one_screen() {
    let mut problems = Vec::new();
    for file in source_files() {
        for (number, name, lines) in file.product_functions().filter(|(_, _, lines)| *lines > MAX_FUNCTION_LINES) {
            problems.push(format!("{}:{number}: {name} has {lines} lines", file.path));
        }
    }
    report(problems);
}

#[test]
fn every_file_says_what_it_is_for_and_has_a_telling_name() {
    let mut problems = Vec::new();
    for file in source_files() {
        if !file.text.trim_start().starts_with("//!") {
            problems.push(format!("{}: begins without a //! line", file.path));
        }
        if BANNED_FILE_NAMES.contains(&file.stem()) {
            problems.push(format!("{}: the name says nothing", file.path));
        }
    }
    report(problems);
}

#[test]
fn the_walk_names_functions_that_exist() {
    let page = std::fs::read_to_string(workspace::root().join("docs/contributing/walk.md")).unwrap();
    let files = source_files();
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `src/")?.split_once("` | `"))
        .map(|(file, rest)| (file, rest.split('`').next().unwrap_or_default()))
        .collect();
    assert!(rows.len() > 15, "the test does not read the page: {rows:?}");
    let has = |file: &SourceFile, name: &str| file.product_functions().any(|(_, found, _)| found == name);
    let missing = rows.iter().filter(|(path, name)| !files.iter().any(|file| file.path == *path && has(file, name)));
    report(missing.map(|(path, name)| format!("docs/contributing/walk.md: src/{path} has no function {name}")).collect());
}

#[test]
fn modules_with_children_are_folders_with_a_mod_file() {
    let files = source_files();
    let folders: std::collections::BTreeSet<&str> =
        files.iter().filter_map(|file| file.path.rsplit_once('/').map(|(dir, _)| dir)).collect();
    report(
        files
            .iter()
            .filter(|file| folders.contains(file.path.trim_end_matches(".rs")))
            .map(|file| format!("{}: use mod.rs", file.path))
            .collect(),
    );
}

#[test]
fn the_product_leaves_no_work_for_later_in_its_comments() {
    let mut problems = Vec::new();
    for file in source_files() {
        for (index, line) in file.text.lines().enumerate() {
            for word in ["TODO", "FIXME", "XXX", "HACK", "todo!(", "unimplemented!("].iter().filter(|word| line.contains(**word)) {
                problems.push(format!("{}:{}: {word}", file.path, index + 1));
            }
        }
    }
    report(problems);
}

#[test]
fn documentation_hardly_ever_begins_with_a_question() {
    let (mut all, mut questions) = (0, Vec::new());
    for file in source_files() {
        let mut is_documented = false;
        for (index, line) in file.text.lines().enumerate() {
            let text = line.trim_start().strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            if let Some(text) = text.filter(|_| !is_documented) {
                all += 1;
                let first = text.trim_start().split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
                if QUESTIONS.contains(&first) {
                    questions.push(format!("{}:{}:{text}", file.path, index + 1));
                }
            }
            is_documented = text.is_some();
        }
    }
    assert!(questions.len() * 100 < all, "{} of {all}, which is 1 % or more:\n  {}", questions.len(), questions.join("\n  "));
}

/// Names in podstead's domain that are no annotations: the version of its kinds, a taint, a class of load balancers, a mark in texts, the prefix of
/// conditions.
const NO_ANNOTATIONS: &[&str] =
    &["podstead.dev/v1alpha1", "podstead.dev/static-pods", "podstead.dev/host", "podstead.dev/sealed", "podstead.dev/"];

#[test]
fn annotations_stand_in_one_list() {
    let files = source_files();
    let mut problems = Vec::new();
    let list = |file: &&SourceFile| file.is_below(&["pod/annotations"]);
    let text: String = files.iter().filter(list).flat_map(SourceFile::product_lines).map(|(_, line)| format!("{line}\n")).collect();
    assert!(text.contains("= \"workload\";"), "the list is not where this test looks for it");
    for file in files.iter().filter(|file| !list(file)) {
        for (number, line) in file.product_lines().filter(|(_, line)| line.contains("const ")) {
            let Some((_, name)) = line.split_once("= \"podstead.dev/") else { continue };
            let name = name.split('"').next().unwrap_or_default();
            // Workloads are pure and need no other crate.
            let is_known = file.is_below(&["workload"]) && text.contains(&format!("= \"{name}\";"));
            if !is_known && !NO_ANNOTATIONS.contains(&format!("podstead.dev/{name}").as_str()) {
                problems.push(format!("{}:{number}: podstead.dev/{name} belongs into src/pod/annotations.rs", file.path));
            }
        }
    }
    report(problems);
}
