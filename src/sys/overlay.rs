//! Overlay file systems of any number of layers with paths of any length.
//!
//! The layers are named by descriptors (`/proc/self/fd/N`): neither the 256 bytes of one mount parameter nor the page of mount(2)'s
//! options limits their paths, and no character in them needs escaping.

use super::mount_tree::{Submounts, clone_mount};
use nix::fcntl::{AT_FDCWD, OFlag, open};
use nix::mount::MsFlags;
use nix::sys::stat::Mode;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen,
};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Reason why there is no overlay.
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
        /// Number of layers.
        layers: usize,
        /// Mount point.
        target: PathBuf,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
}

/// Makes a detached mount of `layers` (lowest first) under a writable layer in `writable`, whose directories are made. `target` is made, too: older
/// kernels need a place to mount on, and what is mounted there must be private.
///
/// The writable layer is not synced: it belongs to one run of a container and is worth nothing after a power cut.
pub fn make(layers: &[PathBuf], writable: &Path, target: &Path) -> Result<OwnedFd, OverlayError> {
    make_directory(target.to_owned(), 0o755)?;
    let writable = Writable::make(writable)?;
    let lower = Lower::open(layers)?;
    match mount_by_parameters(&lower, Some((&writable.upper, &writable.work))) {
        // Before 6.7 there is no parameter for a single layer.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            mount_by_options(&lower, &writable.upper, &writable.work, target)
        }
        other => other,
    }
    .map_err(|source| OverlayError::Mount { layers: layers.len(), target: target.to_owned(), source })
}

/// As [`make`], without a place to mount on. `None` where the kernel needs one.
pub fn make_detached(layers: &[PathBuf], writable: &Path) -> Result<Option<OwnedFd>, OverlayError> {
    let made = Writable::make(writable)?;
    match mount_by_parameters(&Lower::open(layers)?, Some((&made.upper, &made.work))) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(None),
        Err(source) => Err(OverlayError::Mount { layers: layers.len(), target: writable.to_owned(), source }),
        Ok(mounted) => Ok(Some(mounted)),
    }
}

/// The directories of a writable layer.
struct Writable {
    upper: OwnedFd,
    work: OwnedFd,
}

impl Writable {
    fn make(directory: &Path) -> Result<Self, OverlayError> {
        make_directory(directory.to_owned(), 0o700)?;
        let upper = open_directory(&make_directory(directory.join("upper"), 0o755)?)?;
        let work = open_directory(&make_directory(directory.join("work"), 0o700)?)?;
        Ok(Self { upper, work })
    }
}

fn make_directory(path: PathBuf, mode: u32) -> Result<PathBuf, OverlayError> {
    match DirBuilder::new().recursive(true).mode(mode).create(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(OverlayError::Make(path, source)),
    }
}

/// Mounts `layers` (lowest first) on `target`, which exists, read-only and without programs, device files and set-user bits. `empty` is an
/// empty directory: the kernel does not take a single layer.
pub fn mount_read_only(layers: &[PathBuf], empty: &Path, target: &Path) -> Result<(), OverlayError> {
    let with_empty: Vec<PathBuf> = std::iter::once(empty.to_owned()).chain(layers.iter().cloned()).collect();
    let lower = Lower::open(&with_empty)?;
    match mount_by_parameters(&lower, None).and_then(|mounted| Ok(super::mount_tree::attach(&mounted, target)?)) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            let options = format!("lowerdir={}", lower.joined());
            let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOEXEC | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
            nix::mount::mount(Some("overlay"), target, Some("overlay"), flags, Some(options.as_str())).map_err(io::Error::from)
        }
        other => other,
    }
    .map_err(|source| OverlayError::Mount { layers: layers.len(), target: target.to_owned(), source })
}

/// Layers that are opened, topmost first, as the kernel wants them. A name that is short is what the mount table shows: so others see
/// which layers are in use.
struct Lower {
    layers: Vec<(PathBuf, OwnedFd)>,
}

/// The kernel takes 255 bytes in one parameter.
const MAX_NAME: usize = 255;
/// And a page of options.
const MAX_OPTIONS: usize = 3500;

impl Lower {
    fn open(layers: &[PathBuf]) -> Result<Self, OverlayError> {
        let opened = layers.iter().rev().map(|layer| Ok((layer.clone(), open_directory(layer)?)));
        let layers = opened.collect::<Result<Vec<_>, OverlayError>>()?;
        if layers.is_empty() { Err(OverlayError::NoLayers) } else { Ok(Self { layers }) }
    }

    fn names(&self) -> impl Iterator<Item = String> {
        self.layers.iter().map(|(path, layer)| plain(path).map_or_else(|| by_descriptor(layer), str::to_owned))
    }

