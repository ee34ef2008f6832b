//! Looks files up in a stack of layers as overlayfs would show them, without mounting it.

use super::unpack::OPAQUE;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, getxattr, open, openat, readlinkat, statat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// As the kernel's limit.
const SYMLINKS_MAX: usize = 40;
/// Directories inside each other that are kept open, each once per layer: no image has its files deeper.
const DEPTH_MAX: usize = 256;
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Layers, lowest first.
#[derive(Clone, Debug)]
pub struct LayerStack {
    layers: Vec<PathBuf>,
}

/// The same directory in all layers that show in it, highest first.
type Merged = Vec<Rc<OwnedFd>>;

/// Type of a name in a merged directory.
enum Found {
    Directory(Merged),
    /// In the highest layer that has it.
    Other(Rc<OwnedFd>, FileType),
    Nothing,
}

impl LayerStack {
    /// A stack of layer trees, lowest first, as [`podstead_container::ResolvedImage::layers`].
    pub fn new(layers: &[PathBuf]) -> Self {
        Self { layers: layers.to_vec() }
    }

    /// Reads a regular file; symlinks are followed inside of the stack. `None` if there is none or it is something else.
    /// An error for one that is larger than `limit` bytes.
    pub fn read(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        use std::os::unix::ffi::OsStrExt;
        let Some((directory, name)) = self.resolve(path.as_os_str().as_bytes())? else { return Ok(None) };
        // Nothing but a regular file may be opened: a FIFO blocks, and a device acts (a watchdog starts, a tape rewinds).
        let found = openat(&*directory, &name[..], OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let mut content = Vec::new();
        File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?.take(limit + 1).read_to_end(&mut content)?;
        match content.len() as u64 > limit {
            true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {limit} bytes"))),
            false => Ok(Some(content)),
        }
    }

    /// The directory `path` in the highest layer that has it; symlinks are not followed.
    pub fn directory(&self, path: &[u8]) -> io::Result<Option<Rc<OwnedFd>>> {
        let mut merged = self.root()?;
        for component in components(path) {
            match find(&merged, component)? {
                Found::Directory(directory) => merged = directory,
                Found::Other(..) | Found::Nothing => return Ok(None),
            }
        }
        Ok(merged.into_iter().next())
    }

    fn root(&self) -> io::Result<Merged> {
        self.layers.iter().rev().map(|layer| Ok(Rc::new(open(layer, DIRECTORY, Mode::empty())?))).collect()
    }

    /// Layer directory and name of the file that `path` leads to.
    fn resolve(&self, path: &[u8]) -> io::Result<Option<(Rc<OwnedFd>, Vec<u8>)>> {
        let mut stack = vec![self.root()?];
        let mut rest: VecDeque<Vec<u8>> = components(path).map(<[u8]>::to_vec).collect();
        let mut symlinks = 0;
        while let Some(component) = rest.pop_front() {
            if component == b".." {
                if stack.len() > 1 {
                    stack.pop();
                }
                continue;
            }
            let Some(here) = stack.last() else { return Ok(None) };
            match find(here, &component)? {
                Found::Nothing => return Ok(None),
                Found::Directory(_) if stack.len() > DEPTH_MAX => return Err(Errno::NAMETOOLONG.into()),
                Found::Directory(directory) => stack.push(directory),
                Found::Other(layer, FileType::Symlink) => {
                    symlinks += 1;
                    if symlinks > SYMLINKS_MAX {
                        return Err(Errno::LOOP.into());
                    }
                    let target = readlinkat(&*layer, &component[..], Vec::new())?.into_bytes();
                    if target.starts_with(b"/") {
                        stack.truncate(1);
                    }
                    for component in components(&target).map(<[u8]>::to_vec).collect::<Vec<_>>().into_iter().rev() {
                        rest.push_front(component);
                    }
                }
                Found::Other(layer, _) => return Ok(rest.is_empty().then_some((layer, component))),
            }
        }
        Ok(None)
    }
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|component| !matches!(*component, b"" | b"."))
}

