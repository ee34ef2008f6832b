//! Hostile streams and trees.

use super::frame::{Entry, FrameReader, FrameWriter, Kind, MAGIC};
use super::{CopyError, Owners, Target, Unpacked, pack, unpack};
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tempfile::TempDir;

fn entry(path: &str, kind: Kind) -> Entry {
    let path = path.split('/').filter(|name| !name.is_empty()).map(|name| name.as_bytes().to_vec()).collect();
    Entry { path, kind, mode: 0o755, uid: 0, gid: 0 }
}

/// A stream of a directory with these entries; files have the content `x`.
fn stream(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = FrameWriter::new(&mut bytes).unwrap();
    for entry in entries {
        out.entry(entry).unwrap();
        if entry.kind == Kind::File {
            out.content(b"x").unwrap();
            out.end_content().unwrap();
        }
    }
    out.finish().unwrap();
    bytes
}

fn local(path: &Path) -> Target {
    Target::Local { path: path.to_owned(), name: "name".into() }
}

fn container(path: &Path) -> Target {
    Target::Container { path: path.to_owned(), name: "name".into(), owners: Owners::OfUser }
}

fn both(path: &Path) -> [Target; 2] {
    [local(path), container(path)]
}

fn message(error: &CopyError) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    format!("{error}{source}")
}

