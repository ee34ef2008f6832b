//! Objects and sources as tests write them, here and in other crates.
#![allow(clippy::unwrap_used, reason = "what a test needs and cannot have has to fail it")]

use crate::SourceId;
use crate::objects::{Object, ObjectKind, ObjectName, Objects, SourceView};
use crate::sharing::{Share, SharedNames, Sharing, SharingSource};
use std::sync::{Arc, LazyLock};

pub use crate::support::{fields_with_effect, workload_fields_with_effect};

/// The view of pods of the first source.
pub fn seen(objects: &Objects) -> SourceView<'_> {
    static NOBODY: LazyLock<SourceId> = LazyLock::new(|| SourceId::new("nobody"));
    objects.seen_by(objects.sharing().order().next().unwrap_or(&NOBODY))
}

/// A view from YAML documents, one list of documents per source; a source without a list has not delivered.
pub fn view(sources: &[(&str, Option<&str>)]) -> Objects {
    let ids: Vec<SourceId> = sources.iter().map(|(id, _)| SourceId::new(*id)).collect();
    shared_view(&Sharing::from(ids), sources)
}

/// The same with sources that share in this way.
pub fn shared_view(sharing: &Sharing, sources: &[(&str, Option<&str>)]) -> Objects {
    let documents_of =
        |source: &SourceId| sources.iter().find(|(id, _)| *id == source.as_str()).and_then(|(_, documents)| *documents);
    let mut view = Objects::new(Arc::new(sharing.clone()), |source| documents_of(source).is_some());
    for source in sharing.order() {
        let documents = documents_of(source);
        for document in documents.unwrap_or_default().split("---").filter(|document| !document.trim().is_empty()) {
            let value: serde_json::Value = serde_yaml::from_str(document).unwrap();
            let (kind, object) = match value["kind"].as_str().unwrap() {
                "ConfigMap" => (ObjectKind::ConfigMap, Object::ConfigMap(Arc::new(serde_json::from_value(value.clone()).unwrap()))),
                "PersistentVolumeClaim" => (
                    ObjectKind::PersistentVolumeClaim,
                    Object::PersistentVolumeClaim(Arc::new(serde_json::from_value(value.clone()).unwrap())),
                ),
                _ => (ObjectKind::Secret, Object::Secret(Arc::new(serde_json::from_value(value.clone()).unwrap()))),
            };
            let text = |field: &str| value["metadata"][field].as_str().unwrap_or("default").to_owned();
            view.add(source, ObjectName { kind, namespace: text("namespace").into(), name: text("name").into() }, object);
        }
    }
    view
}

/// A ConfigMap as YAML.
pub fn config_map(name: &str, data: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {data}}}")
}

/// Sources by name; a name that ends in `!` is that of a restricted one. `shares` are owner, other source and name, of all kinds.
pub fn sharing(names: &[&str], shares: &[(&str, &str, &str)]) -> Sharing {
    let source = |name: &&str| {
        let id = name.trim_end_matches('!');
        let own = shares.iter().filter(|(owner, _, _)| *owner == id);
        let share = |(_, with, name): &(&str, &str, &str)| {
            let names = SharedNames::new([(*name).to_owned()]);
            Share {
                with: [SourceId::new(*with)].into(),
                config_maps: names.clone(),
                secrets: names.clone(),
                persistent_volume_claims: names.clone(),
                subdomains: names,
            }
        };
        SharingSource {
            id: SourceId::new(id),
            is_restricted: name.ends_with('!'),
            uses_registry_credentials: !name.ends_with('!'),
            own_namespace: None,
            shares: own.map(share).collect(),
        }
    };
    Sharing::new(names.iter().map(source).collect())
}
