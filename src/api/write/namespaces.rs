//! Writes of namespaces. One is there as soon as something is in it; its object adds labels, so that any change of one without an object makes the
//! object.

use super::answer;
use super::request::Change;
use super::target::Target;
use crate::failure::ApiFailure;
use crate::namespaces::in_use;
use crate::{Backend, published::Published};
use serde_json::json;

/// The change to make: of a namespace that no source has an object of, a patch or a replacement creates the object. Refuses the deletion of one that
/// something is in.
pub(super) async fn settle(backend: &Backend, target: &Target, name: &str, change: Change) -> Result<Change, ApiFailure> {
    if matches!(change, Change::Delete(_)) && in_use(backend, &backend.objects.get()).contains(name) {
        return Err(refuse_deletion(name));
    }
    if answer::shown(backend, target, name).await.is_some() {
        return Ok(change);
    }
    let bare =
        json!({"apiVersion": target.api_version, "kind": target.kind, "metadata": {"name": name, "labels": {}, "annotations": {}}});
    change.creating(target.kind, &bare)
}

/// Error for creating a namespace where no source is writable.
pub(super) fn refuse_creation(published: &Published) -> ApiFailure {
    let refusal = published.refuse_creation("namespaces");
    let message = format!("namespaces need not be created: use any; {}", refusal.message);
    ApiFailure { message, ..refusal }
}

/// Error for deleting a namespace that something is in.
fn refuse_deletion(name: &str) -> ApiFailure {
    let message = format!(
        "namespace {name:?} is in use, and its objects would stay: delete them first (kubectl get all -n {name} lists them)"
    );
    ApiFailure::method_not_allowed(message).about("namespaces", name)
}
