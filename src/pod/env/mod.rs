//! Environment, command and arguments of a container (kubelet rule D20).
//!
//! In: a defaulted and validated pod and the facts of its node. Out: what `env` declares, in its order. The image's environment is
//! not looked at: it is not visible to `$(NAME)` references, and whoever builds the process lays this list over it.

mod expand;
mod field;
mod resource;

pub use expand::expand;
pub use field::{FieldRef, FieldRefError, field_ref_value};
pub(super) use resource::parse_resource;
pub use resource::{ResourceFieldError, resource_field_value};

use super::containers::{list, text};
use super::{NodeName, Pod};
use k8s_openapi::api::core::v1::{Container, EnvVar};
use std::collections::HashMap;
use std::net::IpAddr;

/// What a container can learn of its node and of its pod's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvFacts {
    /// `spec.nodeName`.
    pub node_name: NodeName,
    /// `status.hostIPs`, primary first.
    pub host_ips: Vec<IpAddr>,
    /// `status.podIPs`, primary first; those of the host for a pod on the host's network. Empty for a pod that has only `lo`.
    pub pod_ips: Vec<IpAddr>,
    /// Stands for a container's missing cpu limit, in thousandths.
    pub allocatable_cpu_milli: u64,
    /// Stands for a container's missing memory limit, in bytes.
    pub allocatable_memory_bytes: u64,
    /// Stands for a container's missing ephemeral-storage limit, in bytes.
    pub allocatable_ephemeral_storage_bytes: u64,
}

/// Why an environment variable has no value; becomes `CreateContainerConfigError`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvError {
    /// `valueFrom.fieldRef`.
    #[error("resolve environment variable {name}")]
    Field {
        /// The variable.
        name: String,
        /// What is wrong with the reference.
        #[source]
        source: FieldRefError,
    },
    /// `valueFrom.resourceFieldRef`.
    #[error("resolve environment variable {name}")]
    Resource {
        /// The variable.
        name: String,
        /// What is wrong with the reference.
        #[source]
        source: ResourceFieldError,
    },
    /// `valueFrom` with a kind of reference that podstead does not resolve.
    #[error("resolve environment variable {0}: its kind of reference is not supported")]
    Unsupported(String),
}

/// The variables of `env`, resolved and expanded. A name that is declared twice keeps its first place and gets its last value.
/// A value sees variables declared before it.
pub fn container_environment(pod: &Pod, container: &Container, facts: &EnvFacts) -> Result<Vec<(String, String)>, EnvError> {
    let mut environment: Vec<(String, String)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for variable in list(&container.env) {
        let lookup = |name: &str| places.get(name).map(|place| environment[*place].1.clone());
        let value = variable_value(pod, container, variable, facts, &lookup)?;
        match places.get(&variable.name) {
            Some(place) => environment[*place].1 = value,
            None => {
                places.insert(variable.name.clone(), environment.len());
                environment.push((variable.name.clone(), value));
            }
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
    facts: &EnvFacts,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<String, EnvError> {
    let literal = text(&variable.value);
    let Some(reference) = variable.value_from.as_ref().filter(|_| literal.is_empty()) else {
        return Ok(expand(literal, lookup));
    };
    if let Some(selector) = &reference.field_ref {
        field_ref_value(pod, &selector.field_path, facts).map_err(|source| EnvError::Field { name: variable.name.clone(), source })
    } else if let Some(selector) = &reference.resource_field_ref {
        resource_field_value(pod, container, selector, facts)
            .map_err(|source| EnvError::Resource { name: variable.name.clone(), source })
    } else {
        Err(EnvError::Unsupported(variable.name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            host_ips: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
            pod_ips: vec!["10.0.0.7".parse().unwrap()],
            allocatable_cpu_milli: 3500,
            allocatable_memory_bytes: 4 << 30,
            allocatable_ephemeral_storage_bytes: 1 << 30,
        }
    }

    fn environment(container: &str) -> Result<Vec<(String, String)>, EnvError> {
        let pod = pod(container);
        container_environment(&pod, &pod.spec.as_ref().unwrap().containers[0], &facts())
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
        let result = container_environment(&pod, &pod.spec.as_ref().unwrap().containers[0], &facts());
        assert_eq!(result.unwrap(), pairs(&[("A", "a"), ("B", "$(A)"), ("C", "$(A)")]));
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
        let result = environment("env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: k}}}]");
        assert_eq!(result, Err(EnvError::Unsupported("A".into())));
    }
}
