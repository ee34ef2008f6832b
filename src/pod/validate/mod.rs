//! Checks of the API server when a Pod is created (kubelet rule A20), one file for each area.
//!
//! In: a defaulted Pod with its name as written. Out: every rule that it breaks. A check reports and goes on, and a part that is not
//! there is reported by whoever requires it, once. What podstead does not support is not judged here but in `support`; a field may be
//! reported by both.
//!
//! Stricter than the API server where it takes what no host can run: relative paths, NUL characters, unknown capabilities, root as a
//! user that must not be root, names whose log directory would be too long. Where the API server only warns, this is a warning, too.

pub(super) mod claims;
mod containers;
mod devices;
mod dns;
mod env;
mod lifecycle;
pub(super) mod metadata;
mod mounts;
mod names;
mod networks;
pub(super) mod objects;
mod pod_resources;
mod ports;
mod probes;
mod resources;
mod restart;
mod scheduling;
mod security;
mod spec;
mod volumes;

use super::field::{FieldPath, Problems};
use super::{AdmitContext, Pod};
use names::Rule;

/// Reports every rule that a defaulted Pod breaks. `full_name` is its name on this host.
pub(super) fn pod(pod: &Pod, full_name: &str, context: &AdmitContext, problems: &mut Problems) {
    metadata::check(&pod.metadata, full_name, &metadata_path(), problems);
    networks::check(pod, &metadata_path().child("annotations"), problems);
    devices::check(pod, &metadata_path().child("annotations"), problems);
    volumes::check_mount_options(pod, &metadata_path().child("annotations"), problems);
    match &pod.spec {
        Some(spec) => spec::check(pod, spec, full_name, context, &spec_path(), problems),
        None => problems.required(&spec_path(), ""),
    }
}

/// Returns true if a variable may have this name. A key of an object that is no name is left out of an `envFrom`.
pub(super) fn is_environment_name(text: &str) -> bool {
    !text.is_empty() && names::environment_name(text).is_ok()
}

impl Problems {
    /// Reports a text that is empty as missing, and one that breaks its rule as invalid.
    fn required_text(&mut self, path: &FieldPath, text: &str, rule: fn(&str) -> Rule) {
        if text.is_empty() {
            self.required(path, "");
        } else {
            self.rule(path, text, rule(text));
        }
    }

    /// Reports a text that is there and breaks its rule.
    fn optional_text(&mut self, path: &FieldPath, text: &str, rule: fn(&str) -> Rule) {
        if !text.is_empty() {
            self.rule(path, text, rule(text));
        }
    }

    /// Reports a word that is not allowed; an empty one as missing.
    fn one_of(&mut self, path: &FieldPath, word: &str, allowed: &[&str]) {
        if word.is_empty() {
            self.required(path, &format!("one of {}", allowed.join(", ")));
        } else if !allowed.contains(&word) {
            self.not_one_of(path, word, allowed);
        }
    }

    /// Reports `value` if it broke a rule.
    fn rule(&mut self, path: &FieldPath, value: impl std::fmt::Debug, rule: Rule) {
        if let Err(message) = rule {
            self.invalid(path, value, message);
        }
    }
}

/// The place of `metadata` in a Pod.
pub(super) fn metadata_path() -> FieldPath {
    FieldPath::root("metadata")
}

/// The place of `spec` in a Pod.
pub(super) fn spec_path() -> FieldPath {
    FieldPath::root("spec")
}

#[cfg(test)]
mod testing {
    //! Tables of `(spec, problems)` for the tests of each area.

    use super::*;
    use crate::containers::text;
    use crate::{NodeName, defaults, static_pod_name};

    /// `field: message` of each problem of a pod that is defaulted first.
    pub(super) fn problems_of(yaml: &str) -> Vec<String> {
        let mut pod: Pod = serde_yaml::from_str(yaml).unwrap_or_else(|error| panic!("{yaml}: {error}"));
        defaults::apply(&mut pod);
        let mut problems = Problems::default();
        let context = AdmitContext::new(NodeName::new("edge"));
        let full_name = static_pod_name(text(&pod.metadata.name), &context.node);
        super::pod(&pod, &full_name, &context, &mut problems);
        problems.into_vec().into_iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect()
    }

    /// That a volume is unused counts where it is expected only: most of these pods mount none.
    #[track_caller]
    pub(super) fn check_spec(spec: &str, expected: &[&str]) {
        let yaml = format!("{{metadata: {{name: web, namespace: shop}}, spec: {{{spec}}}}}");
        let counts = |problem: &String| expected.contains(&problem.as_str()) || !problem.ends_with(super::volumes::UNUSED);
        let found: Vec<_> = problems_of(&yaml).into_iter().filter(counts).collect();
        assert_eq!(found, expected, "{spec}");
    }

    /// A pod with one container; `{P}` in an expected text stands for that container's place.
    #[track_caller]
    pub(super) fn check_container(container: &str, rest: &str, expected: &[&str]) {
        let expected: Vec<_> = expected.iter().map(|text| text.replace("{P}", "spec.containers[0]")).collect();
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        check_spec(&format!("containers: [{{name: a, image: 'x:1', {container}}}], {rest}"), &expected);
    }
}