#[test]
fn tree_comes_out_as_it_went_in() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fs::create_dir_all(from.path().join("a/b")).unwrap();
    fs::create_dir(from.path().join("a.b")).unwrap();
    fs::write(from.path().join("a/b/file"), vec![7; 200_000]).unwrap();
    fs::write(from.path().join("a/empty"), "").unwrap();
    fs::set_permissions(from.path().join("a/empty"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(from.path().join("a/b"), fs::Permissions::from_mode(0o555)).unwrap();
    symlink("/etc/passwd", from.path().join("a/link")).unwrap();
    let mut bytes = Vec::new();
    assert_eq!(pack(from.path(), &mut bytes).unwrap(), Vec::<String>::new());
    let unpacked = unpack(&bytes[..], &local(&to.path().join("deep/new"))).unwrap();
    assert_eq!(unpacked, Unpacked { files: 2, links_left_out: 1 });
    assert_eq!(fs::read(to.path().join("deep/new/a/b/file")).unwrap(), vec![7; 200_000]);
    assert!(fs::symlink_metadata(to.path().join("deep/new/a/link")).is_err());
    unpack(&bytes[..], &container(to.path())).unwrap();
    let root = to.path().join("name");
    assert_eq!(fs::read_link(root.join("a/link")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!(fs::metadata(root.join("a/empty")).unwrap().permissions().mode() & 0o7777, 0o640);
    assert_eq!(fs::metadata(root.join("a/b")).unwrap().permissions().mode() & 0o7777, 0o555);
    assert!(root.join("a.b").is_dir());
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let root = TempDir::new().unwrap();
    let target = root.path().join("target");
    fs::create_dir(&target).unwrap();
    for path in ["../out", "a/../../out", "..", ".", "a//b", "/out", "a/", "a\0b"] {
        let mut bytes = stream(&[entry("", Kind::Directory)]);
        bytes.truncate(bytes.len() - 17);
        bytes.push(1);
        bytes.extend_from_slice(&[0; 12]);
        bytes.extend_from_slice(&u16::try_from(path.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(path.as_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&[0; 17]);
        for target in both(&target) {
            let error = message(&unpack(&bytes[..], &target).unwrap_err());
            assert!(error.contains("invalid header: path"), "{path}: {error}");
        }
    }
    assert!(fs::symlink_metadata(root.path().join("out")).is_err());
}

#[test]
fn links_of_the_stream_are_never_followed() {
    let root = TempDir::new().unwrap();
    let outside = root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let link = Kind::Symlink(outside.to_str().unwrap().as_bytes().to_vec());
    let bytes = stream(&[entry("", Kind::Directory), entry("way", link.clone()), entry("way/file", Kind::File)]);
    for target in both(&root.path().join("target")) {
        let error = message(&unpack(&bytes[..], &target).unwrap_err());
        assert!(error.contains("its directory is not in the stream before it"), "{error}");
    }
    // A directory in the place of the link, and a file in the place of one to a file.
    let file = Kind::Symlink(b"outside/file".to_vec());
    let entries = [
        entry("", Kind::Directory),
        entry("way", link),
        entry("way", Kind::Directory),
        entry("way/file", Kind::File),
        entry("other", file),
        entry("other", Kind::File),
    ];
    unpack(&stream(&entries)[..], &container(&root.path().join("made"))).unwrap();
    assert!(root.path().join("made/way/file").is_file() && root.path().join("made/other").is_file());
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn links_that_are_here_are_left_alone() {
    let root = TempDir::new().unwrap();
    let (target, victim) = (root.path().join("target"), root.path().join("victim"));
    fs::create_dir_all(target.join("d")).unwrap();
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("file"), "safe").unwrap();
    symlink(victim.join("file"), target.join("file")).unwrap();
    symlink(&victim, target.join("way")).unwrap();
    for below in ["file", "way/file"] {
        let mut entries = vec![entry("", Kind::Directory)];
        entries.extend(below.contains('/').then(|| entry("way", Kind::Directory)));
        entries.push(entry(below, Kind::File));
        let error = message(&unpack(&stream(&entries)[..], &local(&target)).unwrap_err());
        assert!(error.contains("symbolic links") || error.contains("Not a directory"), "{below}: {error}");
    }
    assert_eq!(fs::read_to_string(victim.join("file")).unwrap(), "safe");
    // In a container they are replaced, as tar does.
    let entries =
        [entry("", Kind::Directory), entry("file", Kind::File), entry("way", Kind::Directory), entry("way/file", Kind::File)];
    fs::rename(&target, root.path().join("name")).unwrap();
    unpack(&stream(&entries)[..], &container(root.path())).unwrap();
    assert_eq!(fs::read_to_string(root.path().join("name/way/file")).unwrap(), "x");
    assert_eq!(fs::read_to_string(victim.join("file")).unwrap(), "safe");
}

#[test]
fn streams_without_order_or_end_are_refused() {
    let root = TempDir::new().unwrap();
    let path = root.path().join("t");
    let directory = || entry("", Kind::Directory);
    for (entries, reason) in [
        (vec![entry("a", Kind::File)], "begins without its root"),
        (vec![entry("", Kind::Symlink(b"x".to_vec()))], "the root of the stream is a link"),
        (vec![directory(), directory()], "second root"),
        (vec![directory(), entry("a/b", Kind::File)], "its directory is not in the stream"),
        (vec![directory(), entry("a", Kind::Directory), entry("b", Kind::File), entry("a/c", Kind::File)], "its directory is not"),
    ] {
        let error = message(&unpack(&stream(&entries)[..], &local(&path)).unwrap_err());
        assert!(error.contains(reason), "{error}");
    }
    let path = root.path().join("whole");
    let whole = stream(&[directory(), entry("a", Kind::File)]);
    for length in 0..whole.len() {
        let error = message(&unpack(&whole[..length], &local(&path)).unwrap_err());
        assert!(error.contains("the stream ended early"), "{length}: {error}");
    }
    assert!(message(&unpack(&[b'x'; 64][..], &local(&path)).unwrap_err()).contains("no stream of files of this version"));
}

#[test]
fn pipes_are_left_out_and_not_opened() {
    let root = TempDir::new().unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, root.path().join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut bytes = Vec::new();
    assert_eq!(pack(root.path(), &mut bytes).unwrap(), ["pipe: neither file, directory nor link"]);
    assert!(matches!(pack(&root.path().join("pipe"), &mut Vec::new()), Err(CopyError::Refused { .. })));
}

#[test]
fn deep_trees_are_refused() {
    let root = TempDir::new().unwrap();
    let mut path = root.path().to_owned();
    for _ in 0..257 {
        path.push("d");
        fs::create_dir(&path).unwrap();
    }
    let error = message(&pack(root.path(), &mut Vec::new()).unwrap_err());
    assert!(error.contains("too many directories inside each other"), "{error}");
}

proptest! {
    #[test]
    fn no_stream_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..40) {
        let root = TempDir::new().unwrap();
        let mut hostile = stream(&[entry("", Kind::Directory), entry("a", Kind::Directory)]);
        hostile.truncate(hostile.len().saturating_sub(cut));
        hostile.extend_from_slice(&bytes);
        // Either is an answer.
        unpack(&hostile[..], &local(&root.path().join("t"))).ok();
        let whole = [MAGIC.as_slice(), &bytes].concat();
        let mut reader = FrameReader::new(&whole[..]).unwrap();
        while let Ok(Some(_)) = reader.next_entry() {}
    }
}
