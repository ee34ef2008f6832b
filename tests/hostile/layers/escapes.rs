//! Layers that want to write, read or delete outside of their tree, or give somebody rights there.

use super::archive::{BLOCK_DEVICE, CHAR_DEVICE, HARD_LINK, Header, Layer, SYMLINK, directory, file, link, with_path};
use super::store::{NAME, Store, Victim};
use podstead::image::stack::LayerStack;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

#[test]
fn upward_names_are_refused_in_every_place() {
    for path in ["../outside/x", "a/../../outside/x", "/../../outside/x", "..", "a/.."] {
        let store = Store::new();
        let reason = store.refused(&[Layer::of(&[with_path(path, &file("innocent", b"x"))])]);
        assert!(reason.contains(".. component"), "{path}: {reason}");
        let reason = store.refused(&[Layer::of(&[file("a", b"x"), link(HARD_LINK, "l", path)])]);
        assert!(reason.contains(".. component"), "hard link to {path}: {reason}");
    }
}

#[test]
fn absolute_names_land_in_the_image() {
    let store = Store::new();
    let target = format!("{}/bystander", store.outside());
    let layers = store.import(&[Layer::of(&[with_path(&target, &file("f", b"of the image"))])]).unwrap();
    assert_eq!(fs::read(layers[0].join(target.trim_start_matches('/'))).unwrap(), b"of the image");
}

#[test]
fn symlink_leads_no_entry_out_of_image() {
    let store = Store::new();
    let outside = store.outside();
    for target in [outside.as_str(), "../../../../../outside", "/proc/self/root/tmp", "/proc/self/cwd"] {
        let reason = store.refused(&[Layer::of(&[link(SYMLINK, "out", target), file("out/bystander", b"x")])]);
        assert!(reason.contains("dangling symlink") || reason.contains("open directory"), "{target}: {reason}");
        store.refused(&[Layer::of(&[link(SYMLINK, "out", target), file("out/.wh.bystander", b"")])]);
    }
    // By two links, of which the second is a name of the first.
    let entries = [link(SYMLINK, "one", &outside), link(HARD_LINK, "two", "one"), file("two/bystander", b"x")];
    store.refused(&[Layer::of(&entries)]);
    // An entry in place of the link replaces the link.
    let over = [link(SYMLINK, "f", &format!("{outside}/bystander")), file("f", b"x")];
    let layers = store.import(&[Layer::of(&over)]).unwrap();
    assert!(fs::symlink_metadata(layers[0].join("f")).unwrap().is_file());
}

#[test]
fn hard_link_names_nothing_outside_its_layer() {
    let store = Store::new();
    let target = format!("{}/bystander", store.outside());
    for hostile in [target.as_str(), "/etc/passwd", "proc/self/exe"] {
        let reason = store.refused(&[Layer::of(&[link(HARD_LINK, "l", hostile), file("l", b"x")])]);
        assert!(reason.contains("that is not in this layer") || reason.contains("No such file"), "{hostile}: {reason}");
    }
    // A name of a link is a link: what is written to it takes its place.
    let entries = [link(SYMLINK, "s", &target), link(HARD_LINK, "l", "s"), file("l", b"x")];
    let layers = store.import(&[Layer::of(&entries)]).unwrap();
    assert_eq!(fs::read(layers[0].join("l")).unwrap(), b"x");
}

#[test]
fn lower_link_leads_no_upper_layer_out() {
    let store = Store::new();
    let lower = || Layer::of(&[link(SYMLINK, "out", &store.outside())]);
    let reason = store.refused(&[lower(), Layer::of(&[link(HARD_LINK, "l", "out/bystander")])]);
    assert!(reason.contains("that is not in this layer") || reason.contains("No such file"), "{reason}");
    let layers = store.import(&[lower(), Layer::of(&[file("out/bystander", b"x"), file("out/.wh.other", b"")])]).unwrap();
    assert_eq!(fs::read(layers[1].join("out/bystander")).unwrap(), b"x");
    // Nothing is read through it either.
    let image = LayerStack::new(&layers[..1]);
    assert_eq!(image.read(Path::new("/out/bystander"), 100).unwrap(), None);
}

