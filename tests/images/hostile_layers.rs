//! Layers that want out, and layers that want to hide or exhaust.

use podstead::image::Limits;
use podstead::image::stack::LayerStack;
use podstead::image::tar::{Streamed, TarError};
use podstead::image::unpack::{Meter, UnpackError, Unpacked, mark_opaque, unpack};
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// One header with its content.
fn entry(kind: u8, path: &str, link: &str, content: &[u8]) -> Vec<u8> {
    with_device(kind, path, link, content, (0, 0))
}

fn with_device(kind: u8, path: &str, link: &str, content: &[u8], device: (u32, u32)) -> Vec<u8> {
    let mut header = [0_u8; 512];
    let mut put = |offset: usize, text: &str| header[offset..offset + text.len()].copy_from_slice(text.as_bytes());
    put(0, path);
    put(100, "0000755");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{:011o}", content.len()));
    put(136, "00000000000");
    put(157, link);
    put(257, "ustar");
    put(263, "00");
    put(329, &format!("{:07o}", device.0));
    put(337, &format!("{:07o}", device.1));
    header[156] = kind;
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut bytes = header.to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// PAX records for the entry that follows.
fn pax(records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut content = Vec::new();
    for (key, value) in records {
        let rest = key.len() + value.len() + 3;
        let mut length = rest + 1;
        while length != rest + length.to_string().len() {
            length += 1;
        }
        content.extend_from_slice(format!("{length} {key}=").as_bytes());
        content.extend_from_slice(value);
        content.push(b'\n');
    }
    entry(b'x', "pax", "", &content)
}

fn file(path: &str) -> Vec<u8> {
    entry(b'0', path, "", b"content")
}

fn directory(path: &str) -> Vec<u8> {
    entry(b'5', path, "", b"")
}

/// A directory with a bystander outside of the target.
struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("root")).unwrap();
        fs::create_dir(directory.path().join("outside")).unwrap();
        fs::write(directory.path().join("outside/bystander"), b"untouched").unwrap();
        Self { directory }
    }

    fn root(&self) -> std::path::PathBuf {
        self.directory.path().join("root")
    }

    fn outside(&self) -> String {
        self.directory.path().join("outside").to_str().unwrap().to_owned()
    }

    fn unpack_with(&self, limits: &Limits, entries: &[Vec<u8>]) -> Result<Unpacked, UnpackError> {
        let archive = [entries.concat(), vec![0; 1024]].concat();
        let result = unpack(Streamed(&archive[..]), File::open(self.root()).unwrap().into(), Meter::alone(limits));
        if let Ok(unpacked) = &result {
            mark_opaque(&File::open(self.root()).unwrap().into(), &unpacked.opaque).unwrap();
        }
        // Whatever the layer tried: outside is as it was.
        let names: Vec<_> = fs::read_dir(self.outside()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["bystander"]);
        let bystander = Path::new(&self.outside()).join("bystander");
        assert_eq!(fs::read(&bystander).unwrap(), b"untouched");
        assert_eq!(fs::metadata(&bystander).unwrap().nlink(), 1);
        result
    }

    fn unpack(&self, entries: &[Vec<u8>]) -> Result<Unpacked, UnpackError> {
        self.unpack_with(&Limits::default(), entries)
    }

    fn reason(&self, entries: &[Vec<u8>]) -> String {
        let error = self.unpack(entries).expect_err("a hostile layer is refused");
        let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        format!("{error}{source}")
    }
}

#[test]
fn upward_paths_are_refused_wherever_they_stand() {
    for path in ["../outside/x", "a/../../outside/x", "/../outside/x", "..", "a/.."] {
        assert!(Bench::new().reason(&[file(path)]).contains(".. component"), "{path}");
        assert!(Bench::new().reason(&[file("a"), entry(b'1', "l", path, b"")]).contains(".. component"), "hard link to {path}");
    }
    let long = pax(&[("path", b"../outside/x")]);
    assert!(Bench::new().reason(&[long, file("innocent")]).contains(".. component"));
}

#[test]
fn absolute_paths_land_below_the_root() {
    let bench = Bench::new();
    bench.unpack(&[file("/etc/passwd")]).unwrap();
    assert!(bench.root().join("etc/passwd").is_file());
}

#[test]
fn a_symlink_as_parent_leads_nowhere_but_below_the_root() {
    let bench = Bench::new();
    let reason = bench.reason(&[entry(b'2', "out", &bench.outside(), b""), file("out/x")]);
    assert!(reason.contains("dangling symlink"), "{reason}");
    let bench = Bench::new();
    let reason = bench.reason(&[entry(b'2', "out", "../outside", b""), file("out/bystander")]);
    assert!(reason.contains("dangling symlink"), "{reason}");
    // The same symlinks with something below the root that they fit: they are followed with the root as `/`.
    let bench = Bench::new();
    bench.unpack(&[directory("outside"), entry(b'2', "out", "../../../outside", b""), file("out/bystander")]).unwrap();
    assert_eq!(fs::read(bench.root().join("outside/bystander")).unwrap(), b"content");
}

