//! Environment, command and arguments of a container (kubelet rule D20).
//!
//! In: a defaulted and validated pod, the objects that it may refer to and the facts of its node. Out: what `envFrom` and `env` declare, in
//! their order. The image's environment is not looked at: it is not visible to `$(NAME)` references, and whoever builds the process lays
//! this list over it.

mod error;
mod expand;
mod facts;
mod field;
mod file;
mod object;
mod resource;

pub use error::EnvError;
pub use expand::expand;
pub use facts::EnvFacts;
pub use field::{FieldRef, FieldRefError, field_ref_value};
pub use file::{EnvFiles, env_files};
pub use object::{ObjectEnvironment, SkippedKeys, object_environment};
pub(super) use resource::parse_resource;
pub use resource::{ResourceFieldError, resource_field_value};

use super::Pod;
use super::containers::{list, text};
use super::objects::SourceView;
use k8s_openapi::api::core::v1::{Container, EnvVar};
use std::collections::HashMap;
use std::fmt;

/// A container's variables, resolved and expanded.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Name and value. A name that is declared twice keeps its first place and has its last value.
    pub variables: Vec<(String, String)>,
    /// Keys left out of objects that are taken as a whole.
    pub skipped: Vec<SkippedKeys>,
}

impl fmt::Debug for Environment {
    /// Names only: values may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.variables.iter().map(|(name, _)| name)).finish()
    }
}

/// The variables of `envFrom` and `env`; `files` has what [`env_files`] names. A value sees those of `envFrom` and those declared before it (kubelet rule D20).
pub fn container_environment(
    pod: &Pod,
    container: &Container,
    objects: SourceView<'_>,
    files: &EnvFiles,
    facts: &EnvFacts,
) -> Result<Environment, EnvError> {
    let mut environment = Environment::default();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut set = |variables: &mut Vec<(String, String)>, name: &str, value: String| match places.get(name) {
        Some(place) => variables[*place].1 = value,
        None => {
            places.insert(name.to_owned(), variables.len());
            variables.push((name.to_owned(), value));
        }
    };
    // The container's own variables win over them, and see them.
    for (name, value) in &facts.service_variables {
        set(&mut environment.variables, name, value.clone());
    }
    for source in list(&container.env_from) {
        let given = object::whole(pod, source, objects)?;
        for (name, value) in given.variables {
            set(&mut environment.variables, &name, value.to_owned());
        }
        environment.skipped.extend(given.skipped);
    }
    for variable in list(&container.env) {
        let seen = &environment.variables;
        let lookup = |name: &str| seen.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
        // An optional key that is not there leaves the variable unset.
        if let Some(value) = variable_value(pod, container, variable, objects, files, facts, &lookup)? {
            set(&mut environment.variables, &variable.name, value);
        }
    }
    Ok(environment)
}

/// `command` with `$(NAME)` references to `environment` replaced; empty when the image's entrypoint is to be used.
pub fn expanded_command(container: &Container, environment: &[(String, String)]) -> Vec<String> {
    expand_all(list(&container.command), environment)
}

/// `args` with `$(NAME)` references to `environment` replaced. Empty means: the image's, unless `command` is set.
pub fn expanded_args(container: &Container, environment: &[(String, String)]) -> Vec<String> {
    expand_all(list(&container.args), environment)
}

fn expand_all(words: &[String], environment: &[(String, String)]) -> Vec<String> {
    let values: HashMap<&str, &String> = environment.iter().map(|(name, value)| (name.as_str(), value)).collect();
    words.iter().map(|word| expand(word, &|name| values.get(name).map(|value| (*value).clone()))).collect()
}

