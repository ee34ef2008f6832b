//! Overlay file systems of any number of layers with paths of any length.
//!
//! The layers are named by descriptors (`/proc/self/fd/N`): neither the 256 bytes of one mount parameter nor the page of mount(2)'s
//! options limits their paths, and no character in them needs escaping.

use nix::fcntl::{OFlag, open};
use nix::mount::MsFlags;
use nix::sys::stat::Mode;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount,
    fsopen, move_mount,
};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Why there is no overlay.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// A directory could not be made.
    #[error("make {}", _0.display())]
    Make(PathBuf, #[source] io::Error),
    /// A layer or a directory of the writable layer is not there.
    #[error("open {}", _0.display())]
    Open(PathBuf, #[source] io::Error),
    /// There is nothing to mount.
    #[error("no layers")]
    NoLayers,
    /// The kernel refused.
    #[error("mount overlay of {layers} layers on {}", target.display())]
    Mount {
        /// How many layers.
        layers: usize,
        /// Where.
        target: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

/// Mounts `layers` (lowest first) under a writable layer in `writable`, whose directories are made, on `target`, which is made.
///
/// The writable layer is not synced: it belongs to one run of a container and is worth nothing after a power cut.
pub fn mount(layers: &[PathBuf], writable: &Path, target: &Path) -> Result<(), OverlayError> {
    let make = |path: PathBuf, mode| match DirBuilder::new().recursive(true).mode(mode).create(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(OverlayError::Make(path, source)),
    };
    make(writable.to_owned(), 0o700)?;
    let upper = open_directory(&make(writable.join("upper"), 0o755)?)?;
    let work = open_directory(&make(writable.join("work"), 0o700)?)?;
    make(target.to_owned(), 0o755)?;
    // The kernel wants the topmost first.
    let lower: Vec<OwnedFd> = layers.iter().rev().map(|layer| open_directory(layer)).collect::<Result<_, _>>()?;
    if lower.is_empty() {
        return Err(OverlayError::NoLayers);
    }
    match mount_by_parameters(&lower, &upper, &work, target) {
        // Before 6.7 there is no parameter for a single layer.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => mount_by_options(&lower, &upper, &work, target),
        other => other,
    }
    .map_err(|source| OverlayError::Mount { layers: layers.len(), target: target.to_owned(), source })
}

fn mount_by_parameters(lower: &[OwnedFd], upper: &OwnedFd, work: &OwnedFd, target: &Path) -> io::Result<()> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "overlay")?;
    for layer in lower {
        fsconfig_set_string(&context, "lowerdir+", by_descriptor(layer))?;
    }
    fsconfig_set_string(&context, "upperdir", by_descriptor(upper))?;
    fsconfig_set_string(&context, "workdir", by_descriptor(work))?;
    fsconfig_set_flag(&context, "volatile")?;
    fsconfig_create(&context)?;
    let mounted = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    Ok(move_mount(&mounted, "", rustix::fs::CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

fn mount_by_options(lower: &[OwnedFd], upper: &OwnedFd, work: &OwnedFd, target: &Path) -> io::Result<()> {
    let layers: Vec<String> = lower.iter().map(by_descriptor).collect();
    let options =
        format!("lowerdir={},upperdir={},workdir={},volatile", layers.join(":"), by_descriptor(upper), by_descriptor(work));
    Ok(nix::mount::mount(Some("overlay"), target, Some("overlay"), MsFlags::empty(), Some(options.as_str()))?)
}

fn open_directory(path: &Path) -> Result<OwnedFd, OverlayError> {
    open(path, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(|error| OverlayError::Open(path.to_owned(), error.into()))
}

fn by_descriptor(descriptor: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::mount::{MntFlags, umount2};

    fn with_layers(count: usize, mount_it: impl Fn(&[OwnedFd], &OwnedFd, &OwnedFd, &Path) -> io::Result<()>) {
        let directory = tempfile::tempdir().unwrap();
        let long = directory.path().join("x".repeat(200)).join("y".repeat(200)).join("with:colon,and comma");
        let layers: Vec<OwnedFd> = (0..count)
            .map(|number| {
                let layer = long.join(number.to_string());
                std::fs::create_dir_all(&layer).unwrap();
                std::fs::write(layer.join("name"), number.to_string()).unwrap();
                std::fs::write(layer.join(format!("only-{number}")), "").unwrap();
                open_directory(&layer).unwrap()
            })
            .rev()
            .collect();
        let (upper, work, target) = (long.join("upper"), long.join("work"), long.join("root"));
        for path in [&upper, &work, &target] {
            std::fs::create_dir_all(path).unwrap();
        }
        let result = mount_it(&layers, &open_directory(&upper).unwrap(), &open_directory(&work).unwrap(), &target);
        let name = std::fs::read_to_string(target.join("name"));
        let names = std::fs::read_dir(&target).unwrap().count();
        let written = std::fs::write(target.join("written"), "x");
        if result.is_ok() {
            umount2(&target, MntFlags::MNT_DETACH).unwrap();
        }
        result.unwrap();
        written.unwrap();
        assert_eq!((name.unwrap(), names), ((count - 1).to_string(), count + 1), "the topmost layer wins and all are seen");
    }

    #[test]
    fn many_layers_with_long_paths_can_be_mounted() {
        with_layers(120, mount_by_parameters);
    }

    #[test]
    fn many_layers_with_long_paths_can_be_mounted_on_an_older_kernel() {
        with_layers(120, mount_by_options);
    }
}
