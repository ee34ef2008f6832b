//! `hostPath`: something of the host's, checked before a pod's containers are touched, and again when one that mounts it starts.

use k8s_openapi::api::core::v1::HostPathVolumeSource;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Checks that the path is what the manifest says it is, and makes it where the type says so. Without a type nothing is checked, and
/// what is missing is made as a directory (as the CRI does when it mounts).
pub(super) fn check(source: &HostPathVolumeSource) -> Result<(), String> {
    let path = Path::new(&source.path);
    let kind = source.type_.as_deref().unwrap_or_default();
    let found = match fs::metadata(path) {
        Ok(metadata) => Some(metadata.file_type()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("hostPath {path:?}: {error}")),
    };
    let Some(found) = found else {
        return match kind {
            "" | "DirectoryOrCreate" => make_directory(path),
            "FileOrCreate" => make_file(path),
            _ => Err(format!("hostPath {path:?} does not exist, a {} is wanted", noun(kind))),
        };
    };
    let fits = match kind {
        "" => true,
        "Directory" | "DirectoryOrCreate" => found.is_dir(),
        "File" | "FileOrCreate" => found.is_file(),
        "Socket" => found.is_socket(),
        "CharDevice" => found.is_char_device(),
        "BlockDevice" => found.is_block_device(),
        other => return Err(format!("hostPath type {other:?} is not known")),
    };
    if fits { Ok(()) } else { Err(format!("hostPath {path:?} is a {}, a {} is wanted", described(found), noun(kind))) }
}

fn make_directory(path: &Path) -> Result<(), String> {
    // Mode 0755 whatever the umask: the kubelet's default for hostPath.
    let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
    made.map_err(|error| format!("make hostPath directory {path:?}: {error}"))
}

fn make_file(path: &Path) -> Result<(), String> {
    let made = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o644).open(path);
    made.map(drop).map_err(|error| format!("make hostPath file {path:?}: {error}"))
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

fn described(kind: fs::FileType) -> &'static str {
    if kind.is_dir() {
        "directory"
    } else if kind.is_file() {
        "file"
    } else if kind.is_socket() {
        "socket"
    } else if kind.is_char_device() {
        "character device"
    } else if kind.is_block_device() {
        "block device"
    } else if kind.is_fifo() {
        "named pipe"
    } else {
        "path of another kind"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn outcome(path: &Path, kind: Option<&str>) -> Result<(), String> {
        check(&HostPathVolumeSource { path: path.to_str().unwrap().to_owned(), type_: kind.map(str::to_owned) })
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
        assert_eq!(refused(&file, "Directory"), format!("hostPath {file:?} is a file, a directory is wanted"));
        assert_eq!(refused(root.path(), "File"), format!("hostPath {:?} is a directory, a file is wanted", root.path()));
        assert_eq!(refused(&file, "Socket"), format!("hostPath {file:?} is a file, a socket is wanted"));
        assert_eq!(refused(null, "BlockDevice"), "hostPath \"/dev/null\" is a character device, a block device is wanted");
        assert_eq!(refused(&socket, "CharDevice"), format!("hostPath {socket:?} is a socket, a character device is wanted"));
        let absent = root.path().join("absent");
        assert_eq!(refused(&absent, "Directory"), format!("hostPath {absent:?} does not exist, a directory is wanted"));
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
        assert!(refused.starts_with("make hostPath file"), "{refused}");
    }
}
