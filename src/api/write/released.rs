//! Writes of claims that no source has any more and whose data are kept. Such a claim is no object: it can be created, and then has the data.

use super::answer;
use super::request::Change;
use super::target::Target;
use crate::failure::ApiFailure;
use crate::{Backend, claims};

/// Refuses a change of a claim of which only the data are left; one that creates the claim is none.
pub(super) async fn refuse_change(backend: &Backend, target: &Target, name: &str, change: &Change) -> Result<(), ApiFailure> {
    match change {
        Change::Create(_) | Change::Apply(_) => Ok(()),
        Change::Delete(_) | Change::Patch(..) | Change::Replace(_) => refuse(backend, target, name).await,
    }
}

/// Error for a claim of which only the data are left.
pub(super) async fn refuse(backend: &Backend, target: &Target, name: &str) -> Result<(), ApiFailure> {
    let is_claim = target.kind == "PersistentVolumeClaim";
    let shown = if is_claim { answer::shown_also_released(backend, target, name).await } else { None };
    match shown {
        Some(shown) if claims::is_released(&shown) => Err(claims::no_claim(&target.namespace, name)),
        Some(_) | None => Ok(()),
    }
}
