//! Reasons why a port of a Service has no endpoint, in words.

use crate::definition::{Definition, Port, Role, Target};
use crate::endpoints::{Backend, SERVICE_NAME_LABEL};

/// Pods that are named.
const MOST_NAMES: usize = 5;

/// The reason why no pod is behind a port. `pods` are those of the Service's namespace.
pub fn absence(service: &Definition, port: Option<&Port>, pods: &[Backend]) -> String {
    let name = &service.name.name;
    if let Role::ExternalName { .. } = service.role {
        return "it is another name and has no endpoints".to_owned();
    }
    if service.selector.is_empty() {
        return format!("it has no selector, and no EndpointSlice has the label {SERVICE_NAME_LABEL}: {name}");
    }
    let labels: Vec<String> = service.selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let labels = labels.join(",");
    let has_labels = |pod: &&Backend| service.selector.iter().all(|(key, value)| pod.labels.get(key) == Some(value));
    let matching: Vec<&Backend> = pods.iter().filter(has_labels).collect();
    if matching.is_empty() {
        return format!("no pod of namespace {} has the labels {labels}", service.name.namespace);
    }
    let left: Vec<&Backend> = matching.iter().copied().filter(|pod| !pod.has_ended).collect();
    if left.is_empty() {
        return format!("all pods with the labels {labels} have ended: {}", names(&matching));
    }
    if let Some((Target::Name(target), protocol)) = port.map(|port| (&port.target, port.protocol)) {
        let lacks = |pod: &&Backend| !pod.ports.contains_key(&(target.to_string(), protocol));
        if left.iter().all(lacks) {
            return format!("no container of {} has a port of {protocol} with the name {target:?}", names(&left));
        }
    }
    if left.iter().all(|pod| pod.addresses.is_empty()) {
        return format!("its pods have no address yet: {}", names(&left));
    }
    if left.iter().all(|pod| pod.is_terminating) {
        return format!("its pods are being stopped: {}", names(&left));
    }
    let is_ready = |pod: &&&Backend| pod.is_ready && !pod.is_terminating && !pod.addresses.is_empty();
    let ready: Vec<&Backend> = left.iter().filter(is_ready).copied().collect();
    if !ready.is_empty() {
        return format!("{} may not be used: pods of a source with allow are behind Services of that source only", names(&ready));
    }
    format!("no pod is ready: {}", names(&left))
}

fn names(pods: &[&Backend]) -> String {
    let names: Vec<&str> = pods.iter().take(MOST_NAMES).map(|pod| pod.name.name.as_str()).collect();
    match pods.len().checked_sub(MOST_NAMES) {
        Some(more) if more > 0 => format!("{} and {more} more", names.join(", ")),
        Some(_) | None => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{definition, pod};

    #[test]
    fn reason_names_what_is_missing() {
        let web = definition("web", "selector: {app: web}, ports: [{port: 80, targetPort: http}]");
        let told = |service: &Definition, pods: &[Backend]| absence(service, service.ports.first(), pods);
        assert_eq!(told(&web, &[]), "no pod of namespace shop has the labels app=web");
        let other = Backend { labels: [("app".to_owned(), "other".to_owned())].into(), ..pod("a", 1) };
        assert_eq!(told(&web, &[other]), "no pod of namespace shop has the labels app=web");
        let ended = Backend { has_ended: true, ..pod("a", 1) };
        assert_eq!(told(&web, std::slice::from_ref(&ended)), "all pods with the labels app=web have ended: a");
        assert_eq!(told(&web, &[ended, pod("b", 2)]), "no container of b has a port of TCP with the name \"http\"");
        let number = definition("web", "selector: {app: web}, ports: [{port: 80}]");
        let waits = Backend { is_ready: false, ..pod("a", 1) };
        assert_eq!(told(&number, std::slice::from_ref(&waits)), "no pod is ready: a");
        assert_eq!(
            told(&number, &[pod("a", 1)]),
            "a may not be used: pods of a source with allow are behind Services of that source only"
        );
        let stopping = Backend { is_terminating: true, ..pod("a", 1) };
        assert_eq!(told(&number, &[stopping]), "its pods are being stopped: a");
        let young = Backend { addresses: Vec::new(), ..waits };
        assert_eq!(told(&number, &[young]), "its pods have no address yet: a");
        let many: Vec<Backend> = (1..8).map(|last| Backend { is_ready: false, ..pod(&format!("p{last}"), last) }).collect();
        assert_eq!(told(&number, &many), "no pod is ready: p1, p2, p3, p4, p5 and 2 more");
        let free = definition("web", "ports: [{port: 80}]");
        assert_eq!(told(&free, &[]), "it has no selector, and no EndpointSlice has the label kubernetes.io/service-name: web");
    }
}
