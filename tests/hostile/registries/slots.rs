//! A registry that is slow delays its own images only.

use super::image::{Image, part};
use super::server::{Asked, Reply, Server};
use super::store::{PATIENCE, Store, plain};
use crate::support::{TestHost, eventually};
use podstead::image::ImageStoreConfig;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Faster than silence, slower than anything useful.
const DRIP: Duration = Duration::from_millis(500);

fn drip(image: &Image, asked: &Asked) -> Reply {
    match image.layer(asked) {
        Some(layer) => Reply::Drip { body: layer.to_vec(), offset: asked.offset(), first: 100, pause: DRIP },
        None => image.serve(asked),
    }
}

/// A registry whose layers come a byte at a time.
fn dripping(ip: &str, image: Image) -> Server {
    Server::http(ip, move |asked| drip(&image, asked))
}

fn honest(ip: &str, image: Image) -> Server {
    Server::http(ip, move |asked| image.serve(asked))
}

/// A request for the repository `other`, as one for the only repository of an image.
fn of_other(asked: &Asked) -> Option<Asked> {
    let target = asked.target.strip_prefix("/v2/other/")?;
    let mut asked = asked.clone();
    asked.target = format!("/v2/app/{target}");
    Some(asked)
}

fn wait_for_layers(server: &Server, count: usize) {
    eventually("requests for layers", || match server.asked_for("/blobs/").len() {
        // The configuration is a blob, too.
        seen if seen > count => Ok(()),
        seen => Err(format!("{seen} requests")),
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dripping_registry_delays_no_other_registry() {
    let slow = dripping("127.0.0.2", Image::new("slow", 6, 200_000));
    let healthy = honest("127.0.0.3", Image::new("healthy", 6, 200_000));
    let store = Store::new(vec![plain(slow.host()), plain(healthy.host())]);
    let pending = store.begin(&slow);
    wait_for_layers(&slow, 3);
    assert_eq!(store.pull(&healthy).await.unwrap().layers.len(), 6);
    assert!(!pending.is_finished(), "the dripping pull still advances");
    assert!(slow.asked_for("/blobs/").len() <= 4, "three layers of one host at once, and the configuration");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_dripping_registries_leave_a_slot() {
    let slow: Vec<Server> =
        ["127.0.0.2", "127.0.0.3", "127.0.0.4"].into_iter().map(|ip| dripping(ip, Image::new(ip, 6, 200_000))).collect();
    let healthy = honest("127.0.0.9", Image::new("healthy", 2, 200_000));
    let store = Store::new(slow.iter().chain([&healthy]).map(|server| plain(server.host())).collect());
    let _pending: Vec<_> = slow.iter().map(|server| store.begin(server)).collect();
    slow.iter().for_each(|server| wait_for_layers(server, 1));
    assert_eq!(store.pull(&healthy).await.unwrap().layers.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_blob_gives_its_slot_away() {
    let (silent, healthy) = (Image::new("silent", 3, 200_000), Image::new("healthy", 2, 200_000));
    let server = Server::http("127.0.0.2", move |asked| match of_other(asked) {
        Some(asked) => match silent.layer(&asked) {
            Some(layer) => {
                Reply::Drip { body: layer.to_vec(), offset: asked.offset(), first: 100, pause: Duration::from_secs(3600) }
            }
            None => silent.serve(&asked),
        },
        None => healthy.serve(asked),
    });
    let store = Store::new(vec![plain(server.host())]);
    let pending = store.begin_repository(&server, "other");
    wait_for_layers(&server, 3);
    // Sooner than the silence is long enough to give a connection up.
    let pulled = tokio::time::timeout(Duration::from_secs(25), store.pull(&server)).await;
    assert_eq!(pulled.expect("a slot within five seconds").unwrap().layers.len(), 2);
    pending.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blob_below_minimum_rate_is_reconnected() {
    let image = Image::new("slow", 1, 20_000);
    let served = image.clone();
    // Every connection brings 1,000 bytes and then a byte now and then: 22 connections, each of which advances.
    let server = Server::http("127.0.0.2", move |asked| match served.layer(asked) {
        Some(layer) => {
            Reply::Drip { body: layer.to_vec(), offset: asked.offset(), first: 1_000, pause: Duration::from_millis(100) }
        }
        None => served.serve(asked),
    });
    let store = Store::with(vec![plain(server.host())], slow_is(4_000, Duration::from_millis(800)));
    assert_eq!(store.pull(&server).await.unwrap().layers.len(), 1);
    let offsets: Vec<usize> = server.asked_for("/blobs/").iter().map(Asked::offset).collect();
    assert!(offsets.len() > 10, "{offsets:?}");
    assert!(
        offsets.windows(2).skip(1).all(|pair| pair[0] < pair[1]),
        "each connection goes on where the last one was: {offsets:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blob_with_slow_last_byte_is_complete() {
    let image = Image::new("slow", 1, 1_000);
    let served = image.clone();
    let server = Server::http("127.0.0.2", move |asked| match served.layer(asked) {
        Some(layer) => {
            Reply::Drip { body: layer.to_vec(), offset: asked.offset(), first: layer.len() - 1, pause: Duration::from_secs(1) }
        }
        None => served.serve(asked),
    });
    let store = Store::with(vec![plain(server.host())], slow_is(1_000_000, Duration::from_millis(800)));
    store.pull(&server).await.unwrap();
    assert_eq!(server.asked_for("/blobs/").len(), 2, "the configuration, and the layer once");
}

/// Less than this over such a time is slow.
fn slow_is(bytes_per_second: u64, window: Duration) -> ImageStoreConfig {
    ImageStoreConfig { minimum_rate: bytes_per_second, rate_window: window, ..Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claimed_chain_id_blocks_no_other_registry() {
    let image = Image::new("base", 2, 100_000);
    // Says that its layers unpack to what the other image consists of.
    let liar = Image::claiming(&image.diff_ids(), Image::new("lie", 2, 100_000).layers);
    let (hostile, healthy) = (dripping("127.0.0.2", liar), honest("127.0.0.3", image));
    let store = Store::new(vec![plain(hostile.host()), plain(healthy.host())]);
    let _pending = store.begin(&hostile);
    wait_for_layers(&hostile, 1);
    assert_eq!(store.pull(&healthy).await.unwrap().layers.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dripping_pull_ends_when_another_registry_delivers() {
    let image = Image::new("base", 2, 100_000);
    let (slow, healthy) = (dripping("127.0.0.2", image.clone()), honest("127.0.0.3", image));
    let store = Store::new(vec![plain(slow.host()), plain(healthy.host())]);
    let pending = store.begin(&slow);
    wait_for_layers(&slow, 1);
    let wanted = store.pull(&healthy).await.unwrap();
    let joined = tokio::time::timeout(PATIENCE, pending).await.expect("its layers are here").unwrap().unwrap();
    assert_eq!(joined, wanted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn altered_layer_spoils_no_other_registry() {
    let image = Image::new("base", 1, 100_000);
    let served = image.clone();
    let hostile = Server::http("127.0.0.2", move |asked| match served.layer(asked) {
        Some(layer) => {
            let mut altered = layer.to_vec();
            altered[600] ^= 1;
            part(&altered, asked.offset())
        }
        None => served.serve(asked),
    });
    let healthy = honest("127.0.0.3", image);
    let store = Store::new(vec![plain(hostile.host()), plain(healthy.host())]);
    let bad = store.begin(&hostile);
    assert_eq!(store.pull(&healthy).await.unwrap().layers.len(), 1);
    // Whichever was first: the altered bytes are refused, or the layer is here already.
    if let Err(reason) = bad.await.unwrap() {
        assert!(reason.contains("altered or damaged"), "{reason}");
    }
}

fn pod(name: &str, image: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
         - {{name: main, image: '{image}', command: [sleep, '1000000']}}\n"
    )
}

#[test]
fn present_image_starts_while_pulls_hang() {
    let image = Image::new("hanging", 3, 200_000);
    let hangs = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&hangs);
    let server = Server::http("127.0.0.2", move |asked| {
        seen.fetch_or(image.layer(asked).is_some(), Ordering::Relaxed);
        drip(&image, asked)
    });
    let host = TestHost::start_with(&format!("registries:\n  - host: {}\n    http: true\n", server.host()));
    host.write_manifest("hanging.yaml", &pod("hanging", &format!("{}/app:1", server.host())));
    eventually("the pull to hang", || hangs.load(Ordering::Relaxed).then_some(()).ok_or_else(|| host.daemon_log()));
    host.write_manifest("present.yaml", &pod("present", "localhost/busybox:1"));
    host.wait_running("present");
    assert_ne!(host.pod("hanging").unwrap().phase(), "Running");
}

#[test]
fn waits_of_pulls_are_counted_by_cause() {
    let (slow, second, paused) =
        (Image::new("slow", 3, 200_000), Image::new("second", 1, 200_000), Image::new("paused", 1, 200_000));
    let busy = Server::http("127.0.0.2", move |asked| match of_other(asked) {
        Some(asked) => second.serve(&asked),
        None => drip(&slow, asked),
    });
    let pausing = Server::http("127.0.0.3", move |asked| match paused.layer(asked) {
        Some(_) => Reply::Whole(429, vec!["Retry-After: 100".to_owned()], Vec::new()),
        None => paused.serve(asked),
    });
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let host = TestHost::start_with(&format!(
        "registries:\n  - {{host: '{}', http: true}}\n  - {{host: '{}', http: true}}\nmonitoring: {{port: {port}}}\n",
        busy.host(),
        pausing.host()
    ));
    host.write_manifest("slow.yaml", &pod("slow", &format!("{}/app:1", busy.host())));
    // All that may come from one host at once.
    wait_for_layers(&busy, 3);
    host.write_manifest("second.yaml", &pod("second", &format!("{}/other:1", busy.host())));
    host.write_manifest("paused.yaml", &pod("paused", &format!("{}/app:1", pausing.host())));
    let wanted = [
        "",
        "_waiting{cause=\"window\"}",
        "_waiting{cause=\"queue\"}",
        "_waiting{cause=\"network\"}",
        "_waiting{cause=\"registry\"}",
    ]
    .into_iter()
    .zip([3, 0, 1, 0, 1])
    .map(|(of, count)| format!("podstead_image_pulls{of} {count}"));
    let wanted: Vec<String> = wanted.collect();
    eventually("the waits", || {
        let url = format!("http://127.0.0.1:{port}/metrics");
        let out = std::process::Command::new("curl").args(["-sS", "--fail", "--max-time", "20", &url]).output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let found: Vec<String> = text.lines().filter(|line| line.starts_with("podstead_image_pulls")).map(str::to_owned).collect();
        if wanted.iter().all(|line| found.contains(line)) { Ok(()) } else { Err(found.join("\n")) }
    });
}
