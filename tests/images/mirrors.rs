//! Mirrors of a registry: who is asked for what, and what comes of mirrors that are down, empty, slow, lying, or want a login.

use crate::fake_registry::{Door, FakeRegistry, Fault, PASSWORD, USER};
use crate::proxy::{Act, Proxy};
use crate::pulls::secrets;
use crate::real_registry::{Authority, Registry, Validity};
use crate::support::TestStore;
use podstead::{
    container::ResolvedImage,
    image::{ImageStore, ImageStoreConfig, MirrorConfig, RegistryConfig, RegistryDirectories},
    pod::containers::PullPolicy,
    runtime::{ImageService, PullSecrets},
};
use std::sync::Arc;
use std::time::Duration;

/// base64 of `me:open sesame`
const RIGHT: &str = "bWU6b3BlbiBzZXNhbWU=";

/// A registry and a mirror that have the same image.
struct Site {
    test: TestStore,
    origin: FakeRegistry,
    mirror: FakeRegistry,
}

impl Site {
    async fn new() -> Self {
        Self::with(Door::Open, Door::Open).await
    }

    async fn with(origin: Door, mirror: Door) -> Self {
        let test = TestStore::new();
        let archive = test.make_image("app.tar", "app:1", &["--add", "/etc/hostname:/etc/added"]);
        let origin = FakeRegistry::serve(&archive, origin).await;
        let mirror = FakeRegistry::serve(&archive, mirror).await;
        Self { test, origin, mirror }
    }

    fn url(&self) -> String {
        format!("http://{}", self.mirror.host())
    }

    /// The registry with these mirrors.
    fn registry(&self, mirrors: Vec<MirrorConfig>) -> RegistryConfig {
        RegistryConfig { host: self.origin.host(), http: true, mirrors, ..Default::default() }
    }

    fn open(&self, registries: Vec<RegistryConfig>) -> Arc<ImageStore> {
        let stall_timeout = Duration::from_secs(2);
        self.test.open_with(ImageStoreConfig { registries, stall_timeout, ..Default::default() })
    }

    /// A store with one mirror.
    fn open_with_mirror(&self, resolve: bool) -> Arc<ImageStore> {
        self.open(vec![self.registry(vec![mirror(&self.url(), resolve)])])
    }

    async fn pull(&self, store: &ImageStore) -> Result<ResolvedImage, String> {
        pull(store, &self.origin.image()).await
    }

    fn by_digest(&self) -> String {
        format!("{}/app@{}", self.origin.host(), self.origin.manifest_digest())
    }

    fn told(&self, text: &str) -> usize {
        self.test.events.all().iter().filter(|(_, reason, message)| reason == "MirrorFailed" && message.contains(text)).count()
    }
}

fn mirror(url: &str, resolve: bool) -> MirrorConfig {
    MirrorConfig { url: url.to_owned(), resolve, ..Default::default() }
}

async fn pull(store: &ImageStore, image: &str) -> Result<ResolvedImage, String> {
    let pulled = store.ensure(image, PullPolicy::IfNotPresent, &PullSecrets::none()).await;
    pulled.map_err(|error| error.to_string())
}

