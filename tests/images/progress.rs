//! Pulls under way, as they are shown.

use crate::fake_registry::{Door, FakeRegistry, Fault};
use crate::support::{TestStore, eventually};
use podstead::{
    image::{ImageStore, ImageStoreConfig, MirrorConfig, RegistryConfig},
    pod::containers::PullPolicy,
    runtime::{ImageService, PullPhase, PullSecrets, PullState, WaitCause},
};
use std::sync::Arc;

/// A pull of an image of two layers, which began.
struct Site {
    test: TestStore,
    registry: FakeRegistry,
    store: Arc<ImageStore>,
}

impl Site {
    async fn new() -> Self {
        let test = TestStore::new();
        let archive = test.make_image("app.tar", "app:1", &["--add", "/etc/hostname:/etc/added"]);
        let registry = FakeRegistry::serve(&archive, Door::Open).await;
        let config = RegistryConfig { host: registry.host(), http: true, ..Default::default() };
        let store = test.open_with(ImageStoreConfig { registries: vec![config], ..Default::default() });
        Self { test, registry, store }
    }

    fn pull(&self) -> tokio::task::JoinHandle<bool> {
        let (store, image) = (Arc::clone(&self.store), self.registry.image());
        tokio::spawn(async move { store.ensure(&image, PullPolicy::IfNotPresent, &PullSecrets::none()).await.is_ok() })
    }

    /// Waits until the only pull is as wanted.
    async fn until(&self, what: &str, is_so: impl Fn(&PullState) -> bool) -> PullState {
        eventually(what, || async { self.store.pulls().first().is_some_and(&is_so) }).await;
        self.store.pulls().remove(0)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pull_is_shown_layer_by_layer() {
    let site = Site::new().await;
    let (lower, upper) = (site.registry.layer_digest(0), site.registry.layer_digest(1));
    site.registry.hold(&upper);
    assert!(site.store.pulls().is_empty());
    let pulling = site.pull();
    let shown = site.until("the lower layer", |pull| pull.layers.first().is_some_and(|layer| layer.complete)).await;
    assert_eq!((shown.phase, &shown.reference), (PullPhase::Downloading, &site.registry.image()));
    let [first, second] = &shown.layers[..] else { panic!("{shown:?}") };
    assert_eq!((&first.digest, &second.digest), (&lower, &upper));
    assert_eq!((first.present_bytes, first.fetched_bytes, first.repeated_bytes), (first.size_bytes, first.size_bytes, 0));
    assert_eq!(first.host, Some(site.registry.host()));
    assert_eq!((second.present_bytes, second.complete), (0, false));
    site.registry.let_through();
    assert!(pulling.await.unwrap());
    assert!(site.store.pulls().is_empty());
    assert_eq!(site.test.layers(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_pull_says_why_it_waits() {
    let site = Site::new().await;
    let (lower, upper) = (site.registry.layer_digest(0), site.registry.layer_digest(1));
    site.registry.hold(&upper);
    // After so many failures in a row, the pauses are long enough to be seen.
    site.registry.faults(&[Fault::Cut(100_000), Fault::Cut(0), Fault::Cut(0), Fault::Cut(0), Fault::Cut(0)]);
    let pulling = site.pull();
    let is_waiting = |pull: &PullState| {
        let layer = pull.layers.iter().find(|layer| layer.digest == lower);
        layer.is_some_and(|layer| layer.present_bytes > 0 && layer.waiting.is_some())
    };
    let shown = site.until("the pause", is_waiting).await;
    let told = |reason: &str| {
        let events = site.test.events.all();
        events.into_iter().filter(|(_, told, _)| told == reason).map(|(_, _, message)| message).collect::<Vec<_>>()
    };
    eventually("the event", async || !told("PullInterrupted").is_empty()).await;
    let layer = &shown.layers[0];
    assert!(layer.waiting.as_ref().is_some_and(|reason| reason.contains("was cut off")), "{layer:?}");
    assert_eq!((&layer.host, layer.resumed_bytes, layer.cause), (&None, 0, Some(WaitCause::Network)));
    site.registry.let_through();
    assert!(pulling.await.unwrap());
    let (interrupted, resumed) = (told("PullInterrupted"), told("PullResumed"));
    assert_eq!((interrupted.len(), resumed.len()), (1, 1), "{interrupted:?} {resumed:?}");
    assert!(interrupted[0].starts_with(&format!("image {}: layer ", site.registry.image())), "{interrupted:?}");
    assert!(interrupted[0].contains(" at 97.6 KiB of ") && interrupted[0].contains("was cut off"), "{interrupted:?}");
    assert!(resumed[0].ends_with(&format!(" from {}", site.registry.host())), "{resumed:?}");
    let figures = site.store.pull_figures();
    let from = figures.hosts[&site.registry.host()];
    assert_eq!((from.interruptions, from.repeated_bytes, figures.succeeded, figures.failed), (5, 0, 1, 0));
    assert_eq!(from.new_bytes, shown.layers.iter().map(|layer| layer.size_bytes).sum::<u64>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_is_shown_as_the_host() {
    let site = Site::new().await;
    let mirror = FakeRegistry::serve(&site.test.path("app.tar"), Door::Open).await;
    let mirrors = vec![MirrorConfig { url: format!("http://{}", mirror.host()), ..Default::default() }];
    let config = RegistryConfig { host: site.registry.host(), http: true, mirrors, ..Default::default() };
    let other = TestStore::new();
    let store = other.open_with(ImageStoreConfig { registries: vec![config], ..Default::default() });
    mirror.hold(&mirror.layer_digest(1));
    let site = Site { store, ..site };
    let pulling = site.pull();
    let shown = site.until("the lower layer", |pull| pull.layers.first().is_some_and(|layer| layer.complete)).await;
    assert_eq!(shown.layers[0].host, Some(mirror.host()));
    mirror.let_through();
    assert!(pulling.await.unwrap());
}
