//! Mount points: what is there, by the mount table and a note beside it. Nothing here asks a server.

use podstead_pod::nfs::NfsVolume;
use podstead_sys::mounts::{MountEntry, mounts};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The real path of a mount point, without asking what is mounted there.
pub(crate) fn real(place: &Path) -> io::Result<PathBuf> {
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else { return Err(io::ErrorKind::InvalidInput.into()) };
    Ok(fs::canonicalize(parent)?.join(name))
}

/// Reports whether an entry of the mount table is a mount of NFS.
pub(super) fn is_nfs(entry: &MountEntry) -> bool {
    matches!(entry.kind.as_str(), "nfs" | "nfs4")
}

/// Reports whether this volume, and no earlier one, is mounted at its place.
pub(crate) fn is_mounted(place: &Path, volume: &NfsVolume) -> io::Result<bool> {
    let place = match real(place) {
        Ok(place) => place,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(mounts()?.iter().any(|entry| entry.point == place && is_nfs(entry)) && is_noted(&place, volume))
}

pub(super) fn is_noted(place: &Path, volume: &NfsVolume) -> bool {
    let noted = fs::read(note(place)).ok().and_then(|bytes| serde_json::from_slice::<NfsVolume>(&bytes).ok());
    noted.as_ref() == Some(volume)
}

/// Says what is or will be mounted: names of volumes have no dots.
pub(super) fn note(place: &Path) -> PathBuf {
    beside(place, ".json")
}

/// Locked while something is mounted there.
pub(super) fn lock(place: &Path) -> PathBuf {
    beside(place, ".lock")
}

fn beside(place: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(place);
    name.push(suffix);
    name.into()
}

/// Names of the files and directories that belong to a volume of this name.
pub(crate) fn entries(volume: &str) -> [String; 3] {
    [volume.to_owned(), format!("{volume}.json"), format!("{volume}.lock")]
}
