//! Importing archives.

use crate::support::{TestStore, references, run};
use podstead::{
    pod::containers::PullPolicy,
    runtime::{ImageError, ImageService, PullSecrets},
};
use std::fs;
use std::path::Path;
use std::process::Command;

#[tokio::test]
async fn every_format_and_compression_gives_the_same_tree() {
    let test = TestStore::new();
    let store = test.open();
    let mut listings = Vec::new();
    for (archive, options) in [
        ("oci.tar", &[][..]),
        ("oci.tar.gz", &[]),
        ("oci.tar.zst", &[]),
        ("docker.tar", &["--format", "docker"]),
        ("docker.tar.gz", &["--format", "docker"]),
    ] {
        let path = test.make_image(archive, &format!("localhost/{}:1", archive.replace('.', "-")), options);
        let names = store.import(path).await.unwrap();
        assert_eq!(names, [format!("localhost/{}:1", archive.replace('.', "-"))]);
        let image = store.ensure(&names[0], PullPolicy::Never, &PullSecrets::none()).await.unwrap();
        assert_eq!(image.config.cmd, ["/bin/sh"]);
        assert!(image.layers[0].join("bin/busybox").is_file());
        listings.push(listing(&image.layers[0]));
    }
    assert!(listings.iter().all(|listing| *listing == listings[0]));
    assert_eq!(test.layers(), 2, "equal layers are stored once: one compressed as in OCI layouts, one plain as of docker");
    assert_eq!(test.staged(), 0, "nothing is left in staging");
    assert_eq!(store.list().await.unwrap().len(), 2, "one image as OCI, one as docker");
}

#[tokio::test]
async fn an_imported_image_is_there_after_a_restart_and_gone_after_removal() {
    let test = TestStore::new();
    let archive = test.make_image("a.tar", "localhost/a:1", &["--add", "/etc/hostname:/etc/added", "--user", "www-data"]);
    let store = test.open();
    store.import(archive).await.unwrap();
    let before = store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    assert_eq!(before.layers.len(), 2);
    drop(store);
    let store = test.open();
    assert_eq!(store.ensure("localhost/a:1", PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap(), before);
    let by_digest = format!("localhost/a@{}", before.digest);
    assert_eq!(store.ensure(&by_digest, PullPolicy::Never, &PullSecrets::none()).await.unwrap(), before);
    let user = store.resolve_user(&before, &before.config.user).await.unwrap();
    assert_eq!((user.uid, user.gid, user.additional_gids), (33, 33, vec![4, 50]));
    assert!(matches!(store.resolve_user(&before, "nobody-here").await, Err(ImageError::NoUser { .. })));

    let given = store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    store.remove("localhost/a:1", false).await.unwrap();
    assert!(matches!(store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await, Err(ImageError::NeverPull(_))));
    assert!(store.remove("localhost/a:1", false).await.is_err());
    assert_eq!(test.layers(), 2, "layers that were given out stay as long as somebody has them");
    drop((given, store));
    drop(test.open());
    assert_eq!(test.layers(), 0);
}

#[tokio::test]
async fn a_mounted_layer_stays_although_nothing_names_it() {
    let test = TestStore::new();
    let archive = test.make_image("a.tar", "localhost/a:1", &[]);
    let store = test.open();
    store.import(archive).await.unwrap();
    let image = store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    store.remove("localhost/a:1", false).await.unwrap();
    drop(store);
    // A process in a mount namespace of its own, as a container is.
    let script = format!(
        "mkdir -p {dir}/u {dir}/w {dir}/m && mount -t overlay overlay -o lowerdir={lower},upperdir={dir}/u,workdir={dir}/w {dir}/m && echo up && cat",
        dir = test.directory.path().display(),
        lower = image.layers[0].display()
    );
    let mut container = Command::new("unshare");
    container.args(["-m", "--propagation", "private", "sh", "-c", &script]);
    container.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut container = container.spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(container.stdout.as_mut().unwrap()), &mut line).unwrap();
    assert_eq!(line, "up\n");
    drop(test.open());
    assert_eq!(test.layers(), 1);
    drop(container.stdin.take());
    container.wait().unwrap();
    drop(test.open());
    assert_eq!(test.layers(), 0);
}

#[tokio::test]
async fn a_second_process_cannot_open_the_store() {
    let test = TestStore::new();
    let store = test.open();
    let second = podstead::image::ImageStore::open(&test.root(), Default::default(), test.events.clone());
    assert!(matches!(second, Err(podstead::image::StoreError::Locked(_))));
    drop(store);
    drop(test.open());
}

