//! `hostPath`: something of the host's, checked before a pod's containers are touched, and again when one that mounts it starts.

use k8s_openapi::api::core::v1::HostPathVolumeSource;
use podstead_container::PinnedSource;
use podstead_settings::HostPathBounds;
use podstead_sys::beneath::{make_beneath, open_beneath};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path};

/// Mode of created directories, regardless of the umask: the kubelet's default for hostPath.
const DIRECTORY: u32 = 0o755;

/// Checks that the path has the type in the manifest, and creates it where the type requires that. Without a type nothing is checked, and
/// what is missing is made as a directory (as the CRI does when it mounts).
///
/// Returns what was found, held by a descriptor. With bounds no link leads out of them, also while others rename what the path goes through.
pub(super) fn open(source: &HostPathVolumeSource, bounds: Option<&HostPathBounds>) -> Result<OwnedFd, String> {
    let path = Path::new(&source.path);
    let kind = source.type_.as_deref().unwrap_or_default();
    let found = match find(path, bounds) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match kind {
                "" | "DirectoryOrCreate" => make_directory(path, bounds)?,
                "FileOrCreate" => make_file(path, bounds)?,
                _ => return Err(format!("hostPath {path:?} does not exist, expected a {}", noun(kind))),
            }
            find(path, bounds)
        }
        other => other,
    };
    let found = found.map_err(|error| explain(path, bounds, &error))?;
    let mode = fstat(&found).map_err(|error| format!("hostPath {path:?}: {error}"))?.st_mode;
    check(path, kind, FileType::from_raw_mode(mode))?;
    Ok(found)
}

/// Identity of a path that the mount must find again.
pub(super) fn pinned(bounds: &HostPathBounds, found: &OwnedFd) -> io::Result<PinnedSource> {
    let facts = fstat(found)?;
    Ok(PinnedSource { beneath: bounds.prefix.clone(), device: facts.st_dev, inode: facts.st_ino })
}

fn check(path: &Path, kind: &str, found: FileType) -> Result<(), String> {
    let fits = match kind {
        "" => true,
        "Directory" | "DirectoryOrCreate" => found.is_dir(),
        "File" | "FileOrCreate" => found.is_file(),
        "Socket" => found.is_socket(),
        "CharDevice" => found.is_char_device(),
        "BlockDevice" => found.is_block_device(),
        other => return Err(format!("hostPath type {other:?} is unknown")),
    };
    if fits { Ok(()) } else { Err(format!("hostPath {path:?} is a {}, expected a {}", described(found), noun(kind))) }
}

/// The part of the path that others may change.
fn inner<'path>(path: &'path Path, bounds: &HostPathBounds) -> io::Result<Option<&'path Path>> {
    let inner = path.strip_prefix(&bounds.prefix).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    Ok(Some(inner).filter(|inner| inner.components().next().is_some()))
}

fn find(path: &Path, bounds: Option<&HostPathBounds>) -> io::Result<OwnedFd> {
    let plain = |path: &Path| openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(io::Error::from);
    let Some(bounds) = bounds else { return plain(path) };
    let prefix = plain(&bounds.prefix)?;
    inner(path, bounds)?.map_or(Ok(prefix), |inner| open_beneath(plain(&bounds.prefix)?, inner))
}

fn make_directory(path: &Path, bounds: Option<&HostPathBounds>) -> Result<(), String> {
    let make = |path: &Path| fs::DirBuilder::new().recursive(true).mode(DIRECTORY).create(path);
    let made = match bounds {
        None => make(path),
        // The prefix is the operator's, and so is what leads to it.
        Some(bounds) => make(&bounds.prefix).and_then(|()| match inner(path, bounds)? {
            None => Ok(()),
            Some(inner) => make_beneath(find(&bounds.prefix, None)?, inner, DIRECTORY).map(drop),
        }),
    };
    made.map_err(|error| format!("create hostPath directory {path:?}: {}", reason(bounds, &error)))
}

fn make_file(path: &Path, bounds: Option<&HostPathBounds>) -> Result<(), String> {
    let by_path = || fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o644).open(path).map(drop);
    let made = match bounds.map(|bounds| inner(path, bounds).map(|inner| (bounds, inner))) {
        None | Some(Ok((_, None))) => by_path(),
        Some(Ok((bounds, Some(inner)))) => make_file_beneath(bounds, inner),
        Some(Err(error)) => Err(error),
    };
    made.map_err(|error| format!("create hostPath file {path:?}: {}", reason(bounds, &error)))
}

