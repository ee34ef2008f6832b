//! The container's root file system before libcontainer's turn: resolving paths in it as the container will, and checks of what libcontainer would
//! reach by joining paths.

use super::{Attempt, Failure};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::sys::stat::{Mode, mkdirat};
use podstead_container::oci::places::OWN;
use podstead_sys::mount_tree;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// Number of times that a path is resolved anew while it changes.
const MAX_RACES: usize = 100;

/// The root directory.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) directory: OwnedFd,
    identity: (u64, u64),
}

impl Root {
    /// Opens the file system that is mounted at `path`.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        Self::of(open_root(path)?)
    }

    /// The file system whose root directory was opened.
    pub(super) fn of(directory: OwnedFd) -> Result<Self, Failure> {
        let identity = mount_tree::identity(&directory).attempt("inspect the root file system")?;
        Ok(Self { directory, identity })
    }

    /// Opens the place for a mount; an empty file or directory is made where it is missing.
    pub(super) fn place(&self, path: &Path, is_directory: bool) -> nix::Result<OwnedFd> {
        let find = || open_in(&self.directory, path, OFlag::empty());
        match find() {
            Err(Errno::ENOENT) => make_point(&self.directory, path, is_directory).and_then(|()| find()),
            other => other,
        }
    }

    /// Tells whether the descriptor names the root directory itself.
    pub(super) fn is_root(&self, point: &OwnedFd) -> nix::Result<bool> {
        mount_tree::identity(point).map(|identity| identity == self.identity)
    }

    /// Tells whether the descriptor names something in the root file system itself, and not in a volume.
    pub(super) fn is_below(&self, point: &OwnedFd) -> Result<bool, Failure> {
        Ok(mount_tree::identity(point).attempt("inspect a mount point")?.0 == self.identity.0)
    }

    /// The path of something in the container, without links. For a place that others may rename, it is one that was true.
    pub(super) fn path_of(&self, point: &OwnedFd) -> Result<PathBuf, Failure> {
        let read = |descriptor: &OwnedFd| {
            std::fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd())).attempt("inspect a mount point")
        };
        let (root, point) = (read(&self.directory)?, read(point)?);
        let relative = point.strip_prefix(root).attempt("inspect a mount point")?;
        Ok(Path::new("/").join(relative))
    }

    /// Makes sure that the paths which libcontainer joins lead where they say: nothing lies on the root directory, which is at `path` by now, and its own
    /// directories are no links and nobody's mounts. When volumes are in their places, nobody else can change that.
    pub(super) fn check(&self, path: &Path) -> Result<(), Failure> {
        if mount_tree::identity(open_root(path)?).attempt("inspect the root file system")? != self.identity {
            return Err(Failure::create("something is mounted on the root directory of the container"));
        }
        for name in OWN {
            let how = OpenHow::new()
                .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
                .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_XDEV);
            let reason = match openat2(&self.directory, name, how) {
                Ok(_) | Err(Errno::ENOENT) => continue,
                Err(Errno::ELOOP) => {
                    format!("/{name} of the image is a symbolic link: make it a directory or remove it")
                }
                Err(Errno::ENOTDIR) => format!("/{name} of the image is not a directory"),
                Err(Errno::EXDEV) => {
                    format!("a volume is mounted on /{name} through a symbolic link: mount it below /{name} or elsewhere")
                }
                Err(error) => format!("inspect /{name} of the image: {}", error.desc()),
            };
            return Err(Failure::create(reason));
        }
        Ok(())
    }
}

/// Opens the container's root directory.
pub(super) fn open_root(root: &Path) -> Result<OwnedFd, Failure> {
    open(root, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()).attempt("open the root file system")
}

/// Makes an empty directory, or an empty file in directories that are made where they are missing.
pub(super) fn make_point(root: &OwnedFd, path: &Path, is_directory: bool) -> nix::Result<()> {
    if is_directory {
        return make_directory(root, path);
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::EINVAL) };
    make_directory(root, parent)?;
    // Of a single relative name the parent is an empty path, which the kernel does not take.
    let parent = open_in(root, &Path::new(".").join(parent), OFlag::O_DIRECTORY)?;
    let flags = OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    openat(parent, name, flags, Mode::from_bits_truncate(0o644)).map(drop)
}

