//! Damage of stored images: found, and mended from a registry or an archive.

use crate::collection::{Marks, small_reserve};
use crate::power_cut::Disk;
use crate::real_registry::Registry;
use crate::support::{TestStore, eventually, references};
use podstead::{
    container::ResolvedImage,
    image::{ImageStore, ImageStoreConfig},
    pod::containers::PullPolicy,
    runtime::{ImageService, PullSecrets, Repair, VerifiedImage},
};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// A store with an image of two layers, of which the upper one has the file `etc/added`.
struct Site {
    test: TestStore,
    registry: Registry,
    store: Arc<ImageStore>,
    image: ResolvedImage,
    content: Vec<u8>,
}

impl Site {
    async fn new() -> Self {
        let test = TestStore::new();
        let registry = Registry::start();
        let content = b"written by the layer\n".to_vec();
        fs::write(test.path("added"), &content).unwrap();
        let added = format!("{}:/etc/added", test.path("added").display());
        registry.push(&test.make_image("app.tar", "app:1", &["--add", &added]), "app:1", &[]);
        let store = open(&test, &registry);
        let image = store.ensure(&registry.image("app:1"), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap();
        Self { test, registry, store, image, content }
    }

    fn added(&self) -> PathBuf {
        self.image.layers[1].join("etc/added")
    }

    /// Damages files as a disk may do.
    fn damage(&self) {
        fs::write(self.added(), b"written by the disk!\n").unwrap();
    }

    fn is_whole(&self) -> bool {
        fs::read(self.added()).unwrap() == self.content
    }

    async fn verify(&self, repair: bool) -> VerifiedImage {
        let mut report = self.store.verify(&[self.registry.image("app:1")], repair).await.unwrap();
        assert_eq!(report.images.len(), 1);
        report.images.remove(0)
    }

    fn told(&self, reason: &str) -> Vec<String> {
        self.test.events.all().into_iter().filter(|(_, told, _)| told == reason).map(|(_, _, message)| message).collect()
    }

    fn exchanged(&self) -> usize {
        let names = fs::read_dir(self.test.root().join("layers")).unwrap();
        names.filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().contains("exchanged")).count()
    }
}

fn open(test: &TestStore, registry: &Registry) -> Arc<ImageStore> {
    let store = test.open_with(ImageStoreConfig { registries: vec![registry.config()], ..Default::default() });
    let marks = Arc::new(Marks::default());
    marks.set(&[registry.image("app:1")]);
    store.set_roots(marks);
    store
}

/// A container: an overlay of layers in a mount namespace of its own, which tells a file's content for each line.
struct Container(Child);

