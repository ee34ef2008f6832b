//! Layers with everything that a file system can hold, compared with what other tools make of them.

use crate::support::{TestStore, run};
use crate::tree::{assert_same, raw, tree, xattr};
use podstead::image::Limits;
use podstead::image::tar::Streamed;
use podstead::image::unpack::{Meter, unpack};
use podstead::{
    pod::containers::PullPolicy,
    runtime::{ImageService, PullSecrets},
};
use rustix::fs::{CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Has bytes of 10, on which naive readers of PAX records split.
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 4, 10, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0];

/// Makes a tree with everything.
fn torture(root: &Path) {
    let at = |name: &str| root.join(name);
    fs::create_dir_all(at("usr/bin")).unwrap();
    fs::write(at("usr/bin/tool"), vec![7; 3_000_000]).unwrap();
    for link in ["usr/bin/alias", "usr/alias", "alias"] {
        fs::hard_link(at("usr/bin/tool"), at(link)).unwrap();
    }
    fs::write(at("empty"), "").unwrap();
    for (name, mode) in [("setuid", 0o4755), ("setgid", 0o2750), ("sticky", 0o1644), ("nothing", 0o000), ("all", 0o7777)] {
        fs::write(at(name), name).unwrap();
        chmod(&at(name), mode);
    }
    for (name, mode) in [("tmp", 0o1777), ("shared", 0o2775), ("locked", 0o555), ("closed", 0o000)] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("inside"), name).unwrap();
        chmod(&at(name), mode);
    }
    // A setgid directory gives its group to what is made in it: not to what comes from a layer.
    fs::create_dir(at("group")).unwrap();
    rustix::fs::chownat(CWD, at("group"), Some(Uid::from_raw(0)), Some(Gid::from_raw(50)), rustix::fs::AtFlags::empty()).unwrap();
    chmod(&at("group"), 0o2775);
    fs::write(at("group/other"), "of root").unwrap();
    for (name, uid, gid) in [("owned", 1000, 100), ("big-id", 3_000_000, 4_000_000_000)] {
        fs::write(at(name), name).unwrap();
        chown(&at(name), uid, gid);
    }
    chmod(&at("owned"), 0o6755);
    symlink("usr/bin/tool", at("relative")).unwrap();
    symlink("/nowhere/at/all", at("dangling")).unwrap();
    symlink("t".repeat(900), at("long-target")).unwrap();
    chown(&at("dangling"), 12, 34);
    for (name, kind, device) in [
        ("fifo", FileType::Fifo, 0),
        ("null", FileType::CharacterDevice, rustix::fs::makedev(1, 3)),
        ("disk", FileType::BlockDevice, rustix::fs::makedev(259, 70_000)),
    ] {
        rustix::fs::mknodat(CWD, at(name), kind, Mode::from_raw_mode(0o640), device).unwrap();
        chmod(&at(name), 0o640);
    }
    let sparse = File::create(at("sparse")).unwrap();
    for offset in [0, 1 << 20, 9 << 20, 10 << 20, 33 << 20] {
        sparse.write_at(b"island", offset).unwrap();
    }
    sparse.set_len(64 << 20).unwrap();
    File::create(at("hole")).unwrap().set_len(10 << 20).unwrap();
    let long = at(&"n".repeat(255));
    fs::write(&long, "long name").unwrap();
    let deep = root.join("d".repeat(200)).join("e".repeat(200)).join("f".repeat(200));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("g".repeat(120)), "deep").unwrap();
    for name in
        [&b"not \xff utf-8"[..], b"new\nline", b" blanks ", b"-dash", b"quote\"'\\", b"ctrl\x01\x7f", "ünïcödé".as_bytes(), b".wh"]
    {
        fs::write(root.join(raw(name)), name).unwrap();
    }
    let set = |path: &str, name: &str, value: &[u8]| rustix::fs::lsetxattr(at(path), name, value, XattrFlags::empty()).unwrap();
    set("usr/bin/tool", "security.capability", &CAPABILITY);
    set("empty", "user.text", b"value");
    set("empty", "user.binary", &(0..=255).collect::<Vec<u8>>());
    set("tmp", "user.on.directory", b"here");
    set("usr", "trusted.custom", b"kept");
    for (name, seconds, nanoseconds) in [
        ("relative", 1_234_567_890, 123_456_789),
        ("empty", 0, 1),
        ("fifo", 4_102_444_800, 999_999_999),
        ("usr/bin", 86_400, 5),
        ("usr", 1, 0),
        ("tmp", -1, 500_000_000),
    ] {
        let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, at(name), &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
}