#[test]
fn a_chain_of_symlinks_and_proc_magic_lead_nowhere() {
    let bench = Bench::new();
    let chain = [entry(b'2', "a", "b", b""), entry(b'2', "b", "..", b""), file("a/outside/x")];
    bench.unpack(&chain).unwrap();
    assert!(bench.root().join("outside/x").is_file());
    let bench = Bench::new();
    bench.reason(&[entry(b'2', "p", "/proc/self/root", b""), file("p/x")]);
    let bench = Bench::new();
    bench.reason(&[entry(b'2', "a", "b", b""), entry(b'2', "b", "a", b""), file("a/x")]);
}

#[test]
fn a_file_written_over_a_symlink_replaces_it() {
    let bench = Bench::new();
    let target = format!("{}/bystander", bench.outside());
    bench.unpack(&[entry(b'2', "link", &target, b""), file("link")]).unwrap();
    assert!(fs::symlink_metadata(bench.root().join("link")).unwrap().is_file());
}

#[test]
fn a_directory_replaced_by_a_symlink_is_not_written_through() {
    let bench = Bench::new();
    let reason = bench.reason(&[directory("d"), file("d/x"), entry(b'2', "d", &bench.outside(), b""), file("d/y")]);
    assert!(reason.contains("dangling symlink"), "{reason}");
    // A directory over a symlink replaces the symlink.
    let bench = Bench::new();
    bench.unpack(&[entry(b'2', "d", &bench.outside(), b""), directory("d"), file("d/x")]).unwrap();
    assert!(bench.root().join("d/x").is_file());
}

#[test]
fn hard_links_reach_only_what_the_layer_has() {
    for target in ["/etc/passwd", "missing", "outside/bystander"] {
        let reason = Bench::new().reason(&[entry(b'1', "link", target, b"")]);
        assert!(reason.contains("that is not in this layer") || reason.contains("No such file"), "{target}: {reason}");
    }
    let bench = Bench::new();
    let through = entry(b'2', "out", &bench.outside(), b"");
    bench.reason(&[through, entry(b'1', "link", "out/bystander", b"")]);
    // A hard link to a symlink is a second name of the symlink, and a write over it replaces that name.
    let bench = Bench::new();
    let target = format!("{}/bystander", bench.outside());
    bench.unpack(&[entry(b'2', "s", &target, b""), entry(b'1', "link", "s", b""), file("link")]).unwrap();
    assert!(fs::symlink_metadata(bench.root().join("link")).unwrap().is_file());
    assert!(Bench::new().reason(&[directory("d"), entry(b'1', "l", "d", b"")]).contains("to a directory"));
}

#[test]
fn whiteouts_of_nothing_and_whiteouts_that_lead_upward_are_refused() {
    for path in [".wh.", ".wh..", ".wh...", "d/.wh...", "d/.wh.x/y"] {
        assert!(Bench::new().reason(&[directory("d"), file(path)]).contains("whiteout without a name"), "{path}");
    }
}

#[test]
fn what_overlayfs_gives_a_meaning_is_refused_or_dropped() {
    assert!(Bench::new().reason(&[entry(b'3', "hidden", "", b"")]).contains("device 0:0"));
    let bench = Bench::new();
    let names: [(&str, &[u8]); 4] = [
        ("SCHILY.xattr.trusted.overlay.opaque", b"y"),
        ("SCHILY.xattr.trusted.overlay.redirect", b"/etc"),
        ("SCHILY.xattr.user.overlay.whiteout", b"y"),
        ("SCHILY.xattr.trusted.other", b"kept"),
    ];
    bench.unpack(&[pax(&names), directory("d")]).unwrap();
    let mut list = [0_u8; 256];
    let length = rustix::fs::listxattr(bench.root().join("d"), &mut list[..]).unwrap();
    assert_eq!(&list[..length], b"trusted.other\0");
}

#[test]
fn whiteouts_hide_what_is_below_and_never_what_the_same_layer_brings() {
    let bench = Bench::new();
    let entries = [
        file("d/.wh.gone"),
        file(".wh.before"),
        directory("before"),
        directory("after"),
        file("after/kept"),
        file(".wh.after"),
        file(".wh.replaced"),
        file("replaced"),
        directory("opaque"),
        file("opaque/.wh..wh..opq"),
        file("opaque/kept"),
        file(".wh..wh..opq"),
    ];
    let unpacked = bench.unpack(&entries).unwrap();
    let opaque = |name: &str| {
        let mut value = [0_u8; 8];
        rustix::fs::getxattr(bench.root().join(name), "trusted.overlay.opaque", &mut value[..])
            .is_ok_and(|length| &value[..length] == b"y")
    };
    let gone = fs::symlink_metadata(bench.root().join("d/gone")).unwrap();
    assert!(gone.file_type().is_char_device() && gone.rdev() == 0);
    assert!(opaque("before") && opaque("after") && opaque("opaque") && !opaque("d"));
    assert!(bench.root().join("after/kept").is_file() && bench.root().join("opaque/kept").is_file());
    assert!(bench.root().join("replaced").is_file());
    assert!(unpacked.opaque_root);
    assert_eq!(unpacked.implicit, [b"d".to_vec()]);
}