fn find(merged: &Merged, name: &[u8]) -> io::Result<Found> {
    let mut directory: Merged = Vec::new();
    for layer in merged {
        let stat = match statat(&**layer, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            stat => stat?,
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::Directory {
            let whiteout = kind == FileType::CharacterDevice && stat.st_rdev == 0;
            return Ok(match (directory.is_empty(), whiteout) {
                (true, false) => Found::Other(Rc::clone(layer), kind),
                (true, true) => Found::Nothing,
                (false, _) => Found::Directory(directory),
            });
        }
        let opened = openat(&**layer, name, DIRECTORY, Mode::empty())?;
        let opaque = is_opaque(&opened)?;
        directory.push(Rc::new(opened));
        if opaque {
            break;
        }
    }
    Ok(if directory.is_empty() { Found::Nothing } else { Found::Directory(directory) })
}

fn is_opaque(directory: &OwnedFd) -> io::Result<bool> {
    let mut value = [0_u8; 1];
    match getxattr(format!("/proc/self/fd/{}", directory.as_raw_fd()), OPAQUE, &mut value[..]) {
        Ok(length) => Ok(&value[..length] == b"y"),
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::RANGE) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    struct Layers {
        directory: tempfile::TempDir,
    }

    impl Layers {
        fn new(count: usize) -> Self {
            let directory = tempfile::tempdir().unwrap();
            (0..count).for_each(|layer| fs::create_dir_all(directory.path().join(layer.to_string()).join("etc")).unwrap());
            Self { directory }
        }

        fn layer(&self, layer: usize) -> PathBuf {
            self.directory.path().join(layer.to_string())
        }

        fn whiteout(&self, layer: usize, path: &str) {
            let kind = FileType::CharacterDevice;
            rustix::fs::mknodat(rustix::fs::CWD, self.layer(layer).join(path), kind, Mode::empty(), 0).unwrap();
        }

        fn read(&self, path: &str) -> Option<String> {
            let layers: Vec<PathBuf> =
                (0..fs::read_dir(self.directory.path()).unwrap().count()).map(|layer| self.layer(layer)).collect();
            LayerStack::new(&layers).read(Path::new(path), 100).unwrap().map(|content| String::from_utf8(content).unwrap())
        }
    }

    #[test]
    fn the_highest_layer_wins_and_whiteouts_hide() {
        let layers = Layers::new(3);
        fs::write(layers.layer(0).join("etc/passwd"), "low").unwrap();
        assert_eq!(layers.read("/etc/passwd").as_deref(), Some("low"));
        fs::write(layers.layer(1).join("etc/passwd"), "high").unwrap();
        assert_eq!(layers.read("etc/passwd").as_deref(), Some("high"));
        layers.whiteout(2, "etc/passwd");
        assert_eq!(layers.read("/etc/passwd"), None);
        assert_eq!(layers.read("/etc"), None, "a directory is no file");
    }

    #[test]
    fn a_whiteout_of_a_directory_hides_what_is_below() {
        let layers = Layers::new(2);
        fs::write(layers.layer(0).join("etc/passwd"), "low").unwrap();
        fs::remove_dir(layers.layer(1).join("etc")).unwrap();
        layers.whiteout(1, "etc");
        assert_eq!(layers.read("/etc/passwd"), None);
    }

    #[test]
    fn symlinks_are_followed_inside_of_the_stack_across_layers() {
        let layers = Layers::new(2);
        fs::create_dir_all(layers.layer(0).join("usr/etc")).unwrap();
        fs::write(layers.layer(0).join("usr/etc/passwd"), "merged").unwrap();
        symlink("../../../usr/etc/passwd", layers.layer(1).join("etc/passwd")).unwrap();
        symlink("/usr/./etc", layers.layer(1).join("absolute")).unwrap();
        symlink("loop", layers.layer(1).join("loop")).unwrap();
        symlink("/etc/hostname", layers.layer(1).join("etc/host")).unwrap();
        assert_eq!(layers.read("/etc/passwd").as_deref(), Some("merged"));
        assert_eq!(layers.read("/absolute/passwd").as_deref(), Some("merged"));
        assert_eq!(layers.read("/etc/host"), None, "never the host's file");
        let all = [layers.layer(0), layers.layer(1)];
        assert!(LayerStack::new(&all).read(Path::new("/loop"), 1).is_err());
        assert!(LayerStack::new(&all).read(Path::new("/usr/etc/passwd"), 5).is_err(), "larger than the limit");
    }

    #[test]
    fn socket_is_not_opened() {
        let layers = Layers::new(1);
        let _listener = std::os::unix::net::UnixListener::bind(layers.layer(0).join("etc/passwd")).unwrap();
        assert_eq!(layers.read("/etc/passwd"), None);
    }

    #[test]
    fn a_fifo_is_not_waited_for() {
        let layers = Layers::new(1);
        rustix::fs::mknodat(rustix::fs::CWD, layers.layer(0).join("etc/passwd"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(layers.read("/etc/passwd"), None);
    }
}
