//! Templates in one spelling: defaults written out, quantities normalised (W10).

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use podstead_pod::defaults;
use podstead_pod::quantity::Amount;

/// The template as it would be after admission, without what is of one pod only.
pub(crate) fn canonical(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut pod = Pod { metadata: template.metadata.clone().unwrap_or_default(), spec: template.spec.clone(), status: None };
    defaults::apply(&mut pod);
    if let Some(spec) = &mut pod.spec {
        let containers = spec.init_containers.iter_mut().flatten().chain(&mut spec.containers);
        let resources = containers.filter_map(|container| container.resources.as_mut()).chain(spec.resources.as_mut());
        for resources in resources {
            let amounts = resources.limits.iter_mut().chain(resources.requests.iter_mut()).flat_map(|all| all.values_mut());
            amounts.for_each(normalise);
        }
        spec.overhead.iter_mut().flat_map(|all| all.values_mut()).for_each(normalise);
        let empty_dirs = spec.volumes.iter_mut().flatten().filter_map(|volume| volume.empty_dir.as_mut());
        empty_dirs.filter_map(|volume| volume.size_limit.as_mut()).for_each(normalise);
    }
    let is_empty = |map: &Option<std::collections::BTreeMap<String, String>>| map.as_ref().is_none_or(|map| map.is_empty());
    if is_empty(&pod.metadata.labels) {
        pod.metadata.labels = None;
    }
    if is_empty(&pod.metadata.annotations) {
        pod.metadata.annotations = None;
    }
    PodTemplateSpec { metadata: Some(pod.metadata), spec: pod.spec }
}

/// A quantity that cannot be read was refused before, and stays as it is.
fn normalise(quantity: &mut Quantity) {
    if let Ok(amount) = Amount::read(quantity) {
        quantity.0 = format!("{}n", amount.nanos());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(template: Value) -> PodTemplateSpec {
        canonical(&serde_json::from_value(template).unwrap())
    }

    /// TD17.
    #[test]
    fn spelling_and_defaults_make_no_difference() {
        let short = json!({"spec": {"containers": [{"name": "a", "image": "b:1", "resources": {"limits": {"cpu": "1000m"}}}]}});
        let long = json!({"metadata": {"labels": {}}, "spec": {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "containers": [
            {"image": "b:1", "imagePullPolicy": "IfNotPresent", "name": "a", "resources": {"limits": {"cpu": "1"}}}]}});
        assert_eq!(of(short.clone()), of(long));
        let other = json!({"spec": {"containers": [{"name": "a", "image": "b:1", "resources": {"limits": {"cpu": "1001m"}}}]}});
        assert_ne!(of(short), of(other));
    }
}