#[test]
fn an_entry_that_comes_after_its_content_makes_a_directory_explicit() {
    let bench = Bench::new();
    let unpacked = bench.unpack(&[file("a/b/c"), directory("a")]).unwrap();
    assert_eq!(unpacked.implicit, [b"a/b".to_vec()]);
}

#[test]
fn limits_end_a_layer_that_wants_too_much() {
    let limits = Limits { entries: 3, unpacked_bytes: 20, depth: 4, ..Limits::default() };
    let reason = |entries: &[Vec<u8>]| Bench::new().unpack_with(&limits, entries).expect_err("beyond the limit").to_string();
    assert_eq!(
        reason(&[file("a"), file("b"), file("c")]),
        "image has more than 20 bytes after decompression, the limit of images.limits.unpackedSize"
    );
    let entries = [directory("a"), directory("b"), directory("c"), directory("d")];
    assert_eq!(reason(&entries), "image has more than 3 files and directories, the limit of images.limits.entries");
    assert!(Bench::new().unpack_with(&limits, &[file("a/b/c/d/e")]).is_err());
}

#[test]
fn symlinks_cannot_build_a_tree_deeper_than_the_limit() {
    let limits = Limits { depth: 4, ..Limits::default() };
    let entries = [directory("a/b/c/d"), entry(b'2', "s", "a/b/c/d", b""), directory("s/e/f/g")];
    let error = Bench::new().unpack_with(&limits, &entries).expect_err("too deep");
    assert!(matches!(&error, UnpackError::Io { .. }), "{error:?}");
}

#[test]
fn a_truncated_or_garbled_archive_is_an_error() {
    let bench = Bench::new();
    let whole = file("a");
    for length in [1, 511, 512, 515] {
        let result = unpack(Streamed(&whole[..length]), File::open(bench.root()).unwrap().into(), Meter::alone(&Limits::default()));
        assert!(matches!(result, Err(UnpackError::Tar(TarError::Truncated))), "{length}: {result:?}");
    }
    let mut garbled = whole;
    garbled[3] ^= 1;
    assert!(matches!(bench.unpack(&[garbled]), Err(UnpackError::Tar(TarError::Header(_)))));
    assert!(matches!(bench.unpack(&[entry(b'V', "volume", "", b"")]), Err(UnpackError::Tar(TarError::Kind { .. }))));
}

#[test]
fn a_binary_capability_and_odd_modes_arrive_as_they_are() {
    let bench = Bench::new();
    // Contains a newline, on which naive PAX readers split.
    let capability = [1, 0, 0, 2, 0, 4, 10, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0];
    bench.unpack(&[pax(&[("SCHILY.xattr.security.capability", &capability), ("mtime", b"1234.5")]), file("ping")]).unwrap();
    let mut value = [0_u8; 64];
    let length = rustix::fs::getxattr(bench.root().join("ping"), "security.capability", &mut value[..]).unwrap();
    assert_eq!(&value[..length], capability);
    let metadata = fs::metadata(bench.root().join("ping")).unwrap();
    assert_eq!((metadata.permissions().mode() & 0o7777, metadata.mtime(), metadata.mtime_nsec()), (0o755, 1234, 500_000_000));
}

#[test]
fn bytes_that_are_no_text_are_names_like_any_other() {
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new();
    bench.unpack(&[pax(&[("path", b"d/\xff\xfe")]), file("x")]).unwrap();
    assert!(bench.root().join("d").join(std::ffi::OsStr::from_bytes(b"\xff\xfe")).is_file());
}

#[test]
fn an_opaque_directory_hides_what_lower_layers_have_in_it() {
    let (lower, upper) = (Bench::new(), Bench::new());
    lower.unpack(&[file("etc/passwd"), file("other/passwd")]).unwrap();
    upper.unpack(&[directory("etc"), file("etc/.wh..wh..opq"), file(".wh.other")]).unwrap();
    let stack = LayerStack::new(&[lower.root(), upper.root()]);
    assert_eq!(stack.read(Path::new("/etc/passwd"), 100).unwrap(), None);
    assert_eq!(stack.read(Path::new("/other/passwd"), 100).unwrap(), None);
    let alone = LayerStack::new(&[lower.root()]);
    assert_eq!(alone.read(Path::new("/etc/passwd"), 100).unwrap().as_deref(), Some(&b"content"[..]));
}