/// A port on which nobody listens.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_has_content_registry_has_tags() {
    let site = Site::new().await;
    site.pull(&site.open_with_mirror(false)).await.unwrap();
    assert_eq!((site.origin.seen("/manifests/1"), site.origin.seen("/blobs/")), (1, 0));
    assert_eq!((site.mirror.seen("/manifests/"), site.mirror.seen("/blobs/")), (0, 3));
    assert_eq!(site.told(""), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offline_host_pulls_from_a_mirror() {
    let site = Site::new().await;
    let (image, by_digest) = (site.origin.image(), site.by_digest());
    let registry = |resolve| site.registry(vec![mirror(&site.url(), resolve)]);
    let (content, tags) = (registry(false), registry(true));
    let only = RegistryConfig { upstream: Some(false), ..content.clone() };
    let host = site.origin.host();
    site.origin.stop().await;
    let open = |test: &TestStore, registry: RegistryConfig| {
        test.open_with(ImageStoreConfig { registries: vec![registry], ..Default::default() })
    };
    // Which image the tag names is for nobody to say.
    let error = pull(&open(&site.test, content.clone()), &image).await.unwrap_err();
    assert!(error.contains(&format!("cannot connect to {host}")), "{error}");
    let error = pull(&open(&site.test, only), &image).await.unwrap_err();
    assert!(error.contains(&format!("no host may be asked for tags of {host}")), "{error}");
    pull(&open(&site.test, content), &by_digest).await.unwrap();
    let fresh = TestStore::new();
    pull(&open(&fresh, tags), &image).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_down_is_told_and_passed_over() {
    let site = Site::new().await;
    let store = site.open(vec![site.registry(vec![mirror(&nobody(), true), mirror(&site.url(), true)])]);
    site.pull(&store).await.unwrap();
    assert_eq!(site.origin.seen(""), 0, "the second mirror has it");
    assert_eq!(site.told("cannot connect to 127.0.0.1:"), 1, "{:?}", site.test.events.all());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_without_the_image_is_passed_over() {
    let site = Site::new().await;
    site.mirror.broken(Some(Fault::Status(404)));
    site.pull(&site.open_with_mirror(true)).await.unwrap();
    assert!(site.mirror.seen("/manifests/1") >= 1 && site.origin.seen("/blobs/") == 3);
    assert_eq!(site.told(""), 0, "it may have a part of the images only");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_that_lies_is_passed_over() {
    // Manifests that are something else, then layers with another byte.
    let site = Site::new().await;
    site.mirror.broken(Some(Fault::Portal));
    let store = site.open_with_mirror(false);
    let image = pull(&store, &site.by_digest()).await.unwrap();
    assert_eq!(image.digest, site.origin.manifest_digest());
    assert_eq!(site.told("manifest of 127.0.0.1:"), 1, "{:?}", site.test.events.all());
    let site = Site::new().await;
    site.mirror.faults(&[Fault::Flip(500_000), Fault::Flip(3), Fault::Flip(5), Fault::Flip(7)]);
    let image = site.pull(&site.open_with_mirror(false)).await.unwrap();
    assert_eq!(image.digest, site.origin.manifest_digest());
    assert!(image.layers[1].join("etc/added").is_file());
    for layer in 0..2 {
        assert!(site.origin.seen(&format!("/blobs/{}", site.origin.layer_digest(layer))) >= 1, "layer {layer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_on_the_way_to_the_only_host_is_mended() {
    let site = Site::new().await;
    let (image, registries) = (site.origin.image(), vec![site.registry(vec![mirror(&site.url(), true)])]);
    site.origin.stop().await;
    site.mirror.faults(&[Fault::Flip(500_000)]);
    let store = site.test.open_with(ImageStoreConfig { registries, ..Default::default() });
    pull(&store, &image).await.unwrap();
    assert!(site.mirror.seen("/blobs/") >= 4, "a layer comes once more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_that_stops_is_left_at_its_byte() {
    let site = Site::new().await;
    site.mirror.faults(&[Fault::Stall(100_000), Fault::Cut(10), Fault::Cut(0), Fault::Cut(0)]);
    site.pull(&site.open_with_mirror(false)).await.unwrap();
    assert!(site.origin.seen("/blobs/") >= 1);
    assert_eq!(site.test.spools(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_that_drips_is_left() {
    let test = TestStore::new();
    let registry = Registry::start();
    registry.push(&test.make_image("app.tar", "app:1", &[]), "app:1", &[]);
    let slow = Proxy::before(&registry.host, |request| match request.path.contains("/blobs/") {
        true => Act::Drip(20_000),
        false => Act::Pass,
    })
    .await;
    let mirrors = vec![mirror(&format!("http://{}", slow.host()), true)];
    let store = test.open_with(ImageStoreConfig {
        registries: vec![RegistryConfig { mirrors, ..registry.config() }],
        minimum_rate: 200_000,
        rate_window: Duration::from_secs(1),
        ..Default::default()
    });
    pull(&store, &registry.image("app:1")).await.unwrap();
    assert!(slow.sent() < 500_000, "{} bytes of the mirror", slow.sent());
    let told = test.events.all();
    assert!(told.iter().any(|(_, reason, message)| reason == "MirrorFailed" && message.contains("is too slow")), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_stay_with_their_host() {
    let site = Site::with(Door::Password, Door::Password).await;
    std::fs::write(site.test.path("password"), PASSWORD).unwrap();
    let registry = RegistryConfig {
        username: Some(USER.into()),
        password_file: Some(site.test.path("password")),
        ..site.registry(vec![mirror(&site.url(), true)])
    };
    site.pull(&site.open(vec![registry])).await.unwrap();
    assert_eq!(site.mirror.seen("with credentials"), 0);
    assert!(site.mirror.seen("/manifests/1") >= 1 && site.origin.seen("with credentials") >= 3);
    // Nor does it get what a Secret of a pod has for the registry.
    let fresh = TestStore::new();
    let registries = vec![site.registry(vec![mirror(&site.url(), true)])];
    let store = fresh.open_with(ImageStoreConfig { registries, ..Default::default() });
    let secrets = secrets(&site.origin, PASSWORD);
    store.ensure(&site.origin.image(), PullPolicy::IfNotPresent, &secrets).await.unwrap();
    assert_eq!(site.mirror.seen("with credentials"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn image_of_a_closed_mirror_is_not_everybodys() {
    let site = Site::with(Door::Open, Door::Password).await;
    let auth = format!(r#"{{"auths":{{"{}":{{"auth":"{RIGHT}"}}}}}}"#, site.mirror.host());
    std::fs::write(site.test.path("auth.json"), auth).unwrap();
    let closed = MirrorConfig { auth_file: Some(site.test.path("auth.json")), ..mirror(&site.url(), true) };
    let registry = RegistryConfig { upstream: Some(false), ..site.registry(vec![closed]) };
    let store = site.open(vec![registry]);
    let ensure = async |policy, of_host| {
        let secrets = PullSecrets::none().with_host_credentials(of_host);
        store.ensure(&site.origin.image(), policy, &secrets).await.map_err(|error| error.to_string())
    };
    let error = ensure(PullPolicy::IfNotPresent, false).await.unwrap_err();
    assert!(error.contains("401 Unauthorized"), "{error}");
    assert_eq!(site.mirror.seen("with credentials"), 0);
    ensure(PullPolicy::IfNotPresent, true).await.unwrap();
    ensure(PullPolicy::Never, true).await.unwrap();
    ensure(PullPolicy::Never, false).await.unwrap_err();
    assert_eq!(site.origin.seen(""), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_failures_are_told() {
    let site = Site::new().await;
    site.mirror.broken(Some(Fault::Status(403)));
    site.origin.broken(Some(Fault::Status(404)));
    let (dead, store) = (nobody(), TestStore::new());
    let registries = vec![site.registry(vec![mirror(&dead, true), mirror(&site.url(), true)])];
    let store = store.open_with(ImageStoreConfig { registries, ..Default::default() });
    let error = site.pull(&store).await.unwrap_err();
    let dead = dead.trim_start_matches("http://");
    for text in [&format!("cannot connect to {dead}"), "denies access to app (403 Forbidden)", "has no image app:1 (404 Not Found)"]
    {
        assert!(error.contains(text), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cache_with_tls_and_password_serves() {
    let test = TestStore::new();
    let origin = Registry::start();
    origin.push(&test.make_image("a.tar", "a:1", &[]), "team/a:1", &[]);
    let authority = Authority::new(Validity::Now);
    let cache = Registry::cache(&authority, &origin);
    std::fs::write(test.path("ca.pem"), &authority.ca).unwrap();
    let auth = format!(r#"{{"auths":{{"{}":{{"auth":"{RIGHT}"}}}}}}"#, cache.host);
    std::fs::write(test.path("auth.json"), auth).unwrap();
    let url = format!("https://{}", cache.host);
    let registry = |mirror| RegistryConfig { mirrors: vec![mirror], upstream: Some(false), ..origin.config() };
    let open = |mirror| test.open_with(ImageStoreConfig { registries: vec![registry(mirror)], ..Default::default() });
    let image = origin.image("team/a:1");
    let error = pull(&open(mirror(&url, true)), &image).await.unwrap_err();
    assert!(error.contains("signed by an unknown authority"), "{error}");
    let trusted = MirrorConfig { ca_file: Some(test.path("ca.pem")), ..mirror(&url, true) };
    let error = pull(&open(trusted.clone()), &image).await.unwrap_err();
    assert!(error.contains("401 Unauthorized"), "{error}");
    let store = open(MirrorConfig { auth_file: Some(test.path("auth.json")), ..trusted });
    let pulled = pull(&store, &image).await.unwrap();
    assert!(pulled.layers[0].join("bin/busybox").is_file());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_certificate_opens_a_mirror() {
    let test = TestStore::new();
    let origin = Registry::start();
    origin.push(&test.make_image("a.tar", "a:1", &[]), "team/a:1", &[]);
    let authority = Authority::new(Validity::Now);
    let cache = Registry::mutual_cache(&authority, &origin);
    std::fs::write(test.path("ca.pem"), &authority.ca).unwrap();
    std::fs::write(test.path("client.pem"), &authority.client).unwrap();
    let without = MirrorConfig { ca_file: Some(test.path("ca.pem")), ..mirror(&format!("https://{}", cache.host), true) };
    let registry = |mirror| RegistryConfig { mirrors: vec![mirror], upstream: Some(false), ..origin.config() };
    let open = |mirror| test.open_with(ImageStoreConfig { registries: vec![registry(mirror)], ..Default::default() });
    pull(&open(without.clone()), &origin.image("team/a:1")).await.unwrap_err();
    let certificate = Some(test.path("client.pem"));
    let store = open(MirrorConfig { client_cert_file: certificate.clone(), client_key_file: certificate, ..without });
    pull(&store, &origin.image("team/a:1")).await.unwrap();
    // It is a credential of this host.
    let restricted = PullSecrets::none().with_host_credentials(false);
    store.ensure(&origin.image("team/a:1"), PullPolicy::Never, &restricted).await.unwrap_err();
}

/// A directory of hosts with an entry for the registry of a site.
fn write_hosts(site: &Site, text: &str) -> ImageStoreConfig {
    let name = site.origin.host().replace(':', "_") + "_";
    let directory = site.test.path("certs.d").join(name);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("hosts.toml"), text).unwrap();
    ImageStoreConfig {
        registries: vec![site.registry(Vec::new())],
        directories: RegistryDirectories { hosts: Some(site.test.path("certs.d")), ..Default::default() },
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_file_is_read_at_each_pull() {
    let site = Site::new().await;
    let config = write_hosts(&site, "\n[host.\"https://a.lan\"]\nskip_verify = true\n");
    let store = site.test.open_with(config);
    let error = site.pull(&store).await.unwrap_err();
    assert!(error.contains("hosts.toml:3: host.\"https://a.lan\".skip_verify: certificates are always verified"), "{error}");
    write_hosts(&site, &format!("[host.\"{}\"]\ncapabilities = [\"pull\"]\n", site.url()));
    site.pull(&store).await.unwrap();
    assert_eq!((site.origin.seen("/manifests/1"), site.origin.seen("/blobs/")), (1, 0));
    let asked = format!("?ns={}", site.origin.host().replace(':', "%3a"));
    assert_eq!((site.mirror.seen("/manifests/"), site.mirror.seen(&asked)), (0, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_and_server_of_a_hosts_file_count() {
    let site = Site::with(Door::Open, Door::Password).await;
    let header = format!("[host.\"{}\".header]\nauthorization = \"Basic {RIGHT}\"\n", site.url());
    let store = site.test.open_with(write_hosts(&site, &format!("server = \"{}\"\n{header}", nobody())));
    site.pull(&store).await.unwrap();
    assert_eq!(site.origin.seen(""), 0, "another server stands in for it");
    assert!(site.mirror.seen("with credentials") >= 4);
    // The header is a credential of this host.
    let restricted = PullSecrets::none().with_host_credentials(false);
    store.ensure(&site.origin.image(), PullPolicy::Never, &restricted).await.unwrap_err();
}
