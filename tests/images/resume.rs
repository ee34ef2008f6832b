//! Pulls over links that break, by daemons that are killed and hosts that lose power: a real registry behind a proxy that spoils its answers.

use crate::power_cut::Disk;
use crate::proxy::{Act, Proxy, Request};
use crate::real_registry::Registry;
use crate::support::{TestStore, eventually};
use podstead::{
    container::ResolvedImage,
    image::{ImageStore, ImageStoreConfig, RegistryConfig},
    pod::containers::PullPolicy,
    runtime::{ImageError, ImageService, PullSecrets},
};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Bytes of the large layer's file, which does not compress.
const LARGE: u64 = 16 << 20;
/// Bytes of a spool that have one checksum.
const BLOCK: u64 = 256 << 10;

/// A registry with an image of a small and a large layer.
struct Bench {
    test: TestStore,
    registry: Registry,
    content: Vec<u8>,
}

impl Bench {
    fn new() -> Self {
        let test = TestStore::new();
        let registry = Registry::start();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        let content: Vec<u8> = (0..LARGE / 8).flat_map(|_| random()).collect();
        std::fs::write(test.path("large"), &content).unwrap();
        let archive = test.make_image("app.tar", "app:1", &["--add", &format!("{}:/large", test.path("large").display())]);
        registry.push(&archive, "app:1", &[]);
        Self { test, registry, content }
    }

    async fn proxy(&self, script: impl Fn(&Request) -> Act + Send + Sync + 'static) -> Proxy {
        Proxy::before(&self.registry.host, script).await
    }

    fn open(&self, proxy: &Proxy) -> Arc<ImageStore> {
        self.test.open_with(config(&proxy.host()))
    }

    fn assert_whole(&self, image: &ResolvedImage) {
        assert!(std::fs::read(image.layers[1].join("large")).unwrap() == self.content, "the large file is damaged");
        assert!(image.layers[0].join("bin").is_dir());
    }
}

fn config(host: &str) -> ImageStoreConfig {
    let registry = RegistryConfig { host: host.to_owned(), http: true, ..Default::default() };
    ImageStoreConfig { registries: vec![registry], ..Default::default() }
}

async fn pull(store: &ImageStore, proxy: &Proxy) -> Result<ResolvedImage, ImageError> {
    store.ensure(&format!("{}/app:1", proxy.host()), PullPolicy::IfNotPresent, &PullSecrets::none()).await
}

async fn refusal(bench: &Bench, act: impl Fn(&Request) -> Act + Send + Sync + 'static) -> String {
    let proxy = bench.proxy(act).await;
    let test = TestStore::new();
    let store = test.open_with(config(&proxy.host()));
    let error = pull(&store, &proxy).await.expect_err("the pull has to fail");
    error.to_string()
}

/// The large layer, which breaks off after so many bytes the first time.
fn is_large(request: &Request, large: &str) -> bool {
    request.path.ends_with(large)
}

