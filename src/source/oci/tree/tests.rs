//! Archives made on the spot, honest and hostile ones.

use super::*;
use proptest::prelude::*;
use std::io::Write;

fn header(kind: u8, path: &[u8], link: &str, size: usize) -> Vec<u8> {
    let mut header = [0_u8; 512];
    let mut put = |offset: usize, text: &[u8]| header[offset..offset + text.len()].copy_from_slice(text);
    put(0, path);
    put(100, b"0000644");
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{size:011o}").as_bytes());
    put(136, b"00000000000");
    put(157, link.as_bytes());
    put(257, b"ustar");
    put(263, b"00");
    header[156] = kind;
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header.to_vec()
}

fn entry(kind: u8, path: &str, link: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = header(kind, path.as_bytes(), link, content.len());
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(path: &str, content: &str) -> Vec<u8> {
    entry(b'0', path, "", content.as_bytes())
}

fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = entries.concat();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn seen(found: &BTreeMap<String, FileContent>) -> Vec<(String, String)> {
    let shown = |content: &FileContent| match content {
        Ok(bytes) => String::from_utf8_lossy(&bytes.read()).into_owned(),
        Err(reason) => format!("! {reason}"),
    };
    found.iter().map(|(name, content)| (name.clone(), shown(content))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
}

fn at(archive: &[u8], path: &str) -> Result<Vec<(String, String)>, String> {
    match read(archive, path, &ReadLimits::default()) {
        Ok(found) => Ok(seen(&found.files)),
        Err(error) => Err(podstead_telemetry::error_chain(&error).to_string()),
    }
}

#[test]
fn manifests_are_read_from_every_directory() {
    let bytes = archive(&[
        entry(b'5', "./", "", b""),
        file("./web.yaml", "a"),
        file("apps/db.yml", "b"),
        file("apps/README.md", "c"),
        file(".github/x.yaml", "d"),
        file("apps/lfs.json", "version https://git-lfs.github.com/spec/v1"),
        entry(b'5', "empty/", "", b""),
        entry(b'2', "link.yaml", "web.yaml", b""),
        entry(b'2', "also", "apps", b""),
        entry(b'2', "text", "apps/README.md", b""),
        entry(b'1', "hard.yaml", "web.yaml", b""),
    ]);
    let whole = pairs(&[
        ("also", &format!("! {SYMLINK}")),
        ("apps/db.yml", "b"),
        ("apps/lfs.json", &format!("! {IS_LFS}")),
        ("hard.yaml", &format!("! {HARD_LINK}")),
        ("link.yaml", &format!("! {SYMLINK}")),
        ("web.yaml", "a"),
    ]);
    for layer in [bytes.clone(), gzip(&bytes), zstd::encode_all(&bytes[..], 3).unwrap()] {
        assert_eq!(at(&layer, "").unwrap(), whole);
    }
    assert_eq!(at(&bytes, "apps").unwrap().len(), 2);
    assert_eq!(at(&bytes, "empty").unwrap(), []);
    assert_eq!(at(&bytes, "apps/README.md").unwrap(), pairs(&[("README.md", "c")]));
    assert_eq!(at(&bytes, ".github").unwrap(), pairs(&[("x.yaml", "d")]));
    for (path, reason) in [
        ("app", "the artifact has no \"app\" (path)"),
        ("web.yaml/x", "\"web.yaml\" of the artifact is not a directory (path)"),
        ("also/db.yml", "\"also\" of the artifact is a symlink; set path to its target (path)"),
        ("link.yaml", "\"link.yaml\" of the artifact is a symlink; set path to its target (path)"),
    ] {
        assert_eq!(at(&bytes, path).unwrap_err(), reason);
    }
}

#[test]
fn other_files_are_read_beside_kustomizations() {
    let others = [file("a/app.conf", "x"), file("a/big", &"y".repeat(100)), entry(b'2', "a/link", "app.conf", b"")];
    let limits = ReadLimits { max_file_bytes: 50, ..ReadLimits::default() };
    let without = archive(&others);
    assert!(read(&without, "", &limits).unwrap().beside.is_empty());
    let with = archive(&[&others[..], &[file("a/kustomization.yaml", "resources: []")]].concat());
    let found = read(&with, "a", &limits).unwrap();
    assert_eq!(seen(&found.files), pairs(&[("kustomization.yaml", "resources: []")]));
    let big = "! has 100 bytes; a file may have at most 50";
    assert_eq!(seen(&found.beside), pairs(&[("app.conf", "x"), ("big", big), ("link", &format!("! {SYMLINK}"))]));
}

#[test]
fn directories_that_an_overlay_refers_to_are_read() {
    let bytes = archive(&[
        file("overlays/dev/kustomization.yaml", "resources: [../../base]"),
        file("base/kustomization.yaml", "resources: [web.yaml, ../more]"),
        file("base/app.conf", "x"),
        entry(b'2', "base/link.yaml", "app.conf", b""),
        file("more/kustomization.yaml", "resources: []"),
        file("other/web.yaml", "y"),
    ]);
    let found = read(&bytes, "overlays/dev", &ReadLimits::default()).unwrap();
    assert_eq!(found.around.path, "overlays/dev");
    let link = format!("! {SYMLINK}");
    let expected = [
        ("base/app.conf", "x"),
        ("base/kustomization.yaml", "resources: [web.yaml, ../more]"),
        ("base/link.yaml", &link),
        ("more/kustomization.yaml", "resources: []"),
    ];
    assert_eq!(seen(&found.around.files), pairs(&expected));
    let many: Vec<String> = (0..=DIRECTORIES_MAX).map(|number| format!("../{number}")).collect();
    let bytes = archive(&[file("dev/kustomization.yaml", &format!("resources: [{}]", many.join(", ")))]);
    let error = read(&bytes, "dev", &ReadLimits::default()).unwrap_err().to_string();
    assert!(error.contains("more than 100 directories outside of the path"), "{error}");
}

#[test]
fn hostile_entries_refuse_the_artifact() {
    let good = file("web.yaml", "a");
    for (bad, reason) in [
        (file("../evil.yaml", "x"), "entry \"../evil.yaml\" of the artifact leads out of the artifact"),
        (file("a/../../b.yaml", "x"), "leads out of the artifact"),
        (file("/etc/passwd", "x"), "has an absolute path"),
        (entry(b'3', "null", "", b""), "is a device"),
        (entry(b'4', "disk", "", b""), "is a device"),
        (entry(b'6', "pipe.yaml", "", b""), "is a named pipe"),
        (file("web.yaml", "b"), "entry \"web.yaml\" of the artifact is there twice"),
        (file("./web.yaml", "b"), "is there twice"),
        (file("web.yaml/x", "b"), "lies below something that is not a directory"),
        (entry(b'0', "./", "", b""), "entry \"./\""),
        ([header(b'0', b"a\xff.yaml", "", 0)].concat(), "has a name that is not UTF-8"),
        (file(&"d/".repeat(45), "x"), ""),
    ] {
        let found = at(&archive(&[good.clone(), bad]), "");
        assert!(found.as_ref().err().is_none_or(|told| told.contains(reason)), "{reason}: {found:?}");
        assert!(found.is_err() || reason.is_empty() || reason.starts_with("entry \"./\""), "{reason}: {found:?}");
    }
}

#[test]
fn limits_end_the_reading() {
    let limits = ReadLimits { max_file_bytes: 10, max_total_bytes: 15, max_files: 2, max_names: 4 };
    let told = |entries: &[Vec<u8>]| match read(&archive(entries), "", &limits) {
        Ok(found) => format!("{:?}", seen(&found.files)),
        Err(error) => error.to_string(),
    };
    assert!(told(&[file("a.yaml", &"x".repeat(11))]).contains("has 11 bytes; a manifest may have at most 10"));
    let [one, two, three] = ["a.yaml", "b.yaml", "c.yaml"].map(|name| file(name, "0123456789"));
    assert_eq!(told(&[one.clone(), two]), "the artifact has more than 15 bytes of manifests");
    let small = ["a.yaml", "b.yaml", "c.yaml"].map(|name| file(name, "1"));
    assert_eq!(told(&small), "the artifact has more than 2 manifests");
    assert_eq!(told(&[file("1/2/3/4/a", ""), three]), "the artifact has more than 4 files and directories");
    let deep = file(&format!("{}a.yaml", "d/".repeat(46)), "");
    assert!(read(&archive(&[deep]), "", &ReadLimits::default()).is_ok());
    let long = "d/".repeat(65);
    let record = format!("{} path={long}a\n", long.len() + 11);
    let pax = [entry(b'x', "pax", "", record.as_bytes()), file("x", "")].concat();
    assert!(at(&archive(&[pax]), "").unwrap_err().contains("more than 64 levels of directories"));
}

#[test]
fn bombs_end_at_the_limit() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let size = usize::try_from(UNPACKED_MAX).unwrap() + 1024;
    encoder.write_all(&header(b'0', b"zeros", "", size)).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..size / zeros.len() + 1 {
        encoder.write_all(&zeros).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    assert!(at(&bomb, "").unwrap_err().contains("more than 268435456 bytes after decompression"), "{:?}", at(&bomb, ""));
}

#[test]
fn damaged_archives_are_refused() {
    let bytes = gzip(&archive(&[file("web.yaml", &"kind: Pod\n".repeat(200)), file("b.yaml", "x")]));
    for end in 1..bytes.len() {
        assert!(at(&bytes[..end], "").is_err(), "cut at {end}");
    }
    assert!(at(b"", "").unwrap_err().contains("archive of the artifact is empty"));
    assert!(at(&archive(&[]), "").unwrap_err().contains("archive of the artifact is empty"));
    assert!(at(b"apiVersion: v1\nkind: Pod\n", "").is_err(), "a manifest is no archive");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000), path in "[a-z/.]{0,8}") {
        let _either = read(&bytes, &path, &ReadLimits::default());
        let _either = read(&[header(b'0', b"a.yaml", "", 300), bytes].concat(), &path, &ReadLimits::default());
    }
}