impl Container {
    fn start(directory: &Path, image: &ResolvedImage, file: &str) -> Self {
        let layers: Vec<String> = image.layers.iter().rev().map(|layer| layer.display().to_string()).collect();
        let script = format!(
            "mkdir -p {dir}/u {dir}/w {dir}/m && mount -t overlay overlay -o lowerdir={lower},upperdir={dir}/u,workdir={dir}/w {dir}/m && \
             echo up && while read line; do cat {dir}/m/{file}; done",
            dir = directory.display(),
            lower = layers.join(":")
        );
        let mut command = Command::new("unshare");
        command.args(["-m", "--propagation", "private", "sh", "-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut container = Self(command.spawn().unwrap());
        assert_eq!(container.line(), "up\n");
        container
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        BufReader::with_capacity(1, self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line
    }

    fn reads(&mut self) -> String {
        self.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        self.line()
    }

    fn stop(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// F38.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_layer_is_exchanged_under_a_running_container() {
    let site = Site::new().await;
    let whole = site.verify(true).await;
    assert_eq!((whole.damage, whole.unlisted_layers, whole.repair), (vec![], 0, None));
    site.damage();
    let mut container = Container::start(site.test.directory.path(), &site.image, "etc/added");
    let found = site.verify(false).await;
    assert!(found.damage.len() == 1 && found.damage[0].ends_with(": /etc/added has another content"), "{found:?}");
    assert!(found.is_damaged() && !site.is_whole());
    let told = site.told("ImageDamaged");
    assert!(told.len() == 1 && told[0].contains("pod shop/web") && told[0].contains("/etc/added"), "{told:?}");
    let mended = site.verify(true).await;
    assert_eq!(mended.repair, Some(Repair::Done { from: site.registry.host.clone() }));
    assert!(site.is_whole() && site.verify(false).await.damage.is_empty());
    let told = site.told("ImageRepaired");
    assert!(told.len() == 1 && told[0].contains("pod shop/web") && told[0].contains("/etc/added"), "{told:?}");
    assert_eq!(container.reads(), "written by the disk!\n", "it has the tree that it began with");
    assert_eq!((site.exchanged(), site.test.staged(), site.test.spools()), (1, 0, 0));
    // Neither does a restart of the daemon take it away.
    let Site { test, registry, store, image, content } = site;
    drop(store);
    let site = Site { store: open(&test, &registry), test, registry, image, content };
    assert_eq!(site.exchanged(), 1);
    assert_eq!(container.reads(), "written by the disk!\n");
    container.stop();
    let Site { test, registry, store, .. } = site;
    drop(store);
    drop(open(&test, &registry));
    assert_eq!(test.layers(), 2);
}

/// F8: the power went, and the disk had not written what it said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn layers_of_an_earlier_boot_are_mended_at_start() {
    let site = Site::new().await;
    site.damage();
    let Site { test, registry, store, image, content } = site;
    drop(store);
    let records = || fs::read_dir(test.root().join("layers")).unwrap().map(|entry| entry.unwrap().path().join("layer.json"));
    for record in records() {
        let text = fs::read_to_string(&record).unwrap();
        let at = text.find(r#""boot_id":""#).unwrap() + 11;
        fs::write(&record, [&text[..at], "x", &text[at + 1..]].concat()).unwrap();
    }
    let store = open(&test, &registry);
    let check = tokio::spawn(store.run_check());
    let other_boot = || records().filter(|record| fs::read_to_string(record).unwrap().contains(r#""boot_id":"x"#)).count();
    eventually("the check", async || other_boot() == 0).await;
    let site = Site { test, registry, store, image, content };
    assert!(site.is_whole());
    assert_eq!((site.told("ImageRepaired").len(), site.told("ImageDamaged").len()), (1, 0));
    check.abort();
    drop(check.await);
}

/// F39.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_without_a_source_is_told_and_the_image_stays() {
    let site = Site::new().await;
    site.damage();
    let Site { test, registry, store, image, content } = site;
    let name = registry.image("app:1");
    registry.stop();
    let report = store.verify(&[], true).await.unwrap();
    let Some(Repair::Failed { reason }) = &report.images[0].repair else { panic!("{report:?}") };
    assert!(reason.starts_with("it needs its registry, or an archive of it in the preload directory: "), "{reason}");
    assert!(reason.contains(name.split('/').next().unwrap()), "{reason}");
    let events = test.events.all();
    assert!(events.iter().any(|(_, told, message)| told == "ImageDamaged" && message.contains(reason)), "{events:?}");
    assert_eq!(store.ensure(&name, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap(), image, "it can be used");
    assert_eq!(fs::read(image.layers[1].join("etc/added")).unwrap().len(), content.len());
    assert_eq!(test.staged(), 0);
    let unknown = store.verify(&["localhost/none:1".to_owned()], true).await.unwrap_err().to_string();
    assert!(unknown.contains("it is not present"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn preloaded_image_is_mended_from_its_archive() {
    let test = TestStore::new();
    fs::create_dir(test.path("preload")).unwrap();
    test.make_image("preload/a.tar.gz", "localhost/a:1", &["--add", "/etc/hostname:/etc/added"]);
    let store = test.open_with(ImageStoreConfig { preload: Some(test.path("preload")), ..Default::default() });
    let preload = tokio::spawn(store.run_preload());
    let image = store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    fs::remove_file(image.layers[1].join("etc/added")).unwrap();
    fs::write(image.layers[0].join("bin/strange"), "x").unwrap();
    let mended = store.verify(&[], true).await.unwrap().images.remove(0);
    assert_eq!(mended.damage.len(), 2, "{mended:?}");
    assert_eq!(mended.repair, Some(Repair::Done { from: test.path("preload/a.tar.gz").display().to_string() }));
    assert!(image.layers[1].join("etc/added").is_file() && !image.layers[0].join("bin/strange").is_file());
    assert_eq!((test.layers(), test.staged()), (2, 0), "nobody had the damaged ones");
    assert_eq!(references(&store).await, ["localhost/a:1"]);
    preload.abort();
    drop(preload.await);
}

/// F40.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_documents_and_records_are_fetched_again() {
    let site = Site::new().await;
    let manifest = site.test.root().join("blobs").join(site.image.digest.strip_prefix("sha256:").unwrap());
    let text = fs::read(&manifest).unwrap();
    fs::write(&manifest, b"{}").unwrap();
    fs::write(site.image.layers[0].parent().unwrap().join("layer.json"), b"{}").unwrap();
    fs::write(site.image.layers[1].parent().unwrap().join("files"), b"").unwrap();
    let mended = site.verify(true).await;
    assert!(mended.damage.len() == 3 && mended.damage[0].starts_with("its manifest sha256:"), "{mended:?}");
    assert_eq!(mended.repair, Some(Repair::Done { from: site.registry.host.clone() }));
    assert!(fs::read(&manifest).unwrap() == text && site.verify(false).await.damage.is_empty());
    // It is whole for the next daemon, too.
    let Site { test, registry, store, image, .. } = site;
    drop(store);
    let store = open(&test, &registry);
    assert_eq!(store.ensure(&registry.image("app:1"), PullPolicy::Never, &PullSecrets::none()).await.unwrap(), image);
}

/// I47.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doubt_makes_an_image_be_mended() {
    let site = Site::new().await;
    site.damage();
    site.store.doubt(&site.image, "exec format error");
    eventually("the repair", async || !site.told("ImageRepaired").is_empty()).await;
    assert!(site.is_whole());
}

/// I47: the kernel tells of an error of the file system.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn error_of_the_file_system_is_a_doubt() {
    let Site { test, registry, store, .. } = Site::new().await;
    drop(store);
    let disk = Disk::new();
    let config = ImageStoreConfig { registries: vec![registry.config()], ..small_reserve() };
    let store = ImageStore::open(&disk.root(), crate::support::with_jobs(config), test.events.clone()).unwrap();
    let marks = Arc::new(Marks::default());
    marks.set(&[registry.image("app:1")]);
    store.set_roots(marks);
    let image = store.ensure(&registry.image("app:1"), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap();
    let checking = tokio::spawn(store.run_check());
    let added = image.layers[1].join("etc/added");
    fs::write(&added, b"written by the disk!\n").unwrap();
    let repaired = || test.events.all().iter().any(|(_, reason, _)| reason == "ImageRepaired");
    eventually("the repair", async || {
        // Until the watch has begun, an error is one of the past.
        disk.report_error();
        repaired()
    })
    .await;
    assert_eq!(fs::read(&added).unwrap(), b"written by the layer\n");
    checking.abort();
    assert!(checking.await.unwrap_err().is_cancelled());
}
