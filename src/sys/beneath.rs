//! Paths inside a directory that somebody else controls: resolved by the kernel so that no symlink leads out, whatever is renamed
//! in the meantime. What is found is held by a descriptor; its path is not used again.

use rustix::fs::{Mode, OFlags, ResolveFlags, fchmod, mkdirat, openat2};
use rustix::io::Errno;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// Opens `path` below `base` without reading it (`O_PATH`). Symlinks are followed as long as they stay below `base`; absolute ones
/// never do (EXDEV), nor do those of `/proc` (ELOOP).
pub fn open_beneath(base: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    // EAGAIN: something was renamed during the walk, and the kernel cannot tell whether it stayed below.
    for _ in 0..MAX_RACES {
        match open(&base, path, OFlags::PATH) {
            Err(Errno::AGAIN) => {}
            other => return Ok(other?),
        }
    }
    Err(Errno::AGAIN.into())
}

/// As [`open_beneath`], and makes the directories that are missing, with `mode` whatever the umask is.
pub fn make_beneath(base: impl AsFd, path: &Path, mode: u32) -> io::Result<OwnedFd> {
    match open_beneath(&base, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let mut prefix = PathBuf::from(".");
    for component in path.components() {
        let parent = prefix.clone();
        prefix.push(component);
        match open_beneath(&base, &prefix) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => make_one(&base, &parent, component, mode)?,
            Err(error) => return Err(error),
        }
    }
    open_beneath(&base, path)
}

/// Opens a directory for reading, if it is one and nothing else is mounted there: no symlink is followed.
pub(super) fn open_directory(parent: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(parent, name, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS)
}

const MAX_RACES: usize = 100;

fn make_one(base: impl AsFd, parent: &Path, component: Component<'_>, mode: u32) -> io::Result<()> {
    let Component::Normal(name) = component else { return Err(io::ErrorKind::InvalidInput.into()) };
    let parent = open_beneath(base, parent)?;
    match mkdirat(&parent, name, Mode::from_raw_mode(mode & 0o777)) {
        Ok(()) => {}
        // Created by another process in the meantime, or a dangling symlink: the next attempt finds out.
        Err(Errno::EXIST) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let made = open(&parent, Path::new(name), OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)?;
    Ok(fchmod(made, Mode::from_raw_mode(mode & 0o7777))?)
}

fn open(base: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat2(base, path, flags | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn inode(descriptor: &OwnedFd) -> u64 {
        rustix::fs::fstat(descriptor).unwrap().st_ino
    }

    #[test]
    fn symlinks_are_followed_inside_and_refused_outside() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("volume");
        fs::create_dir_all(base.join("real/deep")).unwrap();
        fs::create_dir(root.path().join("secret")).unwrap();
        symlink("real", base.join("inside")).unwrap();
        symlink("../secret", base.join("up")).unwrap();
        symlink("/etc", base.join("absolute")).unwrap();
        symlink("/proc/self/root", base.join("magic")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        let directory = fs::File::open(&base).unwrap();

        let deep = fs::metadata(base.join("real/deep")).unwrap().ino();
        for path in ["real/deep", "inside/deep", "./real/../real/deep"] {
            assert_eq!(inode(&open_beneath(&directory, Path::new(path)).unwrap()), deep, "{path}");
        }
        for path in ["up", "absolute", "absolute/passwd", "../secret", "real/../../secret", "/etc", "magic/etc"] {
            let error = open_beneath(&directory, Path::new(path)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EXDEV), "{path}: {error}");
            assert_eq!(make_beneath(&directory, Path::new(path), 0o777).unwrap_err().raw_os_error(), Some(libc::EXDEV), "{path}");
        }
        assert_eq!(open_beneath(&directory, Path::new("loop")).unwrap_err().raw_os_error(), Some(libc::ELOOP));
        assert_eq!(fs::read_dir(root.path().join("secret")).unwrap().count(), 0);
    }

    #[test]
    fn missing_directories_are_made_with_the_mode_and_nothing_is_made_outside() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("volume");
        fs::create_dir(&base).unwrap();
        symlink("../outside", base.join("dangling-out")).unwrap();
        symlink("not-there", base.join("dangling-in")).unwrap();
        let directory = fs::File::open(&base).unwrap();

        let made = make_beneath(&directory, Path::new("a/b"), 0o777).unwrap();
        assert_eq!(inode(&made), fs::metadata(base.join("a/b")).unwrap().ino());
        for path in ["a", "a/b"] {
            assert_eq!(fs::metadata(base.join(path)).unwrap().permissions().mode() & 0o7777, 0o777, "{path}");
        }
        make_beneath(&directory, Path::new("a/b"), 0o700).unwrap();
        assert_eq!(fs::metadata(base.join("a/b")).unwrap().permissions().mode() & 0o7777, 0o777, "what is there keeps its mode");

        make_beneath(&directory, Path::new("dangling-out/x"), 0o777).unwrap_err();
        make_beneath(&directory, Path::new("dangling-in/x"), 0o777).unwrap_err();
        assert!(!root.path().join("outside").try_exists().unwrap());
        assert!(!base.join("not-there").try_exists().unwrap());
    }

    #[test]
    fn a_directory_swapped_for_a_symlink_during_the_walk_leads_nowhere_else() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("volume");
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::create_dir_all(root.path().join("secret/b")).unwrap();
        let secret = fs::metadata(root.path().join("secret/b")).unwrap().ino();
        symlink("../secret", base.join("link")).unwrap();
        let directory = fs::File::open(&base).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let exchange = || rustix::fs::renameat_with(&directory, "a", &directory, "link", rustix::fs::RenameFlags::EXCHANGE);
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    exchange().unwrap();
                }
            });
            let (mut found, mut refused, mut wrong) = (0, 0, Vec::new());
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
            while (found < 100 || refused < 100) && std::time::Instant::now() < deadline {
                match make_beneath(&directory, Path::new("a/b"), 0o777) {
                    Ok(descriptor) if inode(&descriptor) == secret => wrong.push("led outside".to_owned()),
                    Ok(_) => found += 1,
                    Err(error) if matches!(error.raw_os_error(), Some(libc::EXDEV | libc::EAGAIN)) => refused += 1,
                    Err(error) => wrong.push(error.to_string()),
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(wrong.is_empty(), "{wrong:?}");
            assert!(found > 0 && refused > 0, "found {found}, refused {refused}");
        });
    }
}
