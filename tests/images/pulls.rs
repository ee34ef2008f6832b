//! Pulling from registries that misbehave, refuse or are gone.

use crate::fake_registry::{Door, FakeRegistry, Fault, PASSWORD, USER};
use crate::support::{TestStore, eventually, references, run};
use podstead::pod::objects::{ObjectKind, ObjectName};
use podstead::pod::pull_secrets::PullSecret;
use podstead::telemetry::events::EventType;
use podstead::{
    image::{ImageStore, ImageStoreConfig, RegistryConfig},
    pod::containers::PullPolicy,
    runtime::{ImageError, ImageService, PullSecrets},
};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// A registry with an image of two layers, and a store that knows how to reach it.
struct Bench {
    test: TestStore,
    registry: FakeRegistry,
    store: Arc<ImageStore>,
}

impl Bench {
    async fn new() -> Self {
        Self::with(Door::Open, |_, _| {}).await
    }

    async fn with(door: Door, configure: impl FnOnce(&TestStore, &mut RegistryConfig)) -> Self {
        let test = TestStore::new();
        let archive = test.make_image("app.tar", "app:1", &["--add", "/etc/hostname:/etc/added"]);
        let registry = FakeRegistry::serve(&archive, door).await;
        let mut config = RegistryConfig { host: registry.host(), http: true, ..Default::default() };
        configure(&test, &mut config);
        let store = test.open_with(ImageStoreConfig {
            registries: vec![config],
            stall_timeout: Duration::from_secs(2),
            ..Default::default()
        });
        Self { test, registry, store }
    }

    async fn pull(&self) -> Result<podstead::container::ResolvedImage, ImageError> {
        self.store.ensure(&self.registry.image(), PullPolicy::IfNotPresent, &PullSecrets::none()).await
    }

