//! What the API server checks when a Pod is created (kubelet rule A20).

use super::Pod;
use super::admit::{AdmitContext, metadata_path, spec_path};
use super::containers::text;
use super::field::Problems;

/// Reports every rule that a defaulted Pod breaks.
pub(super) fn pod(pod: &Pod, _context: &AdmitContext, problems: &mut Problems) {
    if text(&pod.metadata.name).is_empty() {
        problems.required(&metadata_path().child("name"), "");
    }
    if pod.spec.is_none() {
        problems.required(&spec_path(), "");
    }
}
