//! Volumes with files from ConfigMaps, Secrets and the pod itself. All of them live in memory, on one tmpfs per pod: nothing of a Secret
//! reaches a disk, and after a reboot they are written again.

use super::VolumeError;
use super::atomic_writer::AtomicWriter;
use super::memory::mount_tmpfs;
use jiff::Timestamp;
use podstead_pod::Pod;
use podstead_pod::files::Projection;
use podstead_sys::mounts::is_mounted_at;
use rustix::mount::MountFlags;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Writes the volumes below `directory`, by volume name. One that fails does not keep the others from being written; the first failure
/// is returned.
pub(super) fn write(pod: &Pod, directory: &Path, projections: &[Projection]) -> Result<(), VolumeError> {
    if projections.is_empty() {
        return Ok(());
    }
    in_memory(directory).map_err(|error| VolumeError::not_ready("projected files", format!("mount {directory:?}: {error}")))?;
    let group = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref()).and_then(|context| context.fs_group);
    let writer = AtomicWriter { group: group.and_then(|group| u32::try_from(group).ok()) };
    let mut failure = None;
    for Projection { volume, files, is_sure } in projections {
        let place = directory.join(volume);
        if !is_sure && AtomicWriter::is_written(&place) {
            continue;
        }
        match writer.write(&place, files, &stamp()) {
            Ok(true) => tracing::debug!(%volume, "files written"),
            Ok(false) => {}
            Err(error) => failure = failure.or(Some(VolumeError::not_ready(volume, format!("write files: {error}")))),
        }
    }
    failure.map_or(Ok(()), Err)
}

/// The kubelet's form of time, and something random: the clock may stand still or go back.
fn stamp() -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{}.{}", Timestamp::now().strftime("%Y_%m_%d_%H_%M_%S"), random.get(..10).unwrap_or_default())
}

/// Mounts a tmpfs there, unless one is.
fn in_memory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o750).create(directory)?;
    if is_mounted_at(directory)? {
        return Ok(());
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount_tmpfs(directory, flags, "mode=0755")
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::files::{VolumeFile, VolumeFiles};
    use podstead_sys::mounts::{mount_of, mounts};
    use podstead_sys::testing::in_private_mounts;
    use std::fs;

    fn projection(volume: &str, content: &str, is_sure: bool) -> Projection {
        let file = VolumeFile { mode: 0o400, content: content.as_bytes().to_vec() };
        Projection { volume: volume.to_owned(), files: VolumeFiles::from([("key".to_owned(), file)]), is_sure }
    }

    #[test]
    fn all_volumes_of_a_pod_are_on_one_tmpfs() {
        in_private_mounts("projected::tests::all_volumes_of_a_pod_are_on_one_tmpfs", || {
            let root = tempfile::tempdir().unwrap();
            let directory = root.path().join("volumes/projected");
            write(&Pod::default(), &directory, &[]).unwrap();
            assert!(!directory.is_dir(), "nothing is made for nothing");
            for content in ["one", "two"] {
                write(&Pod::default(), &directory, &[projection("a", content, true), projection("b", content, true)]).unwrap();
                assert_eq!(fs::read_to_string(directory.join("b/key")).unwrap(), content);
            }
            let mounts = mounts().unwrap();
            assert_eq!(mount_of(&mounts, &directory.join("a/key")).unwrap().kind, "tmpfs");
            assert_eq!(mounts.iter().filter(|mount| mount.point.starts_with(root.path())).count(), 1);
        });
    }

    #[test]
    fn files_that_are_not_sure_do_not_replace_those_that_are_there() {
        in_private_mounts("projected::tests::files_that_are_not_sure_do_not_replace_those_that_are_there", || {
            let root = tempfile::tempdir().unwrap();
            let directory = root.path().join("projected");
            let seen = || fs::read_to_string(directory.join("a/key")).unwrap();
            write(&Pod::default(), &directory, &[projection("a", "one", false)]).unwrap();
            assert_eq!(seen(), "one", "better than nothing");
            write(&Pod::default(), &directory, &[projection("a", "two", false)]).unwrap();
            assert_eq!(seen(), "one");
            write(&Pod::default(), &directory, &[projection("a", "two", true)]).unwrap();
            assert_eq!(seen(), "two");
        });
    }

    #[test]
    fn a_volume_that_fails_does_not_keep_the_others_back() {
        in_private_mounts("projected::tests::a_volume_that_fails_does_not_keep_the_others_back", || {
            let root = tempfile::tempdir().unwrap();
            let directory = root.path().join("projected");
            let mut bad = projection("bad", "x", true);
            bad.files.insert("../out".to_owned(), VolumeFile { mode: 0o644, content: Vec::new() });
            let error = write(&Pod::default(), &directory, &[bad, projection("good", "x", true)]).unwrap_err().to_string();
            assert!(error.starts_with("volume \"bad\": write files"), "{error}");
            assert!(directory.join("good/key").is_file());
        });
    }
}
