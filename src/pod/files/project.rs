//! Collecting the files of one volume.

use super::{ProjectionProblem, VolumeFile, VolumeFiles, downward};
use crate::Pod;
use crate::env::EnvFacts;
use crate::objects::{ObjectError, ObjectKind, ObjectName, SourceView, namespace_of};
use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath};
use std::path::Path;

/// The bits of a mode that say who may do what.
pub(super) fn permissions(mode: i32) -> u32 {
    u32::try_from(mode).unwrap_or(0) & 0o777
}

/// Files so far.
pub(super) struct Projecting<'a> {
    pod: &'a Pod,
    objects: SourceView<'a>,
    facts: &'a EnvFacts,
    default_mode: u32,
    files: VolumeFiles,
    is_sure: bool,
}

impl<'a> Projecting<'a> {
    pub(super) fn new(pod: &'a Pod, objects: SourceView<'a>, facts: &'a EnvFacts, default_mode: u32) -> Self {
        Self { pod, objects, facts, default_mode, files: VolumeFiles::new(), is_sure: true }
    }

    /// All keys of an object, or the items that are named. A later file replaces an earlier one of its path, as in the kubelet.
    pub(super) fn object(
        &mut self,
        kind: ObjectKind,
        name: &str,
        items: &[KeyToPath],
        is_optional: bool,
    ) -> Result<(), ProjectionProblem> {
        let name = ObjectName { kind, namespace: namespace_of(self.pod).into(), name: name.into() };
        self.is_sure &= self.objects.is_settled(&name);
        let held = match self.objects.find(&name) {
            Err(_) if is_optional => return Ok(()),
            found => found?,
        };
        let all = held.object.files();
        if items.is_empty() {
            for (key, content) in all {
                self.add(key, None, content.to_vec());
            }
            return Ok(());
        }
        for item in items {
            match all.get(item.key.as_str()) {
                Some(content) => self.add(&item.path, item.mode, content.to_vec()),
                None if is_optional => {}
                None => {
                    let (key, from) = (item.key.clone(), held.source.clone());
                    return Err(ObjectError::NoKey { name, key, from }.into());
                }
            }
        }
        Ok(())
    }

    /// Fields of the pod and resources of its containers.
    pub(super) fn downward(&mut self, files: &[DownwardAPIVolumeFile]) -> Result<(), ProjectionProblem> {
        for file in files {
            let value = downward::value(self.pod, file, self.facts)?;
            self.add(&file.path, file.mode, value.into_bytes());
        }
        Ok(())
    }

    /// The files, and whether they are sure; refuses paths that cannot stand beside each other.
    pub(super) fn checked(&mut self) -> Result<(VolumeFiles, bool), ProjectionProblem> {
        let files = std::mem::take(&mut self.files);
        for path in files.keys() {
            let mut above = Path::new(path).ancestors().skip(1);
            if above.any(|parent| parent.to_str().is_some_and(|parent| files.contains_key(parent))) {
                return Err(ProjectionProblem::Clash(path.clone()));
            }
        }
        Ok((files, self.is_sure))
    }

    fn add(&mut self, path: &str, mode: Option<i32>, content: Vec<u8>) {
        // The components decide, not the spelling.
        let path: std::path::PathBuf = Path::new(path).components().collect();
        let mode = mode.map_or(self.default_mode, permissions);
        self.files.insert(path.to_string_lossy().into_owned(), VolumeFile { mode, content });
    }
}
