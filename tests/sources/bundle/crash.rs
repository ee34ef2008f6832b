//! SIGKILL at every step of a bundle, then another start: without the bundle, and with it.

use super::made::Made;
use super::{BundleSource, open_store, options_at, pod};
use crate::http_crash::{Pipeline, killed_after, paths};
use podstead::pod::SourceId;
use podstead::source::bundle::BundleOptions;
use podstead::store::last_good::LastGood;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

const VICTIM: &str = "bundle::crash::the_change_that_is_interrupted";

fn start(directory: &Path, state: &Path) -> Pipeline {
    let id = SourceId::new("fleet");
    let images = open_store(&state.join("images"));
    let has_last_good = LastGood::new(&paths(state), id.clone()).load().unwrap().in_force.is_some();
    let options = BundleOptions { has_last_good, ..options_at(&paths(state).source(&id), directory, &images) };
    Pipeline::of(Box::new(BundleSource::new(id, options)), "bundle", state)
}

/// Two pods with an image of this tag, which has two layers.
fn bundle(serial: u64) -> Vec<u8> {
    let image = format!("i:{serial}");
    let files = [("web.yaml", pod("web", &image)), ("db.yaml", pod("db", &image))];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    Made::new(serial, &files).image(&image, &["base", &format!("app-{serial}")]).bytes()
}

fn put(directory: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(directory).unwrap();
    std::fs::write(directory.join("unfinished"), bytes).unwrap();
    std::fs::rename(directory.join("unfinished"), directory.join("a.bundle")).unwrap();
}

#[test]
#[ignore = "run and killed by the test below"]
fn the_change_that_is_interrupted() {
    let (directory, state) = (std::env::var("VICTIM_URL").unwrap(), std::env::var("VICTIM_STATE").unwrap());
    // Steps are counted for each thread: all that write are one, so that each step is met.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let mut pipeline = start(Path::new(&directory), Path::new(&state));
        while pipeline.settled(2).await != "i:2" {
            pipeline.pods.clear();
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_bundle_goes_on_with_one_revision_or_the_other() {
    let mut seen = BTreeSet::new();
    for step in 1.. {
        assert!(step < 120, "the change never came to its end");
        let bench = tempfile::tempdir().unwrap();
        let (directory, nowhere, state) = (bench.path().join("in"), bench.path().join("out"), bench.path().join("state"));
        put(&directory, &bundle(1));
        assert_eq!(start(&directory, &state).settled(2).await, "i:1");
        put(&directory, &bundle(2));
        let (victim_url, victim_state) = (directory.display().to_string(), state.clone());
        let status = tokio::task::spawn_blocking(move || killed_after(step, VICTIM, &victim_url, &victim_state)).await.unwrap();
        // Without the bundle: what is on disk.
        let offline = start(&nowhere, &state).settled(2).await;
        assert!(["i:1", "i:2"].contains(&offline.as_str()), "after step {step}: {offline}");
        let mut online = start(&directory, &state);
        while online.settled(2).await != "i:2" {
            online.pods.clear();
        }
        drop(online);
        let images = open_store(&state.join("images"));
        let references = podstead::runtime::ImageService::list(&*images).await.unwrap();
        assert!(references.iter().any(|image| image.references.contains(&"docker.io/library/i:2".to_owned())), "after step {step}");
        if status.success() {
            assert_eq!(offline, "i:2");
            break;
        }
        assert_eq!(status.signal(), Some(9), "after step {step}");
        seen.insert(offline);
    }
    assert_eq!(seen.len(), 2, "it was killed before the change and behind it: {seen:?}");
}
