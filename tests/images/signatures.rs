//! Images that the policy accepts and refuses, by signatures in all places where cosign puts them.

use crate::fake_registry::{Canned, Door, FakeRegistry};
use crate::real_registry::Registry;
use crate::signing::{
    Algorithm, Artifact, BUNDLE, COSIGN_ARTIFACT, Signer, Simple, add_to_layout, descriptor, payload, put_index, referrers,
    signature_tag,
};
use crate::support::{TestStore, binary, eventually, references, run};
use podstead::container::ResolvedImage;
use podstead::image::list_job::Here;
use podstead::settings::ImagePolicy;
use podstead::settings::check::Check;
use podstead::settings::image_policy::WrittenImagePolicy;
use podstead::source::bundle::archive::read_head;
use podstead::telemetry::events::EventType;
use podstead::{
    image::{ImageStore, ImageStoreConfig, RegistryConfig},
    pod::containers::PullPolicy,
    runtime::{ImageError, ImageService, PullSecrets},
};
use serde_json::json;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

fn policy(text: &str) -> ImagePolicy {
    let written: WrittenImagePolicy = serde_yaml::from_str(text).unwrap();
    written.resolve(&Check { path: Path::new("/etc/podstead/config.yaml") }).unwrap()
}

/// A rule for all images of a host: one of these keys has to sign.
fn signed_by(host: &str, keys: &[PathBuf], more: &str) -> ImagePolicy {
    let keys: Vec<String> = keys.iter().map(|key| key.display().to_string()).collect();
    policy(&format!("{{rules: [{{images: ['{host}/'], require: [signature], keys: [{}]{more}}}]}}", keys.join(", ")))
}

fn config(registry: RegistryConfig, policy: ImagePolicy) -> ImageStoreConfig {
    ImageStoreConfig { registries: vec![registry], policy, ..Default::default() }
}

async fn ensure(store: &ImageStore, image: &str, policy: PullPolicy) -> Result<ResolvedImage, ImageError> {
    store.ensure(image, policy, &PullSecrets::none()).await
}

