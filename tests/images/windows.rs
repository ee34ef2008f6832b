//! Windows for updates and caps on bandwidth, before a real registry.

use crate::proxy::{Act, Proxy, Request};
use crate::real_registry::Registry;
use crate::support::{TestStore, eventually};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use podstead::{
    image::{Bandwidth, Day, ImageStore, ImageStoreConfig, PullWindow, RegistryConfig, Reserve, StoreSettings, TimeOfDay},
    pod::containers::PullPolicy,
    runtime::{HostFigures, ImageService, PullPhase, PullSecrets, PullState},
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of the large layer's file, which does not compress.
const LARGE: usize = 1 << 20;

struct Site {
    test: TestStore,
    _registry: Registry,
    proxy: Proxy,
}

impl Site {
    async fn new(script: impl Fn(&Request) -> Act + Send + Sync + 'static) -> Self {
        let test = TestStore::new();
        let mut content = vec![0; LARGE];
        std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").unwrap(), &mut content).unwrap();
        std::fs::write(test.path("large"), content).unwrap();
        let archive = test.make_image("app.tar", "app:1", &["--add", &format!("{}:/large", test.path("large").display())]);
        let registry = Registry::start();
        registry.push(&archive, "app:1", &[]);
        let proxy = Proxy::before(&registry.host, script).await;
        Self { test, _registry: registry, proxy }
    }

    fn image(&self) -> String {
        format!("{}/app:1", self.proxy.host())
    }

    fn open(&self, config: ImageStoreConfig) -> Arc<ImageStore> {
        let registry = RegistryConfig { host: self.proxy.host(), http: true, ..Default::default() };
        self.test.open_with(ImageStoreConfig { registries: vec![registry], ..config })
    }

    fn update(&self, store: &Arc<ImageStore>, policy: PullPolicy) -> tokio::task::JoinHandle<bool> {
        let (store, image) = (Arc::clone(store), self.image());
        tokio::spawn(async move { store.ensure_update(&image, policy, &PullSecrets::none()).await.is_ok() })
    }

    /// Bytes of layers that were sent: the configuration is small.
    fn has_sent_layers(&self) -> bool {
        self.proxy.sent() > 64 << 10
    }
}

/// A window of one whole day, which is neither today nor tomorrow.
fn closed() -> ImageStoreConfig {
    let today = Timestamp::now().to_zoned(TimeZone::UTC);
    let day = Day::ALL[usize::try_from(today.weekday().to_monday_zero_offset() + 3).unwrap() % 7].0;
    with(vec![window(vec![day], "00:00", "24:00")])
}

fn window(days: Vec<Day>, from: &str, to: &str) -> PullWindow {
    let time = |text: &str| TimeOfDay::parse(text).unwrap();
    PullWindow::new(days, time(from), time(to), None, TimeZone::UTC).unwrap()
}

fn with(windows: Vec<PullWindow>) -> ImageStoreConfig {
    ImageStoreConfig { windows, ..Default::default() }
}

/// Waits until the only pull waits for a window.
async fn held(store: &ImageStore) -> PullState {
    eventually("the wait", || async { store.pulls().first().is_some_and(|pull| pull.phase == PullPhase::Waiting) }).await;
    store.pulls().remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn update_waits_until_somebody_needs_it() {
    let site = Site::new(|_| Act::Pass).await;
    let store = site.open(closed());
    let update = site.update(&store, PullPolicy::IfNotPresent);
    let pull = held(&store).await;
    let until = pull.hold.and_then(|hold| hold.until).unwrap();
    let wait = until.duration_since(Timestamp::now());
    assert!(SignedDuration::from_hours(24) < wait && wait <= SignedDuration::from_hours(3 * 24), "{wait:?}");
    let words = format!(", waiting: outside the windows for updates, until {}T00:00Z", until.strftime("%Y-%m-%d"));
    assert!(pull.size() > LARGE as u64 && pull.summary().unwrap().ends_with(&words), "{pull:?}");
    assert!(!site.has_sent_layers() && !update.is_finished());
    // The pod that runs has ended, or another one has none.
    drop(store.ensure(&site.image(), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap());
    assert!(update.await.unwrap() && site.has_sent_layers());
    // What is here needs no window, even if its registry has to be asked.
    assert!(site.update(&store, PullPolicy::Always).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pull_by_hand_passes_a_window() {
    let site = Site::new(|_| Act::Pass).await;
    let store = site.open(closed());
    let update = site.update(&store, PullPolicy::IfNotPresent);
    held(&store).await;
    drop(store.pull_by_hand(&site.image()).await.unwrap());
    assert!(update.await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wait_ends_when_nobody_wants_the_image() {
    let site = Site::new(|_| Act::Pass).await;
    let store = site.open(closed());
    for _ in 0..2 {
        let update = site.update(&store, PullPolicy::IfNotPresent);
        held(&store).await;
        update.abort();
        eventually("the end of the pull", || async { store.pulls().is_empty() }).await;
    }
    assert!(!site.has_sent_layers());
}

/// Windows are to the minute, so that this takes up to one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn download_stops_when_its_window_closes() {
    let site = Site::new(|request| if request.path.contains("/blobs/") { Act::Drip(4 << 10) } else { Act::Pass }).await;
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    // Five seconds are left for the pull to begin.
    let end = now.checked_add(65.seconds()).unwrap();
    let store = site.open(with(vec![window(Vec::new(), &now.strftime("%H:%M").to_string(), &end.strftime("%H:%M").to_string())]));
    let update = site.update(&store, PullPolicy::IfNotPresent);
    let deadline = Instant::now() + Duration::from_secs(120);
    while store.pulls().first().is_none_or(|pull| pull.phase != PullPhase::Waiting) {
        assert!(Instant::now() < deadline && !update.is_finished(), "{:?}", store.pulls());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let sent = site.proxy.sent();
    assert!(sent > 0 && sent < LARGE as u64 && !update.is_finished());
    assert_eq!(site.test.staged(), 0);
    let offsets = || site.proxy.seen("/blobs/").iter().filter(|request| request.offset > 0).count();
    assert_eq!(offsets(), 0);
    let store_of_hand = Arc::clone(&store);
    let image = site.image();
    let by_hand = tokio::spawn(async move { store_of_hand.pull_by_hand(&image).await.is_ok() });
    eventually("the request for the rest", || async { offsets() > 0 }).await;
    by_hand.abort();
    update.abort();
}

/// Also where a pause is longer than the silence for which a registry is given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cap_holds_and_is_no_silence() {
    const RATE: u64 = 256 << 10;
    let site = Site::new(|_| Act::Pass).await;
    let bandwidth = Bandwidth { total: Some(RATE), per_host: None };
    let store = site.open(ImageStoreConfig { bandwidth, stall_timeout: Duration::from_millis(500), ..Default::default() });
    let begun = Instant::now();
    drop(store.ensure(&site.image(), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap());
    let took = begun.elapsed();
    // A second is free, and the last chunk is not waited for.
    assert!(took > Duration::from_millis(1500), "{took:?}");
    let figures = store.pull_figures();
    let HostFigures { new_bytes, repeated_bytes, interruptions } = figures.hosts[&site.proxy.host()];
    assert!(new_bytes > LARGE as u64 && (repeated_bytes, interruptions) == (0, 0), "{figures:?}");
}

/// The part of a configuration that counts without another store.
fn settings(config: ImageStoreConfig) -> StoreSettings {
    let ImageStoreConfig { limits, reserve, collection, parallel_layers, minimum_rate, bandwidth, windows, .. } = config;
    StoreSettings { limits, reserve, collection, parallel_layers, minimum_rate, bandwidth, windows }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_settings_count_for_pulls_that_wait() {
    let site = Site::new(|_| Act::Pass).await;
    let store = site.open(closed());
    let update = site.update(&store, PullPolicy::IfNotPresent);
    held(&store).await;
    assert!(!site.has_sent_layers());
    // The window is gone, but no space may be used.
    let reserve = Reserve { storage_percent: 100, ..Reserve::default() };
    store.set_settings(settings(ImageStoreConfig { reserve, ..ImageStoreConfig::default() }));
    assert!(!update.await.unwrap());
    let error = store.ensure(&site.image(), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap_err().to_string();
    assert!(error.contains("of it reserved (images.reserve)"), "{error}");
    assert!(!site.has_sent_layers());
    // Slower than the test waits, until there is no cap any more.
    let bandwidth = Bandwidth { total: Some(8 << 10), per_host: None };
    store.set_settings(settings(ImageStoreConfig { bandwidth, ..ImageStoreConfig::default() }));
    let update = site.update(&store, PullPolicy::IfNotPresent);
    eventually("some bytes of the layer", || async {
        store.pulls().first().is_some_and(|pull| pull.phase == PullPhase::Downloading)
    })
    .await;
    store.set_settings(settings(ImageStoreConfig::default()));
    assert!(tokio::time::timeout(Duration::from_secs(60), update).await.unwrap().unwrap());
}
