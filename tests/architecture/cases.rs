//! The page of cases for workloads: each case names tests that exist, and each case that the code cites is on the page.

use super::source_tree::source_files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PAGE: &str = "docs/contributing/workload-tests.md";
/// Letters that follow the T of an id, and the number of cases.
const CASES: [(char, usize); 7] = [('D', 19), ('R', 3), ('S', 14), ('N', 5), ('J', 19), ('C', 12), ('X', 3)];

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).ok()
}

fn is_id(word: &str) -> bool {
    let rest = word.strip_prefix('T').and_then(|rest| rest.strip_prefix(|letter| CASES.iter().any(|(known, _)| *known == letter)));
    rest.is_some_and(|number| number.parse::<u8>().is_ok())
}

/// The tests of each case, as `file::function`.
fn cases() -> BTreeMap<String, Vec<String>> {
    let page = read(PAGE).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>()).filter(|cells| cells.len() == 3 && is_id(cells[0]));
    let tests = |cell: &str| cell.split('`').filter(|part| part.contains("::")).map(str::to_owned).collect();
    cells.map(|cells| (cells[0].to_owned(), tests(cells[2]))).collect()
}

#[test]
fn each_case_names_tests_that_exist() {
    let cases = cases();
    let expected: BTreeSet<String> =
        CASES.iter().flat_map(|(letter, count)| (1..=*count).map(move |number| format!("T{letter}{number}"))).collect();
    assert_eq!(cases.keys().cloned().collect::<BTreeSet<_>>(), expected);
    let mut missing = Vec::new();
    for (id, tests) in &cases {
        assert!(!tests.is_empty(), "{id} is shown by nothing");
        for test in tests {
            let (file, function) = test.split_once("::").unwrap();
            let exists = read(file).is_some_and(|text| text.contains(&format!("fn {function}(")));
            missing.extend((!exists).then(|| format!("{id}: there is no {test}")));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn cases_that_the_code_cites_are_on_the_page() {
    let known = cases();
    for file in source_files().iter().filter(|file| file.is_below(&["workload", "expand"])) {
        let words = file.text.split(|c: char| !c.is_ascii_alphanumeric());
        let missing: BTreeSet<&str> = words.filter(|word| is_id(word) && !known.contains_key(*word)).collect();
        assert!(missing.is_empty(), "{}: {missing:?} are not in {PAGE}", file.path);
    }
}