    /// The reason of a pull that has to fail, after which nothing is listed and nothing is left in staging.
    async fn failure(&self) -> String {
        let error = self.pull().await.expect_err("the pull has to fail");
        assert!(matches!(error, ImageError::Pull { .. }), "{error:?}");
        assert_eq!(references(&self.store).await, [""; 0]);
        assert_eq!(self.test.staged(), 0);
        error.to_string()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_connections_are_made_again_from_where_they_broke_off() {
    let bench = Bench::new().await;
    bench.registry.faults(&[
        Fault::Cut(0),
        Fault::Cut(100_000),
        Fault::Status(503),
        Fault::Stall(70_000),
        Fault::IgnoreRange(200_000),
        Fault::IgnoreRange(300_000),
    ]);
    let mut progress = bench.store.progress();
    let image = bench.pull().await.unwrap();
    assert_eq!(image.layers.len(), 2);
    assert!(image.layers[1].join("etc/added").is_file());
    let imported = TestStore::new();
    let other = imported.open();
    other.import(bench.test.path("app.tar")).await.unwrap();
    let wanted = other.ensure("app:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    assert_eq!(image.digest, wanted.digest);
    let mut complete = Vec::new();
    while let Ok(report) = progress.try_recv() {
        assert_eq!(report.reference, bench.registry.image());
        assert!(report.fetched <= report.total.unwrap());
        complete.extend(report.complete.then_some(report.layer));
    }
    complete.sort();
    complete.dedup();
    assert_eq!(complete.len(), 2, "both layers are reported complete");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn altered_content_is_never_taken() {
    let bench = Bench::new().await;
    for (fault, reason) in
        [(Fault::Flip(500_000), "altered or damaged"), (Fault::Flip(3), "altered or damaged"), (Fault::TooLong, "bytes instead of")]
    {
        // Wrong content is fetched once more, and the other layer may come between.
        bench.registry.faults(&[fault; 4]);
        let error = bench.failure().await;
        assert!(error.contains(reason), "{fault:?}: {error}");
        bench.registry.no_faults();
    }
    bench.pull().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_content_is_fetched_once_more() {
    let bench = Bench::new().await;
    bench.registry.faults(&[Fault::Flip(500_000), Fault::Cut(0)]);
    bench.pull().await.unwrap();
    assert_eq!(bench.test.spools(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_only_ever_breaks_ends_the_pull_with_its_reason() {
    let bench = Bench::new().await;
    bench.registry.faults(&[Fault::Cut(0); 20]);
    let error = bench.failure().await;
    assert!(error.contains("layer sha256:") && error.contains("was cut off"), "{error}");
    let tries = bench.registry.seen("/blobs/");
    assert!((6..=12).contains(&tries), "{tries} requests");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn layers_that_arrived_are_kept_when_another_one_failed() {
    let bench = Bench::new().await;
    let (lower, upper) = (bench.registry.layer_digest(0), bench.registry.layer_digest(1));
    let mut progress = bench.store.progress();
    bench.registry.hold(&upper);
    let arrived = async {
        while !matches!(progress.recv().await.unwrap(), report if report.layer == lower && report.complete) {}
        bench.registry.faults(&[Fault::Flip(20); 2]);
        bench.registry.let_through();
    };
    let (error, ()) = tokio::join!(bench.failure(), arrived);
    assert!(error.contains(&upper), "{error}");
    assert_eq!(bench.test.layers(), 1, "the lower layer is kept");
    bench.pull().await.unwrap();
    assert_eq!(bench.registry.seen(&lower), 1, "what was kept is not fetched again");
    assert_eq!(bench.registry.seen(&upper), 3, "wrong content twice, then the right one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_ask_at_once_share_one_pull() {
    let bench = Bench::new().await;
    let ask = || {
        let (store, image) = (Arc::clone(&bench.store), bench.registry.image());
        tokio::spawn(async move { store.ensure(&image, PullPolicy::Always, &PullSecrets::none()).await.unwrap() })
    };
    let tasks: Vec<_> = (0..20).map(|_| ask()).collect();
    let mut images = Vec::new();
    for task in tasks {
        images.push(task.await.unwrap());
    }
    assert!(images.iter().all(|image| *image == images[0]));
    assert_eq!(bench.registry.seen("GET /v2/app/manifests/1"), 1);
    assert_eq!(bench.registry.seen("GET /v2/app/blobs/"), 3, "a configuration and two layers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_that_share_layers_fetch_them_once_even_at_the_same_time() {
    let bench = Bench::new().await;
    let by_digest = format!("{}/app@{}", bench.registry.host(), bench.registry.manifest_digest());
    let image = bench.registry.image();
    let none = PullSecrets::none();
    let (a, b) = tokio::join!(
        bench.store.ensure(&image, PullPolicy::Always, &none),
        bench.store.ensure(&by_digest, PullPolicy::Always, &none)
    );
    assert_eq!(a.unwrap(), b.unwrap());
    // The second pull finds the configuration on disk if the first one is that much earlier.
    let fetched = bench.registry.seen("GET /v2/app/blobs/");
    assert!((3..=4).contains(&fetched), "one or two configurations, and each of two layers once: {fetched}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_is_gone_does_not_matter_when_the_image_is_here() {
    let bench = Bench::new().await;
    let present = bench.pull().await.unwrap();
    let image = bench.registry.image();
    for fault in [Fault::Status(500), Fault::Cut(0), Fault::Stall(0), Fault::Status(429), Fault::Portal] {
        bench.registry.broken(Some(fault));
        assert_eq!(bench.store.ensure(&image, PullPolicy::Always, &PullSecrets::none()).await.unwrap(), present, "{fault:?}");
    }
    bench.registry.broken(None);
    let Bench { registry, store, test } = bench;
    let digest = registry.manifest_digest();
    registry.stop().await;
    assert_eq!(store.ensure(&image, PullPolicy::Always, &PullSecrets::none()).await.unwrap(), present);
    let events = test.events.all();
    let told = |text: &str| {
        events
            .iter()
            .any(|(kind, reason, message)| *kind == EventType::Warning && reason == "RegistryUnreachable" && message.contains(text))
    };
    assert!(
        told("returned 500")
            && told("stopped responding")
            && told("429")
            && told("the answer is a web page")
            && told("cannot connect to")
            && told("Connection refused"),
        "{events:?}"
    );
    // By digest nobody is asked.
    let warnings = test.events.all().len();
    let by_digest = image.replace(":1", &format!("@{digest}"));
    assert_eq!(store.ensure(&by_digest, PullPolicy::Always, &PullSecrets::none()).await.unwrap(), present);
    assert_eq!(test.events.all().len(), warnings);
    // What is not here cannot be had.
    let missing =
        store.ensure(&image.replace("app", "other"), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap_err().to_string();
    assert!(missing.contains("cannot connect to"), "{missing}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_registry_does_not_have_is_an_error_even_when_the_image_is_here() {
    let bench = Bench::new().await;
    bench.pull().await.unwrap();
    bench.registry.broken(Some(Fault::Status(404)));
    let error =
        bench.store.ensure(&bench.registry.image(), PullPolicy::Always, &PullSecrets::none()).await.unwrap_err().to_string();
    assert!(error.contains("has no image app:1 (404 Not Found)"), "{error}");
    bench.registry.broken(Some(Fault::Status(403)));
    let error =
        bench.store.ensure(&bench.registry.image(), PullPolicy::Always, &PullSecrets::none()).await.unwrap_err().to_string();
    assert!(error.contains("denies access to app (403 Forbidden)"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_say_where_to_look() {
    let mut bench = Bench::new().await;
    for (reference, reason) in [
        (bench.registry.image().replace(":1", ":2"), "has no image app:2 (404 Not Found): manifest unknown"),
        ("name-that-does-not-exist.invalid/x".into(), "cannot resolve name-that-does-not-exist.invalid"),
    ] {
        let error = bench.store.ensure(&reference, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert!(matches!(
        bench.store.ensure("Not A Name", PullPolicy::Always, &PullSecrets::none()).await,
        Err(ImageError::InvalidName { .. })
    ));
    assert!(matches!(
        bench.store.ensure("localhost/absent", PullPolicy::Never, &PullSecrets::none()).await,
        Err(ImageError::NeverPull(_))
    ));
    bench.registry.lie_about_manifest();
    let error = bench.failure().await;
    assert!(error.contains("altered or damaged"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_is_reached_over_https_but_speaks_http_is_named_so() {
    let bench = Bench::with(Door::Open, |_, config| config.http = false).await;
    let error = bench.failure().await;
    assert!(error.contains("does not use TLS (set http: true"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_open_basic_and_token_doors_and_wrong_ones_do_not() {
    let password = |content: &'static str| {
        move |test: &TestStore, config: &mut RegistryConfig| {
            std::fs::write(test.path("password"), content).unwrap();
            config.username = Some(USER.into());
            config.password_file = Some(test.path("password"));
        }
    };
    for door in [Door::Password, Door::Token] {
        let bench = Bench::with(door, password("open sesame\n")).await;
        assert_eq!(PASSWORD, "open sesame");
        bench.pull().await.unwrap();
        let bench = Bench::with(door, password("wrong")).await;
        let error = bench.failure().await;
        assert!(error.contains("401 Unauthorized") && error.contains("user name or password is wrong"), "{error}");
        // A rotated password is found without a restart.
        std::fs::write(bench.test.path("password"), PASSWORD).unwrap();
        bench.pull().await.unwrap();
        let bench = Bench::with(door, |_, _| {}).await;
        let error = bench.failure().await;
        assert!(error.contains("no credentials are configured"), "{error}");
    }
    let bench = Bench::with(Door::Token, |test, config| {
        let auth = "bWU6b3BlbiBzZXNhbWU=";
        std::fs::write(test.path("config.json"), format!(r#"{{"auths":{{"{}":{{"auth":"{auth}"}}}}}}"#, config.host)).unwrap();
        config.auth_file = Some(test.path("config.json"));
    })
    .await;
    bench.pull().await.unwrap();
    assert_eq!(bench.registry.seen("GET /token"), 1, "the token is used again");
}

/// Secrets of a pod, of one Secret with one entry for the registry.
pub(crate) fn secrets(registry: &FakeRegistry, password: &str) -> PullSecrets {
    let content = format!(r#"{{"auths":{{"{}":{{"username":"{USER}","password":"{password}"}}}}}}"#, registry.host());
    let data = [(".dockerconfigjson".to_owned(), k8s_openapi::ByteString(content.into_bytes()))];
    let secret = k8s_openapi::api::core::v1::Secret {
        type_: Some("kubernetes.io/dockerconfigjson".into()),
        data: Some(data.into()),
        ..Default::default()
    };
    let name = ObjectName { kind: ObjectKind::Secret, namespace: "shop".into(), name: password.replace(' ', "-").into() };
    PullSecrets::new(&[PullSecret { name, secret: Arc::new(secret), restricted_to: None }])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pulls_and_tokens_are_shared_by_those_with_the_same_credentials_only() {
    for door in [Door::Password, Door::Token] {
        let bench = Bench::with(door, |_, _| {}).await;
        let (good, bad) = (secrets(&bench.registry, PASSWORD), secrets(&bench.registry, "a guess"));
        let (image, none) = (bench.registry.image(), PullSecrets::none());
        let ask = |secrets| bench.store.ensure(&image, PullPolicy::Always, secrets);
        // At once, and one after the other.
        for _ in 0..2 {
            let (one, other, wrong, nothing) = tokio::join!(ask(&good), ask(&good), ask(&bad), ask(&none));
            assert_eq!(one.unwrap(), other.unwrap());
            let wrong = wrong.unwrap_err().to_string();
            assert!(wrong.contains("Secret shop/a-guess: ") && wrong.contains("401 Unauthorized"), "{wrong}");
            assert!(nothing.unwrap_err().to_string().contains("401 Unauthorized"));
        }
        assert_eq!(bench.registry.seen(&format!("GET /v2/app/blobs/{}", bench.registry.layer_digest(0))), 1, "{door:?}");
        // What came with a Secret is of those who have it.
        let present = |secrets| bench.store.ensure(&image, PullPolicy::Never, secrets);
        assert!(present(&good).await.is_ok());
        assert!(matches!(present(&bad).await, Err(ImageError::NotAllowed(_))));
        assert!(matches!(present(&none).await, Err(ImageError::NotAllowed(_))));
        let by_content = format!("{}/app@{}", bench.registry.host(), bench.registry.manifest_digest());
        assert!(matches!(bench.store.ensure(&by_content, PullPolicy::Never, &none).await, Err(ImageError::NotAllowed(_))));
        let shown = format!("{:?} {:?}", bench.store, good);
        assert!(!shown.contains(PASSWORD), "{shown}");
    }
}

/// I14: in a network namespace of its own, where nothing else comes and goes.
#[test]
fn link_that_is_back_ends_a_wait() {
    let heard = std::thread::spawn(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let test = TestStore::new();
            let store = test.open();
            let watching = tokio::spawn(store.run_check());
            let (retries, arrivals) = (store.retries(), store.arrivals());
            let ip = |arguments: &str| run(Command::new("ip").args(arguments.split(' ')));
            ip("link set lo up");
            eventually("the occasion", async || {
                // Until the watch has begun, nobody hears of it.
                ip("address replace 192.0.2.1/24 dev lo");
                *retries.borrow() > 0 && *arrivals.borrow() > 0
            })
            .await;
            watching.abort();
            assert!(watching.await.unwrap_err().is_cancelled());
        });
    });
    heard.join().unwrap();
}