fn variable_value(
    pod: &Pod,
    container: &Container,
    variable: &EnvVar,
    objects: SourceView<'_>,
    files: &EnvFiles,
    facts: &EnvFacts,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, EnvError> {
    let literal = text(&variable.value);
    let Some(reference) = variable.value_from.as_ref().filter(|_| literal.is_empty()) else {
        return Ok(Some(expand(literal, lookup)));
    };
    if let Some(selector) = &reference.field_ref {
        let value = field_ref_value(pod, &selector.field_path, facts);
        value.map(Some).map_err(|source| EnvError::Field { name: variable.name.clone(), source })
    } else if let Some(selector) = &reference.resource_field_ref {
        let value = resource_field_value(pod, container, selector, facts);
        value.map(Some).map_err(|source| EnvError::Resource { name: variable.name.clone(), source })
    } else if reference.config_map_key_ref.is_some() || reference.secret_key_ref.is_some() {
        Ok(object::single(pod, reference, objects)?.map(str::to_owned))
    } else if let Some(selector) = &reference.file_key_ref {
        file::from_file(selector, files)
    } else {
        Err(EnvError::Unsupported(variable.name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeName;
    use crate::objects::Objects;
    use crate::testing::{seen, view};

    fn pod(container: &str) -> Pod {
        let yaml = format!(
            "{{metadata: {{name: web-edge, namespace: shop, uid: u-1, labels: {{app: web}}, annotations: {{note: hello}}}},
               spec: {{serviceAccountName: default, containers: [{{name: web, {container}}}]}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    fn facts() -> EnvFacts {
        EnvFacts {
            node_name: NodeName::new("edge"),
            cluster_domain: "cluster.local".into(),
            host_ips: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
            pod_ips: vec!["10.0.0.7".parse().unwrap()],
            service_variables: Vec::new(),
            allocatable_cpu_milli: 3500,
            allocatable_memory_bytes: 4 << 30,
            allocatable_ephemeral_storage_bytes: 1 << 30,
        }
    }

    fn resolve(pod: &Pod, objects: &Objects) -> Result<Vec<(String, String)>, EnvError> {
        let container = &pod.spec.as_ref().unwrap().containers[0];
        container_environment(pod, container, seen(objects), &EnvFiles::new(), &facts()).map(|environment| environment.variables)
    }

    fn environment(container: &str) -> Result<Vec<(String, String)>, EnvError> {
        let pod = pod(container);
        resolve(&pod, &Objects::default())
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_value_sees_only_variables_declared_before_it() {
        let result = environment(
            "env: [{name: A, value: a}, {name: B, value: '$(A)-$(C)'}, {name: C, value: c}, {name: D, value: $$(A)}, {name: E}]",
        );
        assert_eq!(result.unwrap(), pairs(&[("A", "a"), ("B", "a-$(C)"), ("C", "c"), ("D", "$(A)"), ("E", "")]));
    }

    #[test]
    fn a_name_declared_twice_keeps_its_place_and_gets_the_last_value() {
        let result = environment("env: [{name: P, value: /bin}, {name: Q, value: q}, {name: P, value: '$(P):/sbin'}]");
        assert_eq!(result.unwrap(), pairs(&[("P", "/bin:/sbin"), ("Q", "q")]));
    }

    #[test]
    fn references_are_resolved_and_not_expanded() {
        let pod = serde_yaml::from_str::<Pod>(
            "{metadata: {annotations: {note: '$(A)'}}, spec: {containers: [{name: c, env: [{name: A, value: a},
               {name: B, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['note']\"}}}, {name: C, value: $(B)}]}]}}",
        )
        .unwrap();
        assert_eq!(resolve(&pod, &Objects::default()).unwrap(), pairs(&[("A", "a"), ("B", "$(A)"), ("C", "$(A)")]));
    }

    #[test]
    fn command_and_args_see_the_whole_environment() {
        let pod = pod("command: [sh, '-$(FLAGS)'], args: ['$(A)', '$$(A)', '$(NONE)', '$(A']");
        let container = &pod.spec.as_ref().unwrap().containers[0];
        let environment = pairs(&[("A", "x y"), ("FLAGS", "c")]);
        assert_eq!(expanded_command(container, &environment), ["sh", "-c"]);
        assert_eq!(expanded_args(container, &environment), ["x y", "$(A)", "$(NONE)", "$(A"]);
    }

    #[test]
    fn a_reference_that_cannot_be_resolved_names_the_variable() {
        let result = environment("env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.nonsense}}}]");
        assert!(matches!(result, Err(EnvError::Field { name, .. }) if name == "A"));
        let result = environment("env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k}}}]");
        assert!(matches!(result, Err(EnvError::File { volume, .. }) if volume == "v"));
        let error = environment("env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: k}}}]").unwrap_err();
        assert_eq!(error.to_string(), "configmap \"m\" not found in namespace \"shop\" (no source is configured)");
    }

    const OBJECTS: &str = "{kind: ConfigMap, metadata: {name: m, namespace: shop}, data: {a: one, b: $(A)}}
---
{kind: Secret, metadata: {name: s, namespace: shop}, data: {b: dHdv}}";

    #[test]
    fn whole_objects_come_first_and_are_overridden_by_later_ones_and_by_env() {
        let objects = view(&[("site", Some(OBJECTS))]);
        let pod = pod("envFrom: [{configMapRef: {name: m}}, {prefix: P_, configMapRef: {name: m}}, {secretRef: {name: s}},
               {configMapRef: {name: none, optional: true}}],
             env: [{name: a, value: 'own $(b)'}, {name: c, valueFrom: {secretKeyRef: {name: s, key: b}}},
               {name: d, valueFrom: {configMapKeyRef: {name: m, key: none, optional: true}}},
               {name: P_a, valueFrom: {secretKeyRef: {name: none, key: b, optional: true}}}]");
        let expected = pairs(&[("a", "own two"), ("b", "two"), ("P_a", "one"), ("P_b", "$(A)"), ("c", "two")]);
        assert_eq!(resolve(&pod, &objects).unwrap(), expected);
    }

    #[test]
    fn debug_shows_names_only() {
        let environment = Environment { variables: pairs(&[("PASSWORD", "hunter2")]), skipped: Vec::new() };
        assert_eq!(format!("{environment:?}"), "[\"PASSWORD\"]");
    }
}
