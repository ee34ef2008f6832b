//! The page of the documentation, made from the table and from what the tests say that they show.

use super::shown::{Proof, Shown, is_below, needs_proof};
use super::table::SECTIONS;
use super::{Section, Support, join, template, workload};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const HEAD: &str = "\
# Which fields of a Pod podstead honours

Every field of a v1 Pod is in one of these states. No field is ignored silently: `podstead validate` and the daemon report every
field that is set but not honoured, with file, line and field.

| state | meaning |
|---|---|
| yes | it has the effect that it has in Kubernetes |
| partly | it has that effect for the values in the note; other values are reported |
| ignored | it has no effect here and does no harm: a warning |
| refused | an error, since the pod would not do what its manifest says; the last accepted version of the pod keeps running |

An entry that is ignored or refused covers all fields below it. The last column names the tests that fail if the field has no effect, run by
`cargo test --test <first part>`; a field without its own test is covered by the tests of the fields below it. This page is generated from the table
in `src/pod/support/table.rs` and from the lines `shows:` above the tests by `UPDATE=1 cargo test pod_support_page`.
";

/// Fields that no test shows, each with the reason; what is below them too. An entry goes as soon as there is a test; none is added.
const NOT_SHOWN: &[(&str, &str)] = &[];

/// Suites whose tests look at real processes, files and images, or at the steps of a plan.
const SUITES: &[&str] = &["images", "manifest", "node", "scenarios", "sources"];

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const PAGE: &str = "docs/reference/pod-support.md";
const WORKLOAD_PAGE: &str = "docs/reference/workload-support.md";

const WORKLOAD_HEAD: &str = "\
# Which fields of workloads podstead honours

Every field of the seven kinds that ask for pods is in one of the states of [the page about Pods](pod-support.md). The rules that the kinds follow, and
where they differ from Kubernetes, are in [the rules for workloads](../contributing/workload-rules.md); [which kinds there are](kinds.md) is a page of
its own. This page is generated from the tables in `src/pod/support/workload.rs` and `src/pod/support/template.rs` by
`UPDATE=1 cargo test pod_support_page`.
";

/// The table of all fields as a page in Markdown.
fn page(shown: &Shown) -> String {
    let mut page = HEAD.to_owned();
    for section in SECTIONS {
        let places: Vec<_> = section.places.iter().filter(|place| !place.is_empty()).map(|place| format!("`{place}`")).collect();
        page.extend(["\n## ", section.title, "\n\n"]);
        if !places.is_empty() {
            page.extend(["Fields of ", &places.join(" and "), ".\n\n"]);
        }
        page.push_str("| field | state | note | tested by |\n|---|---|---|---|\n");
        for (field, support) in section.fields {
            let (state, note) = state(support);
            let proof = match proof(shown, section, field) {
                Proof::Tests(tests) if needs_proof(support) => {
                    tests.iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join(" ")
                }
                Proof::Tests(_) | Proof::BelowIt | Proof::None => String::new(),
            };
            page.extend(["| `", field, "` | ", state, " | ", &note, " | ", &proof, " |\n"]);
        }
    }
    page
}

/// The tables of workloads and of pod templates as a page in Markdown.
fn workload_page() -> String {
    let mut page = WORKLOAD_HEAD.to_owned();
    let mut table = |title: &str, rows: &mut dyn Iterator<Item = &(&str, Support)>| {
        page.extend(["\n## ", title, "\n\n| field | state | note |\n|---|---|---|\n"]);
        for (field, support) in rows {
            let (state, note) = state(support);
            page.extend(["| `", field, "` | ", state, " | ", &note, " |\n"]);
        }
    };
    table("Every kind", &mut workload::OBJECT.iter());
    for section in workload::SECTIONS {
        let is_of_every_kind = |(field, _): &&(&str, Support)| workload::OBJECT.iter().any(|(known, _)| known == field);
        table(section.kind, &mut section.fields.iter().copied().flatten().filter(|row| !is_of_every_kind(row)));
    }
    table("Pod templates", &mut template::FIELDS.iter());
    page.push_str("\nAll other fields of a template are supported as [those of a Pod](pod-support.md).\n");
    page
}

/// Proof of a field at any of its section's places: the same code serves them all.
fn proof(shown: &Shown, section: &Section, field: &str) -> Proof {
    let mut tests = BTreeSet::new();
    let mut below = false;
    for place in section.places {
        match shown.proof(&join(place, field)) {
            Proof::Tests(found) => tests.extend(found),
            Proof::BelowIt => below = true,
            Proof::None => {}
        }
    }
    match (tests.is_empty(), below) {
        (false, _) => Proof::Tests(tests.into_iter().collect()),
        (true, true) => Proof::BelowIt,
        (true, false) => Proof::None,
    }
}

fn state(support: &Support) -> (&'static str, String) {
    match support {
        Support::Honoured(note) => ("yes", (*note).to_owned()),
        Support::Partly { note, .. } => ("partly", (*note).to_owned()),
        Support::Ignored { reason, .. } => ("ignored", (*reason).to_owned()),
        Support::Refused { reason, instead: "", .. } => ("refused", (*reason).to_owned()),
        Support::Refused { reason, instead, .. } => ("refused", format!("{reason}; {instead}")),
    }
}

/// All that the tests say.
fn shown() -> Shown {
    let mut shown = Shown::default();
    let mut problems = Vec::new();
    for suite in SUITES {
        for file in test_files(&Path::new(ROOT).join("tests").join(suite)) {
            let text = std::fs::read_to_string(&file).unwrap();
            problems.extend(shown.read(&module(&file), &text).err().unwrap_or_default());
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    shown
}

fn test_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files
}

/// `node::shim::setup` for `tests/node/shim/setup.rs`.
fn module(file: &Path) -> String {
    let path = file.strip_prefix(Path::new(ROOT).join("tests")).unwrap().with_extension("");
    let parts: Vec<_> = path.iter().filter_map(|part| part.to_str()).filter(|part| !["main", "mod"].contains(part)).collect();
    parts.join("::")
}

#[test]
fn the_pod_support_page_is_made_from_the_table() {
    for (page, expected) in [(PAGE, page(&shown())), (WORKLOAD_PAGE, workload_page())] {
        let path = Path::new(ROOT).join(page);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &expected).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap();
        assert!(written == expected, "{page} is not what the table says: run UPDATE=1 cargo test pod_support_page");
    }
}

#[test]
fn every_field_that_is_honoured_is_shown_by_a_test() {
    let shown = shown();
    let mut unshown = BTreeSet::new();
    for section in SECTIONS {
        for (field, support) in section.fields {
            if needs_proof(support) && proof(&shown, section, field) == Proof::None {
                unshown.insert(join(section.places[0], field));
            }
        }
    }
    let covers = |entry: &str, field: &str| field == entry || is_below(field, entry);
    let without: Vec<_> = unshown.iter().filter(|field| !NOT_SHOWN.iter().any(|(entry, _)| covers(entry, field))).collect();
    assert!(without.is_empty(), "no test has a line `/// shows:` with any of {without:#?}");
    let stale: Vec<_> = NOT_SHOWN.iter().filter(|(entry, _)| !unshown.iter().any(|field| covers(entry, field))).collect();
    assert!(stale.is_empty(), "these are shown by a test, or gone, and leave NOT_SHOWN: {stale:#?}");
}