#[test]
fn whiteouts_lead_nowhere() {
    let store = Store::new();
    for path in [".wh.", ".wh..", ".wh...", "d/.wh...", "d/.wh..", "d/.wh.x/y"] {
        let reason = store.refused(&[Layer::of(&[directory("d"), file(path, b"")])]);
        assert!(reason.contains("whiteout without a name"), "{path}: {reason}");
    }
    let reason = store.refused(&[Layer::of(&[with_path("d/../../.wh.outside", &file("w", b""))])]);
    assert!(reason.contains(".. component"), "{reason}");
    // The kernel's own whiteout would hide files that the layer does not say it hides.
    let reason = store.refused(&[Layer::of(&[link(CHAR_DEVICE, "hidden", "")])]);
    assert!(reason.contains("device 0:0"), "{reason}");
}

#[test]
fn opaque_root_hides_only_lower_layers() {
    let store = Store::new();
    let lower = Layer::of(&[file("secret", b"lower")]);
    let upper = Layer::of(&[file(".wh..wh..opq", b""), file("kept", b"upper")]);
    let layers = store.import(&[lower, upper]).unwrap();
    assert_eq!(layers.len(), 1, "what is hidden is not mounted");
    let image = LayerStack::new(&layers);
    assert_eq!(image.read(Path::new("/secret"), 100).unwrap(), None);
    assert_eq!(image.read(Path::new("/kept"), 100).unwrap().as_deref(), Some(&b"upper"[..]));
}

#[test]
fn setuid_files_are_unreachable_for_users() {
    let store = Store::new();
    let header = Header { path: "root-shell", mode: 0o6755, ..Header::default() }.bytes();
    let layers = store.import(&[Layer::of(&[header])]).unwrap();
    let path = layers[0].join("root-shell");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o6755, "the image's programs need it");
    // Only what is above the store is opened for the test.
    let directory = store.path("");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    let mut stat = Command::new("stat");
    let seen = stat.arg("-c").arg("%a").arg(&path).uid(65534).gid(65534).output().unwrap();
    assert!(!seen.status.success() && String::from_utf8_lossy(&seen.stderr).contains("Permission denied"), "{seen:?}");
}

#[test]
fn device_nodes_of_images_open_nothing() {
    let victim = Victim::new();
    let device = |kind, path, device| Header { kind, path, mode: 0o666, device, ..Header::default() }.bytes();
    let root = fs::metadata("/").unwrap().dev();
    let disk = (rustix::fs::major(root), rustix::fs::minor(root));
    let busybox = fs::read("/bin/busybox").unwrap();
    let entries = [
        device(CHAR_DEVICE, "memory", (1, 1)),
        device(BLOCK_DEVICE, "disk", disk),
        file("bin/busybox", &busybox),
        link(SYMLINK, "bin/sh", "busybox"),
    ];
    victim.takes(&[Layer::of(&entries)]);
    let host = victim.host();
    let command = r#"["/bin/busybox", "sh", "-c", "for f in /memory /disk; do busybox head -c 1 $f 2>&1; done; echo tried; exec busybox sleep 1000"]"#;
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: thief}}\nspec:\n  containers:\n  - {{name: c, image: {NAME}, command: {command}}}\n"
    );
    host.write_manifest("thief.yaml", &pod);
    let log = host.wait_log("thief", "c", "tried");
    assert_eq!(log.matches("Operation not permitted").count(), 2, "{log}");
    let layers = fs::read_dir(host.path("state/images/layers")).unwrap();
    let kept = layers.flatten().filter_map(|layer| fs::symlink_metadata(layer.path().join("fs/disk")).ok()).next();
    assert!(kept.unwrap().file_type().is_block_device(), "the image has what it says");
}
