//! Division of mounts between helper and libcontainer, by their place in the container. **Pure**.
//!
//! libcontainer makes links and device nodes below `/dev` by joining paths, before the container's root is the process's own. A mount that lies
//! where the image's links lead could turn these paths to the host. So the start helper attaches volumes by descriptor before libcontainer's turn;
//! libcontainer binds those only that lie in a file system which it makes itself.

use super::OciError;
use std::path::{Path, PathBuf};

/// Mounted by libcontainer in every container.
pub const OWN: [&str; 3] = ["dev", "proc", "sys"];

/// Written to by all containers of the pod: a place below it may be a link of theirs.
const SHARED_MEMORY: &str = "/dev/shm";

/// Component that performs a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mounter {
    /// The start helper, before libcontainer's turn.
    Helper,
    /// libcontainer, in a file system that it makes.
    Runtime,
    /// The start helper, after libcontainer's turn: the volume covers the container's own `/dev` (see [`super::dev`]).
    OverDev,
}

/// A mount that libcontainer makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// Mounted there as it shall be, flags included.
    pub source: PathBuf,
    /// Its place in the container.
    pub place: PathBuf,
}

/// Decides by a place in the container, which is absolute and has no `..`.
pub fn mounter_of(place: &Path) -> Result<Mounter, OciError> {
    let mut components = place.components().skip(1);
    let is_own = components.next().is_some_and(|first| OWN.iter().any(|own| first.as_os_str() == *own));
    match (is_own, components.next().is_some()) {
        (false, _) => Ok(Mounter::Helper),
        (true, true) => Ok(Mounter::Runtime),
        (true, false) if place == Path::new(super::dev::DEV) => Ok(Mounter::OverDev),
        (true, false) => Err(OciError::PlaceTaken(place.components().collect())),
    }
}

/// Returns true if `place` is below another of `places`, all of which libcontainer would mount, or below the pod's shared memory. What is
/// in there is not the image's, and may be a link to anywhere that libcontainer would follow: it is mounted after libcontainer's turn.
pub fn is_nested(place: &Path, places: &[PathBuf]) -> bool {
    let outer = places.iter().map(PathBuf::as_path).chain([Path::new(SHARED_MEMORY)]);
    outer.into_iter().any(|outer| place != outer && place.starts_with(outer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_decides_who_mounts() {
        for (place, mounter) in [
            ("/data", Mounter::Helper),
            ("/devices", Mounter::Helper),
            ("/etc/proc", Mounter::Helper),
            ("/dev/shm", Mounter::Runtime),
            ("//dev/./shm/", Mounter::Runtime),
            ("/proc/x", Mounter::Runtime),
            ("/sys/fs/cgroup", Mounter::Runtime),
            ("/dev", Mounter::OverDev),
            ("/dev/.", Mounter::OverDev),
        ] {
            assert_eq!(mounter_of(Path::new(place)).unwrap(), mounter, "{place}");
        }
        for place in ["/proc", "/sys", "//proc/"] {
            let refused = mounter_of(Path::new(place)).unwrap_err().to_string();
            assert!(refused.contains("cannot mount a volume on"), "{refused}");
        }
    }

    #[test]
    fn place_below_another_mount_is_nested() {
        let places: Vec<PathBuf> = ["/dev/shmem", "/dev/a", "/dev/a/b", "/sys/fs/cgroup", "/dev/shm"].map(PathBuf::from).into();
        for (place, nested) in [
            ("/dev/a", false),
            ("/dev/a/b", true),
            ("/dev/shm", false),
            ("/dev/shm/x", true),
            ("/dev/shmem", false),
            ("/dev/ab", false),
            ("/sys/fs/cgroup", false),
        ] {
            assert_eq!(is_nested(Path::new(place), &places), nested, "{place}");
        }
        assert!(is_nested(Path::new("/dev/shm/x"), &[]), "other containers of the pod write there");
    }
}