/// Digest of the large layer.
async fn large(bench: &Bench) -> String {
    let proxy = bench.proxy(|_| Act::Pass).await;
    let other = TestStore::new();
    let store = other.open_with(config(&proxy.host()));
    let mut progress = store.progress();
    pull(&store, &proxy).await.unwrap();
    let mut found = None;
    while let Ok(report) = progress.try_recv() {
        found = found.or(report.total.filter(|total| *total >= LARGE).map(|_| report.layer));
    }
    found.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the daemon that killed_daemon_goes_on_at_its_byte kills"]
async fn pulls_until_it_is_killed() {
    let (root, host) = (std::env::var("PODSTEAD_TEST_ROOT").unwrap(), std::env::var("PODSTEAD_TEST_HOST").unwrap());
    let store =
        ImageStore::open(Path::new(&root), crate::support::with_jobs(config(&host)), Arc::new(crate::support::Recorded::default()))
            .unwrap();
    store.ensure(&format!("{host}/app:1"), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_daemon_goes_on_at_its_byte() {
    let bench = Bench::new();
    let proxy = bench.proxy(|request| if request.path.contains("/blobs/") { Act::Drip(12 << 20) } else { Act::Pass }).await;
    let kills = std::env::var("PODSTEAD_KILLS").map_or(5, |kills| kills.parse().unwrap());
    for number in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["resume::pulls_until_it_is_killed", "--exact", "--ignored"])
            .env("PODSTEAD_TEST_ROOT", bench.test.root())
            .env("PODSTEAD_TEST_HOST", proxy.host())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Spread over the whole transfer, with the unpacking and the end of the pull.
        let until = proxy.sent() + (LARGE / 64) * (1 + number * 37 % 61);
        let pid = Pid::from_child(&child);
        let is_over = std::cell::RefCell::new(&mut child);
        eventually("some bytes", || async { proxy.sent() >= until || is_over.borrow_mut().try_wait().unwrap().is_some() }).await;
        // It may have ended by itself.
        let _killed = kill_process(pid, Signal::KILL);
        child.wait().unwrap();
        let store = bench.open(&proxy);
        if pull_is_present(&store, &proxy).await {
            // A kill came after the end: begin anew.
            store.remove(&format!("{}/app:1", proxy.host()), true).await.unwrap();
        }
    }
    let store = bench.open(&proxy);
    bench.assert_whole(&pull(&store, &proxy).await.unwrap());
    let large: Vec<Request> = proxy.seen("/blobs/").into_iter().filter(|request| request.offset > 0).collect();
    assert!(!large.is_empty(), "no connection went on");
    assert_eq!((bench.test.spools(), bench.test.staged()), (0, 0));
}

async fn pull_is_present(store: &ImageStore, proxy: &Proxy) -> bool {
    store.ensure(&format!("{}/app:1", proxy.host()), PullPolicy::Never, &PullSecrets::none()).await.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_that_is_opened_again_fetches_no_byte_twice() {
    let bench = Bench::new();
    let large = large(&bench).await;
    let name = large.clone();
    // The first connection brings half of it, then the registry is gone for this pull.
    let proxy = bench
        .proxy(move |request| match (is_large(request, &name), request.number) {
            (true, 0) => Act::Cut(LARGE / 2),
            (true, 1) => Act::Status(404, String::new()),
            _ => Act::Pass,
        })
        .await;
    let store = bench.open(&proxy);
    let error = pull(&store, &proxy).await.unwrap_err().to_string();
    assert!(error.contains("404"), "{error}");
    drop(store);
    assert_eq!(bench.test.spools(), 1);
    let store = bench.open(&proxy);
    bench.assert_whole(&pull(&store, &proxy).await.unwrap());
    let offsets: Vec<u64> = proxy.seen(&large).iter().map(|request| request.offset).collect();
    assert_eq!(offsets, [0, LARGE / 2, LARGE / 2]);
    assert_eq!((bench.test.spools(), bench.test.staged()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn power_cut_costs_what_was_not_synced() {
    let bench = Bench::new();
    let large = large(&bench).await;
    let disk = Disk::new();
    let name = large.clone();
    let is_slow = move |request: &Request| is_large(request, &name) && request.number == 0;
    let proxy = bench.proxy(move |request| if is_slow(request) { Act::Drip(400 << 10) } else { Act::Pass }).await;
    let open =
        || ImageStore::open(&disk.root(), crate::support::with_jobs(config(&proxy.host())), bench.test.events.clone()).unwrap();
    let store = open();
    let pulling = tokio::spawn({
        let (store, image) = (Arc::clone(&store), format!("{}/app:1", proxy.host()));
        async move { drop(store.ensure(&image, PullPolicy::IfNotPresent, &PullSecrets::none()).await) }
    });
    let spool = disk.root().join("spool");
    let sums = || std::fs::read_dir(&spool).ok()?.flatten().map(|entry| entry.path().join("sums")).find(|path| path.is_file());
    let synced = || sums().map_or(0, |sums| std::fs::metadata(sums).unwrap().len());
    eventually("the first sync", || async { synced() > 0 }).await;
    // Checksums can be seen before they are durable; the second sync begins when the first one has ended.
    let first = synced();
    eventually("the second sync", || async { synced() > first }).await;
    let fetched = proxy.sent();
    disk.cut();
    pulling.await.unwrap();
    drop(store);
    disk.restart();
    // The kernel is the same one: as after another boot.
    for entry in std::fs::read_dir(&spool).unwrap().flatten() {
        let record = entry.path().join("spool.json");
        let text = std::fs::read_to_string(&record).unwrap();
        let at = text.find("boot_id").unwrap();
        std::fs::write(&record, [&text[..at + 10], "x", &text[at + 11..]].concat()).unwrap();
    }
    let layers = || std::fs::read_dir(disk.root().join("layers")).unwrap().count();
    assert_eq!(layers(), 1, "the small layer was published meanwhile");
    let store = open();
    assert_eq!(layers(), 1, "it stays for the next attempt");
    let (asked, blobs) = (proxy.seen(&large).len(), proxy.seen("/blobs/").len());
    bench.assert_whole(&pull(&store, &proxy).await.unwrap());
    assert_eq!(proxy.seen("/blobs/").len() - blobs, 2, "the configuration and the large layer");
    let resumed = proxy.seen(&large)[asked].offset;
    assert!(resumed > 0 && resumed % BLOCK == 0, "{resumed}");
    assert!(fetched - resumed <= (8 << 20) + 16 * BLOCK, "went on at {resumed} of {fetched}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn host_without_ranges_on_a_bad_link_is_named() {
    let bench = Bench::new();
    let large = large(&bench).await;
    let error =
        refusal(&bench, move |request| if is_large(request, &large) { Act::IgnoreRange(10 << 20) } else { Act::Pass }).await;
    assert!(error.contains("cannot resume a download: longest unbroken stretch 10 MiB of 16"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfit_answers_to_a_range_are_not_appended() {
    let bench = Bench::new();
    let large = large(&bench).await;
    let range = |text: &str| Act::Header("Content-Range", Some(text.to_owned()));
    let answers = [
        (range("bytes 99999999-100000000/100000001"), "bytes instead of"),
        (range("bytes 8388700-16777300/*"), "different range"),
        (range("bytes eight-nine/ten"), "without a valid Content-Range"),
        (Act::Header("Content-Range", None), "without a valid Content-Range"),
        (Act::Header("Content-Encoding", Some("gzip".into())), "compressed on the way"),
        (Act::Status(416, "Content-Range: bytes */5\r\n".into()), "416), of 5"),
    ];
    for (act, reason) in answers {
        let (name, answer) = (large.clone(), act.clone());
        let error = refusal(&bench, move |request| match (is_large(request, &name), request.number) {
            (true, 0) => Act::Cut(LARGE / 2),
            (true, _) => answer.clone(),
            _ => Act::Pass,
        });
        let error = error.await;
        assert!(error.contains(reason), "{act:?}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_refuses_ranges_is_asked_without() {
    let bench = Bench::new();
    for status in [400, 501] {
        let proxy = bench
            .proxy(move |request| match (request.path.contains("/blobs/"), request.offset) {
                (true, 0) if request.number == 0 => Act::Cut(100_000),
                (true, 1..) => Act::Status(status, String::new()),
                _ => Act::Pass,
            })
            .await;
        let store = TestStore::new();
        let store = store.open_with(config(&proxy.host()));
        bench.assert_whole(&pull(&store, &proxy).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retry_after_is_honoured_by_the_date_of_the_answer() {
    let bench = Bench::new();
    let dates = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:40 GMT\r\n";
    for status in [429, 503] {
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let times = Arc::clone(&asked);
        let proxy = bench
            .proxy(move |request| {
                if !request.path.contains("/manifests/") {
                    return Act::Pass;
                }
                times.lock().unwrap().push(std::time::Instant::now());
                if request.number == 0 { Act::Status(status, dates.into()) } else { Act::Pass }
            })
            .await;
        let store = TestStore::new();
        let store = store.open_with(config(&proxy.host()));
        bench.assert_whole(&pull(&store, &proxy).await.unwrap());
        let asked = asked.lock().unwrap();
        assert!(asked[1] - asked[0] >= Duration::from_secs(3), "asked again too early");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registry_that_asks_for_an_hour_is_left_alone() {
    let bench = Bench::new();
    let proxy = bench.proxy(|_| Act::Status(429, "Retry-After: 3600\r\n".into())).await;
    let store = bench.open(&proxy);
    for _ in 0..3 {
        let error = pull(&store, &proxy).await.unwrap_err().to_string();
        assert!(error.contains("429 Too Many Requests") && error.contains("asked to wait 3"), "{error}");
    }
    assert_eq!(proxy.seen("/v2/").len(), 1, "it is closed");
}

/// F18: the first half comes with a token that the registry does not accept any more for the second one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_that_expires_in_a_layer_is_replaced() {
    let bench = Bench::new();
    let large = large(&bench).await;
    let name = large.clone();
    let valid = Arc::new(AtomicUsize::new(1));
    let own = Arc::new(OnceLock::<String>::new());
    let (now, realm) = (Arc::clone(&valid), Arc::clone(&own));
    let proxy = bench
        .proxy(move |request| {
            let token = format!("token-{}", now.load(Ordering::SeqCst));
            if request.path.starts_with("/token") {
                return Act::Document(format!(r#"{{"token":"{token}","expires_in":300}}"#));
            }
            if request.authorization != format!("Bearer {token}") {
                let challenge = format!(r#"Bearer realm="http://{}/token",service="test""#, realm.get().unwrap());
                return Act::Status(401, format!("WWW-Authenticate: {challenge}\r\n"));
            }
            match is_large(request, &name) && request.offset == 0 {
                true => {
                    now.fetch_add(1, Ordering::SeqCst);
                    Act::Cut(LARGE / 2)
                }
                false => Act::Pass,
            }
        })
        .await;
    own.set(proxy.host()).unwrap();
    let store = bench.open(&proxy);
    bench.assert_whole(&pull(&store, &proxy).await.unwrap());
    let asked: Vec<(u64, bool)> =
        proxy.seen(&large).iter().map(|request| (request.offset, request.authorization.ends_with("token-2"))).collect();
    assert_eq!(asked.last(), Some(&(LARGE / 2, true)), "{asked:?}");
    assert_eq!(asked.iter().filter(|(offset, _)| *offset == 0).count(), 1, "no byte came twice: {asked:?}");
    assert_eq!(valid.load(Ordering::SeqCst), 2);
}

/// F18: the URL that the registry leads to is good for one connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signed_url_that_expires_is_asked_for_anew() {
    let bench = Bench::new();
    let large = large(&bench).await;
    let name = large.clone();
    let proxy = bench
        .proxy(move |request| match request.path.split_once("?signature=") {
            None if is_large(request, &name) => {
                Act::Status(307, format!("Location: {}?signature={}\r\n", request.path, request.number))
            }
            Some((_, "0")) if request.number == 0 => Act::Cut(LARGE / 2),
            Some((_, "0")) => Act::Status(403, String::new()),
            Some(_) | None => Act::Pass,
        })
        .await;
    let store = bench.open(&proxy);
    bench.assert_whole(&pull(&store, &proxy).await.unwrap());
    let asked: Vec<(bool, u64)> =
        proxy.seen(&large).iter().map(|request| (request.path.contains("signature"), request.offset)).collect();
    assert_eq!(asked, [(false, 0), (true, 0), (false, LARGE / 2), (true, LARGE / 2)]);
}
