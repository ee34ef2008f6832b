//! A registry whose every byte a test decides.

use super::artifact::{archive, entry, flux, gzip, of};
use super::signing::Artifact;
use super::{Bench, Following, files, pairs, tag, versions};
use crate::http_server::{Answer, Server, bytes, ok};
use podstead::artifact::SourceReport;
use podstead::container::digest::Digest;
use podstead::image::RegistryConfig;
use serde_json::{Value, json};
use std::io::Write;

/// The registry, and a source's place in it.
pub(super) struct Fake {
    server: Server,
    pub(super) bench: Bench,
    host: String,
}

impl Fake {
    pub(super) fn start() -> Self {
        let server = Server::start();
        let host = server.url("").trim_start_matches("http://").to_owned();
        let bench = Bench::new(RegistryConfig { host: host.clone(), http: true, ..RegistryConfig::default() });
        Self { server, bench, host }
    }

    pub(super) fn url(&self) -> String {
        format!("oci://{}/fleet", self.host)
    }

    /// Lets a tag name an artifact.
    pub(super) fn serve(&self, tag: &str, artifact: &Artifact) {
        let digest = artifact.digest();
        let manifest = ok(&format!("docker-content-digest: {digest}\r\n"), artifact.manifest.as_bytes());
        for name in [tag, &digest] {
            self.server.serve(&format!("/v2/fleet/manifests/{name}"), manifest.clone());
        }
        for blob in &artifact.blobs {
            self.blob(Digest::of(blob), blob);
        }
    }

    fn blob(&self, digest: Digest, content: &[u8]) {
        self.server.serve(&format!("/v2/fleet/blobs/{digest}"), ok("", content));
    }

    /// Number of requests that begin so.
    fn count(&self, beginning: &str) -> usize {
        self.server.requests().iter().filter(|request| request.starts_with(beginning)).count()
    }

