//! Debian's docker-registry, filled by skopeo.

use crate::registry::HTTP;
use crate::support::{TestStore, run};
use podstead::telemetry::events::EventType;
use podstead::{
    container::digest::Digest,
    image::{ImageStoreConfig, RegistryConfig, platform},
    pod::containers::PullPolicy,
    runtime::{ImageService, PullSecrets},
};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A registry on a port that the kernel chose; gone with its last test.
pub(crate) struct Registry {
    server: crate::registry::Registry,
    pub(crate) host: String,
    secure: bool,
    directory: tempfile::TempDir,
}

/// A private authority and a certificate of it for 127.0.0.1.
pub(crate) struct Authority {
    pub(crate) ca: String,
    certificate: String,
    key: String,
    /// Certificate and key of a client.
    pub(crate) client: String,
}

/// Periods of validity of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Validity {
    Now,
    /// Not any more.
    Past,
    /// Not yet: as on a host whose clock says 1970.
    Future,
}

/// Those whom a registry lets in.
enum Door<'a> {
    Everybody,
    /// Over TLS, with a user name and a password.
    Password(&'a Authority),
    /// Over TLS, with a certificate of the authority.
    Certificate(&'a Authority),
}

impl Authority {
    pub(crate) fn new(validity: Validity) -> Self {
        let ca_key = rcgen::KeyPair::generate().unwrap();
        let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let ca_certificate = ca.self_signed(&ca_key).unwrap();
        let issuer = rcgen::Issuer::new(ca, ca_key);
        let key = rcgen::KeyPair::generate().unwrap();
        let mut leaf = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        match validity {
            Validity::Now => {}
            Validity::Past => leaf.not_after = rcgen::date_time_ymd(2020, 1, 1),
            Validity::Future => leaf.not_before = rcgen::date_time_ymd(4000, 1, 1),
        }
        let certificate = leaf.signed_by(&key, &issuer).unwrap().pem();
        let client_key = rcgen::KeyPair::generate().unwrap();
        let mut client = rcgen::CertificateParams::new(Vec::new()).unwrap();
        client.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let client = client.signed_by(&client_key, &issuer).unwrap().pem() + &client_key.serialize_pem();
        Self { ca: ca_certificate.pem(), certificate, key: key.serialize_pem(), client }
    }
}

impl Registry {
    pub(crate) fn start() -> Self {
        Self::start_with(&Door::Everybody, "")
    }

    pub(crate) fn secure(authority: &Authority) -> Self {
        Self::start_with(&Door::Password(authority), "")
    }

    /// A pull-through cache of another registry, for those with a password.
    pub(crate) fn cache(authority: &Authority, of: &Self) -> Self {
        Self::start_with(&Door::Password(authority), &proxy(of))
    }

    /// A pull-through cache of another registry, for those with a certificate.
    pub(crate) fn mutual_cache(authority: &Authority, of: &Self) -> Self {
        Self::start_with(&Door::Certificate(authority), &proxy(of))
    }

    fn start_with(door: &Door<'_>, more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let shown = |name: &str| at(name).display().to_string();
        let (is_password, secure) = (matches!(door, Door::Password(_)), !matches!(door, Door::Everybody));
        let http = match door {
            Door::Everybody => HTTP.to_owned(),
            Door::Password(authority) | Door::Certificate(authority) => {
                std::fs::write(at("cert.pem"), &authority.certificate).unwrap();
                std::fs::write(at("key.pem"), &authority.key).unwrap();
                std::fs::write(at("ca.pem"), &authority.ca).unwrap();
                let clients = if is_password { String::new() } else { format!(", clientcas: [{}]", shown("ca.pem")) };
                let (certificate, key) = (shown("cert.pem"), shown("key.pem"));
                format!("http: {{addr: '127.0.0.1:0', tls: {{certificate: {certificate}, key: {key}{clients}}}}}\n")
            }
        };
        let serve = if is_password { crate::registry::Registry::serve_private } else { crate::registry::Registry::serve };
        let server = serve(directory.path(), &(http + more));
        Self { host: server.host.clone(), server, secure, directory }
    }

    /// `host/name`
    pub(crate) fn image(&self, name: &str) -> String {
        format!("{}/{name}", self.host)
    }

    pub(crate) fn push(&self, archive: &Path, name: &str, options: &[&str]) {
        self.server.push_from(&format!("oci-archive:{}", archive.display()), name, options);
    }

    /// Digest and size of the manifest behind a name.
    pub(crate) fn manifest(&self, name: &str) -> (Digest, usize) {
        let mut skopeo = Command::new("skopeo");
        let raw = run(skopeo.args(["inspect", "--raw", "--tls-verify=false"]).arg(format!("docker://{}", self.image(name))));
        (Digest::of(raw.as_bytes()), raw.len())
    }

    pub(crate) fn put_index(&self, repository: &str, tag: &str, body: &str) {
        let mut stream = std::net::TcpStream::connect(&self.host).unwrap();
        let kind = "application/vnd.oci.image.index.v1+json";
        let head = format!("PUT /v2/{repository}/manifests/{tag} HTTP/1.1\r\nHost: {}\r\nContent-Type: {kind}\r\n", self.host);
        write!(stream, "{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("201 Created"), "{answer}");
    }

    pub(crate) fn config(&self) -> RegistryConfig {
        RegistryConfig { host: self.host.clone(), http: !self.secure, ..Default::default() }
    }

    pub(crate) fn stop(mut self) {
        self.server.stop();
    }
}

fn proxy(of: &Registry) -> String {
    format!("proxy: {{remoteurl: 'http://{}'}}\n", of.host)
}

fn store_config(registry: RegistryConfig) -> ImageStoreConfig {
    ImageStoreConfig { registries: vec![registry], ..Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tag_is_followed_when_it_moves_and_the_image_runs_on_when_the_registry_is_gone() {
    let test = TestStore::new();
    let registry = Registry::start();
    let first = test.make_image("first.tar", "app:1", &["--env", "VERSION=1"]);
    let second = test.make_image("second.tar", "app:1", &["--env", "VERSION=2", "--add", "/etc/hostname:/etc/new"]);
    registry.push(&first, "app:1", &[]);
    let store = test.open_with(store_config(registry.config()));
    let tag = registry.image("app:1");
    let one = store.ensure(&tag, PullPolicy::Always, &PullSecrets::none()).await.unwrap();
    assert!(one.config.env.contains(&"VERSION=1".to_owned()));
    assert_eq!(one.digest, registry.manifest("app:1").0.to_string());
    assert_eq!(store.ensure(&tag, PullPolicy::Always, &PullSecrets::none()).await.unwrap(), one);
    let pinned = registry.image(&format!("app@{}", one.digest));
    assert_eq!(store.ensure(&pinned, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap(), one);

    registry.push(&second, "app:1", &[]);
    assert_eq!(store.ensure(&tag, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap(), one, "present: nobody is asked");
    let two = store.ensure(&tag, PullPolicy::Always, &PullSecrets::none()).await.unwrap();
    assert!(two.config.env.contains(&"VERSION=2".to_owned()));
    assert_eq!(two.layers[0], one.layers[0], "the common layer is stored once");
    assert_eq!(test.layers(), 2);
    assert_eq!(
        store.ensure(&pinned, PullPolicy::Always, &PullSecrets::none()).await.unwrap(),
        one,
        "a pinned image outlives its tag"
    );

    registry.stop();
    assert_eq!(store.ensure(&tag, PullPolicy::Always, &PullSecrets::none()).await.unwrap(), two);
    let events = test.events.all();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((events[0].0, events[0].1.as_str()), (EventType::Warning, "RegistryUnreachable"));
    // After a restart all is as it was.
    drop(store);
    let store = test.open();
    assert_eq!(store.ensure(&tag, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap(), two);
    assert_eq!(store.ensure(&pinned, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap(), one);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pulled_and_imported_images_are_the_same_whatever_the_compression() {
    let test = TestStore::new();
    let registry = Registry::start();
    let archive = test.make_image("a.tar", "localhost/a:1", &["--add", "/etc/hostname:/etc/x"]);
    let store = test.open_with(store_config(registry.config()));
    store.import(archive.clone()).await.unwrap();
    let imported = store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    for (name, options) in [
        ("a:gzip", &[][..]),
        ("a:zstd", &["--dest-compress-format", "zstd"]),
        ("a:chunked", &["--dest-compress-format", "zstd:chunked", "--dest-compress"]),
        ("a:docker", &["--format", "v2s2"]),
    ] {
        registry.push(&archive, name, options);
        let pulled = store.ensure(&registry.image(name), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap();
        assert_eq!(pulled.layers, imported.layers, "{name}");
        assert_eq!(pulled.config, imported.config, "{name}");
    }
    assert_eq!(test.layers(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_an_index_the_variant_for_this_host_is_pulled() {
    let test = TestStore::new();
    let registry = Registry::start();
    for (name, version) in [("ours", "VERSION=ours"), ("other", "VERSION=other")] {
        let archive = test.make_image(&format!("{name}.tar"), "app:1", &["--env", version]);
        registry.push(&archive, &format!("app:{name}"), &[]);
    }
    let host = platform::host();
    let entry = |name: &str, os: &str, architecture: &str| {
        let (digest, size) = registry.manifest(&format!("app:{name}"));
        format!(
            r#"{{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"{digest}","size":{size},"platform":{{"os":"{os}","architecture":"{architecture}"}}}}"#
        )
    };
    let index = |entries: &[String]| {
        format!(
            r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{}]}}"#,
            entries.join(",")
        )
    };
    let both = index(&[entry("other", "linux", "s390x"), entry("ours", &host.os, &host.architecture)]);
    registry.put_index("app", "1", &both);
    registry.put_index("app", "foreign", &index(&[entry("other", "linux", "s390x"), entry("other", "windows", "amd64")]));
    let store = test.open_with(store_config(registry.config()));
    let image = store.ensure(&registry.image("app:1"), PullPolicy::Always, &PullSecrets::none()).await.unwrap();
    assert!(image.config.env.contains(&"VERSION=ours".to_owned()), "{:?}", image.config);
    // By the digest of the index, too, without asking anybody.
    let by_index = registry.image(&format!("app@{}", Digest::of(both.as_bytes())));
    assert_eq!(store.ensure(&by_index, PullPolicy::Never, &PullSecrets::none()).await.unwrap(), image);
    let error =
        store.ensure(&registry.image("app:foreign"), PullPolicy::Always, &PullSecrets::none()).await.unwrap_err().to_string();
    assert!(error.contains("no variant for linux/") && error.contains("only for linux/s390x, windows/amd64"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn https_with_a_private_authority_and_a_password() {
    let test = TestStore::new();
    let authority = Authority::new(Validity::Now);
    let registry = Registry::secure(&authority);
    registry.push(&test.make_image("a.tar", "a:1", &[]), "a:1", &[]);
    let written = |name: &str, content: &str| -> PathBuf {
        std::fs::write(test.path(name), content).unwrap();
        test.path(name)
    };
    let (ca_file, password_file) = (written("ca.pem", &authority.ca), written("password", "open sesame\n"));
    let failure = async |config: RegistryConfig| {
        let store = test.open_with(store_config(config));
        store.ensure(&registry.image("a:1"), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap_err().to_string()
    };
    let base = registry.config();
    let error = failure(base.clone()).await;
    assert!(error.contains("signed by an unknown authority"), "{error}");
    let trusted = RegistryConfig { ca_file: Some(ca_file.clone()), ..base.clone() };
    let error = failure(trusted.clone()).await;
    assert!(error.contains("401 Unauthorized") && error.contains("no credentials are configured"), "{error}");
    let error = failure(RegistryConfig { ca_file: Some(password_file.clone()), ..base.clone() }).await;
    assert!(error.contains("password has no PEM certificate"), "{error}");
    let plain = failure(RegistryConfig { http: true, ..base }).await;
    assert!(plain.contains("returned 400"), "{plain}");
    let config = RegistryConfig { username: Some("me".into()), password_file: Some(password_file), ..trusted };
    let store = test.open_with(store_config(config));
    let image = store.ensure(&registry.image("a:1"), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap();
    assert!(image.layers[0].join("bin/busybox").is_file());
    assert!(registry.directory.path().join("data").is_dir());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_certificate_is_named_so() {
    let test = TestStore::new();
    let authority = Authority::new(Validity::Past);
    let registry = Registry::secure(&authority);
    std::fs::write(test.path("ca.pem"), &authority.ca).unwrap();
    let store = test.open_with(store_config(RegistryConfig { ca_file: Some(test.path("ca.pem")), ..registry.config() }));
    let error = store.ensure(&registry.image("a:1"), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap_err().to_string();
    assert!(error.contains("has expired 2") && error.contains(" days ago, or this host's clock is wrong"), "{error}");
}

/// F23: a captive portal has a certificate of its own, by nobody whom this host trusts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stranger_in_the_place_of_a_registry_hinders_no_present_image() {
    let test = TestStore::new();
    let (authority, stranger) = (Authority::new(Validity::Now), Authority::new(Validity::Now));
    let registry = Registry::secure(&authority);
    registry.push(&test.make_image("a.tar", "a:1", &[]), "a:1", &[]);
    std::fs::write(test.path("password"), "open sesame").unwrap();
    let open = |trusted: &Authority| {
        std::fs::write(test.path("ca.pem"), &trusted.ca).unwrap();
        test.open_with(store_config(RegistryConfig {
            ca_file: Some(test.path("ca.pem")),
            username: Some("me".into()),
            password_file: Some(test.path("password")),
            ..registry.config()
        }))
    };
    let image = registry.image("a:1");
    let present = open(&authority).ensure(&image, PullPolicy::Always, &PullSecrets::none()).await.unwrap();
    assert!(test.events.all().is_empty());
    let store = open(&stranger);
    assert_eq!(store.ensure(&image, PullPolicy::Always, &PullSecrets::none()).await.unwrap(), present);
    let events = test.events.all();
    let [(EventType::Warning, reason, message)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(reason, "RegistryUnreachable");
    assert!(
        message.contains("using the one that is present") && message.contains("another key than that of the known authority"),
        "{message}"
    );
    // What is not here is not taken from him.
    let error = store.ensure(&registry.image("b:1"), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap_err().to_string();
    assert!(error.contains("another key than that of the known authority"), "{error}");
}

/// F24.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clock_before_a_certificate_hinders_no_pull() {
    let test = TestStore::new();
    let authority = Authority::new(Validity::Future);
    let registry = Registry::secure(&authority);
    registry.push(&test.make_image("a.tar", "a:1", &[]), "a:1", &[]);
    std::fs::write(test.path("ca.pem"), &authority.ca).unwrap();
    std::fs::write(test.path("password"), "open sesame").unwrap();
    let config = RegistryConfig {
        ca_file: Some(test.path("ca.pem")),
        username: Some("me".into()),
        password_file: Some(test.path("password")),
        ..registry.config()
    };
    let store = test.open_with(store_config(config));
    let image = store.ensure(&registry.image("a:1"), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap();
    assert!(image.layers[0].join("bin/busybox").is_file());
    // The begin of a certificate by another authority says nothing.
    let (stranger, test) = (Authority::new(Validity::Future), TestStore::new());
    std::fs::write(test.path("ca.pem"), &stranger.ca).unwrap();
    let store = test.open_with(store_config(RegistryConfig { ca_file: Some(test.path("ca.pem")), ..registry.config() }));
    let error = store.ensure(&registry.image("b:1"), PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap_err().to_string();
    assert!(error.contains("another key than that of the known authority") || error.contains("unknown authority"), "{error}");
}
