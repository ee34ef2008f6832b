//! The process dies at any moment of a pull, an import, a collection and a removal, again and again in the same store.

use crate::collection::{Marks, small_reserve};
use crate::proxy::{Act, Proxy, Request};
use crate::random::Random;
use crate::real_registry::Registry;
use crate::support::{Recorded, TestStore, references, run};
use podstead::{
    image::{ImageStore, ImageStoreConfig, RegistryConfig},
    pod::containers::PullPolicy,
    runtime::{ImageService, PullSecrets},
};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The work of one round, in its order: after a removal there is something to pull.
const STEPS: [&str; 4] = ["pull", "import", "collect", "remove"];
/// Kills without `PODSTEAD_KILLS`, which `make kills` sets to 500.
const KILLS: usize = 8;
/// So many kills hit a transfer in any case.
const MANY: usize = 100;
/// Bytes of the file that only the pulled image has; they do not compress.
const LARGE: usize = 8 << 20;
/// The imported image, and the file that only it has.
const IMPORTED: &str = "localhost/imported:1";
const IMPORTED_FILE: usize = 3 << 20;
/// Documents, the small layer, and blocks of the file system.
const SMALL: u64 = 4 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

fn config(host: &str) -> ImageStoreConfig {
    let registry = RegistryConfig { host: host.to_owned(), http: true, ..Default::default() };
    ImageStoreConfig { registries: vec![registry], ..small_reserve() }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the process that the other test kills"]
async fn works_until_it_is_killed() {
    let (root, host, archive) = (variable("PODSTEAD_TEST_ROOT"), variable("PODSTEAD_TEST_HOST"), variable("PODSTEAD_TEST_ARCHIVE"));
    let store =
        ImageStore::open(Path::new(&root), crate::support::with_jobs(config(&host)), Arc::new(Recorded::default())).unwrap();
    let marks = Arc::new(Marks::default());
    store.set_roots(marks.clone());
    let pulled = format!("{host}/app:1");
    // Not through the macro, whose output the test harness keeps. Fails when the other process is gone.
    let begin = |step: &str| std::io::stdout().write_all(format!("\nstep {step}\n").as_bytes()).unwrap();
    loop {
        marks.set(std::slice::from_ref(&pulled));
        begin("pull");
        drop(store.ensure(&pulled, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap());
        begin("import");
        store.import(PathBuf::from(&archive)).await.unwrap();
        begin("collect");
        store.prune(true, false).await.unwrap();
        begin("remove");
        marks.set(&[]);
        store.remove(&pulled, true).await.unwrap();
    }
}

/// A process that works in the store; killed when dropped.
struct Life {
    process: Child,
    steps: Receiver<String>,
}

impl Life {
    fn begin(bench: &Bench) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["kills::works_until_it_is_killed", "--exact", "--ignored", "--nocapture"])
            .env("PODSTEAD_TEST_ROOT", bench.test.root())
            .env("PODSTEAD_TEST_HOST", bench.proxy.host())
            .env("PODSTEAD_TEST_ARCHIVE", &bench.archive)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (sender, steps) = channel();
        std::thread::spawn(move || {
            let steps = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("step ").map(str::to_owned));
            for step in steps {
                if sender.send(step).is_err() {
                    return;
                }
            }
        });
        Self { process, steps }
    }

    /// Waits until the step begins.
    fn reach(&self, step: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.steps.recv_timeout(left) {
                Ok(begun) if begun == step => return,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => panic!("waited in vain for the step {step}"),
                Err(RecvTimeoutError::Disconnected) => panic!("the process failed before the step {step}"),
            }
        }
    }

    fn kill(mut self) {
        let _killed_now = self.process.kill();
        let status = self.process.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "the process failed by itself: {status}");
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let _killed_before = self.process.kill();
        let _reaped_before = self.process.wait();
    }
}

/// A store, a registry with an image, and an archive of another image on the same base.
struct Bench {
    test: TestStore,
    _registry: Registry,
    proxy: Proxy,
    archive: PathBuf,
    large: Vec<u8>,
    imported: Vec<u8>,
}

impl Bench {
    async fn new(random: &mut Random) -> Self {
        let test = TestStore::new();
        let (large, imported) = (random.bytes(LARGE), random.bytes(IMPORTED_FILE));
        fs::write(test.path("large"), &large).unwrap();
        fs::write(test.path("imported"), &imported).unwrap();
        let add = |name: &str| format!("{}:/{name}", test.path(name).display());
        let app = test.make_image("app.tar", "app:1", &["--add", &add("large")]);
        let archive = test.make_image("imported.tar", IMPORTED, &["--add", &add("imported")]);
        let registry = Registry::start();
        registry.push(&app, "app:1", &[]);
        // Slowly enough that kills meet the transfer.
        let script = |request: &Request| if request.path.contains("/blobs/") { Act::Drip(LARGE as u64 * 2) } else { Act::Pass };
        let proxy = Proxy::before(&registry.host, script).await;
        Self { test, _registry: registry, proxy, archive, large, imported }
    }

