//! Tags, versions and digests in a real registry.

use super::artifact::{archive, flux, of};
use super::registry::Registry;
use super::{Bench, Following, eventually, files, pairs, tag, versions};
use podstead::image::{MirrorConfig, RegistryConfig};
use podstead::source::oci::{OciFollow, OciOptions};
use serde_json::json;
use std::os::unix::fs::MetadataExt;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tag_is_followed_when_it_moves() {
    let mut registry = Registry::start();
    let bench = Bench::new(registry.config());
    let annotations = json!({
        "org.opencontainers.image.revision": "main@sha1:0a1b", "org.opencontainers.image.source": "https://git.lan/fleet",
    });
    let one = flux(archive(&[("web.yaml", "one"), ("apps/db.yaml", "two"), ("README.md", "three")]), &annotations);
    one.push(&registry.host, "fleet", "latest");
    let mut source = Following::start(bench.options(&registry.url(), tag("latest")));
    let first = source.artifact().await;
    assert_eq!(files(&first), pairs(&[("apps/db.yaml", "two"), ("web.yaml", "one")]));
    assert_eq!(first.revision.0, one.digest());
    let commit = first.commit.unwrap();
    assert_eq!((commit.subject.as_str(), commit.author.as_str()), ("latest (main@sha1:0a1b)", "https://git.lan/fleet"));

    let two = of(&[("app/kustomization.yaml", "resources: []"), ("app/app.conf", "x")]);
    two.push(&registry.host, "fleet", "latest");
    let second = source.artifact().await;
    assert_eq!((second.revision.0, second.beside.len()), (two.digest(), 1));

    registry.stop();
    source.failure_with(&format!("cannot connect to {}", registry.host)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn highest_version_is_followed_and_never_lowered() {
    let registry = Registry::start();
    let bench = Bench::new(registry.config());
    let [one, two, three] = ["1", "2", "3"].map(|text| of(&[("web.yaml", text)]));
    one.push(&registry.host, "fleet", "v1.9.0");
    three.push(&registry.host, "fleet", "v2.0.0");
    let mut source = Following::start(bench.options(&registry.url(), versions("^1")));
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "1")]));
    two.push(&registry.host, "fleet", "v1.10.0");
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "2")]));
    registry.delete(&two.digest());
    let refusal = "refused: the highest version in the range is 1.9.0, lower than 1.10.0, which was accepted before";
    source.failure_with(refusal).await;
    drop(source);
    let options = bench.options(&registry.url(), versions("^1"));
    let mut source = Following::start(options.clone());
    source.failure_with(refusal).await;
    drop(source);
    let mut source = Following::start(OciOptions { allow_rollback: true, ..options });
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "1")]));
    registry.delete(&one.digest());
    source.failure_with(&format!("{} has no tag with a version in ^1", registry.url())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn digest_needs_no_registry_after_a_start() {
    let mut registry = Registry::start();
    let bench = Bench::new(registry.config());
    let (one, two) = (of(&[("a/web.yaml", "1")]), of(&[("a/web.yaml", "2")]));
    one.push(&registry.host, "fleet", "latest");
    two.push(&registry.host, "fleet", "latest");
    let follow = OciFollow::Digest(one.digest().parse().unwrap());
    let options = bench.options(&registry.url(), follow);
    assert_eq!(files(&Following::start(options.clone()).artifact().await), pairs(&[("a/web.yaml", "1")]));
    registry.stop();
    let options = OciOptions { path: "a".into(), ..options };
    assert_eq!(files(&Following::start(options).artifact().await), pairs(&[("web.yaml", "1")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unchanged_artifact_is_read_from_the_disk_after_a_start() {
    let registry = Registry::start();
    let bench = Bench::new(registry.config());
    let (one, two) = (of(&[("web.yaml", "1")]), of(&[("web.yaml", "2")]));
    one.push(&registry.host, "fleet", "1.0.0");
    let options = bench.options(&registry.url(), versions("1"));
    let first = Following::start(options.clone()).artifact().await;
    let record = bench.state().join("artifact");
    let before = std::fs::metadata(&record).unwrap();
    let mut source = Following::start(options);
    assert_eq!(source.artifact().await, first);
    assert_eq!(std::fs::metadata(&record).unwrap().ino(), before.ino(), "nothing is written");
    // Another tag of the same artifact is no news, but no lower version comes after it.
    one.push(&registry.host, "fleet", "1.1.0");
    eventually("the version to be recorded", || std::fs::metadata(&record).unwrap().ino() != before.ino()).await;
    two.push(&registry.host, "fleet", "1.2.0");
    assert_eq!(source.artifact().await.revision.0, two.digest());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn password_and_authority_are_those_of_registries() {
    let plain = Registry::start();
    of(&[("web.yaml", "1")]).push(&plain.host, "fleet", "latest");
    let (registry, ca) = plain.secured();
    let secrets = tempfile::tempdir().unwrap();
    let password = secrets.path().join("password");
    std::fs::write(&password, "wrong").unwrap();
    let config = RegistryConfig {
        host: registry.host.clone(),
        ca_file: Some(ca),
        username: Some("me".into()),
        password_file: Some(password.clone()),
        ..RegistryConfig::default()
    };
    let bench = Bench::new(config);
    let mut source = Following::start(bench.options(&registry.url(), tag("latest")));
    let told = source.failure().await;
    assert!(told.contains("401 Unauthorized") && !told.contains("wrong\""), "{told}");
    std::fs::write(&password, "open sesame").unwrap();
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "1")]));
    drop(source);
    let stranger = Bench::new(RegistryConfig { host: registry.host.clone(), ..RegistryConfig::default() });
    let told = Following::start(stranger.options(&registry.url(), tag("latest"))).failure().await;
    assert!(told.contains("TLS connection to"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_are_told_once_and_recovered_from() {
    let registry = Registry::start();
    let bench = Bench::new(registry.config());
    let mut source = Following::start(bench.options(&registry.url(), tag("latest")));
    let told = source.failure().await;
    assert!(told.contains("has no image fleet:latest (404 Not Found)"), "{told}");
    of(&[("web.yaml", "1")]).push(&registry.host, "fleet", "latest");
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "1")]));
    drop(source);
    let options = OciOptions { path: "y".into(), ..bench.options(&registry.url(), tag("latest")) };
    let mut source = Following::start(options);
    let told = source.failure().await;
    assert!(told.ends_with("the artifact has no \"y\" (path)") && told.contains("/fleet:latest@sha256:"), "{told}");
    of(&[("y/web.yaml", "2")]).push(&registry.host, "fleet", "latest");
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "2")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn artifacts_come_from_mirrors_of_the_configuration() {
    let (registry, mut mirror) = (Registry::start(), Registry::start());
    let mirrors = vec![MirrorConfig { url: format!("http://{}", mirror.host), resolve: true, ..MirrorConfig::default() }];
    let bench = Bench::new(RegistryConfig { mirrors, ..registry.config() });
    let [one, two] = ["1", "2"].map(|text| of(&[("web.yaml", text)]));
    one.push(&mirror.host, "fleet", "latest");
    two.push(&registry.host, "fleet", "latest");
    let mut source = Following::start(bench.options(&registry.url(), tag("latest")));
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "1")]));
    mirror.stop();
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "2")]), "the registry itself comes after its mirrors");
}