fn chmod(path: &Path, mode: u32) {
    rustix::fs::chmod(path, Mode::from_raw_mode(mode)).unwrap();
}

fn chown(path: &Path, uid: u32, gid: u32) {
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::chownat(CWD, path, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)), flags).unwrap();
}

fn unpacked(archive: &Path, target: &Path) {
    fs::create_dir(target).unwrap();
    let archive = Streamed(File::open(archive).unwrap());
    let done = unpack(archive, File::open(target).unwrap().into(), Meter::alone(&Limits::default())).unwrap();
    assert_eq!((done.lost_xattrs, done.implicit.len(), done.opaque_root), (0, 0, false));
}

#[test]
fn a_layer_unpacks_to_what_gnu_tar_makes_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("source")).unwrap();
    torture(&at("source"));
    // Readers written in Go lose it: to them an empty PAX record takes back an earlier one.
    rustix::fs::lsetxattr(at("source/empty"), "user.empty", b"", XattrFlags::empty()).unwrap();
    let tar = |options: &[&str], archive: &str| {
        run(Command::new("tar").args(options).arg("-C").arg(at("source")).arg("-cf").arg(at(archive)).arg("."))
    };
    let xattrs = ["--xattrs", "--xattrs-include=*"];
    tar(&[&["--format=posix", "--sparse", "--sparse-version=1.0"][..], &xattrs].concat(), "pax-1.0.tar");
    tar(&[&["--format=posix", "--sparse", "--sparse-version=0.1"][..], &xattrs].concat(), "pax-0.1.tar");
    tar(&[&["--format=posix", "--sparse", "--sparse-version=0.0"][..], &xattrs].concat(), "pax-0.0.tar");
    tar(&[&["--format=posix"][..], &xattrs].concat(), "pax.tar");
    tar(&["--format=gnu", "--sparse"], "gnu-sparse.tar");
    tar(&["--format=gnu"], "gnu.tar");
    for name in ["pax-1.0.tar", "pax-0.1.tar", "pax-0.0.tar", "pax.tar", "gnu-sparse.tar", "gnu.tar"] {
        let (ours, theirs) = (at(&format!("ours-{name}")), at(&format!("theirs-{name}")));
        unpacked(&at(name), &ours);
        fs::create_dir(&theirs).unwrap();
        run(Command::new("tar")
            .args(["--numeric-owner", "--same-owner", "-p"])
            .args(xattrs)
            .arg("-C")
            .arg(&theirs)
            .arg("-xf")
            .arg(at(name)));
        assert_same(name, &tree(&ours), &tree(&theirs));
        if name == "pax-1.0.tar" {
            assert_same("the source", &tree(&ours), &tree(&at("source")));
            assert_eq!(xattr(&ours.join("usr/bin/tool"), "security.capability").as_deref(), Some(&CAPABILITY[..]));
        }
    }
}

#[test]
fn old_and_foreign_archives_unpack_as_gnu_tar_does() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("source/a/b")).unwrap();
    fs::write(at("source/a/b/file"), "content").unwrap();
    fs::hard_link(at("source/a/b/file"), at("source/link")).unwrap();
    symlink("a", at("source/symlink")).unwrap();
    for format in ["v7", "oldgnu", "ustar"] {
        let (archive, ours, theirs) =
            (at(&format!("{format}.tar")), at(&format!("ours-{format}")), at(&format!("theirs-{format}")));
        run(Command::new("tar").arg(format!("--format={format}")).arg("-C").arg(at("source")).arg("-cf").arg(&archive).arg("."));
        unpacked(&archive, &ours);
        fs::create_dir(&theirs).unwrap();
        run(Command::new("tar").args(["--numeric-owner", "-p", "-C"]).arg(&theirs).arg("-xf").arg(&archive));
        assert_same(format, &tree(&ours), &tree(&theirs));
    }
}

