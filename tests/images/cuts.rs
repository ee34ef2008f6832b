//! The power goes at any moment of a pull, an import, a collection and a removal, again and again on the same disk.
//!
//! The disk is an ext4 of its own, which loses what its journal has not written. What was reported done has to be there afterwards, what is listed has
//! to be whole, and nothing is left that nobody needs.

use crate::collection::{Marks, small_reserve};
use crate::power_cut::{Disk, files};
use crate::proxy::{Act, Proxy, Request};
use crate::random::Random;
use crate::real_registry::Registry;
use crate::support::{TestStore, references, with_jobs};
use podstead::{
    image::{ImageStore, ImageStoreConfig, RegistryConfig},
    pod::containers::PullPolicy,
    runtime::{ImageService, PullSecrets},
};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The work of one round, in its order: after a removal there is something to pull.
const STEPS: [&str; 4] = ["pull", "import", "collect", "remove"];
/// Cuts without `PODSTEAD_CUTS`, which `make kills` sets to 50.
const CUTS: usize = 4;
/// Bytes of the file that only the pulled image has; they do not compress.
const LARGE: usize = 8 << 20;
/// The imported image, and the size of the file that only it has.
const IMPORTED: &str = "localhost/imported:1";
const IMPORTED_FILE: usize = 3 << 20;
/// Rates of the registry, in bytes per second: a pull takes a second.
const RATE: u64 = LARGE as u64;
const PATIENCE: Duration = Duration::from_secs(120);

/// A disk, a registry with an image, and an archive of another image on the same base.
struct Bench {
    test: TestStore,
    disk: Disk,
    _registry: Registry,
    proxy: Proxy,
    archive: PathBuf,
    large: Vec<u8>,
    imported: Vec<u8>,
}

impl Bench {
    async fn new(random: &mut Random) -> Self {
        let (test, disk) = (TestStore::new(), Disk::of_size(256 << 20));
        let (large, imported) = (random.bytes(LARGE), random.bytes(IMPORTED_FILE));
        fs::write(test.path("large"), &large).unwrap();
        fs::write(test.path("imported"), &imported).unwrap();
        let add = |name: &str| format!("{}:/{name}", test.path(name).display());
        let app = test.make_image("app.tar", "app:1", &["--add", &add("large")]);
        let archive = test.make_image("imported.tar", IMPORTED, &["--add", &add("imported")]);
        let registry = Registry::start();
        registry.push(&app, "app:1", &[]);
        let script = |request: &Request| if request.path.contains("/blobs/") { Act::Drip(RATE) } else { Act::Pass };
        let proxy = Proxy::before(&registry.host, script).await;
        Self { test, disk, _registry: registry, proxy, archive, large, imported }
    }

    fn pulled(&self) -> String {
        format!("{}/app:1", self.proxy.host())
    }

    fn open(&self) -> (Arc<ImageStore>, Arc<Marks>) {
        let registry = RegistryConfig { host: self.proxy.host(), http: true, ..Default::default() };
        let config = ImageStoreConfig { registries: vec![registry], ..small_reserve() };
        let store = ImageStore::open(&self.disk.root(), with_jobs(config), self.test.events.clone()).unwrap();
        let marks = Arc::new(Marks::default());
        marks.set(&[]);
        store.set_roots(marks.clone());
        (store, marks)
    }

    async fn assert_whole(&self, store: &ImageStore, reference: &str) {
        let image = store.ensure(reference, PullPolicy::Never, &PullSecrets::none()).await.unwrap();
        let (name, content) = if reference == IMPORTED { ("imported", &self.imported) } else { ("large", &self.large) };
        assert!(fs::read(image.layers[1].join(name)).unwrap() == *content, "{name} of {reference} is damaged");
        assert!(image.layers[0].join("bin/busybox").is_file());
    }

    /// Checks that what was there before the cut is there and whole, and that nothing else is.
    async fn check(&self, there: &BTreeSet<String>) {
        let (store, _marks) = self.open();
        let listed = references(&store).await;
        let missing: Vec<_> = there.iter().filter(|reference| !listed.contains(reference)).collect();
        assert!(missing.is_empty(), "what was reported done is gone: {missing:?}");
        for reference in &listed {
            self.assert_whole(&store, reference).await;
        }
        assert_eq!(self.test.events.all(), [], "something was damaged");
        let count = |name: &str| fs::read_dir(self.disk.root().join(name)).map_or(0, Iterator::count);
        assert_eq!(files(&self.disk.root().join("staging")), 0, "trees that nobody finishes stay");
        // The base of both images, one of each, and one that an interrupted pull left for the next.
        assert!(count("layers") <= 3 && count("spool") <= 2, "{} layers, {} spools", count("layers"), count("spool"));
    }
}

