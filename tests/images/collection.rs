//! Unused images go when the disk gets full, needed ones never.

use crate::power_cut::{Disk, archive, assert_whole, entries, files};
use crate::real_registry::Registry;
use crate::support::{TestStore, eventually, references, run};
use podstead::{
    image::{CollectionConfig, ImageRoots, ImageStore, ImageStoreConfig, Reserve, Root, RootTarget, UnknownRoots},
    pod::containers::PullPolicy,
    runtime::{Collected, ImageError, ImageService, PullSecrets, Removed},
};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Marks that a test sets; `None`: not known yet.
#[derive(Debug, Default)]
pub(crate) struct Marks(Mutex<Option<Vec<String>>>);

impl Marks {
    pub(crate) fn set(&self, references: &[String]) {
        *self.0.lock().unwrap() = Some(references.to_vec());
    }
}

#[async_trait::async_trait]
impl ImageRoots for Marks {
    async fn roots(&self) -> Result<Vec<Root>, UnknownRoots> {
        let marks = self.0.lock().unwrap().clone().ok_or("a source has not been read")?;
        let root = |reference| Root { target: RootTarget::Reference(reference), reason: "pod shop/web".to_owned() };
        Ok(marks.into_iter().map(root).collect())
    }
}

fn open(root: &Path, test: &TestStore, config: ImageStoreConfig) -> (Arc<ImageStore>, Arc<Marks>) {
    let store = ImageStore::open(root, crate::support::with_jobs(config), test.events.clone()).unwrap();
    let marks = Arc::new(Marks::default());
    store.set_roots(marks.clone());
    (store, marks)
}

/// An image with one layer of its own of so many bytes that cannot be compressed.
fn random_image(test: &TestStore, name: &str, bytes: u64) -> PathBuf {
    let root = test.path(&format!("root-{name}"));
    fs::create_dir_all(&root).unwrap();
    let mut content = vec![0; usize::try_from(bytes).unwrap()];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut content).unwrap();
    fs::write(root.join("content"), content).unwrap();
    let archive = test.make_image(&format!("{name}.tar"), &format!("localhost/{name}:1"), &["--root", root.to_str().unwrap()]);
    fs::remove_dir_all(root).unwrap();
    archive
}

pub(crate) fn small_reserve() -> ImageStoreConfig {
    let reserve = Reserve { storage_at_least: 4 * MIB, ..Reserve::default() };
    let collection = CollectionConfig { minimum_age: Duration::ZERO, ..CollectionConfig::default() };
    ImageStoreConfig { reserve, collection, ..ImageStoreConfig::default() }
}

fn free_bytes(path: &Path) -> u64 {
    let found = nix::sys::statvfs::statvfs(path).unwrap();
    found.blocks_available() * found.fragment_size()
}

async fn is_present(store: &ImageStore, reference: &str) -> bool {
    store.ensure(reference, PullPolicy::Never, &PullSecrets::none()).await.is_ok()
}

/// A disk, versions of an image that follow each other on it, and the settings of the store.
struct Versions {
    disk_bytes: u64,
    image_bytes: u64,
    /// Images that are removed at least.
    removed: u64,
    config: ImageStoreConfig,
}

impl Versions {
    /// A small disk; with PODSTEAD_DISK_MIB, one of that size, with the defaults of everything, and images of which 27 would fill it.
    fn of_environment() -> Self {
        match std::env::var("PODSTEAD_DISK_MIB") {
            Err(_) => Self { disk_bytes: 48 * MIB, image_bytes: 3 * MIB, removed: 40, config: small_reserve() },
            Ok(text) => {
                let disk_bytes = text.parse::<u64>().unwrap() * MIB;
                Self { disk_bytes, image_bytes: disk_bytes / 27, removed: 50 - 27, config: ImageStoreConfig::default() }
            }
        }
    }

    /// Bytes of the disk that images never use.
    fn reserve(&self) -> u64 {
        (self.disk_bytes / 100 * u64::from(self.config.reserve.storage_percent)).max(self.config.reserve.storage_at_least)
    }
}

