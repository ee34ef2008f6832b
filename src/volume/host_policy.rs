//! Paths of the host, and exports of others, that the pods of each source may mount, as configured now, regardless of the manifests.

use podstead_pod::SourceId;
use podstead_pod::nfs::NfsVolume;
use podstead_settings::{Allow, HostPathBounds};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

type Sources = BTreeMap<SourceId, Option<Arc<Allow>>>;

/// The rules of all sources.
#[derive(Debug, Default)]
pub struct HostPathPolicy {
    sources: RwLock<Sources>,
}

impl HostPathPolicy {
    /// Replaces the rules; they count for what is mounted from now on. A source with `None` may mount everything.
    pub fn configure(&self, sources: impl IntoIterator<Item = (SourceId, Option<Arc<Allow>>)>) {
        *self.sources.write().unwrap_or_else(PoisonError::into_inner) = sources.into_iter().collect();
    }

    /// The bounds of a volume at this path; `None` for a source that may mount everything.
    pub(super) fn bounds(&self, source: &SourceId, path: &Path) -> Result<Option<HostPathBounds>, String> {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        match sources.get(source) {
            None => Err(format!("hostPath {path:?}: source {source} is not configured")),
            Some(None) => Ok(None),
            Some(Some(allow)) => {
                let refused = || {
                    format!(
                        "hostPath {path:?}: source {source} is not allowed to mount it (allow.hostPaths in podstead's configuration)"
                    )
                };
                allow.host_path_bounds(path).map(Some).ok_or_else(refused)
            }
        }
    }

    /// Checks that pods of the source may mount an export of another host.
    pub(super) fn check_export(&self, source: &SourceId, export: &NfsVolume) -> Result<(), String> {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        match sources.get(source) {
            None => Err(format!("NFS export {export}: source {source} is not configured")),
            Some(None) => Ok(()),
            Some(Some(allow)) if allow.nfs(&export.server, &export.path, export.read_only) => Ok(()),
            Some(Some(_)) => Err(format!(
                "NFS export {export}: source {source} is not allowed to mount it (allow.nfs in podstead's configuration)"
            )),
        }
    }
}
