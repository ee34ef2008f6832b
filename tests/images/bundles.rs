//! Images of bundles: an import that is interrupted goes on with the next layer, whatever interrupted it.

#[expect(dead_code, reason = "the tests of sources use the rest")]
#[path = "../sources/bundle/made.rs"]
mod made;

use crate::power_cut::Disk;
use crate::real_registry::Registry;
use crate::support::{TestStore, binary, references, run};
use made::{Made, written};
use podstead::image::list_job::Here;
use podstead::image::{ImageStore, ImageStoreConfig, platform};
use podstead::pod::containers::PullPolicy;
use podstead::runtime::{ImageService, PullSecrets};
use podstead::source::bundle::archive::read_head;
use podstead::source::bundle::write::{BlobSource, write_tar};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Larger than what is published together.
const LARGE: usize = 33 << 20;
const NAME: &str = "localhost/app:1";

/// A bundle with an image of this many large layers.
fn made(layers: u8) -> Made {
    let layer = |number: u8| {
        let mut archive = Vec::new();
        write_tar(&mut archive, [(&*format!("file-{number}"), &*vec![number + 1; LARGE])]).unwrap();
        archive
    };
    Made::new(1, &[("web.yaml", "x")]).image_of(NAME, (0..layers).map(layer).collect())
}

async fn import(store: &ImageStore, path: &Path, made: &Made) -> Result<Vec<String>, String> {
    let file = Arc::new(File::open(path).unwrap());
    store.import_bundle(file, path, made.document.bundled_images()).await.map_err(|error| error.to_string())
}

/// The layers of a store, by name, with the inodes of their directories.
fn layers(root: &Path) -> BTreeMap<PathBuf, u64> {
    let entries = fs::read_dir(root.join("layers")).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.path(), entry.metadata().unwrap().ino())).collect()
}

