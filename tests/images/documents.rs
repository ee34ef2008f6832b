//! Things that a registry has under a name and that are no image for this host, and images in unusual documents.

use crate::fake_registry::{Canned, Door, FakeRegistry};
use crate::support::TestStore;
use podstead::{
    container::digest::Digest,
    image::{ImageStore, ImageStoreConfig, RegistryConfig},
    pod::containers::PullPolicy,
    runtime::{ImageService, PullSecrets},
};
use serde_json::{Value, json};
use std::sync::Arc;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

struct Bench {
    test: TestStore,
    registry: FakeRegistry,
    store: Arc<ImageStore>,
}

impl Bench {
    async fn new() -> Self {
        let test = TestStore::new();
        let archive = test.make_image("a.tar", "app:1", &["--add", "/etc/hostname:/etc/x"]);
        let registry = FakeRegistry::serve(&archive, Door::Open).await;
        let config = RegistryConfig { host: registry.host(), http: true, ..Default::default() };
        let store = test.open_with(ImageStoreConfig { registries: vec![config], ..Default::default() });
        Self { test, registry, store }
    }

    /// The manifest of the image.
    fn manifest(&self) -> Value {
        serde_json::from_slice(&self.registry.blob(&self.registry.manifest_digest())).unwrap()
    }

    /// The registry has this document under a name, and by its digest; returns its descriptor.
    fn put(&self, name: &str, document: &Value) -> Value {
        let bytes = document.to_string().into_bytes();
        let digest = Digest::of(&bytes).to_string();
        let descriptor = json!({"mediaType": document["mediaType"], "digest": digest, "size": bytes.len()});
        for path in [name, &digest] {
            self.registry.answer(&format!("/v2/app/manifests/{path}"), Canned::Whole(200, bytes.clone()));
        }
        descriptor
    }

    async fn refusal(&self, document: &Value) -> String {
        self.put("other", document);
        let image = format!("{}/app:other", self.registry.host());
        self.store.ensure(&image, PullPolicy::Always, &PullSecrets::none()).await.unwrap_err().to_string()
    }
}

/// F27.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn things_that_are_no_image_for_this_host_are_named() {
    let bench = Bench::new().await;
    let manifest = bench.manifest();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = manifest.clone();
        change(&mut changed);
        changed
    };
    let signed = json!({"schemaVersion": 1, "name": "app", "tag": "old", "architecture": "amd64", "fsLayers": [], "history": []});
    let chart = "application/vnd.cncf.helm.config.v1+json";
    let empty = |kind: &str| {
        let config = json!({"mediaType": "application/vnd.oci.empty.v1+json", "digest": Digest::of(b"{}").to_string(), "size": 2});
        json!({"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": kind, "config": config, "layers": []})
    };
    let entry =
        |platform: Value| json!({"mediaType": MANIFEST, "digest": Digest::of(b"x").to_string(), "size": 1, "platform": platform});
    let foreign =
        [json!({"os": "linux", "architecture": "s390x"}), json!({"os": "windows", "architecture": "amd64", "os.version": "10"})];
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": foreign.map(entry)});
    let cases = [
        (signed, "manifest has schema version 1, only 2 is supported (push the image again"),
        (
            with(&|chart_of| chart_of["config"]["mediaType"] = chart.into()),
            "\"application/vnd.cncf.helm.config.v1+json\" is not a container image",
        ),
        (empty("application/vnd.example.sbom"), "\"application/vnd.example.sbom\" is not a container image"),
        (index, "only for linux/s390x, windows/amd64"),
        (
            with(&|image| image["layers"][1]["mediaType"] = "application/vnd.oci.image.layer.v1.tar+gzip+encrypted".into()),
            "is encrypted, and podstead decrypts no layers",
        ),
    ];
    for (document, expected) in cases {
        let error = bench.refusal(&document).await;
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(bench.registry.seen("/blobs/"), 0, "documents suffice for a refusal");
    let elsewhere = with(&|image| {
        image["layers"][1]["mediaType"] = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip".into();
        image["layers"][1]["digest"] = Digest::of(b"elsewhere").to_string().into();
        image["layers"][1]["urls"] = json!(["https://owner.example/layer"]);
    });
    let error = bench.refusal(&elsewhere).await;
    assert!(error.contains("which its owner distributes and a registry need not have") && error.contains("404"), "{error}");
    assert_eq!(bench.test.staged(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn image_in_nested_indexes_is_found_beside_other_things() {
    let bench = Bench::new().await;
    let host = podstead::image::platform::host();
    let (platform, digest) = (json!({"os": host.os, "architecture": host.architecture}), bench.registry.manifest_digest());
    let size = bench.registry.blob(&digest).len();
    let image = json!({"mediaType": MANIFEST, "digest": digest, "size": size, "platform": platform});
    // As SOCI puts it beside each image.
    let other = json!({"mediaType": MANIFEST, "artifactType": "application/vnd.amazon.soci.index.v2+json",
        "digest": Digest::of(b"soci").to_string(), "size": 4, "platform": platform});
    let index = |entries: Value| json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
    let inner = bench.put("inner", &index(json!([other, image])));
    let attestation = json!({"mediaType": MANIFEST, "digest": Digest::of(b"attestation").to_string(), "size": 11,
        "platform": {"os": "unknown", "architecture": "unknown"}});
    bench.put("outer", &index(json!([attestation, inner])));
    let reference = format!("{}/app:outer", bench.registry.host());
    let pulled = bench.store.ensure(&reference, PullPolicy::IfNotPresent, &PullSecrets::none()).await.unwrap();
    assert_eq!(pulled.digest, digest);
    // No deeper than that: a registry could go on for ever.
    let mut nested = bench.put("1", &index(json!([image])));
    for depth in ["2", "3", "4"] {
        nested = bench.put(depth, &index(json!([nested])));
    }
    let error = bench.refusal(&index(json!([nested]))).await;
    assert!(error.contains("an index nested more than three levels deep"), "{error}");
}
