//! Bundles come, and are taken.

use super::made::{Made, layer};
use super::{Bench, Following, names, pod};
use podstead::source::bundle::BundleOptions;

fn web(serial: u64, image: &str, layers: &[&str]) -> Made {
    Made::new(serial, &[("web.yaml", &pod("web", image)), ("hosts/edge-1/db.yaml", "x")]).image(image, layers)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bundle_brings_manifests_and_images() {
    let bench = Bench::new();
    let mut source = bench.start().await;
    let made = web(1, "localhost/app:1", &["base", "app-1"]);
    bench.put("a.bundle", &made.bytes());
    let artifact = source.artifact().await;
    assert_eq!(artifact.revision.0, made.revision());
    assert_eq!(names(&artifact), ["hosts/edge-1/db.yaml", "web.yaml"]);
    assert_eq!(artifact.commit.unwrap().subject, "fleet 1 of 2026-11-29");
    assert_eq!((bench.references().await, bench.layers()), (vec!["localhost/app:1".to_owned()], 2));
    // The next one shares a layer; both stay.
    bench.put("b.bundle", &web(2, "localhost/app:2", &["base", "app-2"]).bytes());
    assert_eq!(source.artifact().await.commit.unwrap().subject, "fleet 2 of 2026-11-29");
    assert_eq!((bench.references().await.len(), bench.layers()), (2, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn last_bundle_is_reported_again_without_its_file() {
    let bench = Bench::new();
    let made = web(5, "localhost/app:1", &["base"]);
    bench.put("a.bundle", &made.bytes());
    let mut source = Following::start(bench.options());
    assert_eq!(source.artifact().await.revision.0, made.revision());
    drop(source);
    bench.remove("a.bundle");
    let mut source = Following::start(bench.options());
    assert_eq!(source.artifact().await.revision.0, made.revision());
    // And its serial counts.
    bench.put("old.bundle", &web(4, "localhost/app:0", &["base"]).bytes());
    let told = source.failure().await;
    assert!(told.contains("old.bundle") && told.contains("its serial is 4, lower than 5"), "{told}");
    bench.remove("old.bundle");
    bench.put("same.bundle", &web(5, "localhost/app:0", &["base"]).bytes());
    let told = source.failure().await;
    assert!(told.contains("its serial is 5, as in the last bundle"), "{told}");
    assert_eq!(bench.references().await, ["localhost/app:1"]);
    drop(source);
    let mut source = Following::start(BundleOptions { allow_rollback: true, ..bench.options() });
    bench.remove("same.bundle");
    bench.put("old.bundle", &web(4, "localhost/app:0", &["base"]).bytes());
    while source.artifact().await.commit.unwrap().subject != "fleet 4 of 2026-11-29" {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_reported_over_a_last_good_set() {
    let bench = Bench::new();
    let mut source = Following::start(BundleOptions { has_last_good: true, ..bench.options() });
    let made = web(1, "localhost/app:1", &["base"]);
    bench.put("a.bundle", &made.bytes());
    assert_eq!(source.artifact().await.revision.0, made.revision(), "the first report");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_host_takes_its_own_bundle() {
    let bench = Bench::new();
    let mut other = web(9, "localhost/other:1", &["other"]);
    other.document.hosts = vec!["edge-2".into()];
    bench.put("edge-2.bundle", &other.bytes());
    let mut source = Following::start(bench.options());
    let told = source.failure().await;
    assert!(told.contains("edge-2.bundle") && told.contains("it is for \"edge-2\""), "{told}");
    let mine = web(3, "localhost/app:1", &["base"]);
    bench.put("edge-1.bundle", &mine.bytes());
    assert_eq!(source.artifact().await.revision.0, mine.revision());
    let mut renamed = web(4, "localhost/app:2", &["base"]);
    renamed.document.name = "lab".into();
    bench.put("lab.bundle", &renamed.bytes());
    bench.remove("edge-1.bundle");
    bench.remove("edge-2.bundle");
    loop {
        let told = source.failure().await;
        if told.contains("its name is \"lab\"") {
            break;
        }
    }
    drop(source);
    let mut source = Following::start(BundleOptions { name: Some("lab".into()), ..bench.options() });
    assert_eq!(source.artifact().await.revision.0, renamed.revision());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn left_out_layers_are_taken_from_the_store() {
    let bench = Bench::new();
    let mut source = bench.start().await;
    let next = web(2, "localhost/app:2", &["base", "app-2"]).without(layer("base"));
    bench.put("b.bundle", &next.bytes());
    let told = source.failure().await;
    assert!(told.contains("leaves out layers") && told.contains(&layer("base").to_string()), "{told}");
    assert_eq!((bench.references().await.len(), bench.layers()), (0, 0), "nothing was done");
    // Beside a higher serial, the one before it is not looked at.
    bench.remove("b.bundle");
    bench.put("a.bundle", &web(1, "localhost/app:1", &["base", "app-1"]).bytes());
    source.artifact().await;
    bench.put("b.bundle", &next.bytes());
    assert_eq!(source.artifact().await.revision.0, next.revision());
    assert_eq!((bench.references().await.len(), bench.layers()), (2, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restricted_source_brings_no_tags() {
    let bench = Bench::new();
    let made = web(1, "docker.io/library/nginx:1.27", &["evil"]);
    bench.put("a.bundle", &made.bytes());
    let mut source = Following::start(BundleOptions { digests_only: true, ..bench.options() });
    let told = source.failure().await;
    assert!(told.contains("docker.io/library/nginx:1.27 is named without a digest"), "{told}");
    assert!(bench.references().await.is_empty());
    let mut named = web(2, "docker.io/library/nginx:1.27", &["good"]);
    named.document.images[0].reference = format!("docker.io/library/nginx:1.27@{}", named.document.images[0].digest);
    bench.put("b.bundle", &named.bytes());
    assert_eq!(source.artifact().await.revision.0, named.revision());
    assert_eq!(bench.references().await, [named.document.images[0].reference.clone()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_that_is_being_written_is_awaited() {
    use std::io::Write as _;
    let bench = Bench::new();
    let mut source = bench.start().await;
    let made = web(1, "localhost/app:1", &["base"]);
    let bytes = made.bytes();
    let mut file = std::fs::File::create(bench.path("in/a.bundle")).unwrap();
    file.write_all(&bytes[..bytes.len() / 2]).unwrap();
    // Another one shows that the source has looked meanwhile.
    let mut strange = web(9, "localhost/app:1", &["base"]);
    strange.document.hosts = vec!["edge-2".into()];
    bench.put("b.bundle", &strange.bytes());
    assert!(source.failure().await.contains("b.bundle"));
    bench.remove("b.bundle");
    file.write_all(&bytes[bytes.len() / 2..]).unwrap();
    drop(file);
    assert_eq!(source.artifact().await.revision.0, made.revision());
}
