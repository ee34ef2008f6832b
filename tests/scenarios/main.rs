//! Golden plans: what a pod shall be, what is observed, and the steps that follow. Modelled on the tables of the kubelet's
//! `TestComputePodActions` and its relatives; where podstead differs, the case says why.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read its cases has to fail")]

mod scenario;

use scenario::Scenario;
use serde::Deserialize;
use std::fs;
use std::path::Path;

fn check(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/cases").join(file);
    let text = fs::read_to_string(&path).unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in serde_yaml::Deserializer::from_str(&text) {
        let scenario = Scenario::deserialize(document).unwrap_or_else(|error| panic!("{file}, scenario {}: {error}", count + 1));
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