/// Three layers: a base, one that removes, replaces and hides, and one without parents.
fn layered(test: &TestStore) -> PathBuf {
    let base = test.path("base");
    fs::create_dir(&base).unwrap();
    torture(&base);
    for path in ["gone/deep/file", "hidden/a", "hidden/b/c", "file-to-directory", "kept/a/b/file", "kept/a/c"] {
        fs::create_dir_all(base.join(path).parent().unwrap()).unwrap();
        fs::write(base.join(path), "base").unwrap();
    }
    fs::create_dir(base.join("directory-to-file")).unwrap();
    fs::write(base.join("directory-to-file/x"), "base").unwrap();
    fs::create_dir(base.join("directory-to-link")).unwrap();
    chmod(&base.join("kept/a"), 0o2711);
    chown(&base.join("kept/a/b"), 5, 6);
    let middle = test.path("middle");
    fs::create_dir_all(middle.join("hidden")).unwrap();
    fs::write(middle.join("hidden/new"), "middle").unwrap();
    for whiteout in [".wh.gone", ".wh.alias", ".wh.fifo", "hidden/.wh..wh..opq"] {
        fs::write(middle.join(whiteout), "").unwrap();
    }
    fs::create_dir_all(middle.join("file-to-directory/now")).unwrap();
    fs::write(middle.join("directory-to-file"), "middle").unwrap();
    symlink("kept", middle.join("directory-to-link")).unwrap();
    fs::create_dir(middle.join("added")).unwrap();
    fs::write(middle.join("added/later-removed"), "middle").unwrap();
    let top = test.path("top");
    fs::create_dir_all(top.join("added")).unwrap();
    fs::write(top.join("added/.wh.later-removed"), "").unwrap();
    fs::create_dir(top.join("gone")).unwrap();
    fs::write(top.join("gone/again"), "top").unwrap();
    fs::write(top.join("setuid"), "replaced").unwrap();
    let layer = |path: &Path| path.to_str().unwrap().to_owned();
    test.make_image(
        "layered.tar",
        "localhost/layered:1",
        &["--root", &layer(&base), "--layer", &layer(&middle), "--layer", &layer(&top)],
    )
}

/// The tree that an overlay mount of the layers shows.
fn mounted(layers: Vec<PathBuf>, below: PathBuf) -> std::collections::BTreeMap<std::ffi::OsString, crate::tree::Node> {
    // A thread of its own, with mounts of its own, which go with it.
    let look = std::thread::spawn(move || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
        let private = nix::mount::MsFlags::MS_REC | nix::mount::MsFlags::MS_PRIVATE;
        nix::mount::mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
        fs::create_dir(&below).unwrap();
        let lower: Vec<String> = layers.iter().rev().map(|layer| layer.to_str().unwrap().to_owned()).collect();
        let options = format!("lowerdir={}", lower.join(":"));
        nix::mount::mount(Some("overlay"), &below, Some("overlay"), nix::mount::MsFlags::empty(), Some(options.as_str())).unwrap();
        tree(&below)
    });
    look.join().unwrap()
}