    /// As one option.
    fn joined(&self) -> String {
        let names = self.names().collect::<Vec<_>>().join(":");
        if names.len() < MAX_OPTIONS {
            return names;
        }
        self.layers.iter().map(|(_, layer)| by_descriptor(layer)).collect::<Vec<_>>().join(":")
    }
}

/// The path, if it can be written without escapes.
fn plain(path: &Path) -> Option<&str> {
    let text = path.to_str().filter(|text| text.len() <= MAX_NAME)?;
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_.-+@".contains(&byte)).then_some(text)
}

fn mount_by_parameters(lower: &Lower, writable: Option<(&OwnedFd, &OwnedFd)>) -> io::Result<OwnedFd> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "overlay")?;
    for layer in lower.names() {
        fsconfig_set_string(&context, "lowerdir+", layer)?;
    }
    let attributes = match writable {
        Some((upper, work)) => {
            fsconfig_set_string(&context, "upperdir", by_descriptor(upper))?;
            fsconfig_set_string(&context, "workdir", by_descriptor(work))?;
            fsconfig_set_flag(&context, "volatile")?;
            MountAttrFlags::empty()
        }
        None => {
            MountAttrFlags::MOUNT_ATTR_RDONLY
                | MountAttrFlags::MOUNT_ATTR_NOEXEC
                | MountAttrFlags::MOUNT_ATTR_NOSUID
                | MountAttrFlags::MOUNT_ATTR_NODEV
        }
    };
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// A clone of what is mounted at `target` for a moment.
fn mount_by_options(lower: &Lower, upper: &OwnedFd, work: &OwnedFd, target: &Path) -> io::Result<OwnedFd> {
    let options = format!("lowerdir={},upperdir={},workdir={},volatile", lower.joined(), by_descriptor(upper), by_descriptor(work));
    nix::mount::mount(Some("overlay"), target, Some("overlay"), MsFlags::empty(), Some(options.as_str()))?;
    let cloned = clone_mount(AT_FDCWD, target, Submounts::Leave);
    super::mounts::detach(target)?;
    Ok(cloned?)
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

    fn with_layers(count: usize, mount_it: impl Fn(&Lower, &OwnedFd, &OwnedFd, &Path) -> io::Result<OwnedFd>) {
        let directory = tempfile::tempdir().unwrap();
        let long = directory.path().join("x".repeat(200)).join("y".repeat(200)).join("with:colon,and comma");
        let layers: Vec<PathBuf> = (0..count)
            .map(|number| {
                let layer = long.join(number.to_string());
                std::fs::create_dir_all(&layer).unwrap();
                std::fs::write(layer.join("name"), number.to_string()).unwrap();
                std::fs::write(layer.join(format!("only-{number}")), "").unwrap();
                layer
            })
            .collect();
        let layers = Lower::open(&layers).unwrap();
        let (upper, work, target) = (long.join("upper"), long.join("work"), long.join("root"));
        for path in [&upper, &work, &target] {
            std::fs::create_dir_all(path).unwrap();
        }
        let result = mount_it(&layers, &open_directory(&upper).unwrap(), &open_directory(&work).unwrap(), &target)
            .and_then(|mounted| Ok(crate::mount_tree::attach(&mounted, &target)?));
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
        with_layers(120, |lower, upper, work, _| mount_by_parameters(lower, Some((upper, work))));
    }

    #[test]
    fn many_layers_with_long_paths_can_be_mounted_on_an_older_kernel() {
        with_layers(120, mount_by_options);
    }

    #[test]
    fn a_read_only_stack_has_its_content_and_names_its_layers_in_the_mount_table() {
        let test = "overlay::tests::a_read_only_stack_has_its_content_and_names_its_layers_in_the_mount_table";
        crate::testing::in_private_mounts(test, || {
            for count in [1, 3] {
                let directory = tempfile::tempdir().unwrap();
                let layers: Vec<PathBuf> = (0..count).map(|number| directory.path().join(format!("layer-{number}"))).collect();
                for layer in &layers {
                    std::fs::create_dir(layer).unwrap();
                    std::fs::write(layer.join("name"), layer.file_name().unwrap().as_encoded_bytes()).unwrap();
                }
                let (empty, target) = (directory.path().join("empty"), directory.path().join("target"));
                std::fs::create_dir(&empty).unwrap();
                std::fs::create_dir(&target).unwrap();
                mount_read_only(&layers, &empty, &target).unwrap();
                assert_eq!(std::fs::read_to_string(target.join("name")).unwrap(), format!("layer-{}", count - 1));
                assert!(std::fs::write(target.join("x"), "x").is_err());
                let table = std::fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
                let line = table.lines().find(|line| line.contains(target.to_str().unwrap())).unwrap();
                assert!(line.contains("noexec") && layers.iter().all(|layer| line.contains(layer.to_str().unwrap())), "{line}");
                umount2(&target, MntFlags::MNT_DETACH).unwrap();
            }
        });
    }
}
