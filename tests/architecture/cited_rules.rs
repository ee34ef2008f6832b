//! Rules that code cites by their ids, and the pages that hold them.

use crate::source_tree::source_files;
use std::collections::BTreeSet;

/// The page with the rules of `src/workload`.
const PAGE: &str = "docs/contributing/workload-rules.md";

/// Ids such as `W14` in a text.
fn ids(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_id =
        |word: &&str| word.strip_prefix('W').is_some_and(|number| (1..=2).contains(&number.len()) && number.parse::<u8>().is_ok());
    words.filter(is_id).map(str::to_owned).collect()
}

#[test]
fn cited_rules_of_workloads_are_written_down() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join(PAGE)).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| W")).filter_map(|line| line.split(' ').next());
    let written: BTreeSet<String> = rows.map(|number| format!("W{number}")).collect();
    let mut missing = Vec::new();
    for file in source_files().iter().filter(|file| file.is_below(&["workload"])) {
        missing.extend(ids(&file.text).difference(&written).map(|id| format!("{}: {id} is not in {PAGE}", file.path)));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(written.len() > 80, "the page has {} rules", written.len());
}
