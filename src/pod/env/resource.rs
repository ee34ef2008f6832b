//! `resourceFieldRef`: a container's requests and limits as numbers.

use super::EnvFacts;
use crate::containers::{self, text};
use crate::quantity::Amount;
use crate::{Pod, resources};
use k8s_openapi::api::core::v1::{Container, ResourceFieldSelector};

/// Reason why a resource reference has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResourceFieldError {
    /// `containerName` names nothing.
    #[error("the pod has no container {0:?}")]
    NoContainer(String),
    /// `resource` is not one that can be referred to.
    #[error(
        "resource {0:?} is not supported: use limits or requests of cpu, memory, ephemeral-storage or hugepages-<size>, e.g. limits.cpu"
    )]
    Unsupported(String),
    /// `divisor` is not a positive quantity.
    #[error("divisor {0:?} is not a quantity greater than 0")]
    Divisor(String),
}

/// Kind of a container's amount: limit or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Limit,
    Request,
}

/// `limits.cpu` as bound and resource name.
pub(crate) fn parse_resource(resource: &str) -> Result<(Bound, &str), ResourceFieldError> {
    let (bound, name) = match resource.split_once('.') {
        Some(("limits", name)) => (Bound::Limit, name),
        Some(("requests", name)) => (Bound::Request, name),
        _ => return Err(ResourceFieldError::Unsupported(resource.to_owned())),
    };
    if matches!(name, "cpu" | "memory" | "ephemeral-storage")
        || name.strip_prefix("hugepages-").is_some_and(|size| !size.is_empty())
    {
        Ok((bound, name))
    } else {
        Err(ResourceFieldError::Unsupported(resource.to_owned()))
    }
}

/// The referenced number divided by the divisor (one if absent or zero), rounded up. A limit that is not set is the pod's or the node's
/// allocatable amount, a request that is not set is zero.
pub fn resource_field_value(
    pod: &Pod,
    container: &Container,
    selector: &ResourceFieldSelector,
    facts: &EnvFacts,
) -> Result<String, ResourceFieldError> {
    let name = text(&selector.container_name);
    let subject = if name.is_empty() || name == container.name {
        container
    } else {
        containers::find(pod, name).ok_or_else(|| ResourceFieldError::NoContainer(name.to_owned()))?.1
    };
    let (bound, resource) = parse_resource(&selector.resource)?;
    let amount = match bound {
        Bound::Limit => resources::effective_limit(pod, subject, resource).unwrap_or_else(|| allocatable(resource, facts)),
        Bound::Request => resources::requests(subject).get(resource).copied().unwrap_or_default(),
    };
    let divisor = match &selector.divisor {
        Some(divisor) if !divisor.0.is_empty() => Amount::read(divisor)
            .ok()
            .filter(|amount| !amount.is_negative())
            .ok_or_else(|| ResourceFieldError::Divisor(divisor.0.clone()))?,
        _ => Amount::ZERO,
    };
    let divisor = if divisor.is_zero() { Amount::of(1) } else { divisor };
    let quotient = amount.nanos().div_euclid(divisor.nanos()) + i128::from(amount.nanos().rem_euclid(divisor.nanos()) != 0);
    Ok(quotient.to_string())
}

fn allocatable(resource: &str, facts: &EnvFacts) -> Amount {
    let capped = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    match resource {
        "cpu" => Amount::of_milli(capped(facts.allocatable_cpu_milli)),
        "memory" => Amount::of(capped(facts.allocatable_memory_bytes)),
        "ephemeral-storage" => Amount::of(capped(facts.allocatable_ephemeral_storage_bytes)),
        _ => Amount::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeName;

    fn value(selector: &str) -> Result<String, ResourceFieldError> {
        let pod: Pod = serde_yaml::from_str(
            "{spec: {containers: [{name: a, resources: {requests: {cpu: 150m, memory: 100M}, limits: {cpu: 1500m, memory: 1Gi, hugepages-2Mi: 4Mi}}},
                                  {name: b}]}}",
        )
        .unwrap();
        let facts = EnvFacts {
            allocatable_cpu_milli: 3500,
            allocatable_memory_bytes: 4 << 30,
            allocatable_ephemeral_storage_bytes: 1 << 30,
            node_name: NodeName::new("edge"),
            cluster_domain: "cluster.local".into(),
            host_ips: vec![],
            pod_ips: vec![],
            service_variables: Vec::new(),
        };
        let selector = serde_yaml::from_str(&format!("{{{selector}}}")).unwrap();
        resource_field_value(&pod, &pod.spec.as_ref().unwrap().containers[0], &selector, &facts)
    }

    #[test]
    fn numbers_are_divided_and_rounded_up() {
        for (selector, expected) in [
            ("resource: limits.cpu", "2"),
            ("resource: limits.cpu, divisor: 1m", "1500"),
            ("resource: limits.cpu, divisor: '0'", "2"),
            ("resource: requests.cpu", "1"),
            ("resource: requests.cpu, divisor: 1m", "150"),
            ("resource: limits.memory", "1073741824"),
            ("resource: limits.memory, divisor: 1Mi", "1024"),
            ("resource: limits.memory, divisor: 1G", "2"),
            ("resource: requests.memory, divisor: 1Mi", "96"),
            ("resource: limits.hugepages-2Mi, divisor: 1Mi", "4"),
            ("resource: requests.ephemeral-storage", "0"),
        ] {
            assert_eq!(value(selector).as_deref(), Ok(expected), "{selector}");
        }
    }

    #[test]
    fn a_missing_limit_is_what_the_node_can_give_and_a_missing_request_is_zero() {
        for (selector, expected) in [
            ("containerName: b, resource: limits.cpu, divisor: 1m", "3500"),
            ("containerName: b, resource: limits.cpu", "4"),
            ("containerName: b, resource: limits.memory", "4294967296"),
            ("containerName: b, resource: limits.ephemeral-storage", "1073741824"),
            ("containerName: b, resource: requests.cpu", "0"),
            ("containerName: b, resource: limits.hugepages-2Mi", "0"),
        ] {
            assert_eq!(value(selector).as_deref(), Ok(expected), "{selector}");
        }
    }

    #[test]
    fn references_to_nothing_are_refused() {
        assert_eq!(value("containerName: c, resource: limits.cpu"), Err(ResourceFieldError::NoContainer("c".into())));
        for resource in ["cpu", "limits.gpu", "limits.", "limits.hugepages-", "limit.cpu", ""] {
            assert_eq!(value(&format!("resource: '{resource}'")), Err(ResourceFieldError::Unsupported(resource.into())));
        }
        assert_eq!(value("resource: limits.cpu, divisor: -1"), Err(ResourceFieldError::Divisor("-1".into())));
    }
}