    fn follow(&self) -> Following {
        Following::start(self.bench.options(&self.url(), tag("latest")))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unchanged_polls_ask_for_the_digest_only() {
    let fake = Fake::start();
    fake.serve("latest", &of(&[("web.yaml", "1")]));
    let mut source = fake.follow();
    source.artifact().await;
    fake.server.wait_for(5);
    drop(source);
    let mut source = fake.follow();
    source.artifact().await;
    fake.server.wait_for(5);
    assert!(source.reports.try_recv().is_err());
    assert_eq!(fake.count("get "), 2, "{:?}", fake.server.requests());
    assert!(fake.count("head /v2/fleet/manifests/latest ") >= 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_archives_are_refused_and_not_fetched_again() {
    let fake = Fake::start();
    let good = entry(b'0', "web.yaml", "", b"kind: Pod");
    let many: Vec<u8> = (0..10_001).flat_map(|number| entry(b'0', &format!("{number}.yaml"), "", b"")).collect();
    let mut source = fake.follow();
    assert!(source.failure().await.contains("404 Not Found"));
    for (archive, reason) in [
        ([good.clone(), entry(b'0', "../../etc/cron.d/evil", "", b"x")].concat(), "leads out of the artifact"),
        ([good.clone(), entry(b'0', "/etc/passwd", "", b"x")].concat(), "has an absolute path"),
        ([entry(b'2', "a", "/etc", b""), entry(b'0', "a/passwd", "", b"x")].concat(), "below something that is not a directory"),
        ([good.clone(), entry(b'3', "mem", "", b"")].concat(), "is a device"),
        ([good.clone(), good.clone()].concat(), "is there twice"),
        (many, "more than 10000 manifests"),
        (entry(b'0', "zeros", "", &vec![0; 257 << 20]), "more than 268435456 bytes after decompression"),
        (good[..600].to_vec(), "archive ends in the middle of an entry"),
        (b"apiVersion: v1\nkind: Pod\n".to_vec(), "read the archive of the artifact"),
    ] {
        let before = fake.count("get /v2/fleet/blobs/");
        fake.serve("latest", &flux(gzip(&archive), &json!({})));
        let told = source.failure().await;
        assert!(told.contains(reason), "{told}");
        fake.server.wait_for(3);
        assert_eq!(fake.count("get /v2/fleet/blobs/"), before + 1, "{reason}");
    }
    assert!(!fake.bench.state().try_exists().unwrap(), "nothing of it is on the disk");
    let links =
        [good.clone(), entry(b'2', "shadow.yaml", "/etc/shadow", b""), entry(b'1', "hard.yaml", "/etc/shadow", b"")].concat();
    fake.serve("latest", &flux(gzip(&links), &json!({})));
    let found = files(&source.artifact().await);
    assert_eq!(found[2], ("web.yaml".to_owned(), "kind: Pod".to_owned()));
    assert!(found[0].1.starts_with("! is a hard link") && found[1].1.starts_with("! is a symlink"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn archives_that_are_cut_or_want_much_memory_are_refused() {
    let fake = Fake::start();
    let mut source = fake.follow();
    source.failure().await;
    let whole = archive(&[("web.yaml", &"kind: Pod\n".repeat(1000)), ("noise.yaml", "x")]);
    let mut wide = zstd::Encoder::new(Vec::new(), 1).unwrap();
    wide.window_log(27).unwrap();
    wide.write_all(&entry(b'0', "web.yaml", "", &vec![b'#'; 1 << 20])).unwrap();
    for (layer, reason) in [
        (whole[..whole.len() - 5].to_vec(), "read the archive of the artifact"),
        (whole[..whole.len() / 2].to_vec(), "read the archive of the artifact"),
        (whole[..5].to_vec(), "the archive of the artifact"),
        (wide.finish().unwrap(), "zstd stream needs a window of"),
    ] {
        fake.serve("latest", &flux(layer, &json!({})));
        let told = source.failure().await;
        assert!(told.contains(reason), "{told}");
    }
    fake.serve("latest", &flux(whole, &json!({})));
    assert_eq!(source.artifact().await.files.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn altered_content_is_refused_until_it_is_right() {
    let fake = Fake::start();
    let artifact = of(&[("web.yaml", "1")]);
    fake.serve("latest", &artifact);
    let layer = Digest::of(&artifact.blobs[1]);
    let other = archive(&[("web.yaml", "evil")]);
    fake.blob(layer, &other[..other.len().min(artifact.blobs[1].len())]);
    let mut source = fake.follow();
    let told = source.failure().await;
    assert!(told.contains("layer of") && told.contains(&format!("instead of {layer}")), "{told}");
    fake.blob(layer, &[&artifact.blobs[1][..], b"more"].concat());
    let told = source.failure().await;
    assert!(told.contains("is larger than"), "{told}");
    fake.blob(layer, &artifact.blobs[1]);
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "1")]));

    // A manifest that is not the one of its digest.
    let (two, three) = (of(&[("web.yaml", "2")]), of(&[("web.yaml", "3")]));
    fake.serve("latest", &two);
    fake.server.serve(&format!("/v2/fleet/manifests/{}", two.digest()), ok("", three.manifest.as_bytes()));
    let told = source.failure().await;
    assert!(told.contains(&format!("instead of {}", two.digest())), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_things_than_artifacts_are_named() {
    let fake = Fake::start();
    let mut source = fake.follow();
    source.failure().await;
    let change = |change: &dyn Fn(&mut Value)| {
        let artifact = of(&[("web.yaml", "1")]);
        let mut manifest: Value = serde_json::from_str(&artifact.manifest).unwrap();
        change(&mut manifest);
        Artifact { manifest: manifest.to_string(), ..artifact }
    };
    let none = change(&|manifest| manifest["layers"][0]["mediaType"] = json!("text/plain"));
    let large = change(&|manifest| manifest["layers"][0]["size"] = json!(33 << 20));
    let index = change(&|manifest| *manifest = json!({"schemaVersion": 2, "manifests": []}));
    let page = Artifact { manifest: "<html>login</html>".into(), blobs: Vec::new() };
    for (artifact, reason) in [
        (none, "it has no layer with a tar archive, only \"text/plain\""),
        (large, "has 34603008 bytes to download, more than 33554432"),
        (index, "it is an index, not an artifact"),
        (page, "its manifest cannot be read"),
    ] {
        fake.serve("latest", &artifact);
        let told = source.failure().await;
        assert!(told.contains(reason), "{told}");
    }
    assert_eq!(fake.count("get /v2/fleet/blobs/"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn busy_registry_is_told_once() {
    let fake = Fake::start();
    let path = "/v2/fleet/manifests/latest";
    fake.server.serve(path, Answer::Bytes(bytes("429 Too Many Requests", "retry-after: 1\r\n", b"")));
    let mut source = fake.follow();
    let told = source.failure().await;
    assert!(told.ends_with("limits the request rate (429 Too Many Requests)"), "{told}");
    fake.server.wait_for(2);
    assert!(source.reports.try_recv().is_err(), "the same is not told again");
    fake.serve("latest", &of(&[("web.yaml", "1")]));
    assert!(matches!(source.next().await, SourceReport::Artifact(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_are_found_on_every_page() {
    let fake = Fake::start();
    let page = |query: &str, tags: &[&str], next: &str| {
        let link = if next.is_empty() { String::new() } else { format!("link: </v2/fleet/tags/list?{next}>; rel=\"next\"\r\n") };
        let body = json!({"name": "fleet", "tags": tags}).to_string();
        fake.server.serve(&format!("/v2/fleet/tags/list?{query}"), ok(&link, body.as_bytes()));
    };
    page("n=1000", &["1.0.0", "latest"], "last=b&n=1");
    page("last=b&n=1", &["1.2.0"], "last=c");
    page("last=c", &["1.1.0"], "");
    fake.serve("1.2.0", &of(&[("web.yaml", "1")]));
    let mut source = Following::start(fake.bench.options(&fake.url(), versions("1")));
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "1")]));
    // A list without an end.
    page("last=c", &["1.1.0"], "n=1000");
    let told = source.failure().await;
    assert!(told.contains("more than 20000 tags, or 200 pages of them"), "{told}");
}