fn make_file_beneath(bounds: &HostPathBounds, inner: &Path) -> io::Result<()> {
    let prefix = find(&bounds.prefix, None)?;
    let Some(Component::Normal(name)) = inner.components().next_back() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let parent = match inner.parent().filter(|parent| parent.components().next().is_some()) {
        None => prefix,
        Some(parent) => open_beneath(prefix, parent)?,
    };
    // A link that leads nowhere is not followed, and a file that was made meanwhile is as good.
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(parent, name, flags, Mode::from_raw_mode(0o644)) {
        Ok(_) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn explain(path: &Path, bounds: Option<&HostPathBounds>, error: &io::Error) -> String {
    format!("hostPath {path:?}: {}", reason(bounds, error))
}

fn reason(bounds: Option<&HostPathBounds>, error: &io::Error) -> String {
    match (bounds, error.raw_os_error()) {
        (Some(bounds), Some(nix::libc::EXDEV)) => {
            let prefix = bounds.prefix.display();
            format!(
                "a symbolic link points outside {prefix}, the path that the source may mount (absolute links always point outside)"
            )
        }
        (Some(_), Some(nix::libc::ENOENT | nix::libc::EEXIST)) => "a symbolic link is dangling or keeps changing".to_owned(),
        _ => error.to_string(),
    }
}

fn noun(kind: &str) -> &'static str {
    match kind {
        "Directory" | "DirectoryOrCreate" => "directory",
        "File" | "FileOrCreate" => "file",
        "Socket" => "socket",
        "CharDevice" => "character device",
        "BlockDevice" => "block device",
        _ => "path",
    }
}

fn described(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "directory",
        FileType::RegularFile => "file",
        FileType::Socket => "socket",
        FileType::CharacterDevice => "character device",
        FileType::BlockDevice => "block device",
        FileType::Fifo => "named pipe",
        FileType::Symlink | FileType::Unknown => "path of unknown type",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn outcome(path: &Path, kind: Option<&str>) -> Result<(), String> {
        bounded(path, kind, None)
    }

    fn bounded(path: &Path, kind: Option<&str>, prefix: Option<&Path>) -> Result<(), String> {
        let bounds = prefix.map(|prefix| HostPathBounds { prefix: prefix.to_owned(), read_only: false });
        let source = HostPathVolumeSource { path: path.to_str().unwrap().to_owned(), type_: kind.map(str::to_owned) };
        open(&source, bounds.as_ref()).map(drop)
    }

    #[test]
    fn every_type_accepts_its_kind_and_says_what_it_found_otherwise() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let socket = root.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        let null = Path::new("/dev/null");
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for (path, kind) in [
            (root.path(), "Directory"),
            (root.path(), "DirectoryOrCreate"),
            (&file, "File"),
            (&file, "FileOrCreate"),
            (&link, "File"),
            (&socket, "Socket"),
            (null, "CharDevice"),
            (null, ""),
        ] {
            assert_eq!(outcome(path, Some(kind)), Ok(()), "{path:?} {kind}");
        }
        let refused = |path: &Path, kind| outcome(path, Some(kind)).unwrap_err();
        assert_eq!(refused(&file, "Directory"), format!("hostPath {file:?} is a file, expected a directory"));
        assert_eq!(refused(root.path(), "File"), format!("hostPath {:?} is a directory, expected a file", root.path()));
        assert_eq!(refused(&file, "Socket"), format!("hostPath {file:?} is a file, expected a socket"));
        assert_eq!(refused(null, "BlockDevice"), "hostPath \"/dev/null\" is a character device, expected a block device");
        assert_eq!(refused(&socket, "CharDevice"), format!("hostPath {socket:?} is a socket, expected a character device"));
        let absent = root.path().join("absent");
        assert_eq!(refused(&absent, "Directory"), format!("hostPath {absent:?} does not exist, expected a directory"));
        assert!(!absent.try_exists().unwrap());
    }

    #[test]
    fn what_is_missing_is_made_only_where_the_type_says_so() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        outcome(&path("a/b"), Some("DirectoryOrCreate")).unwrap();
        assert!(path("a/b").is_dir());
        outcome(&path("c/d"), None).unwrap();
        assert!(path("c/d").is_dir());
        outcome(&path("file"), Some("FileOrCreate")).unwrap();
        assert!(path("file").is_file());
        fs::write(path("file"), "kept").unwrap();
        outcome(&path("file"), Some("FileOrCreate")).unwrap();
        assert_eq!(fs::read(path("file")).unwrap(), b"kept");
        let refused = outcome(&path("no/file"), Some("FileOrCreate")).unwrap_err();
        assert!(refused.starts_with("create hostPath file"), "{refused}");
    }

    #[test]
    fn bounds_are_not_left_through_links() {
        let root = tempfile::tempdir().unwrap();
        let (prefix, outside) = (root.path().join("allowed"), root.path().join("outside"));
        fs::create_dir_all(prefix.join("real/deep")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "").unwrap();
        for (name, target) in [
            ("inside", Path::new("real")),
            ("up", Path::new("../outside")),
            ("absolute", &outside),
            ("magic", Path::new("/proc/self/root")),
            ("dangling", Path::new("../outside/new")),
        ] {
            std::os::unix::fs::symlink(target, prefix.join(name)).unwrap();
        }
        let open = |path: &str, kind: &str| bounded(&prefix.join(path), Some(kind), Some(&prefix));
        for (path, kind) in [("", "Directory"), ("real/deep", "Directory"), ("inside/deep", "Directory"), ("inside/new", "")] {
            assert_eq!(open(path, kind), Ok(()), "{path} {kind}");
        }
        assert_eq!(open("inside/file", "FileOrCreate"), Ok(()));
        assert!(prefix.join("real/new").is_dir() && prefix.join("real/file").is_file());
        for kind in ["", "Directory", "DirectoryOrCreate", "File", "FileOrCreate"] {
            for path in ["up", "up/file", "absolute", "absolute/new", "magic", "magic/etc", "dangling", "up/made/deep"] {
                let refused = open(path, kind).unwrap_err();
                assert!(
                    ["a symbolic link points outside", "a symbolic link is dangling"].iter().any(|words| refused.contains(words)),
                    "{path} {kind}: {refused}"
                );
            }
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "nothing was made outside");
    }

    #[test]
    fn missing_prefix_is_made_where_the_type_says_so() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        bounded(&at("a/b/c"), None, Some(&at("a/b"))).unwrap();
        assert!(at("a/b/c").is_dir());
        bounded(&at("file"), Some("FileOrCreate"), Some(&at("file"))).unwrap();
        assert!(at("file").is_file());
        let refused = bounded(&at("none/x"), Some("Directory"), Some(&at("none"))).unwrap_err();
        assert!(refused.contains("does not exist"), "{refused}");
    }
}
