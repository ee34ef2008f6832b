//! Sources as the intake knows them.

use podstead_artifact::Layers;
use podstead_manifest::Substitution;
use podstead_pod::SourceId;
use podstead_settings::{Allow, Requirements};
use std::sync::Arc;

/// A source as the intake knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntakeSource {
    /// Its configured name.
    pub id: SourceId,
    /// `directory`, `http` or `git`: for readers only.
    pub kind: String,
    /// Path or URL, without credentials: for readers only.
    pub location: String,
    /// Earlier accepted revisions that are kept.
    pub history_limit: usize,
    /// Permissions of its pods; `None` for all.
    pub allow: Option<Arc<Allow>>,
    /// Requirements for its pods.
    pub requirements: Arc<Requirements>,
    /// Variables that are replaced in its manifests.
    pub substitute: Option<Arc<Substitution>>,
    /// Its layers.
    pub layers: Arc<Layers>,
    /// Its pods are called as in their manifests, without the name of the host.
    pub keeps_names: bool,
}
