//! Everything that can be seen of a tree, to be compared with another one.

use podstead::container::digest::Digest;
use rustix::fs::{getxattr, lgetxattr, llistxattr};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// The visible state of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) kind: &'static str,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) mtime: (i64, i64),
    /// Links, but for directories, whose number depends on the file system.
    pub(crate) links: u64,
    pub(crate) device: u64,
    /// Length of a file, and whether it has holes.
    pub(crate) size: (u64, bool),
    pub(crate) content: Option<Digest>,
    pub(crate) target: OsString,
    pub(crate) xattrs: BTreeMap<OsString, Vec<u8>>,
}

/// All nodes by path, the root as the empty path.
pub(crate) fn tree(root: &Path) -> BTreeMap<OsString, Node> {
    let mut nodes = BTreeMap::new();
    let mut todo = vec![OsString::new()];
    while let Some(path) = todo.pop() {
        let full = if path.is_empty() { root.to_owned() } else { root.join(&path) };
        let node = node(&full);
        if node.kind == "directory" {
            for entry in fs::read_dir(&full).unwrap() {
                todo.push(Path::new(&path).join(entry.unwrap().file_name()).into_os_string());
            }
        }
        nodes.insert(path, node);
    }
    nodes
}

fn node(path: &Path) -> Node {
    let metadata = fs::symlink_metadata(path).unwrap();
    let kind = metadata.file_type();
    let (kind, content) = if kind.is_dir() {
        ("directory", None)
    } else if kind.is_symlink() {
        ("symlink", None)
    } else if kind.is_file() {
        ("file", Some(Digest::of(&fs::read(path).unwrap())))
    } else if kind.is_fifo() {
        ("fifo", None)
    } else if kind.is_char_device() {
        ("character device", None)
    } else if kind.is_block_device() {
        ("block device", None)
    } else {
        ("socket", None)
    };
    let is_file = kind == "file";
    Node {
        kind,
        mode: metadata.mode() & 0o7777,
        owner: (metadata.uid(), metadata.gid()),
        mtime: (metadata.mtime(), metadata.mtime_nsec()),
        links: if kind == "directory" { 0 } else { metadata.nlink() },
        device: metadata.rdev(),
        size: if is_file { (metadata.len(), metadata.blocks() * 512 + 4096 < metadata.len()) } else { (0, false) },
        content,
        target: fs::read_link(path).map(std::path::PathBuf::into_os_string).unwrap_or_default(),
        xattrs: xattrs(path),
    }
}

fn xattrs(path: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let mut names = vec![0_u8; 16 << 10];
    let length = llistxattr(path, &mut names[..]).unwrap();
    let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let value = |name: &[u8]| {
        let mut value = vec![0_u8; 16 << 10];
        let length = lgetxattr(path, name, &mut value[..]).unwrap();
        value[..length].to_vec()
    };
    names.map(|name| (OsString::from_vec(name.to_vec()), value(name))).collect()
}

/// Asserts equality, naming the first differences only.
pub(crate) fn assert_same(what: &str, ours: &BTreeMap<OsString, Node>, theirs: &BTreeMap<OsString, Node>) {
    let mut differences = Vec::new();
    for path in ours.keys().chain(theirs.keys()) {
        if ours.get(path) != theirs.get(path) {
            differences.push(format!("{path:?}\n    ours:   {:?}\n    theirs: {:?}", ours.get(path), theirs.get(path)));
        }
    }
    differences.dedup();
    differences.truncate(10);
    assert!(differences.is_empty(), "{what}:\n{}", differences.join("\n"));
}

/// The value of an attribute, following symlinks.
pub(crate) fn xattr(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = [0_u8; 1024];
    getxattr(path, name.as_bytes(), &mut value[..]).ok().map(|length| value[..length].to_vec())
}

/// A path with bytes that are no text.
pub(crate) fn raw(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}