fn assert_whole(image: &[PathBuf]) {
    for (number, layer) in (0..).zip(image) {
        let content = fs::read(layer.join(format!("file-{number}"))).unwrap();
        assert!(content.len() == LARGE && content.iter().all(|byte| *byte == number + 1), "layer {number} is damaged");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bundle_goes_on_with_the_layer_that_was_damaged() {
    let test = TestStore::new();
    let store = test.open();
    let (good, path) = (made(3), test.path("a.bundle"));
    let mut parts = good.parts();
    let Some((_, BlobSource::Bytes(last))) = parts.blobs.last_mut() else { panic!() };
    last[LARGE] ^= 1;
    fs::write(&path, written(&parts)).unwrap();
    let told = import(&store, &path, &good).await.unwrap_err();
    assert!(told.contains("altered or damaged"), "{told}");
    let published = layers(&test.root());
    assert_eq!((published.len(), test.staged()), (2, 0));
    assert!(references(&store).await.is_empty());
    // After another start, too.
    drop(store);
    let store = test.open();
    fs::write(&path, good.bytes()).unwrap();
    assert_eq!(import(&store, &path, &good).await.unwrap(), [NAME]);
    let after = layers(&test.root());
    assert_eq!(after.len(), 3);
    assert!(published.iter().all(|(name, inode)| after.get(name) == Some(inode)), "published layers were not made again");
    assert_whole(&store.ensure(NAME, PullPolicy::Never, &PullSecrets::none()).await.unwrap().layers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bundle_goes_on_after_the_power_went() {
    let test = TestStore::new();
    let (good, path) = (made(4), test.path("a.bundle"));
    fs::write(&path, good.bytes()).unwrap();
    let disk = Disk::new();
    let mut kept = 0;
    for cut in 1..4 {
        let store = disk.open(&test);
        let importing = tokio::spawn({
            let (store, path, good) = (Arc::clone(&store), path.clone(), good.clone());
            async move { import(&store, &path, &good).await }
        });
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
        while layers(&disk.root()).len() < cut && !importing.is_finished() {
            assert!(std::time::Instant::now() < deadline, "the import does not get there");
            tokio::task::yield_now().await;
        }
        disk.cut();
        // It may have come to its end.
        drop(importing.await.unwrap());
        drop(store);
        disk.restart();
        let store = disk.open(&test);
        let found = layers(&disk.root()).len();
        // The last one may have been renamed and not be durable yet.
        assert!(found + 1 >= cut && found >= kept, "{found} layers after cut {cut}, {kept} before");
        kept = found;
        drop(store);
    }
    let before = layers(&disk.root());
    let store = disk.open(&test);
    import(&store, &path, &good).await.unwrap();
    let after = layers(&disk.root());
    assert!(before.iter().all(|(name, inode)| after.get(name) == Some(inode)), "{before:?} {after:?}");
    assert_whole(&store.ensure(NAME, PullPolicy::Never, &PullSecrets::none()).await.unwrap().layers);
    assert_eq!(fs::read_dir(disk.root().join("staging")).unwrap().count(), 0);
}

/// Manifests with a pod of this image, and a configuration that knows the registry.
fn write_manifests(test: &TestStore, registry: &Registry, image: &str) {
    let config =
        format!("apiVersion: podstead.dev/v1alpha1\nkind: Config\nregistries:\n  - host: {}\n    http: true\n", registry.host);
    fs::write(test.path("config.yaml"), config).unwrap();
    let pod =
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {{containers: [{{name: c, image: '{image}'}}]}}\n");
    fs::create_dir_all(test.path("manifests")).unwrap();
    fs::write(test.path("manifests/web.yaml"), pod).unwrap();
}

/// `podstead bundle create` of these manifests.
fn create(test: &TestStore, path: &Path) -> Command {
    let mut create = Command::new(binary());
    create.arg("--config").arg(test.path("config.yaml")).args(["bundle", "create"]).arg(test.path("manifests"));
    create.arg("-o").arg(path);
    create
}

/// A bundle has the indexes that lead to an image, and a host finds it there without a registry, as by a pull.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn image_in_nested_indexes_comes_with_a_bundle() {
    let (test, registry, host) = (TestStore::new(), Registry::start(), platform::host());
    for name in ["ours", "other"] {
        registry.push(
            &test.make_image(&format!("{name}.tar"), "app:1", &["--env", &format!("VERSION={name}")]),
            &format!("app:{name}"),
            &[],
        );
    }
    let (manifest, index) = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json");
    let entry = |name: &str, kind: &str, architecture: Option<&str>| {
        let (digest, size) = registry.manifest(&format!("app:{name}"));
        let mut entry = serde_json::json!({"mediaType": kind, "digest": digest.to_string(), "size": size});
        if let Some(architecture) = architecture {
            entry["platform"] = serde_json::json!({"os": host.os, "architecture": architecture, "variant": host.variant});
        }
        entry
    };
    let put = |tag: &str, entries: &[serde_json::Value]| {
        registry.put_index(
            "app",
            tag,
            &serde_json::json!({"schemaVersion": 2, "mediaType": index, "manifests": entries}).to_string(),
        );
    };
    put("inner", &[entry("other", manifest, Some("s390x")), entry("ours", manifest, Some(&host.architecture))]);
    put("outer", &[entry("inner", index, None)]);
    let image = registry.image("app:outer");
    write_manifests(&test, &registry, &image);
    let path = test.path("nested.bundle");
    run(&mut create(&test, &path));
    let pulled = {
        let other = TestStore::new();
        let store = other.open_with(ImageStoreConfig { registries: vec![registry.config()], ..ImageStoreConfig::default() });
        store.ensure(&image, PullPolicy::Always, &PullSecrets::none()).await.unwrap().digest
    };
    // No deeper than a pull goes.
    put("3", &[entry("outer", index, None)]);
    put("4", &[entry("3", index, None)]);
    write_manifests(&test, &registry, &registry.image("app:4"));
    let refused = create(&test, &test.path("deep.bundle")).output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("an index nested more than three levels deep"), "{told}");
    registry.stop();
    let file = Arc::new(File::open(&path).unwrap());
    let images = read_head(&file, &Here).unwrap().document.bundled_images();
    let store = test.open();
    assert_eq!(store.import_bundle(file, &path, images).await.unwrap(), [&*image]);
    let imported = store.ensure(&image, PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    assert!(imported.config.env.contains(&"VERSION=ours".to_owned()), "{:?}", imported.config);
    assert_eq!(imported.digest, pulled);
}

/// I71.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn layers_that_a_host_has_are_left_out() {
    let (test, registry) = (TestStore::new(), Registry::start());
    let (old, new) = (registry.image("app:1"), registry.image("app:2"));
    registry.push(&test.make_image("1.tar", "app:1", &["--add", "/etc/hostname:/etc/old"]), "app:1", &[]);
    registry.push(&test.make_image("2.tar", "app:2", &["--add", "/etc/hostname:/etc/new"]), "app:2", &[]);
    let store = test.open_with(ImageStoreConfig { registries: vec![registry.config()], ..ImageStoreConfig::default() });
    store.ensure(&old, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap();
    let layers = store.list().await.unwrap().remove(0).layers;
    // As podstead bundle inventory writes it.
    let inventory = |name: &str, layers: &[String]| {
        let images = serde_json::json!([{"references": [old], "layers": layers}]);
        let written = serde_json::json!({"apiVersion": "podstead.dev/v1alpha1", "kind": "BundleInventory", "images": images});
        fs::write(test.path(name), written.to_string()).unwrap();
        test.path(name)
    };
    let (have, other) = (inventory("have.json", &layers), inventory("other.json", &layers[1..]));
    write_manifests(&test, &registry, &new);
    let create = |name: &str, since: &[&Path]| {
        let path = test.path(name);
        let told = run(create(&test, &path).args(since.iter().flat_map(|since| [Path::new("--since"), since])));
        let file = Arc::new(File::open(&path).unwrap());
        (told, path, file)
    };
    let (told, path, file) = create("next.bundle", &[&have]);
    assert!(told.contains("1 layer left out"), "{told}");
    let images = read_head(&file, &Here).unwrap().document.bundled_images();
    assert_eq!(store.import_bundle(file, &path, images).await.unwrap(), [&*new]);
    let image = store.ensure(&new, PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    assert!(image.layers[0].join("bin/busybox").is_file() && image.layers[1].join("etc/new").is_file());
    // Another host has it above other layers, where it is of no use, so that it is not left out for both.
    let (told, ..) = create("both.bundle", &[&have, &other]);
    assert!(!told.contains("left out"), "{told}");
}
