//! The threat model, `docs/explanation/security.md`: each test that it names exists.

use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/explanation/security.md";

/// Names of tests on the page: `suite::module::test` in code.
fn named(page: &str) -> Vec<&str> {
    let is_name =
        |code: &&str| code.contains("::") && code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c));
    // A name that ends in colons is a suite; an address of IPv6 has none of its letters alone.
    let is_test = |code: &&str| {
        !code.ends_with("::") && code.split("::").all(|segment| segment.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    page.split('`').skip(1).step_by(2).filter(is_name).filter(is_test).collect()
}

/// The file that has the module of a test, and the test's own name.
fn file_of(name: &str) -> Option<(PathBuf, &str)> {
    let mut segments: Vec<&str> = name.split("::").collect();
    let (test, suite) = (segments.pop()?, segments.remove(0));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = if suite == "lib" { root.join("src") } else { root.join("tests").join(suite) };
    // A module of tests inside of a file has no file of its own.
    let modules = [segments.clone(), segments[..segments.len().saturating_sub(1)].to_vec()];
    let candidates = modules.iter().flat_map(|modules| {
        let path = modules.iter().fold(root.clone(), |path, module| path.join(module));
        [path.with_extension("rs"), path.join("mod.rs"), path.join("lib.rs")]
    });
    candidates.into_iter().find(|path| path.is_file()).map(|path| (path, test))
}

/// True if the file has a function of that name which is marked as a test.
fn has_test(file: &Path, test: &str) -> bool {
    let text = fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_function = |line: &&str| line.strip_prefix("async ").unwrap_or(line).starts_with(&format!("fn {test}("));
    lines.iter().position(is_function).is_some_and(|at| {
        let above = lines[..at].iter().rev().take_while(|line| line.starts_with('#') || line.starts_with("//"));
        above.into_iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

#[test]
fn threat_model_names_tests_that_exist() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let names = named(&page);
    assert!(names.len() > 40, "{PAGE} names {} tests only", names.len());
    let missing: Vec<&&str> =
        names.iter().filter(|name| !file_of(name).is_some_and(|(file, test)| has_test(&file, test))).collect();
    assert!(missing.is_empty(), "{PAGE} names what is no test: {missing:#?}");
}

#[test]
fn names_of_tests_are_told_from_other_code() {
    let page = "`hostile::a::b` and `fd70:6f64:7374::1`, `lib::` and `allow`, `Some::Type` `x::y`";
    assert_eq!(named(page), ["hostile::a::b", "x::y"]);
    assert!(file_of("hostile::nowhere::at_all").is_none() || !has_test(&file_of("hostile::nowhere::at_all").unwrap().0, "at_all"));
}
