//! Pods made from a workload's template (W5 to W9).

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::collections::BTreeMap;

/// The longest name of a pod that is also the name of its host (W9).
const LONGEST_NAME: usize = 63;

/// The object that a pod belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Such as `apps/v1`.
    pub api_version: &'a str,
    /// Such as `ReplicaSet`.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its UID.
    pub uid: &'a str,
}

impl Owner<'_> {
    /// The reference that objects of this owner carry (W5).
    pub fn reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.api_version.to_owned(),
            kind: self.kind.to_owned(),
            name: self.name.to_owned(),
            uid: self.uid.to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}

/// A name of `owner` and `parts`, joined by `-`. The owner's part is cut where the whole would be too long (W9).
pub fn name(owner: &str, parts: &str) -> String {
    let room = LONGEST_NAME.saturating_sub(parts.len() + 1);
    let end = (0..=room.min(owner.len())).rev().find(|end| owner.is_char_boundary(*end)).unwrap_or(0);
    let cut = owner[..end].trim_end_matches(['-', '.']);
    format!("{cut}-{parts}")
}

/// A pod of the template with the name, in the owner's namespace. Labels are added to the template's (W6).
pub fn pod(template: &PodTemplateSpec, name: &str, namespace: Option<&str>, labels: &[(&str, &str)], owner: &Owner<'_>) -> Pod {
    let written = template.metadata.clone().unwrap_or_default();
    let mut all: BTreeMap<String, String> = written.labels.unwrap_or_default();
    all.extend(labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        labels: (!all.is_empty()).then_some(all),
        annotations: written.annotations,
        owner_references: Some(vec![owner.reference()]),
        ..ObjectMeta::default()
    };
    Pod { metadata, spec: template.spec.clone(), status: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_owner_is_cut() {
        assert_eq!(name("web", "7d9c8f4b5-0"), "web-7d9c8f4b5-0");
        let long = name(&"a".repeat(70), "7d9c8f4b5-0");
        assert_eq!(long.len(), 63);
        assert!(long.ends_with("a-7d9c8f4b5-0"));
        let dashed = format!("{}-bbbbbbbbbb", "a".repeat(50));
        assert_eq!(name(&dashed, "7d9c8f4b5-0"), format!("{}-7d9c8f4b5-0", "a".repeat(50)));
    }

    #[test]
    fn pod_carries_template_and_owner() {
        let template = PodTemplateSpec {
            metadata: Some(ObjectMeta {
                labels: Some(BTreeMap::from([("app".to_owned(), "web".to_owned())])),
                annotations: Some(BTreeMap::from([("a".to_owned(), "b".to_owned())])),
                ..ObjectMeta::default()
            }),
            spec: None,
        };
        let owner = Owner { api_version: "apps/v1", kind: "ReplicaSet", name: "web-x", uid: "u" };
        let pod = pod(&template, "web-x-0", Some("shop"), &[("pod-template-hash", "x")], &owner);
        let labels = pod.metadata.labels.unwrap();
        assert_eq!(
            labels.into_iter().collect::<Vec<_>>(),
            [("app".into(), "web".into()), ("pod-template-hash".into(), "x".into())]
        );
        let references = pod.metadata.owner_references.unwrap();
        assert_eq!((references[0].name.as_str(), references[0].controller), ("web-x", Some(true)));
        assert_eq!(pod.metadata.namespace.as_deref(), Some("shop"));
    }
}
