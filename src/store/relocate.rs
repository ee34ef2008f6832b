//! Objects that an earlier version accepted in the namespace `default`, where their source has a namespace of its own now. **Pure**.

use super::check::AcceptedObject;
use super::undelta::KeptFiles;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use podstead_manifest::ObjectKey;
use podstead_pod::DEFAULT_NAMESPACE;
use podstead_pod::objects::PackedObject;
use podstead_settings::Allow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Moves objects from `default` into the namespace that is the source's own by default, as if they had been read by this version. Without
/// it, a source that cannot be reached after an upgrade would lose its pods: in `default` they are not allowed any more.
pub fn relocate(mut files: KeptFiles, allow: Option<&Allow>) -> KeptFiles {
    let Some(own) = allow.and_then(Allow::own_namespace) else { return files };
    for file in files.values_mut() {
        let present: BTreeSet<Arc<ObjectKey>> = file.objects.iter().map(|object| object.key.clone()).collect();
        for accepted in file.objects.iter_mut().filter(|object| object.key.namespace == DEFAULT_NAMESPACE) {
            let key = ObjectKey { namespace: own.into(), ..ObjectKey::clone(&accepted.key) };
            if !present.contains(&key) {
                accepted.key = key.into();
                place_in(&mut accepted.object, own);
            }
        }
        let changes = std::mem::take(&mut file.changes);
        file.changes = changes
            .into_iter()
            .map(|key| if key.namespace == DEFAULT_NAMESPACE { ObjectKey { namespace: own.into(), ..key } } else { key })
            .collect();
    }
    files
}

fn place_in(object: &mut AcceptedObject, namespace: &str) {
    let place = |metadata: &mut ObjectMeta| metadata.namespace = Some(namespace.to_owned());
    match object {
        AcceptedObject::Pod(pod) => place(&mut Arc::make_mut(pod).metadata),
        AcceptedObject::ConfigMap(config_map) => place(&mut Arc::make_mut(config_map).metadata),
        AcceptedObject::Secret(secret) => place(&mut Arc::make_mut(secret).metadata),
        AcceptedObject::PersistentVolumeClaim(claim) => place(&mut Arc::make_mut(claim).metadata),
        AcceptedObject::Workload(workload) => place(Arc::make_mut(workload).metadata_mut()),
        AcceptedObject::Network(object) => {
            let mut typed = object.unpack();
            place(typed.metadata_mut());
            *object = Arc::new(PackedObject::new(typed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::undelta::KeptFile;
    use crate::{CheckContext, check};
    use podstead_config::{Config, HostFacts};
    use podstead_manifest::PatchesByObject;
    use podstead_pod::{AdmitContext, NodeName};
    use std::path::Path;

    fn relocated(allow: &str) -> Vec<String> {
        let config =
            format!("apiVersion: podstead.dev/v1alpha1\nkind: Config\nsources: [{{name: apps, directory: {{path: /a}}{allow}}}]\n");
        let facts = HostFacts { host_name: "edge".into(), executable: None };
        let allow = Config::parse(config.as_bytes(), &facts, Path::new("/c")).unwrap().sources.remove(0).allow;
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: b}]}\n---\napiVersion: v1\nkind: \
                    ConfigMap\nmetadata: {name: c}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: other}\n";
        let before = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
        let objects = check("p.yaml", text.as_bytes(), &before, &PatchesByObject::new()).accepted;
        let files = relocate([("p.yaml".to_owned(), KeptFile { objects, ..KeptFile::default() })].into(), allow.as_deref());
        let objects = files.into_values().flat_map(|file| file.objects);
        let text = |object: crate::Accepted| {
            let metadata = match &object.object {
                AcceptedObject::Pod(pod) => &pod.metadata,
                AcceptedObject::ConfigMap(config_map) => &config_map.metadata,
                other => panic!("{other:?}"),
            };
            let written = metadata.namespace.clone().unwrap_or_default();
            format!("{} {}/{} {written}", object.key.kind, object.key.namespace, object.key.name)
        };
        objects.map(text).collect()
    }

    #[test]
    fn objects_in_default_come_into_the_sources_own_namespace() {
        assert_eq!(relocated(", allow: {}"), ["Pod apps/a apps", "ConfigMap apps/c apps", "ConfigMap other/c other"]);
    }

    #[test]
    fn objects_stay_where_the_source_has_no_namespace_of_its_own() {
        for allow in ["", ", allow: {namespaces: [default]}"] {
            assert_eq!(relocated(allow), ["Pod default/a default", "ConfigMap default/c ", "ConfigMap other/c other"], "{allow}");
        }
    }
}