/// F35. `PODSTEAD_DISK_MIB=4096` runs it with a real disk: it needs 12 GiB in `TMPDIR`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_versions_fit_on_a_small_disk() {
    let wanted = Versions::of_environment();
    let reserve = wanted.reserve();
    let test = TestStore::new();
    let registry = Registry::start();
    let disk = Disk::of_size(wanted.disk_bytes);
    let config = ImageStoreConfig { registries: vec![registry.config()], ..wanted.config };
    let (store, marks) = open(&disk.root(), &test, config);
    let collection = tokio::spawn(store.run_collection());
    let (mut versions, mut least_free): (Vec<String>, u64) = (Vec::new(), u64::MAX);
    for number in 0..50 {
        let archive = random_image(&test, "app", wanted.image_bytes);
        let version = registry.image(&format!("app:{number}"));
        registry.push(&archive, &format!("app:{number}"), &[]);
        fs::remove_file(archive).unwrap();
        versions.push(version.clone());
        // In force, and two revisions before it.
        let kept = &versions[versions.len().saturating_sub(3)..];
        marks.set(kept);
        store.ensure(&version, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap();
        for kept in kept {
            assert!(is_present(&store, kept).await, "{kept} is gone after version {number}");
        }
        least_free = least_free.min(free_bytes(&disk.mount_point()));
        assert!(least_free >= reserve, "version {number} used the reserve: {least_free} bytes are free");
    }
    assert!(!is_present(&store, &versions[0]).await);
    let Collected { disk: on_disk, pull, prune } = store.figures().await.collected;
    let removed = on_disk.and(pull);
    eprintln!(
        "50 versions of {} MiB on a disk of {} MiB: {} removed, {} MiB; at least {} MiB were free, with a reserve of {} MiB",
        wanted.image_bytes / MIB,
        wanted.disk_bytes / MIB,
        removed.images,
        removed.bytes / MIB,
        least_free / MIB,
        reserve / MIB
    );
    assert!(removed.images > wanted.removed && prune == Removed::default(), "{on_disk:?}, {pull:?}");
    registry.stop();
    assert!(is_present(&store, &versions[47]).await, "a rollback needs no registry");
    let events = test.events.all();
    assert!(events.iter().all(|(_, reason, _)| reason == "ImagesCollected"), "{events:?}");
    collection.abort();
    drop(collection.await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prune_removes_only_what_nothing_needs() {
    let test = TestStore::new();
    let (store, marks) = open(&test.root(), &test, small_reserve());
    for name in ["needed", "pinned", "old"] {
        store.import(random_image(&test, name, MIB)).await.unwrap();
    }
    let (needed, pinned, old) = ("localhost/needed:1", "localhost/pinned:1", "localhost/old:1");
    marks.set(&[needed.to_owned()]);
    store.pin(pinned, true).await.unwrap();
    // Imported by hand: that counts for a day.
    assert_eq!(store.prune(false, false).await.unwrap().freed_bytes, 0);
    let dry = store.prune(true, true).await.unwrap();
    let removed: Vec<_> = dry.images.iter().filter(|image| image.kept.is_none()).flat_map(|image| &image.references).collect();
    assert_eq!(removed, [old]);
    assert!(dry.images.iter().any(|image| image.kept.as_deref() == Some("pod shop/web")), "{dry:?}");
    assert!(dry.freed_bytes >= MIB);
    assert_eq!(references(&store).await.len(), 3, "a dry run removes nothing");
    let done = store.prune(true, false).await.unwrap();
    assert_eq!(done.freed_bytes, dry.freed_bytes);
    let Collected { disk, pull, prune } = store.figures().await.collected;
    assert_eq!([disk, pull, prune], [Removed::default(), Removed::default(), Removed { images: 1, bytes: done.freed_bytes }]);
    let mut left = references(&store).await;
    left.sort();
    assert_eq!(left, [needed, pinned]);
    assert_eq!(test.layers(), 2);
    // The pin is durable.
    drop(store);
    let (store, marks) = open(&test.root(), &test, small_reserve());
    marks.set(&[]);
    store.prune(true, false).await.unwrap();
    assert_eq!(references(&store).await, [pinned]);
    store.pin(pinned, false).await.unwrap();
    store.prune(true, false).await.unwrap();
    assert_eq!((references(&store).await.len(), test.layers(), entries(&test.root().join("blobs"))), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sizes_add_up_to_what_du_counts() {
    let test = TestStore::new();
    let store = test.open();
    store.import(archive(&test, "a")).await.unwrap();
    store.import(archive(&test, "b")).await.unwrap();
    let du = |directory: &str| -> u64 {
        let counted = run(Command::new("du").args(["-s", "--block-size=1"]).arg(test.root().join(directory)));
        counted.split_whitespace().next().unwrap().parse().unwrap()
    };
    let (usage, images) = (store.usage().await.unwrap(), store.list().await.unwrap());
    let counted = du("layers") + du("blobs");
    assert!(usage.disk_bytes.abs_diff(counted) < 64 << 10, "{} and {counted}", usage.disk_bytes);
    let unique: u64 = images.iter().map(|image| image.unique_bytes).sum();
    let shared = images[0].size_bytes - images[0].unique_bytes;
    assert_eq!(shared, images[1].size_bytes - images[1].unique_bytes, "the common base");
    assert!(usage.disk_bytes - (unique + shared) < 64 << 10, "the rest are documents");
    assert!(shared > 20_000_000);
}

/// F34, F37.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_goes_while_marks_are_unknown() {
    let test = TestStore::new();
    let (store, marks) = open(&test.root(), &test, small_reserve());
    store.import(random_image(&test, "a", MIB)).await.unwrap();
    let image = "localhost/a:1";
    assert!(store.prune(true, false).await.unwrap_err().to_string().contains("a source has not been read"));
    assert!(matches!(store.remove(image, false).await, Err(ImageError::Needed { .. })));
    marks.set(&[image.to_owned()]);
    let refused = store.remove(image, false).await.unwrap_err().to_string();
    assert!(refused.contains("pod shop/web") && refused.contains("--force"), "{refused}");
    // F33: who was given it may still mount it.
    let given = store.ensure(image, PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    store.remove(image, true).await.unwrap();
    assert!(references(&store).await.is_empty() && given.layers[0].is_dir());
    drop(given);
    marks.set(&[]);
    store.import(random_image(&test, "b", MIB)).await.unwrap();
    store.remove("localhost/b:1", false).await.unwrap();
    assert_eq!(test.layers(), 1, "the space of an image that nobody has is free at once");
}

/// F30, F32.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_is_told_and_recovers_by_itself() {
    let test = TestStore::new();
    let registry = Registry::start();
    registry.push(&random_image(&test, "a", 2 * MIB), "a:1", &[]);
    let disk = Disk::of_size(48 * MIB);
    let config = ImageStoreConfig { registries: vec![registry.config()], ..small_reserve() };
    let (store, marks) = open(&disk.root(), &test, config);
    marks.set(&[]);
    let collection = tokio::spawn(store.run_collection());
    let other = disk.mount_point().join("other");
    fs::write(&other, vec![1; usize::try_from(free_bytes(&disk.mount_point()) - 2 * MIB).unwrap()]).unwrap();
    let image = registry.image("a:1");
    let failed = store.ensure(&image, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap_err().to_string();
    assert!(failed.contains("the disk of the image store is full"), "{failed}");
    let told = |reason: &str| test.events.all().iter().filter(|(_, told, _)| told == reason).count();
    assert_eq!((told("DiskPressure"), told("DiskRecovered")), (1, 0));
    let pressure = store.usage().await.unwrap().pressure.unwrap();
    assert!(pressure.contains("podstead doctor"), "{pressure}");
    let mut arrivals = store.arrivals();
    arrivals.mark_unchanged();
    fs::remove_file(other).unwrap();
    eventually("the space to be noticed", async || told("DiskRecovered") == 1).await;
    assert!(arrivals.has_changed().unwrap(), "who waits for an image tries again");
    store.ensure(&image, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap();
    assert_eq!(store.usage().await.unwrap().pressure, None);
    collection.abort();
    drop(collection.await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn power_cut_in_a_collection_leaves_whole_images() {
    let test = TestStore::new();
    let disk = Disk::of_size(1 << 30);
    let (kept, gone) = (archive(&test, "a"), archive(&test, "b"));
    let large = random_image(&test, "c", 30 * MIB);
    for cut in 0..8_u32 {
        let (store, marks) = open(&disk.root(), &test, small_reserve());
        for archive in [&kept, &gone, &large] {
            store.import(archive.clone()).await.unwrap();
        }
        marks.set(&["localhost/a:1".to_owned()]);
        let pruning = tokio::spawn({
            let store = Arc::clone(&store);
            async move { store.prune(true, false).await.map(drop) }
        });
        // Earlier and later in the removal, from one round to the next.
        let refs = disk.root().join("refs");
        let (all, deadline) = (entries(&refs), std::time::Instant::now() + Duration::from_secs(60));
        while cut > 0 && entries(&refs) == all && !pruning.is_finished() {
            assert!(std::time::Instant::now() < deadline, "the removal does not begin");
            tokio::task::yield_now().await;
        }
        for _ in 0..(1 << cut) {
            tokio::task::yield_now().await;
        }
        disk.cut();
        drop(pruning.await.unwrap());
        drop(store);
        disk.restart();
        let (store, _) = open(&disk.root(), &test, small_reserve());
        assert_eq!(test.events.all(), [], "nothing was damaged");
        let listed = references(&store).await;
        assert!(listed.contains(&"localhost/a:1".to_owned()));
        for reference in listed.iter().filter(|name| !name.contains("/c:")) {
            assert_whole(&store.ensure(reference, PullPolicy::Never, &PullSecrets::none()).await.unwrap().layers);
        }
        // The base that two of them share, and one of each.
        let layers = 1 + listed.len();
        assert_eq!((entries(&disk.root().join("layers")), files(&disk.root().join("staging"))), (layers, 0), "orphans are removed");
    }
}

/// A compressed layer that came within ten seconds is removed before the kernel writes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quick_pull_writes_its_layers_only() {
    let (test, registry) = (TestStore::new(), Registry::start());
    registry.push(&random_image(&test, "a", 24 * MIB), "a:1", &[]);
    let disk = Disk::of_size(1 << 30);
    let config = ImageStoreConfig { registries: vec![registry.config()], ..small_reserve() };
    let (store, marks) = open(&disk.root(), &test, config);
    marks.set(&[]);
    let mut written = Vec::new();
    // The kernel may write early, and a pull take ten seconds.
    while written.last().is_none_or(|bytes| *bytes > 36 * MIB) {
        assert!(written.len() < 10, "{written:?} bytes for 24 MiB");
        let before = disk.written();
        store.ensure(&registry.image("a:1"), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap();
        written.push(disk.written() - before);
        store.remove(&registry.image("a:1"), true).await.unwrap();
    }
    assert!(written.last().is_some_and(|bytes| *bytes >= 24 * MIB), "{written:?}");
}

/// F41.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_on_a_read_only_disk_gives_out_what_it_has() {
    let test = TestStore::new();
    let registry = Registry::start();
    for name in ["a", "b"] {
        registry.push(&random_image(&test, name, MIB), &format!("{name}:1"), &[]);
    }
    let (present, missing) = (registry.image("a:1"), registry.image("b:1"));
    let disk = Disk::of_size(1 << 30);
    let config = ImageStoreConfig { registries: vec![registry.config()], ..small_reserve() };
    let (store, marks) = open(&disk.root(), &test, config.clone());
    marks.set(&[]);
    store.ensure(&present, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap();
    disk.make_read_only();
    let image = store.ensure(&present, PullPolicy::Always, &PullSecrets::none()).await.unwrap();
    assert!(image.layers[0].join("content").is_file());
    for _ in 0..2 {
        let error = store.ensure(&missing, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap_err().to_string();
        assert!(error.contains("Read-only file system"), "{error}");
    }
    let error = store.prune(true, false).await.unwrap_err().to_string();
    assert!(error.contains("Read-only file system"), "{error}");
    assert!(is_present(&store, &present).await, "what could not be removed is not forgotten");
    drop((store, image));
    // After a repair, all goes on.
    disk.restart();
    let (store, _) = open(&disk.root(), &test, config);
    store.ensure(&missing, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap();
    assert!(is_present(&store, &present).await);
}