    fn pulled(&self) -> String {
        format!("{}/app:1", self.proxy.host())
    }

    fn open(&self) -> Arc<ImageStore> {
        let store = self.test.open_with(config(&self.proxy.host()));
        let marks = Arc::new(Marks::default());
        marks.set(&[]);
        store.set_roots(marks);
        store
    }

    fn disk_bytes(&self) -> u64 {
        let counted = run(Command::new("du").args(["-s", "--block-size=1"]).arg(self.test.root()));
        counted.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// End of the path of the large layer, and the bytes of it that are on disk; `None` unless it is a part.
    fn fetched_part(&self) -> Option<(String, u64)> {
        let mut spools = fs::read_dir(self.test.root().join("spool")).ok()?.flatten();
        let part = |spool: fs::DirEntry| {
            let name = spool.file_name().into_string().ok()?;
            let (hex, size) = name.split_once('-')?;
            let size: u64 = size.parse().ok()?;
            let have = fs::metadata(spool.path().join("data")).ok()?.len();
            // The base is much smaller, and comes with the other image, too.
            let is_part = size >= LARGE as u64 && have > 0 && have < size;
            is_part.then(|| (format!("/blobs/sha256:{hex}"), have))
        };
        spools.find_map(part)
    }

    async fn assert_whole(&self, store: &ImageStore, reference: &str) {
        let image = store.ensure(reference, PullPolicy::Never, &PullSecrets::none()).await.unwrap();
        let (name, content) = if reference == IMPORTED { ("imported", &self.imported) } else { ("large", &self.large) };
        assert!(fs::read(image.layers[1].join(name)).unwrap() == *content, "{name} of {reference} is damaged");
        assert!(image.layers[0].join("bin/busybox").is_file());
    }

    /// Checks that what is listed is whole, and that all that is there stays within `bound`.
    async fn check(&self, bound: u64) {
        let store = self.open();
        for reference in references(&store).await {
            self.assert_whole(&store, &reference).await;
        }
        assert_eq!(self.test.events.all(), [], "something was damaged");
        assert_eq!(self.test.staged(), 0, "trees that nobody finishes stay");
        let bytes = self.disk_bytes();
        assert!(bytes <= bound, "{bytes} bytes on disk, more than {bound}");
    }
}

/// The time that each step takes.
fn measure(bench: &Bench) -> [Duration; 4] {
    let life = Life::begin(bench);
    life.reach("pull");
    let mut begun = Instant::now();
    let times = ["import", "collect", "remove", "pull"].map(|next| {
        life.reach(next);
        std::mem::replace(&mut begun, Instant::now()).elapsed()
    });
    life.kill();
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_stays_whole_and_small_however_often_its_process_is_killed() {
    let kills = std::env::var("PODSTEAD_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let bench = Bench::new(&mut random).await;
    let times = measure(&bench);
    // Both images, a part of the one that is pulled, and a part of its successor's unpacking.
    let bound = (2 * LARGE + IMPORTED_FILE) as u64 + SMALL;
    let mut continued = 0;
    for number in 0..kills {
        let step = number % STEPS.len();
        let part = bench.fetched_part();
        let asked = part.as_ref().map_or(0, |(path, _)| bench.proxy.seen(path).len());
        let life = Life::begin(&bench);
        life.reach(STEPS[step]);
        std::thread::park_timeout(random.part(times[step], 200));
        life.kill();
        if let Some((path, have)) = part
            && let Some(request) = bench.proxy.seen(&path).get(asked)
        {
            assert!(request.offset >= have, "kill {number}: {have} bytes were there, fetched again from {}", request.offset);
            continued += 1;
        }
        bench.check(bound).await;
    }
    let sent = bench.proxy.sent();
    eprintln!("{kills} kills, of which {continued} hit the transfer of the large layer; {} MiB fetched in all", sent >> 20);
    assert!(kills < MANY || continued > 0, "no kill hit a transfer");
    let store = bench.open();
    drop(store.ensure(&bench.pulled(), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap());
    bench.assert_whole(&store, &bench.pulled()).await;
    // What a pull or an import left for its next attempt belongs to an image again.
    store.import(bench.archive.clone()).await.unwrap();
    store.prune(true, false).await.unwrap();
    let blobs = fs::read_dir(bench.test.root().join("blobs")).unwrap().count();
    assert_eq!((references(&store).await.len(), bench.test.layers(), blobs), (0, 0, 0), "orphans stay");
    assert_eq!((bench.test.spools(), bench.test.staged()), (0, 0));
}