#[tokio::test]
async fn a_broken_archive_is_refused_with_its_reason_and_leaves_nothing() {
    let test = TestStore::new();
    let store = test.open();
    let good = fs::read(test.make_image("good.tar", "localhost/a:1", &[])).unwrap();
    let zipped = fs::read(test.make_image("good.tar.gz", "localhost/a:1", &[])).unwrap();
    let mut flipped = good.clone();
    let middle = good.len() / 2;
    flipped[middle] ^= 1;
    for (name, content, reason) in [
        ("empty", &b""[..], "neither an OCI layout"),
        ("text", b"hello, this is no archive at all", "ends in the middle"),
        ("half", &good[..good.len() / 2], "ends in the middle"),
        ("half.gz", &zipped[..zipped.len() / 2], "import"),
        ("flipped", &flipped, "altered or damaged"),
    ] {
        let path = test.path(name);
        fs::write(&path, content).unwrap();
        let error = store.import(path).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{name}: {error}");
    }
    for path in [test.path(""), test.path("absent")] {
        assert!(store.import(path).await.is_err());
    }
    assert_eq!((test.layers(), test.staged()), (0, 0));
    assert_eq!(references(&store).await, [""; 0]);
}

#[tokio::test]
async fn an_image_whose_files_were_damaged_is_set_aside_and_reported() {
    let test = TestStore::new();
    let archive = test.make_image("a.tar", "localhost/a:1", &[]);
    let other = test.make_image("b.tar", "localhost/b:1", &["--add", "/etc/hostname:/x"]);
    let store = test.open();
    store.import(archive.clone()).await.unwrap();
    store.import(other).await.unwrap();
    let image = store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    drop(store);
    fs::write(test.root().join("blobs").join(image.digest.strip_prefix("sha256:").unwrap()), b"{}").unwrap();
    let store = test.open();
    assert_eq!(references(&store).await, ["localhost/b:1"]);
    let events = test.events.all();
    assert!(events.iter().any(|(_, reason, message)| reason == "ImageDamaged" && message.contains("is damaged")), "{events:?}");
    store.import(archive).await.unwrap();
    assert!(store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.is_ok());
}

#[tokio::test]
async fn an_archive_of_several_images_that_share_layers_brings_all() {
    // skopeo writes what docker save writes for several images: shared layers once, the others linked.
    let test = TestStore::new();
    let (a, b) = (test.make_image("a.tar", "localhost/a:1", &["--format", "docker"]), test.path("both.tar"));
    fs::copy(&a, &b).unwrap();
    let second = test.make_image("c.tar", "localhost/c:1", &["--format", "docker", "--add", "/etc/hostname:/etc/added"]);
    let unpacked = test.path("unpacked");
    fs::create_dir(&unpacked).unwrap();
    for archive in [&a, &second] {
        run(Command::new("tar").arg("-C").arg(&unpacked).arg("-xf").arg(archive));
        fs::rename(unpacked.join("manifest.json"), unpacked.join(format!("{}.m", archive.file_stem().unwrap().to_str().unwrap())))
            .unwrap();
    }
    let manifest = |name: &str| fs::read_to_string(unpacked.join(name)).unwrap().trim_matches(['[', ']']).to_owned();
    fs::write(unpacked.join("manifest.json"), format!("[{},{}]", manifest("a.m"), manifest("c.m"))).unwrap();
    for compress in [&["-cf"][..], &["-czf"]] {
        run(Command::new("tar").arg("-C").arg(&unpacked).args(compress).arg(&b).arg("."));
        let store = test.open();
        let mut names = store.import(b.clone()).await.unwrap();
        names.sort();
        assert_eq!(names, ["localhost/a:1", "localhost/c:1"]);
        assert_eq!(test.layers(), 2);
        for name in names {
            store.remove(&name, false).await.unwrap();
        }
        assert_eq!(test.layers(), 0);
    }
}

#[tokio::test]
async fn a_layer_that_an_image_has_twice_is_found_twice() {
    let test = TestStore::new();
    let empty = test.path("empty");
    fs::create_dir(&empty).unwrap();
    let empty = empty.to_str().unwrap().to_owned();
    for archive in ["a.tar", "a.tar.gz"] {
        let path = test.make_image(archive, "localhost/a:1", &["--layer", &empty, "--layer", &empty]);
        let store = test.open();
        store.import(path).await.unwrap();
        assert_eq!(store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap().layers.len(), 3);
        store.remove("localhost/a:1", false).await.unwrap();
    }
}

fn listing(tree: &Path) -> String {
    run(Command::new("find").current_dir(tree).args([".", "-printf", "%P %y %m %U:%G %s %T@ %l\n"]))
}
