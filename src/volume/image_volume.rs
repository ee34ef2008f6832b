//! `image` volumes: the layers of an image, mounted read-only below the pod's directory.

use podstead_container::ResolvedImage;
use podstead_sys::atomic_file::write_atomic;
use podstead_sys::mounts::{detach, is_mounted_at};
use podstead_sys::overlay::mount_read_only;
use podstead_telemetry::error_chain;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Of the lowest layer; names of volumes do not begin with a dot.
const EMPTY: &str = ".empty";

/// Mounts the image at `place`, unless it is. An earlier image there is detached: containers that run keep what they have.
pub(super) fn prepare(place: &Path, image: &ResolvedImage) -> Result<(), String> {
    let failed = |error: io::Error| format!("mount image {}: {error}", image.digest);
    let parent = place.parent().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    let empty = parent.join(EMPTY);
    for directory in [&empty, place] {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(directory).map_err(failed)?;
    }
    if is_mounted_at(place).map_err(failed)? {
        if fs::read(note(place)).is_ok_and(|digest| digest == image.digest.as_bytes()) {
            return Ok(());
        }
        detach(place).map_err(failed)?;
    }
    mount_read_only(&image.layers, &empty, place).map_err(|error| format!("{}", error_chain(&error)))?;
    // Noted last: what is mounted without a note is mounted again.
    write_atomic(&note(place), image.digest.as_bytes(), 0o600).map_err(failed)
}

/// Returns true if an image is mounted there.
pub(super) fn is_mounted(place: &Path) -> bool {
    is_mounted_at(place).unwrap_or(false)
}

/// Says which image is mounted: names of volumes have no dots.
fn note(place: &Path) -> PathBuf {
    place.with_extension("digest")
}

/// Names of the files and directories that belong to a volume of this name.
pub(super) fn entries(volume: &str) -> [String; 3] {
    [volume.to_owned(), format!("{volume}.digest"), EMPTY.to_owned()]
}