/// Makes a directory, such as the working directory, where it is missing; links in the image cannot lead out of its root. A working
/// directory inside of a volume is made in the volume's place and hidden by it, as with other runtimes.
pub(super) fn make_directory(root: &OwnedFd, path: &Path) -> nix::Result<()> {
    let mut walked = PathBuf::new();
    let mut parent = open_in(root, Path::new("."), OFlag::O_DIRECTORY)?;
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        walked.push(name);
        let opened = match open_in(root, &walked, OFlag::O_DIRECTORY) {
            Err(Errno::ENOENT) => match mkdirat(parent.as_fd(), name, Mode::from_bits_truncate(0o755)) {
                Ok(()) | Err(Errno::EEXIST) => open_in(root, &walked, OFlag::O_DIRECTORY),
                Err(error) => Err(error),
            },
            other => other,
        };
        parent = opened?;
    }
    Ok(())
}

/// Opens a path below `root`, without reading it and with links as they are for who has that root.
pub(super) fn open_in(root: &OwnedFd, path: &Path, more: OFlag) -> nix::Result<OwnedFd> {
    let how = || {
        OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC | more)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS)
    };
    // EAGAIN: something was renamed during the walk, and the kernel cannot tell whether it stayed in the root.
    let mut tries = 0;
    loop {
        tries += 1;
        match openat2(root, path, how()) {
            Err(Errno::EAGAIN) if tries < MAX_RACES => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_missing_working_directory_is_made_inside_of_the_root() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        std::fs::create_dir_all(root.join("real")).unwrap();
        symlink("/real", root.join("link")).unwrap();
        symlink("../../../../outside", root.join("dangling")).unwrap();
        let opened = open_root(&root).unwrap();
        make_directory(&opened, Path::new("/link/a/b")).unwrap();
        assert!(root.join("real/a/b").is_dir());
        make_directory(&opened, Path::new("/")).unwrap();
        assert!(make_directory(&opened, Path::new("/dangling/x")).is_err());
        assert!(!directory.path().join("outside").try_exists().unwrap());
    }

    #[test]
    fn place_is_found_or_made_inside_of_the_root() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("root");
        std::fs::create_dir_all(path.join("real")).unwrap();
        for (name, target) in [("link", "/real"), ("up", "../../.."), ("self", "/"), ("dangling", "/nowhere")] {
            symlink(target, path.join(name)).unwrap();
        }
        let root = Root::open(&path).unwrap();
        for (place, is_directory, expected) in [
            ("/real", true, "/real"),
            ("/link/a/b", true, "/real/a/b"),
            ("/link/c/file", false, "/real/c/file"),
            ("/up/real", true, "/real"),
        ] {
            let found = root.place(Path::new(place), is_directory).unwrap();
            assert_eq!(root.path_of(&found).unwrap(), Path::new(expected), "{place}");
            assert!(!root.is_root(&found).unwrap(), "{place}");
            assert_eq!(path.join(&expected[1..]).is_dir(), is_directory, "{place}");
        }
        for place in ["/self", "/up", "/link/..", "/"] {
            assert!(root.is_root(&root.place(Path::new(place), true).unwrap()).unwrap(), "{place}");
        }
        root.place(Path::new("/dangling"), true).unwrap_err();
        root.place(Path::new("/dangling/x"), false).unwrap_err();
        assert!(!path.join("nowhere").try_exists().unwrap());
    }

    #[test]
    fn own_directories_of_the_container_are_plain_or_absent() {
        let check = |make: &dyn Fn(&Path)| {
            let directory = tempfile::tempdir().unwrap();
            make(directory.path());
            Root::open(directory.path()).unwrap().check(directory.path()).map_err(|failure| failure.reason)
        };
        assert_eq!(check(&|_| {}), Ok(()));
        assert_eq!(check(&|root| OWN.iter().for_each(|name| std::fs::create_dir(root.join(name)).unwrap())), Ok(()));
        for name in OWN {
            for target in ["/etc", "etc", "../..", "/proc/self/root/etc"] {
                let refused = check(&|root| symlink(target, root.join(name)).unwrap()).unwrap_err();
                assert!(refused.starts_with(&format!("/{name} of the image is a symbolic link")), "{refused}");
            }
            let refused = check(&|root| std::fs::write(root.join(name), "").unwrap()).unwrap_err();
            assert_eq!(refused, format!("/{name} of the image is not a directory"));
        }
        let other = tempfile::tempdir().unwrap();
        let covered = Root::open(other.path()).unwrap().check(Path::new("/")).unwrap_err().reason;
        assert_eq!(covered, "something is mounted on the root directory of the container");
    }
}
