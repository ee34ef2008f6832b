//! Stores of earlier versions.

use crate::support::{TestStore, references, run};
use podstead::container::digest::Digest;
use podstead::{
    pod::containers::PullPolicy,
    runtime::{ImageService, PullSecrets},
};
use std::fs;
use std::process::Command;

/// Renames all layers to what earlier versions called them: by the chain of diff ids.
fn make_old(test: &TestStore) {
    let read = |path: std::path::PathBuf| serde_json::from_slice::<serde_json::Value>(&fs::read(path).unwrap()).ok();
    let layers: Vec<_> = fs::read_dir(test.root().join("layers")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let diff_id_of = |path: &std::path::Path| read(path.join("layer.json")).unwrap()["diff_id"].as_str().unwrap().to_owned();
    let documents = fs::read_dir(test.root().join("blobs")).unwrap().filter_map(|entry| read(entry.unwrap().path()));
    let mut renamed = 0;
    for configuration in documents.filter(|document| document["rootfs"].is_object()) {
        let mut below = None;
        for diff_id in configuration["rootfs"]["diff_ids"].as_array().unwrap() {
            let chain = Digest::chain(below, diff_id.as_str().unwrap().parse().unwrap());
            below = Some(chain);
            if let Some(path) = layers.iter().find(|path| path.is_dir() && diff_id_of(path) == *diff_id) {
                fs::rename(path, path.with_file_name(chain.hex())).unwrap();
                renamed += 1;
            }
        }
    }
    assert_eq!(renamed, layers.len());
}

#[tokio::test]
async fn layers_of_earlier_versions_are_used_where_they_are() {
    let test = TestStore::new();
    let layer = |name: &str| {
        let path = test.path(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join(name), name).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (added, top) = (layer("added"), layer("top"));
    let base = test.make_image("base.tar", "localhost/base:1", &["--layer", &added]);
    let store = test.open();
    store.import(base).await.unwrap();
    drop(store);
    make_old(&test);
    let names = |test: &TestStore| {
        let mut names: Vec<_> = fs::read_dir(test.root().join("layers")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let old = names(&test);
    let store = test.open();
    assert_eq!(references(&store).await, ["localhost/base:1"]);
    let image = store.ensure("localhost/base:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    assert!(image.layers[0].join("bin/busybox").is_file() && image.layers[1].join("added").is_file());
    assert!(test.events.all().is_empty(), "{:?}", test.events.all());
    // An image on the same base takes the layers that are there, and one more.
    let options = ["--layer", &added, "--layer", &top];
    store.import(test.make_image("above.tar", "localhost/above:1", &options)).await.unwrap();
    let above = store.ensure("localhost/above:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    assert_eq!(above.layers[..2], image.layers);
    assert_eq!(names(&test).len(), old.len() + 1);
    // It stays so, and goes as any other.
    drop((image, above, store));
    let store = test.open();
    store.remove("localhost/above:1", false).await.unwrap();
    assert_eq!(names(&test), old);
    store.remove("localhost/base:1", false).await.unwrap();
    assert_eq!(test.layers(), 0);
}

/// F42: what version 0.1.0 made on 29 November 2026: a pinned image of two layers, here as `tar -c images | gzip -9n | base64`.
#[tokio::test]
async fn recorded_store_of_an_earlier_version_is_whole() {
    let test = TestStore::new();
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/images/store-2026-11-29.txt");
    let unpack = "base64 -d \"$0\" | tar -xz --numeric-owner -C \"$1\"";
    run(Command::new("sh").args(["-c", unpack, recorded]).arg(test.directory.path()));
    let store = test.open();
    let images = store.list().await.unwrap();
    assert_eq!((images.len(), images[0].references.as_slice(), images[0].pinned), (1, &["localhost/old:1".to_owned()][..], true));
    let image = store.ensure("localhost/old:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    let read = |layer: usize, path: &str| fs::read_to_string(image.layers[layer].join(path)).unwrap();
    assert_eq!(
        [read(0, "etc/one"), read(0, "etc/twin"), read(1, "etc/one"), read(1, "etc/two")],
        ["one\n", "one\n", "ONE\n", "two\n"]
    );
    // Its lists of files are those of today.
    let report = store.verify(&[], false).await.unwrap();
    assert_eq!(report.images.iter().map(|image| image.damage.len()).collect::<Vec<_>>(), [0], "{report:?}");
    store.prune(true, false).await.unwrap();
    assert_eq!(references(&store).await, ["localhost/old:1"], "it is pinned");
    assert!(test.events.all().is_empty(), "{:?}", test.events.all());
    drop(image);
    store.remove("localhost/old:1", true).await.unwrap();
    assert_eq!(test.layers(), 0);
}

/// F42: what a later version adds to records, layers and the store is passed over, and there when that version runs again.
#[tokio::test]
async fn store_of_a_later_version_is_used_as_it_is() {
    let test = TestStore::new();
    let store = test.open();
    store.import(test.make_image("a.tar", "localhost/a:1", &[])).await.unwrap();
    store.pin("localhost/a:1", true).await.unwrap();
    drop(store);
    let paths = |directory: &str| fs::read_dir(test.root().join(directory)).unwrap().map(|entry| entry.unwrap().path());
    let layers: Vec<_> = paths("layers").collect();
    for path in layers.iter().map(|layer| layer.join("layer.json")).chain(paths("refs")) {
        let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        record["later"] = serde_json::json!({"version": 2});
        fs::write(&path, record.to_string()).unwrap();
    }
    let later: Vec<_> = layers.into_iter().chain([test.root()]).map(|directory| directory.join("later")).collect();
    later.iter().for_each(|path| fs::write(path, "later").unwrap());
    let store = test.open();
    assert_eq!(references(&store).await, ["localhost/a:1"]);
    let image = store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    assert!(image.layers[0].join("bin/busybox").is_file());
    store.prune(true, false).await.unwrap();
    assert_eq!(references(&store).await, ["localhost/a:1"], "it is pinned");
    assert!(store.verify(&[], false).await.is_ok());
    assert!(test.events.all().is_empty(), "{:?}", test.events.all());
    assert!(later.iter().all(|path| path.is_file()));
}
