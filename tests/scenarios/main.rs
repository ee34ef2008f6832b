//! Golden plans: what a pod shall be, what is observed, and the steps that follow. Modelled on the tables of the kubelet's
//! `TestComputePodActions` and its relatives; where podstead differs, the case says why.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read its cases has to fail")]

mod scenario;

use scenario::Scenario;
use serde::Deserialize;
use std::fs;
use std::path::Path;

fn scenarios(file: &str) -> Vec<Scenario> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/cases").join(file);
    let text = fs::read_to_string(&path).unwrap();
    let documents = serde_yaml::Deserializer::from_str(&text).enumerate();
    let read =
        |(at, document)| Scenario::deserialize(document).unwrap_or_else(|error| panic!("{file}, scenario {}: {error}", at + 1));
    documents.map(read).collect()
}

fn check(file: &str) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for scenario in scenarios(file) {
        count += 1;
        let (expected, found) = (scenario.expected(), scenario.found());
        if expected != found {
            wrong.push(format!("{}\n--- expected\n{expected}\n--- found\n{found}\n", scenario.name));
        }
    }
    assert!(count > 0, "{file} has no scenarios");
    assert!(wrong.is_empty(), "{} of {count} scenarios in {file} differ:\n\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn actions_of_plain_pods() {
    check("actions-plain.yaml");
}

#[test]
fn actions_with_init_containers() {
    check("actions-init.yaml");
}

#[test]
fn actions_with_sidecars() {
    check("actions-sidecars.yaml");
}

#[test]
fn main_containers() {
    check("main-containers.yaml");
}

#[test]
fn init_containers() {
    check("init-containers.yaml");
}

#[test]
fn sidecars() {
    check("sidecars.yaml");
}

#[test]
fn sandboxes() {
    check("sandboxes.yaml");
}

#[test]
fn edits() {
    check("edits.yaml");
}

#[test]
fn objects() {
    check("objects.yaml");
}

#[test]
fn resize() {
    check("resize.yaml");
}

#[test]
fn restart_rules() {
    check("restart-rules.yaml");
}

#[test]
fn restart_all_containers() {
    check("restart-all-containers.yaml");
}

#[test]
fn hooks() {
    check("hooks.yaml");
}

#[test]
fn probes() {
    check("probes.yaml");
}

#[test]
fn ends() {
    check("ends.yaml");
}

/// All node tests, as text.
fn node_tests(directory: &Path) -> String {
    let mut text = String::new();
    for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            text += &node_tests(&path);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text += &fs::read_to_string(path).unwrap();
        }
    }
    text
}

#[test]
fn rows_of_tables_are_all_seen() {
    let tests = node_tests(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node"));
    let tables = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/cases")).unwrap();
    let tables: Vec<String> = tables.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(tables.len() >= 15, "{tables:?}");
    for file in &tables {
        assert!(tests.contains(&format!("scenarios/cases/{file}")), "no node test reads {file}");
        for Scenario { name, world, shown_by, .. } in scenarios(file) {
            match (world, shown_by) {
                (Some(_), None) => {}
                (None, Some(test)) => assert!(tests.contains(&format!("fn {test}()")), "{name}: there is no node test {test}"),
                (Some(_), Some(_)) => panic!("{name}: one of world and shown_by is enough"),
                (None, None) => panic!("{name}: nobody says what becomes of a real pod"),
            }
        }
    }
}