#[tokio::test]
async fn layers_mounted_show_what_umoci_makes_of_the_image() {
    let test = TestStore::new();
    let archive = layered(&test);
    let store = test.open();
    store.import(archive.clone()).await.unwrap();
    let image = store.ensure("localhost/layered:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    assert_eq!(image.layers.len(), 3);
    let mut ours = mounted(image.layers, test.path("mounted"));
    let layout = format!("{}:latest", test.path("layout").display());
    run(Command::new("skopeo")
        .args(["copy", "--quiet", "--insecure-policy"])
        .arg(format!("oci-archive:{}", archive.display()))
        .arg(format!("oci:{layout}")));
    run(Command::new("umoci").args(["unpack", "--image", &layout]).arg(test.path("bundle")));
    let mut theirs = tree(&test.path("bundle/rootfs"));
    assert!(ours.len() > 50, "{}", ours.len());
    for (path, node) in ours.iter_mut().chain(theirs.iter_mut()) {
        // An overlay shows one link for each name, and umoci stores no holes.
        node.links = 0;
        node.size.1 = false;
        // Attributes that only root may set are not a layer's to bring: no other attribute of the image is missing.
        node.xattrs.retain(|name, _| !name.as_encoded_bytes().starts_with(b"trusted."));
        // umoci marks the root's time with that of its unpacking.
        if path.is_empty() {
            node.mtime = (0, 0);
        }
    }
    assert_same("mounted layers and umoci", &ours, &theirs);
}

/// A default list for access, which files below inherit: user 1234 may read.
const DEFAULT_ACL: [u8; 44] = [
    2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 4, 0, 210, 4, 0, 0, 4, 0, 5, 0, 255, 255, 255, 255, 16, 0, 7, 0, 255, 255,
    255, 255, 32, 0, 5, 0, 255, 255, 255, 255,
];

/// The job that writes the files tells their checksums: they are those that a reading of the disk finds.
#[tokio::test]
async fn checksums_of_a_job_are_those_on_disk() {
    let test = TestStore::new();
    let (lower, upper) = (test.path("lower"), test.path("upper"));
    fs::create_dir(&lower).unwrap();
    torture(&lower);
    fs::create_dir(lower.join("acl")).unwrap();
    rustix::fs::lsetxattr(lower.join("acl"), "system.posix_acl_default", &DEFAULT_ACL, XattrFlags::empty()).unwrap();
    fs::write(lower.join("acl/inherits"), "content").unwrap();
    for (number, length) in [1, 4095, 4096, 4097, 12_288, 262_143, 262_144, 262_145, 1_000_001].into_iter().enumerate() {
        let content: Vec<u8> = (0..length).map(|at: usize| if at / 5000 % 3 == number % 3 { 0 } else { 7 }).collect();
        fs::write(lower.join(format!("size-{length}")), content).unwrap();
    }
    fs::create_dir(&upper).unwrap();
    fs::write(upper.join("setuid"), "replaced").unwrap();
    let (lower, upper) = (lower.to_str().unwrap(), upper.to_str().unwrap());
    let archive = test.make_image("a.tar", "localhost/a:1", &["--root", lower, "--layer", upper]);
    let store = test.open();
    store.import(archive).await.unwrap();
    let image = store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    let damage = async || {
        let mut report = store.verify(&["localhost/a:1".to_owned()], false).await.unwrap();
        report.images.remove(0).damage
    };
    assert_eq!(damage().await, [""; 0]);
    let at = |name: &str| image.layers[0].join(name);
    rustix::fs::lsetxattr(at("usr/bin/tool"), "user.new", b"", XattrFlags::empty()).unwrap();
    File::options().write(true).open(at("size-4097")).unwrap().write_at(b"x", 4096).unwrap();
    let found = damage().await;
    let names = ["alias", "size-4097", "usr/alias", "usr/bin/alias", "usr/bin/tool"];
    let wanted = names.map(|name| format!("/{name} has another content")).join(", ");
    assert!(found.len() == 1 && found[0].ends_with(&format!(": {wanted}")), "{found:?}");
    // Nor is the inherited list missing in what is compared.
    assert_eq!(xattr(&at("acl"), "system.posix_acl_default").as_deref(), Some(&DEFAULT_ACL[..]));
}

#[tokio::test]
async fn parents_without_an_entry_look_as_in_the_layer_below() {
    let test = TestStore::new();
    let (base, upper) = (test.path("base"), test.path("upper"));
    fs::create_dir_all(base.join("srv/app")).unwrap();
    chmod(&base.join("srv"), 0o2750);
    chown(&base.join("srv/app"), 5, 6);
    rustix::fs::lsetxattr(base.join("srv/app"), "user.mark", b"here", XattrFlags::empty()).unwrap();
    fs::create_dir_all(upper.join("srv/app/new")).unwrap();
    fs::write(upper.join("srv/app/new/file"), "x").unwrap();
    // As some builders write layers: only the file, no directory.
    let unpacked = test.path("unpacked");
    fs::create_dir(&unpacked).unwrap();
    let archive = test.make_image("a.tar", "localhost/a:1", &["--root", base.to_str().unwrap(), "--format", "docker"]);
    run(Command::new("tar").arg("-C").arg(&unpacked).arg("-xf").arg(archive));
    run(Command::new("tar").arg("-C").arg(&upper).arg("-cf").arg(unpacked.join("upper.tar")).arg("srv/app/new/file"));
    let diff_id = podstead::container::digest::Digest::of(&fs::read(unpacked.join("upper.tar")).unwrap());
    let manifest = fs::read_to_string(unpacked.join("manifest.json")).unwrap();
    let config = manifest.split('"').find(|word| word.ends_with(".json")).unwrap().to_owned();
    let text = fs::read_to_string(unpacked.join(&config)).unwrap();
    fs::write(unpacked.join(&config), text.replace("\"]}}", &format!("\",\"{diff_id}\"]}}}}"))).unwrap();
    fs::write(unpacked.join("manifest.json"), manifest.replace(".tar\"]", ".tar\",\"upper.tar\"]")).unwrap();
    run(Command::new("tar").arg("-C").arg(&unpacked).arg("-cf").arg(test.path("both.tar")).arg("."));
    let store = test.open();
    store.import(test.path("both.tar")).await.unwrap();
    let image = store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    let (below, above) = (tree(&image.layers[0]), tree(&image.layers[1]));
    for path in ["srv", "srv/app"] {
        assert_eq!(above[std::ffi::OsStr::new(path)], below[std::ffi::OsStr::new(path)], "{path}");
    }
    let new = &above[std::ffi::OsStr::new("srv/app/new")];
    assert_eq!(
        (new.mode, new.owner, new.mtime),
        (0o755, (0, 0), (0, 0)),
        "nothing below: a plain directory, the same at each pull"
    );
}
