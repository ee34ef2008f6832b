//! `spec.imagePullSecrets`: the Secrets that a pod's images are pulled with. **Pure**.

use super::containers::{list, spec, text};
use super::objects::{Object, ObjectError, ObjectKind, ObjectName, SourceView, namespace_of};
use super::{Pod, SourceId};
use k8s_openapi::api::core::v1::Secret;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A Secret that a pod pulls with. `Debug` shows its name.
#[derive(Clone, PartialEq)]
pub struct PullSecret {
    /// Its name.
    pub name: ObjectName,
    /// The Secret.
    pub secret: Arc<Secret>,
    /// The source that it is of, where another source may have one of the same name.
    pub restricted_to: Option<SourceId>,
}

impl std::fmt::Debug for PullSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PullSecret").field(&self.name).finish()
    }
}

/// Names of the Secrets, in the order in which they are written, each once.
pub fn names(pod: &Pod) -> Vec<ObjectName> {
    let namespace = namespace_of(pod);
    let of = |name: &str| ObjectName { kind: ObjectKind::Secret, namespace: namespace.into(), name: name.into() };
    let mut seen = BTreeSet::new();
    let written = list(&spec(pod).image_pull_secrets).iter().map(|reference| reference.name.as_str());
    written.filter(|name| !name.is_empty() && seen.insert(*name)).map(of).collect()
}

/// The Secrets that are there, and why others are not.
pub fn find(pod: &Pod, objects: SourceView<'_>) -> (Vec<PullSecret>, Vec<ObjectError>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for name in names(pod) {
        match objects.find(&name).map(|held| (held, &held.object)) {
            Ok((held, Object::Secret(secret))) => {
                let restricted_to = objects.is_of_restricted(held).then(|| held.source.clone());
                found.push(PullSecret { name, secret: Arc::clone(secret), restricted_to });
            }
            // An object held under the name of a Secret is a Secret.
            Ok((_, Object::ConfigMap(_) | Object::PersistentVolumeClaim(_) | Object::Network(_))) => {}
            Err(error) => missing.push(error),
        }
    }
    (found, missing)
}

impl PullSecret {
    /// `type`.
    pub fn kind(&self) -> &str {
        text(&self.secret.type_)
    }

    /// Value of a key.
    pub fn content(&self, key: &str) -> Option<&[u8]> {
        self.secret.data.as_ref()?.get(key).map(|value| value.0.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{seen, view};

    #[test]
    fn secrets_are_found_in_the_pod_s_namespace_in_order() {
        let pod: Pod = serde_yaml::from_str(
            "{metadata: {namespace: shop}, spec: {containers: [], imagePullSecrets: [{name: b}, {name: a}, {name: b}, {name: c}]}}",
        )
        .unwrap();
        let secret = |namespace: &str, name: &str| {
            format!(
                "{{apiVersion: v1, kind: Secret, metadata: {{namespace: {namespace}, name: {name}}}, data: {{k: aHVudGVyMg==}}}}"
            )
        };
        let documents = [secret("shop", "a"), secret("shop", "b"), secret("default", "c")].join("\n---\n");
        let (found, missing) = find(&pod, seen(&view(&[("s", Some(&documents))])));
        assert_eq!(found.iter().map(|secret| secret.name.to_string()).collect::<Vec<_>>(), ["Secret shop/b", "Secret shop/a"]);
        assert!(missing[0].to_string().starts_with("secret \"c\" not found in namespace \"shop\""), "{missing:?}");
        assert!(!format!("{found:?}").contains("hunter2"));
        assert_eq!(found[0].content("k"), Some(&b"hunter2"[..]));
    }
}
