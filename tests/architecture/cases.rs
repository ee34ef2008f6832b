//! The pages of cases: each case names tests that exist, and each case that the code of workloads cites is on its page.

use super::source_tree::source_files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A page of cases, and the letters of its ids with the number of cases of each.
struct Page {
    path: &'static str,
    cases: &'static [(&'static str, usize)],
}

const WORKLOADS: Page = Page {
    path: "docs/contributing/workload-tests.md",
    cases: &[("TD", 19), ("TR", 3), ("TS", 14), ("TN", 5), ("TJ", 19), ("TC", 13), ("TX", 6), ("TP", 10), ("TL", 8)],
};
const SERVICES: Page = Page { path: "docs/contributing/service-tests.md", cases: &[("T", 45), ("Q", 33)] };
const KUBECTL: Page = Page { path: "docs/contributing/kubectl-tests.md", cases: &[("TK", 73)] };
const IMAGES: Page = Page { path: "docs/contributing/image-tests.md", cases: &[("F", 50)] };
const IMAGE_RULES: Page = Page { path: "docs/contributing/image-rules.md", cases: &[("I", 74)] };

/// Instead of tests, before the reason.
const NOT_TESTED: &str = "not tested: ";

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).ok()
}

impl Page {
    fn is_id(&self, word: &str) -> bool {
        let number = |letters: &str| word.strip_prefix(letters)?.parse::<u8>().ok();
        self.cases.iter().any(|(letters, _)| number(letters).is_some())
    }

    /// The last cell of each case.
    fn cases(&self) -> BTreeMap<String, String> {
        let page = read(self.path).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        let cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
        let cells = cells.filter(|cells| cells.len() == 3 && self.is_id(cells[0]));
        cells.map(|cells| (cells[0].to_owned(), cells[2].to_owned())).collect()
    }

    fn expected(&self) -> BTreeSet<String> {
        self.cases.iter().flat_map(|(letters, count)| (1..=*count).map(move |number| format!("{letters}{number}"))).collect()
    }
}

/// The tests in a cell, as `file::function`.
fn tests(cell: &str) -> Vec<&str> {
    cell.split('`').filter(|part| part.contains("::")).collect()
}

/// Returns true for the line before a test.
fn is_mark(line: &str) -> bool {
    line.contains("#[test]") || line.trim_start().starts_with("#[tokio::test")
}

/// Returns true if a file has a function with this name that is marked as a test.
fn is_test(file: &str, function: &str) -> bool {
    let Some(text) = read(file) else { return false };
    let before = text.split(&format!("fn {function}(")).collect::<Vec<_>>();
    before.iter().take(before.len() - 1).any(|before| before.lines().rev().take(4).any(is_mark))
        || text.contains("proptest!") && before.len() > 1
}

#[test]
fn each_case_names_tests_that_exist() {
    let mut problems = Vec::new();
    for page in [WORKLOADS, SERVICES, KUBECTL, IMAGES, IMAGE_RULES] {
        let cases = page.cases();
        assert_eq!(cases.keys().cloned().collect::<BTreeSet<_>>(), page.expected(), "{}", page.path);
        for (id, cell) in &cases {
            let tests = tests(cell);
            let has_reason = cell.strip_prefix(NOT_TESTED).is_some_and(|reason| !reason.is_empty());
            if tests.is_empty() != has_reason {
                problems.push(format!("{id}: either tests, or \"{NOT_TESTED}\" and the reason"));
            }
            for test in tests {
                let (file, function) = test.split_once("::").unwrap();
                if !is_test(file, function) {
                    problems.push(format!("{id}: there is no test {test}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn cases_that_the_code_cites_are_on_the_page() {
    let known = WORKLOADS.cases();
    for file in source_files().iter().filter(|file| file.is_below(&["workload", "expand"])) {
        let words = file.text.split(|c: char| !c.is_ascii_alphanumeric());
        let missing: BTreeSet<&str> = words.filter(|word| WORKLOADS.is_id(word) && !known.contains_key(*word)).collect();
        assert!(missing.is_empty(), "{}: {missing:?} are not in {}", file.path, WORKLOADS.path);
    }
}
