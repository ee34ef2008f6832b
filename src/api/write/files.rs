//! The files of the writable source, and the durable change of one of them.

use super::Writable;
use super::plan::Edit;
use crate::failure::ApiFailure;
use podstead_manifest::change::{Located, located};
use podstead_manifest::{Limits, ObjectKey};
use podstead_sys::atomic_file;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

/// One file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    pub(super) objects: Vec<Located>,
    /// It is reached by a symbolic link.
    pub(super) is_link: bool,
    /// Permission bits.
    pub(super) mode: u32,
    /// Device, inode, size, and time of the last change.
    stamp: (u64, u64, u64, i64, i64),
}

/// All files of the source, by name.
#[derive(Debug, Default)]
pub(super) struct Files(pub(super) BTreeMap<String, File>);

impl Files {
    /// Reads the directory.
    pub(super) async fn read(writable: &Arc<Writable>) -> Result<Self, ApiFailure> {
        let writable = Arc::clone(writable);
        blocking(move || read_directory(&writable.directory, writable.check.namespace(), &writable.check.limits)).await
    }

    /// The first object of this identity, and the name of its file.
    pub(super) fn find(&self, key: &ObjectKey) -> Option<(&str, &File, &Located)> {
        self.0.iter().find_map(|(name, file)| {
            let object = file.objects.iter().find(|object| object.key == *key)?;
            Some((name.as_str(), file, object))
        })
    }

    /// Carries out an edit, unless the file has changed since it was read.
    pub(super) async fn write(&self, writable: &Arc<Writable>, edit: &Edit) -> Result<(), ApiFailure> {
        let (writable, edit) = (Arc::clone(writable), edit.clone());
        let expected = self.0.get(&edit.file).map(|file| file.stamp);
        blocking(move || {
            let path = writable.directory.join(&edit.file);
            let found = match fs::symlink_metadata(&path) {
                Ok(metadata) => Some(stamp_of(&metadata)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(failed("look at", &path, &error)),
            };
            if found != expected {
                let message = format!("{} was changed by somebody else in this moment: try again", edit.file);
                return Err(ApiFailure::conflict(message));
            }
            match &edit.content {
                Some(content) => atomic_file::write_durable(&path, content, edit.mode).map_err(|error| {
                    let temporary = writable.directory.join(format!(".{}.tmp", edit.file));
                    // What could not be written whole helps nobody.
                    fs::remove_file(temporary).ok();
                    failed("write", &path, &error)
                }),
                None => atomic_file::remove_durable(&path).map_err(|error| failed("remove", &path, &error)),
            }
        })
        .await
    }
}

fn failed(operation: &str, path: &Path, error: &io::Error) -> ApiFailure {
    ApiFailure::internal(format!("{operation} {}: {error}; nothing is changed", path.display()))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, ApiFailure> + Send + 'static) -> Result<T, ApiFailure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ApiFailure::internal(format!("the file task ended: {error}"))))
}

fn stamp_of(metadata: &fs::Metadata) -> (u64, u64, u64, i64, i64) {
    (metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

/// Reports whether the source reads a file of this name.
fn is_manifest(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    !name.starts_with('.') && ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn read_directory(directory: &Path, namespace: &str, limits: &Limits) -> Result<Files, ApiFailure> {
    let list_failed = |error: io::Error| ApiFailure::internal(format!("list {}: {error}", directory.display()));
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(list_failed)? {
        let entry = entry.map_err(list_failed)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if podstead_artifact::is_kustomization(&name) {
            return Err(ApiFailure::method_not_allowed(format!(
                "{} has a kustomization ({name}): its objects are built and cannot be written",
                directory.display()
            )));
        }
        if !is_manifest(&name) {
            continue;
        }
        let path = entry.path();
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        // What cannot be read has no objects that could be changed.
        let bytes = read_file(&path, limits.max_bytes).unwrap_or_default();
        let objects = located(&bytes, namespace, limits);
        let file = File {
            bytes,
            objects,
            is_link: metadata.file_type().is_symlink(),
            mode: metadata.permissions().mode() & 0o777,
            stamp: stamp_of(&metadata),
        };
        files.insert(name, file);
    }
    Ok(Files(files))
}

/// Never waits for a writer of a FIFO.
fn read_file(path: &Path, max_bytes: usize) -> io::Result<Vec<u8>> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    let file = fs::OpenOptions::new().read(true).custom_flags(i32::try_from(flags).unwrap_or_default()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max_bytes {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}
