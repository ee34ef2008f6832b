//! Names of files that count as manifests. **Pure**.

use podstead_artifact::is_kustomization;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Reports whether a file of this name in a directory is a manifest: not hidden, and `.yaml`, `.yml` or `.json` in any case. Kubelet rule
/// A3 takes any name; editors' backups (`web.yaml~`, `web.yaml.orig`) would then be second copies of the same pods. A kustomization counts.
pub(super) fn is_manifest(name: &OsStr) -> bool {
    let extension = Path::new(name).extension().and_then(OsStr::to_str).unwrap_or_default();
    let is_known = ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known));
    !is_hidden(name) && (is_known || name.to_str().is_some_and(is_kustomization))
}

/// Reports whether a name begins with a dot.
pub(super) fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".")
}
