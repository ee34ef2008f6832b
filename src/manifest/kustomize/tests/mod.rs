//! Pairs of sources and what `kubectl kustomize` prints for them, compared with that of Kubernetes 1.33 (kustomize 5.6.0) where it knows
//! the field, and with a build of kustomize 5.8.1.

mod crds;
mod generators;
mod kustomizations;
mod layers;
mod names;
mod openapi;
mod patches;
mod plugin_faults;
mod plugin_namespaces;
mod plugins;
mod positions;
mod refusals;
mod replacements;
mod ties;
mod upstream;
mod vars;
mod whole;

use super::{Build, BuildLimits, build};
use podstead_pod::Severity;
use std::collections::BTreeMap;

/// Builds a directory of these files.
fn built(directory: &str, files: &[(&str, &str)]) -> Build {
    let files: BTreeMap<String, Vec<u8>> =
        files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
    build(&files, directory, &BuildLimits::default())
}

/// The output for these files.
fn output(directory: &str, files: &[(&str, &str)]) -> String {
    let built = built(directory, files);
    let errors: Vec<String> =
        built.problems.iter().filter(|problem| problem.severity == Severity::Error).map(ToString::to_string).collect();
    assert_eq!(errors, [""; 0]);
    built.to_yaml()
}

/// The output for a kustomization of one file `r.yaml`.
fn output_of(kustomization: &str, resources: &str) -> String {
    let kustomization = format!("resources: [r.yaml]\n{kustomization}");
    output("", &[("kustomization.yaml", &kustomization), ("r.yaml", resources)])
}

/// The error for these files.
fn error(directory: &str, files: &[(&str, &str)]) -> String {
    let built = built(directory, files);
    assert_eq!(built.objects, []);
    let errors: Vec<String> =
        built.problems.iter().filter(|problem| problem.severity == Severity::Error).map(ToString::to_string).collect();
    errors.join("\n")
}

/// The error for a kustomization of one file `r.yaml`.
fn error_of(kustomization: &str, resources: &str) -> String {
    let kustomization = format!("resources: [r.yaml]\n{kustomization}");
    error("", &[("kustomization.yaml", &kustomization), ("r.yaml", resources)])
}

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n";
