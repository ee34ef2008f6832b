//! `nfs` volumes: exports of other hosts, mounted by the kernel below the pod's directory.
//!
//! A server that does not answer stops whoever asks for a file of it, for as long as it is silent. So the daemon never does: it reads the mount
//! table and files of its own. What needs the server or may wait for it is done by a short-lived process, this program under another name, with
//! a deadline. A process can be killed, or left behind, where a thread of the daemon could not.
//!
//! ```text
//! prepare --> NfsMounts::ensure --> mounted, as noted? --yes--> ready
//!                                        | no
//!                                 one process for each volume: resolve, try versions and addresses, mount
//!                                        | the pod waits a moment for it, then reports and asks again
//!             removal::remove  --> detach: the mount leaves the table at once; the process may outlast it, while data go to the server
//! ```
//!
//! * [`plan`]: attempts, errors and their explanations. **Pure**.
//! * [`process`]: starts the process, hears it, ends it. [`task`]: what it does.
//! * [`mounts`]: mounts under way, one for each volume.
//!
//! A mount is noted before it is made, under a lock, so that what is mounted is what the note says: also when the daemon ended in between, and
//! when the process of an earlier daemon is still at work.

mod mounts;
mod plan;
mod process;
mod task;

pub(super) use mounts::NfsMounts;
pub(super) use process::detach_below;
pub use task::{TASK, run};

use podstead_pod::nfs::NfsVolume;
use podstead_sys::mounts::{MountEntry, mounts as all_mounts};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The real path of a mount point, without asking what is mounted there.
pub(super) fn real(place: &Path) -> io::Result<PathBuf> {
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else { return Err(io::ErrorKind::InvalidInput.into()) };
    Ok(fs::canonicalize(parent)?.join(name))
}

/// Reports whether an entry of the mount table is a mount of NFS.
fn is_nfs(entry: &MountEntry) -> bool {
    matches!(entry.kind.as_str(), "nfs" | "nfs4")
}

/// Reports whether this volume, and no earlier one, is mounted at its place.
pub(super) fn is_mounted(place: &Path, volume: &NfsVolume) -> io::Result<bool> {
    let place = match real(place) {
        Ok(place) => place,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(all_mounts()?.iter().any(|entry| entry.point == place && is_nfs(entry)) && is_noted(&place, volume))
}

fn is_noted(place: &Path, volume: &NfsVolume) -> bool {
    let noted = fs::read(note(place)).ok().and_then(|bytes| serde_json::from_slice::<NfsVolume>(&bytes).ok());
    noted.as_ref() == Some(volume)
}

/// Says what is or will be mounted: names of volumes have no dots.
fn note(place: &Path) -> PathBuf {
    beside(place, ".json")
}

/// Locked while something is mounted there.
fn lock(place: &Path) -> PathBuf {
    beside(place, ".lock")
}

fn beside(place: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(place);
    name.push(suffix);
    name.into()
}

/// Names of the files and directories that belong to a volume of this name.
pub(super) fn entries(volume: &str) -> [String; 3] {
    [volume.to_owned(), format!("{volume}.json"), format!("{volume}.lock")]
}
