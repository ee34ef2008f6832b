//! Resolution of pod names on the command line. **Pure**.
//!
//! Pods are called `<name in the manifest>-<node>`; people may leave the node out, and the namespace too while the name is unique.

use k8s_openapi::api::core::v1::Pod;
use podstead_expand::WORKLOAD_ANNOTATION;

/// Errors of resolving a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PodNameError {
    /// No pod is called so.
    #[error("pod {name:?} not found{}{}", in_namespace(.namespace.as_deref()), .suggestion.as_ref().map(|near| format!(", did you mean {near:?}?")).unwrap_or_default())]
    NotFound {
        /// As given.
        name: String,
        /// As given.
        namespace: Option<String>,
        /// The name of a pod that is close, or a workload of that name.
        suggestion: Option<String>,
    },
    /// Several pods are called so.
    #[error("pod {name:?} exists in several namespaces: {}; choose one with -n", namespaces.join(", "))]
    Ambiguous {
        /// As given.
        name: String,
        /// The namespaces with such a pod.
        namespaces: Vec<String>,
    },
}

fn in_namespace(namespace: Option<&str>) -> String {
    namespace.map(|namespace| format!(" in namespace {namespace:?}")).unwrap_or_default()
}

/// Finds the one pod that `name` means. `pod/NAME`, as `-o name` writes it, is understood.
pub(super) fn find<'a>(pods: &'a [Pod], name: &str, namespace: Option<&str>) -> Result<&'a Pod, PodNameError> {
    let name = name.strip_prefix("pod/").or_else(|| name.strip_prefix("pods/")).unwrap_or(name);
    let in_reach =
        || pods.iter().filter(|pod| namespace.is_none_or(|namespace| pod.metadata.namespace.as_deref() == Some(namespace)));
    // A whole name goes before a name without its node.
    let mut found: Vec<&Pod> = in_reach().filter(|pod| pod.metadata.name.as_deref() == Some(name)).collect();
    if found.is_empty() {
        found = in_reach().filter(|pod| short_name(pod) == Some(name)).collect();
    }
    match found.as_slice() {
        [pod] => Ok(pod),
        [] => Err(PodNameError::NotFound {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            suggestion: workload(in_reach(), name).or_else(|| nearest(in_reach(), name)),
        }),
        several => {
            let namespaces = several.iter().filter_map(|pod| pod.metadata.namespace.clone()).collect();
            Err(PodNameError::Ambiguous { name: name.to_owned(), namespaces })
        }
    }
}

/// The name without `-<node>`.
fn short_name(pod: &Pod) -> Option<&str> {
    let node = pod.spec.as_ref()?.node_name.as_deref()?;
    pod.metadata.name.as_deref()?.strip_suffix(node)?.strip_suffix('-')
}

/// The workload of that name, such as `deployment/web`, if it has pods.
fn workload<'a>(mut pods: impl Iterator<Item = &'a Pod>, name: &str) -> Option<String> {
    pods.find_map(|pod| {
        let (kind, owner) = pod.metadata.annotations.as_ref()?.get(WORKLOAD_ANNOTATION)?.split_once('/')?;
        (owner == name).then(|| format!("{}/{name}", kind.to_lowercase()))
    })
}

fn nearest<'a>(pods: impl Iterator<Item = &'a Pod>, name: &str) -> Option<String> {
    let names = pods.flat_map(|pod| [short_name(pod), pod.metadata.name.as_deref()]).flatten();
    let distances = names.map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate));
    distances.filter(|(distance, _)| *distance <= 2.min(name.len() / 2)).min().map(|(_, candidate)| candidate.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(namespace: &str, name: &str) -> Pod {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"nodeName": "edge-01", "containers": []},
        }))
        .unwrap()
    }

    #[test]
    fn workload_of_that_name_is_suggested() {
        let mut replica = pod("default", "web-5d8c-0");
        replica.metadata.annotations = Some([(WORKLOAD_ANNOTATION.to_owned(), "Deployment/web".to_owned())].into());
        let error = find(&[replica], "web", None).unwrap_err();
        assert_eq!(error.to_string(), r#"pod "web" not found, did you mean "deployment/web"?"#);
    }

    fn found(name: &str, namespace: Option<&str>) -> Result<String, PodNameError> {
        let pods = [
            pod("default", "web-edge-01"),
            pod("default", "dns-edge-01"),
            pod("kube-system", "dns-edge-01"),
            pod("default", "web-edge-01-edge-01"),
        ];
        find(&pods, name, namespace).map(|pod| {
            format!("{}/{}", pod.metadata.namespace.clone().unwrap_or_default(), pod.metadata.name.clone().unwrap_or_default())
        })
    }

    #[test]
    fn a_pod_is_found_by_whole_and_by_short_name() {
        assert_eq!(found("web", None).unwrap(), "default/web-edge-01");
        assert_eq!(found("web-edge-01", None).unwrap(), "default/web-edge-01", "a whole name goes before a short one");
        assert_eq!(found("pod/web-edge-01", None).unwrap(), "default/web-edge-01");
        assert_eq!(found("dns", Some("kube-system")).unwrap(), "kube-system/dns-edge-01");
    }

    #[test]
    fn a_name_in_several_namespaces_asks_for_one() {
        let error = found("dns", None).unwrap_err().to_string();
        assert_eq!(error, r#"pod "dns" exists in several namespaces: default, kube-system; choose one with -n"#);
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        assert_eq!(found("wbe", None).unwrap_err().to_string(), r#"pod "wbe" not found, did you mean "web"?"#);
        let error = found("zzz", Some("x")).unwrap_err().to_string();
        assert_eq!(error, r#"pod "zzz" not found in namespace "x""#);
    }
}
