//! Writes of claims that no source has any more and whose data are kept. Such a claim is listed, but it is no object: a change of it creates it, and
//! the new claim has the data.

use super::answer;
use super::request::Change;
use super::target::Target;
use crate::Backend;
use crate::failure::ApiFailure;
use podstead_pod::DEFAULT_NAMESPACE;
use serde_json::{Value, json};

/// The object as it is shown, if a source has it.
pub(super) async fn existing(backend: &Backend, target: &Target, name: &str) -> Option<Value> {
    answer::shown(backend, target, name).await.filter(|shown| !is_released(shown))
}

/// The change to make: a patch or a replacement of a released claim creates the claim. Refuses its deletion.
pub(super) async fn settle(backend: &Backend, target: &Target, name: &str, change: Change) -> Result<Change, ApiFailure> {
    let Some(shown) = answer::shown(backend, target, name).await.filter(is_released) else { return Ok(change) };
    if matches!(change, Change::Delete(_)) {
        return Err(refuse(target, name));
    }
    let metadata = json!({"name": name, "namespace": shown["metadata"]["namespace"], "labels": {}, "annotations": {}});
    let bare = json!({"apiVersion": target.api_version, "kind": target.kind, "metadata": metadata, "spec": shown["spec"]});
    change.creating(target.kind, &bare)
}

/// Error for deleting a claim that no source has, or changing one where no source is writable.
pub(super) fn refuse(target: &Target, name: &str) -> ApiFailure {
    let option = if target.namespace == DEFAULT_NAMESPACE { String::new() } else { format!(" -n {}", target.namespace) };
    let message = format!(
        "claim {name:?} is in no source any more, and its data are kept: podstead volume prune {name}{option} deletes them"
    );
    ApiFailure::method_not_allowed(message).about(target.plural, name)
}

/// Reports whether the shown object is a claim of which only the data are left.
pub(super) fn is_released(shown: &Value) -> bool {
    shown["kind"] == "PersistentVolumeClaim" && shown["status"]["phase"] == "Released"
}