/// Work in a store.
struct Work {
    store: Arc<ImageStore>,
    steps: watch::Receiver<&'static str>,
    /// Images of which it was reported that they are there.
    there: Arc<Mutex<BTreeSet<String>>>,
    task: JoinHandle<()>,
}

impl Work {
    fn begin(bench: &Bench) -> Self {
        let (store, marks) = bench.open();
        let (sender, steps) = watch::channel("");
        let there: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let task = tokio::spawn({
            let (store, there, pulled, archive) = (Arc::clone(&store), Arc::clone(&there), bench.pulled(), bench.archive.clone());
            async move { work(&store, &marks, &there, &pulled, &archive, &sender).await }
        });
        Self { store, steps, there, task }
    }

    /// Waits until the step begins.
    async fn reach(&mut self, step: &str) {
        let reached = self.steps.wait_for(|begun| *begun == step);
        tokio::time::timeout(PATIENCE, reached).await.expect("the step begins").expect("the work goes on");
    }

    /// Cuts the power; returns what was there then.
    async fn cut(self, disk: &Disk) -> BTreeSet<String> {
        let Self { store, steps, there, task } = self;
        assert!(!task.is_finished(), "the work failed by itself, in the step {}", *steps.borrow());
        let there = {
            // Nothing is reported meanwhile.
            let there = there.lock().unwrap();
            disk.cut();
            there.clone()
        };
        tokio::time::timeout(PATIENCE, task).await.expect("the work ends when its disk is gone").unwrap();
        drop(store);
        disk.restart();
        there
    }
}

/// Works until something fails.
async fn work(
    store: &ImageStore,
    marks: &Marks,
    there: &Mutex<BTreeSet<String>>,
    pulled: &str,
    archive: &Path,
    begin: &watch::Sender<&'static str>,
) {
    let is = |reference: &str| {
        there.lock().unwrap().insert(reference.to_owned());
    };
    let goes = |reference: &str| {
        there.lock().unwrap().remove(reference);
    };
    loop {
        marks.set(&[pulled.to_owned()]);
        begin.send_replace("pull");
        if store.ensure(pulled, PullPolicy::IfNotPresent, &PullSecrets::none()).await.is_err() {
            return;
        }
        is(pulled);
        begin.send_replace("import");
        if store.import(archive.to_owned()).await.is_err() {
            return;
        }
        is(IMPORTED);
        goes(IMPORTED);
        begin.send_replace("collect");
        if store.prune(true, false).await.is_err() {
            return;
        }
        marks.set(&[]);
        goes(pulled);
        begin.send_replace("remove");
        if store.remove(pulled, true).await.is_err() {
            return;
        }
    }
}

/// The time that each step takes.
async fn measure(bench: &Bench) -> [Duration; 4] {
    let mut work = Work::begin(bench);
    work.reach("pull").await;
    let (mut begun, mut times) = (Instant::now(), [Duration::ZERO; 4]);
    for (time, next) in times.iter_mut().zip(["import", "collect", "remove", "pull"]) {
        work.reach(next).await;
        *time = std::mem::replace(&mut begun, Instant::now()).elapsed();
    }
    let there = work.cut(&bench.disk).await;
    bench.check(&there).await;
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_is_whole_however_often_the_power_goes() {
    let cuts = std::env::var("PODSTEAD_CUTS").map_or(CUTS, |text| text.parse().unwrap());
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let bench = Bench::new(&mut random).await;
    let times = measure(&bench).await;
    let mut hit = [0; STEPS.len()];
    for number in 0..cuts {
        let step = number % STEPS.len();
        let mut work = Work::begin(&bench);
        work.reach(STEPS[step]).await;
        // The moment is the subject.
        tokio::time::sleep(random.part(times[step], 100)).await;
        hit[step] += usize::from(*work.steps.borrow() == STEPS[step]);
        let there = work.cut(&bench.disk).await;
        bench.check(&there).await;
    }
    eprintln!(
        "{cuts} power cuts; in the steps {STEPS:?}: {hit:?}, the others after them; {} MiB fetched",
        bench.proxy.sent() >> 20
    );
    let (store, _marks) = bench.open();
    drop(store.ensure(&bench.pulled(), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap());
    bench.assert_whole(&store, &bench.pulled()).await;
    // What a pull or an import left for its next attempt belongs to an image again.
    store.import(bench.archive.clone()).await.unwrap();
    store.prune(true, false).await.unwrap();
    let left = ["layers", "blobs", "spool", "staging"].map(|name| fs::read_dir(bench.disk.root().join(name)).unwrap().count());
    assert_eq!((references(&store).await.len(), left), (0, [0; 4]), "orphans stay");
}
