//! Signatures in the formats of cosign, made by openssl.

use super::artifact::{created, of};
use super::registry::Registry;
use super::signing::{Algorithm, Artifact, BUNDLE, Signer, put_index, referrers, signature_tag};
use super::{Bench, Following, files, pairs, tag};
use podstead::source::oci::OciOptions;

fn sign(registry: &Registry, signer: &Signer, artifact: &Artifact) {
    let digest = artifact.digest();
    let signed = signer.simple(&format!("{}/fleet", registry.host), &digest);
    Artifact::simple(&[signed]).push(&registry.host, "fleet", &signature_tag(&digest));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsigned_artifact_waits_for_its_signature() {
    let registry = Registry::start();
    let bench = Bench::new(registry.config());
    let (signer, stranger) = (Signer::new(), Signer::of(Algorithm::Ed25519));
    let one = of(&[("web.yaml", "1")]);
    one.push(&registry.host, "fleet", "latest");
    let options = OciOptions { keys: vec![signer.public()], ..bench.options(&registry.url(), tag("latest")) };
    let mut source = Following::start(options.clone());
    let told = source.failure().await;
    assert!(told.starts_with("refused: oci://") && told.contains("requireSignature requires a signature by"), "{told}");
    assert!(told.ends_with("found: no signature"), "{told}");
    sign(&registry, &stranger, &one);
    let told = source.failure().await;
    assert!(!told.ends_with("found: no signature"), "{told}");
    sign(&registry, &signer, &one);
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "1")]));
    drop(source);

    // After a start the kept signature is judged by the keys as they are then.
    assert_eq!(files(&Following::start(options.clone()).artifact().await), pairs(&[("web.yaml", "1")]));
    let mut source = Following::start(OciOptions { keys: vec![stranger.public()], ..options });
    let told = source.failure().await;
    assert!(told.starts_with("refused: "), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bundle_of_a_referrer_counts() {
    let registry = Registry::start();
    let bench = Bench::new(registry.config());
    let signer = Signer::of(Algorithm::P384);
    let one = of(&[("web.yaml", "1")]);
    one.push(&registry.host, "fleet", "latest");
    let digest = one.digest();
    let bundle = Artifact::bundle(&signer.bundle(&digest), &digest);
    bundle.push(&registry.host, "fleet", &bundle.digest());
    put_index(&registry.host, "fleet", &digest.replace(':', "-"), &referrers(&[(&bundle, BUNDLE)]));
    let options = OciOptions { keys: vec![signer.public()], ..bench.options(&registry.url(), tag("latest")) };
    assert_eq!(files(&Following::start(options).artifact().await), pairs(&[("web.yaml", "1")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signed_artifact_of_earlier_is_not_replayed() {
    let registry = Registry::start();
    let bench = Bench::new(registry.config());
    let signer = Signer::new();
    let old = created(&[("web.yaml", "1")], "2026-01-01T00:00:00Z");
    let new = created(&[("web.yaml", "2")], "2026-01-02T00:00:00Z");
    let without = of(&[("web.yaml", "3")]);
    for artifact in [&old, &without, &new] {
        artifact.push(&registry.host, "fleet", "latest");
        sign(&registry, &signer, artifact);
    }
    let options = OciOptions { keys: vec![signer.public()], ..bench.options(&registry.url(), tag("latest")) };
    let mut source = Following::start(options.clone());
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "2")]));
    old.push(&registry.host, "fleet", "latest");
    source.failure_with("is of 2026-01-01T00:00:00Z, earlier than the accepted one of 2026-01-02T00:00:00Z").await;
    drop(source);
    without.push(&registry.host, "fleet", "latest");
    Following::start(options.clone()).failure_with("states no time").await;
    let mut source = Following::start(OciOptions { allow_rollback: true, ..options });
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "3")]));
}