/// The reason of a refusal, after which no layer is there.
async fn refusal(store: &ImageStore, image: &str) -> String {
    match ensure(store, image, PullPolicy::IfNotPresent).await.expect_err("the policy has to refuse") {
        ImageError::Refused { reason, .. } => reason,
        error => panic!("{error:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signed_images_are_pulled_and_kept() {
    let (test, registry, signer, other) = (TestStore::new(), Registry::start(), Signer::new(), Signer::new());
    registry.push(&test.make_image("a.tar", "app:1", &[]), "app:1", &[]);
    let image = registry.image("app:1");
    let digest = registry.manifest("app:1").0.to_string();
    let store = test.open_with(config(registry.config(), signed_by(&registry.host, &[signer.public()], "")));
    let reason = refusal(&store, &image).await;
    let rule = "imagePolicy.rules[0] (/etc/podstead/config.yaml) requires a signature by ";
    assert!(reason.starts_with(rule), "{reason}");
    assert!(reason.contains(&format!("{} (SHA256:", signer.public().display())), "{reason}");
    assert!(reason.ends_with("found: no signature"), "{reason}");
    assert_eq!((test.layers(), test.spools()), (0, 0), "documents only");

    Artifact::simple(&[signer.simple("registry.lan/app", &digest)]).push(&registry.host, "app", &signature_tag(&digest));
    let pulled = ensure(&store, &image, PullPolicy::IfNotPresent).await.unwrap();
    assert_eq!(pulled.digest, digest);
    let (host, unreachable) = (registry.host.clone(), registry.config());
    registry.stop();
    drop(store);
    // Without a registry, by what was kept.
    let by = |signer: &Signer| signed_by(&host, &[signer.public()], "");
    let store = test.open_with(config(unreachable, by(&signer)));
    assert_eq!(ensure(&store, &image, PullPolicy::Never).await.unwrap(), pulled);
    assert_eq!(ensure(&store, &image, PullPolicy::Always).await.unwrap(), pulled, "its registry is gone");
    store.set_policy(by(&other));
    let error = ensure(&store, &image, PullPolicy::Never).await.unwrap_err().to_string();
    assert!(error.contains("is refused") && error.contains("signature 1: made by none of the keys"), "{error}");
    let error = ensure(&store, &image, PullPolicy::IfNotPresent).await.unwrap_err();
    assert!(matches!(&error, ImageError::Pull { .. }), "its registry may have more: {error:?}");
    store.set_policy(by(&signer));
    assert_eq!(ensure(&store, &image, PullPolicy::Never).await.unwrap(), pulled);
}

/// I66.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signature_counts_under_each_tag_and_not_under_another_digest() {
    let (test, registry, signer) = (TestStore::new(), Registry::start(), Signer::new());
    let old = test.make_image("old.tar", "app:1", &["--env", "VERSION=1"]);
    registry.push(&old, "app:1", &[]);
    let digest = registry.manifest("app:1").0.to_string();
    Artifact::simple(&[signer.simple("registry.lan/app", &digest)]).push(&registry.host, "app", &signature_tag(&digest));
    // The registry serves it as the next version, too.
    registry.push(&old, "app:2", &[]);
    registry.push(&test.make_image("new.tar", "app:3", &["--env", "VERSION=3"]), "app:3", &[]);
    let store = test.open_with(config(registry.config(), signed_by(&registry.host, &[signer.public()], "")));
    for tag in ["app:1", "app:2"] {
        let pulled = ensure(&store, &registry.image(tag), PullPolicy::IfNotPresent).await.unwrap();
        assert_eq!(pulled.digest, digest, "{tag}");
    }
    // A digest in the name says which one is meant: no signature of another one counts.
    let new = registry.image(&format!("app@{}", registry.manifest("app:3").0));
    assert!(refusal(&store, &new).await.ends_with("found: no signature"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_algorithms_of_keys_sign() {
    for algorithm in [Algorithm::P384, Algorithm::Ed25519, Algorithm::Rsa] {
        let bench = Bench::new(Signer::of(algorithm)).await;
        bench.serve(&Artifact::simple(&[bench.simple()]), &bench.tag());
        bench.pull().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn referrers_behind_the_fallback_tag_count() {
    let (test, registry, signer) = (TestStore::new(), Registry::start(), Signer::new());
    for (name, version) in [("old", "1"), ("new", "2")] {
        let archive = test.make_image(&format!("{name}.tar"), "app:1", &["--env", &format!("VERSION={version}")]);
        registry.push(&archive, &format!("app:{name}"), &[]);
    }
    let digest = |name: &str| registry.manifest(&format!("app:{name}")).0.to_string();
    let (old, new) = (digest("old"), digest("new"));
    let legacy = Artifact::simple(&[signer.simple("", &old)]).referring(&old);
    let bundle = Artifact::bundle(&signer.bundle(&new), &new);
    for (artifact, kind, digest) in [(legacy, COSIGN_ARTIFACT, old), (bundle, BUNDLE, new)] {
        artifact.push(&registry.host, "app", &artifact.digest());
        put_index(&registry.host, "app", &digest.replace(':', "-"), &referrers(&[(&artifact, kind)]));
    }
    let store = test.open_with(config(registry.config(), signed_by(&registry.host, &[signer.public()], "")));
    for name in ["app:old", "app:new"] {
        ensure(&store, &registry.image(name), PullPolicy::IfNotPresent).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signature_of_the_index_counts_offline() {
    let (test, registry, signer) = (TestStore::new(), Registry::start(), Signer::new());
    registry.push(&test.make_image("a.tar", "app:1", &[]), "app:ours", &[]);
    let host = podstead::image::platform::host();
    let (manifest, size) = registry.manifest("app:ours");
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": manifest, "size": size,
            "platform": {"os": host.os, "architecture": host.architecture},
        }],
    });
    put_index(&registry.host, "app", "1", &index.to_string());
    let digest = descriptor("", index.to_string().as_bytes())["digest"].as_str().unwrap().to_owned();
    Artifact::simple(&[signer.simple("", &digest)]).push(&registry.host, "app", &signature_tag(&digest));
    let store = test.open_with(config(registry.config(), signed_by(&registry.host, &[signer.public()], "")));
    let image = ensure(&store, &registry.image("app:1"), PullPolicy::IfNotPresent).await.unwrap();
    let (by_digest, unsigned) = (registry.image(&format!("app@{manifest}")), registry.image("app:ours"));
    registry.stop();
    assert_eq!(
        ensure(&store, &by_digest, PullPolicy::IfNotPresent).await.unwrap(),
        image,
        "what the index lists is signed with it"
    );
    assert!(ensure(&store, &unsigned, PullPolicy::IfNotPresent).await.is_err(), "a tag that was never pulled");
    // Not if the kept index does not lead to the image.
    let record = test.root().join("signatures").join(manifest.hex());
    let mut kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    kept["subjects"][0]["content"] = json!("e30=");
    std::fs::write(&record, kept.to_string()).unwrap();
    let error = ensure(&store, &by_digest, PullPolicy::Never).await.unwrap_err().to_string();
    assert!(error.contains("found: no signature"), "{error}");
    assert_eq!(test.layers(), 1);
}

/// An image at a registry that serves what a test says, and a store that wants it signed.
struct Bench {
    test: TestStore,
    registry: FakeRegistry,
    signer: Signer,
    store: Arc<ImageStore>,
}

impl Bench {
    async fn new(signer: Signer) -> Self {
        Self::with(signer, "").await
    }

    async fn with(signer: Signer, more: &str) -> Self {
        let test = TestStore::new();
        let registry = FakeRegistry::serve(&test.make_image("app.tar", "app:1", &[]), Door::Open).await;
        let host = RegistryConfig { host: registry.host(), http: true, ..Default::default() };
        let store = test.open_with(config(host, signed_by(&registry.host(), &[signer.public()], more)));
        Self { test, registry, signer, store }
    }

    fn digest(&self) -> String {
        self.registry.manifest_digest()
    }

    fn tag(&self) -> String {
        signature_tag(&self.digest())
    }

    fn simple(&self) -> Simple {
        self.signer.simple("registry.lan/app", &self.digest())
    }

    fn serve(&self, artifact: &Artifact, tag: &str) {
        self.answer(&format!("manifests/{tag}"), artifact.manifest.as_bytes());
        for blob in &artifact.blobs {
            let digest = descriptor("", blob)["digest"].as_str().unwrap().to_owned();
            self.answer(&format!("blobs/{digest}"), blob);
        }
    }

    fn serve_referrers(&self, artifacts: &[(&Artifact, &str)]) {
        for (artifact, _) in artifacts {
            self.serve(artifact, &artifact.digest());
        }
        self.answer(&format!("referrers/{}", self.digest()), referrers(artifacts).as_bytes());
    }

    fn answer(&self, path: &str, body: &[u8]) {
        self.registry.answer(&format!("/v2/app/{path}"), Canned::Whole(200, body.to_vec()));
    }

    async fn pull(&self) -> Result<ResolvedImage, ImageError> {
        ensure(&self.store, &self.registry.image(), PullPolicy::IfNotPresent).await
    }

    /// The reason of a refusal, for which neither the configuration nor a layer was asked for.
    async fn refusal(&self) -> String {
        let reason = refusal(&self.store, &self.registry.image()).await;
        assert_eq!(self.registry.seen(&self.registry.layer_digest(0)), 0);
        assert_eq!(self.registry.seen(&self.registry.config_digest()), 0);
        assert_eq!((self.test.layers(), self.test.spools(), self.test.staged()), (0, 0, 0));
        reason
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn referrers_of_the_api_count() {
    let bench = Bench::new(Signer::new()).await;
    let digest = bench.digest();
    let sbom = Artifact::bundle(&bench.signer.attestation(&digest, "https://spdx.dev/Document"), &digest);
    bench.serve_referrers(&[(&sbom, BUNDLE)]);
    let reason = bench.refusal().await;
    assert!(reason.contains("an attestation of type \"https://spdx.dev/Document\""), "{reason}");
    let legacy = Artifact::simple(&[bench.simple()]).referring(&digest);
    let bundle = Artifact::bundle(&bench.signer.bundle(&digest), &digest);
    for signed in [(&legacy, COSIGN_ARTIFACT), (&bundle, BUNDLE)] {
        bench.serve_referrers(&[(&sbom, BUNDLE), signed]);
        bench.pull().await.unwrap();
        bench.store.remove(&bench.registry.image(), true).await.unwrap();
    }
    assert_eq!(std::fs::read_dir(bench.test.root().join("signatures")).unwrap().count(), 0, "gone with their image");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn false_signatures_are_refused() {
    let bench = Bench::new(Signer::new()).await;
    let (digest, other) = (bench.digest(), format!("sha256:{}", "1".repeat(64)));
    let (good, stranger) = (bench.simple(), Signer::new());
    let of_other = bench.signer.simple("registry.lan/app", &other);
    let swapped = Simple { payload: payload("registry.lan/app", &digest), signature: of_other.signature.clone() };
    let no_base64 = Simple { signature: "no base64!".into(), ..good.clone() };
    let huge = Simple { payload: format!("{}{}", good.payload, " ".repeat(300_000)), ..good.clone() };
    for (signed, word) in [
        (of_other, "for other content (sha256:1111"),
        (swapped, "made by none of the keys"),
        (stranger.simple("registry.lan/app", &digest), "made by none of the keys"),
        (no_base64, "not base64"),
        (huge, "is larger than 262144 bytes"),
    ] {
        bench.serve(&Artifact::simple(&[signed]), &bench.tag());
        let reason = bench.refusal().await;
        assert!(reason.contains(word) && reason.contains("signature 1: "), "{word}: {reason}");
    }
    // A payload other than the one that its manifest names.
    let lie = Artifact::simple(&[bench.signer.simple("registry.lan/app", &other)]);
    bench.serve(&lie, &bench.tag());
    let blob = descriptor("", &lie.blobs[0])["digest"].as_str().unwrap().to_owned();
    bench.answer(&format!("blobs/{blob}"), &good.payload.as_bytes()[..lie.blobs[0].len()]);
    let reason = bench.refusal().await;
    assert!(reason.contains("signature 1: signature of ") && reason.contains("altered or damaged in transit"), "{reason}");
    // The signature's tag is the image itself, and then a page.
    let manifest = bench.registry.blob(&digest);
    for (content, word) in [(manifest.as_slice(), "no signature of cosign"), (b"<html>", "not a manifest of signatures")] {
        bench.answer(&format!("manifests/{}", bench.tag()), content);
        let reason = bench.refusal().await;
        assert!(reason.contains(word), "{reason}");
    }
    bench.serve(&Artifact::simple(&[good]), &bench.tag());
    bench.pull().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn giant_and_hidden_signatures_are_refused() {
    let bench = Bench::new(Signer::new()).await;
    let good = bench.simple();
    let many = Artifact::simple(&vec![good.clone(); 3000]);
    bench.serve(&many, &bench.tag());
    let reason = bench.refusal().await;
    assert!(reason.contains("it has 3000 entries, more than 1000"), "{reason}");
    // Only the last ones are looked at.
    let junk = (0..16).map(|number| Simple { signature: format!("AA{number:02}"), ..good.clone() });
    let buried: Vec<Simple> = std::iter::once(good.clone()).chain(junk).collect();
    bench.serve(&Artifact::simple(&buried), &bench.tag());
    let reason = bench.refusal().await;
    assert!(reason.contains("signature 17: made by none") && reason.contains("and 11 more"), "{reason}");
    bench.registry.answer(&format!("/v2/app/manifests/{}", bench.tag()), Canned::Endless);
    let reason = bench.refusal().await;
    assert!(reason.contains("is larger than 4194304 bytes"), "{reason}");
    let list = format!("/v2/app/referrers/{}", bench.digest());
    bench.registry.answer(&list, Canned::Endless);
    let reason = bench.refusal().await;
    assert!(reason.contains("referrers: "), "{reason}");
    for status in [401, 403, 404] {
        bench.registry.answer(&format!("/v2/app/manifests/{}", bench.tag()), Canned::Whole(status, b"{}".to_vec()));
        bench.registry.answer(&list, Canned::Whole(status, b"{}".to_vec()));
        bench.refusal().await;
    }
    // A registry that cannot be asked is no verdict.
    bench.registry.answer(&list, Canned::Whole(500, b"{}".to_vec()));
    let error = bench.pull().await.unwrap_err();
    assert!(matches!(&error, ImageError::Pull { reason, .. } if reason.contains("for signatures")), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signature_for_another_name_is_refused() {
    let bench = Bench::with(Signer::new(), ", signedAs: [registry.lan/app]").await;
    let digest = bench.digest();
    bench.serve(&Artifact::simple(&[bench.signer.simple("registry.lan/other", &digest)]), &bench.tag());
    let bundle = Artifact::bundle(&bench.signer.bundle(&digest), &digest);
    bench.serve_referrers(&[(&bundle, BUNDLE)]);
    let reason = bench.refusal().await;
    assert!(reason.contains("made for image \"registry.lan/other\""), "{reason}");
    assert!(reason.contains("it states no image name"), "{reason}");
    bench.serve(&Artifact::simple(&[bench.simple()]), &bench.tag());
    bench.pull().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threshold_counts_different_keys() {
    let (one, other) = (Signer::new(), Signer::new());
    let bench = Bench::new(one).await;
    let keys = [bench.signer.public(), bench.signer.public(), other.public()];
    bench.store.set_policy(signed_by(&bench.registry.host(), &keys, ", threshold: 2"));
    bench.serve(&Artifact::simple(&[bench.simple(), bench.simple()]), &bench.tag());
    let reason = bench.refusal().await;
    assert!(reason.contains("2 of ") && reason.contains("found: a signature by "), "{reason}");
    // The second one is in another place.
    let digest = bench.digest();
    let bundle = Artifact::bundle(&other.bundle(&digest), &digest);
    bench.serve_referrers(&[(&bundle, BUNDLE)]);
    bench.pull().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_keys_refuse_every_image() {
    let bench = Bench::new(Signer::new()).await;
    bench.serve(&Artifact::simple(&[bench.simple()]), &bench.tag());
    let gone = bench.test.path("gone.pub");
    bench.store.set_policy(signed_by(&bench.registry.host(), &[bench.signer.public(), gone], ""));
    let reason = bench.refusal().await;
    assert!(reason.contains("its keys cannot be read") && reason.contains("gone.pub: it does not exist"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_alone_can_be_refused() {
    let bench = Bench::new(Signer::new()).await;
    let (host, image) = (bench.registry.host(), bench.registry.image());
    bench.store.set_policy(policy(&format!("{{rules: [{{images: ['{host}/app'], refuse: true}}, {{images: ['{host}/']}}]}}")));
    let reason = bench.refusal().await;
    assert!(reason.starts_with("refused by imagePolicy.rules[0]"), "{reason}");
    bench.store.set_policy(policy("{default: digest}"));
    let reason = bench.refusal().await;
    assert!(reason.starts_with("imagePolicy.default (/etc/podstead/config.yaml) requires a digest"), "{reason}");
    assert_eq!(bench.registry.seen(""), 0, "nobody was asked");
    let pinned = format!("{image}@{}", bench.digest());
    ensure(&bench.store, &pinned, PullPolicy::IfNotPresent).await.unwrap();
    let error = ensure(&bench.store, &image, PullPolicy::Never).await.unwrap_err();
    assert!(matches!(error, ImageError::Refused { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn present_images_get_signatures_later() {
    let bench = Bench::new(Signer::new()).await;
    let wanted = signed_by(&bench.registry.host(), &[bench.signer.public()], "");
    bench.store.set_policy(ImagePolicy::default());
    let image = bench.pull().await.unwrap();
    assert_eq!(bench.registry.seen(".sig"), 0, "signatures that nobody wants are not asked for");
    bench.store.set_policy(wanted);
    let asked = bench.registry.seen(&bench.registry.layer_digest(0));
    assert!(matches!(bench.pull().await, Err(ImageError::Refused { .. })));
    bench.serve(&Artifact::simple(&[bench.simple()]), &bench.tag());
    assert_eq!(bench.pull().await.unwrap(), image);
    assert_eq!(bench.registry.seen(&bench.registry.layer_digest(0)), asked, "its layers are here");
    let before = bench.registry.seen("");
    assert_eq!(bench.pull().await.unwrap(), image);
    assert_eq!(bench.registry.seen(""), before, "nobody is asked again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn archives_bring_their_signatures() {
    let (test, signer) = (TestStore::new(), Signer::new());
    let store =
        test.open_with(ImageStoreConfig { policy: signed_by("registry.lan", &[signer.public()], ""), ..Default::default() });
    for (name, format) in [("plain.tar", "oci"), ("packed.tar.gz", "oci"), ("saved.tar", "docker")] {
        let archive = test.make_image(name, "registry.lan/app:1", &["--format", format, "--env", &format!("NAME={name}")]);
        let error = store.import(archive).await.unwrap_err();
        let ImageError::Refused { reference, reason } = error else { panic!("{error:?}") };
        assert!(reference == "registry.lan/app:1" && reason.contains("found: no signature") && reason.contains(name), "{reason}");
        assert_eq!((references(&store).await, test.layers(), test.staged()), (Vec::new(), 0, 0));
    }
    let plain = test.path("plain.tar");
    let digest = manifest_of(&plain);
    let strange = Artifact::simple(&[Signer::new().simple("registry.lan/app", &digest)]);
    add_to_layout(&plain, &[&strange]);
    let reason = store.import(plain.clone()).await.unwrap_err().to_string();
    assert!(reason.contains("signature 1: made by none of the keys"), "{reason}");
    add_to_layout(&plain, &[&Artifact::simple(&[signer.simple("registry.lan/app", &digest)])]);
    assert_eq!(store.import(plain).await.unwrap(), ["registry.lan/app:1"]);
    ensure(&store, "registry.lan/app:1", PullPolicy::Never).await.unwrap();
    // One bundle, or one in each line, beside an archive.
    let packed = test.path("packed.tar.gz");
    let bundles = format!("{}\n\n{}\n", Signer::new().bundle(&digest), signer.bundle(&manifest_of(&packed)));
    std::fs::write(test.path("packed.tar.gz.sigstore.jsonl"), bundles).unwrap();
    store.import(packed).await.unwrap();
    let saved = ensure(&store, "registry.lan/app:1", PullPolicy::Never).await.unwrap();
    assert!(saved.config.env.contains(&"NAME=packed.tar.gz".to_owned()), "{:?}", saved.config.env);
}

/// Digest of the manifest in an OCI archive.
fn manifest_of(archive: &Path) -> String {
    let index = crate::support::run(std::process::Command::new("tar").arg("-xOf").arg(archive).arg("index.json"));
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    index["manifests"][0]["digest"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn preloaded_archives_are_judged() {
    let (test, signer) = (TestStore::new(), Signer::new());
    std::fs::create_dir(test.path("preload")).unwrap();
    test.make_image("preload/bad.tar", "registry.lan/bad:1", &[]);
    let good = test.make_image("good.tar", "registry.lan/good:1", &["--env", "A=1"]);
    std::fs::write(test.path("preload/good.tar.sigstore.json"), signer.bundle(&manifest_of(&good))).unwrap();
    std::fs::rename(good, test.path("preload/good.tar")).unwrap();
    let policy = signed_by("registry.lan", &[signer.public()], "");
    let store = test.open_with(ImageStoreConfig { preload: Some(test.path("preload")), policy, ..Default::default() });
    let task = tokio::spawn(store.run_preload());
    let told = |kind: EventType, text: &str| {
        test.events.all().iter().filter(|(had, _, message)| *had == kind && message.contains(text)).count()
    };
    eventually("both archives", || async { told(EventType::Normal, "good.tar") + told(EventType::Warning, "bad.tar") == 2 }).await;
    assert_eq!(references(&store).await, ["registry.lan/good:1"]);
    assert_eq!(told(EventType::Warning, "registry.lan/bad:1\" is refused: imagePolicy.rules[0]"), 1, "{:?}", test.events.all());
    assert_eq!(told(EventType::Warning, "sigstore.json"), 0);
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
}

/// From `cosign sign` to a host without a network: the bundle has the signature, and the policy of the host judges it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bundle_brings_signatures_of_cosign() {
    let (test, registry, signer, other) = (TestStore::new(), Registry::start(), Signer::new(), Signer::new());
    registry.push(&test.make_image("a.tar", "app:1", &[]), "app:1", &[]);
    let (host, image) = (registry.host.clone(), registry.image("app:1"));
    let digest = registry.manifest("app:1").0.to_string();
    Artifact::simple(&[signer.simple("registry.lan/app", &digest)]).push(&host, "app", &signature_tag(&digest));
    let config_file = test.path("config.yaml");
    let written = format!("apiVersion: podstead.dev/v1alpha1\nkind: Config\nregistries:\n  - host: {host}\n    http: true\n");
    std::fs::write(&config_file, written).unwrap();
    let pod =
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {{containers: [{{name: c, image: '{image}'}}]}}\n");
    std::fs::create_dir(test.path("manifests")).unwrap();
    std::fs::write(test.path("manifests/web.yaml"), pod).unwrap();
    let path = test.path("fleet.bundle");
    let mut create = Command::new(binary());
    create.arg("--config").arg(config_file).args(["bundle", "create"]).arg(test.path("manifests")).arg("-o").arg(&path);
    run(&mut create);
    let unreachable = registry.config();
    registry.stop();
    let file = Arc::new(File::open(&path).unwrap());
    let images = read_head(&file, &Here).unwrap().document.bundled_images();
    let by = |signer: &Signer| config(unreachable.clone(), signed_by(&host, &[signer.public()], ""));
    let stranger = TestStore::new();
    let refused = stranger.open_with(by(&other)).import_bundle(Arc::clone(&file), &path, images.clone()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("is refused") && refused.contains("signature 1: made by none of the keys"), "{refused}");
    assert_eq!((stranger.layers(), stranger.staged()), (0, 0));
    let store = test.open_with(by(&signer));
    assert_eq!(store.import_bundle(file, &path, images).await.unwrap(), [&*image]);
    assert_eq!(ensure(&store, &image, PullPolicy::Never).await.unwrap().digest, digest);
}
