//! SIGKILL at every step of a change that comes from a registry, then another start: with the registry gone, and with it.

use super::artifact::of;
use super::registry::Registry;
use super::{OciSource, options, repositories, tag};
use crate::http_crash::{Pipeline, killed_after, paths};
use podstead::image::RegistryConfig;
use podstead::pod::SourceId;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

const VICTIM: &str = "oci::crash::the_change_that_is_interrupted";

fn start(host: &str, state: &Path) -> Pipeline {
    let registry = RegistryConfig { host: host.to_owned(), http: true, ..RegistryConfig::default() };
    let id = SourceId::new("fleet");
    let repositories = repositories(registry);
    let options = options(&repositories, &format!("oci://{host}/fleet"), tag("latest"), &paths(state).source(&id));
    Pipeline::of(Box::new(OciSource::new(id, options)), "oci", state)
}

/// Pushes two pods with an image of this tag.
fn push(registry: &Registry, image: &str) {
    let pod = |name: &str| {
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, image: 'i:{image}'}}]}}\n")
    };
    of(&[("web.yaml", &pod("web")), ("db.yaml", &pod("db"))]).push(&registry.host, "fleet", "latest");
}

#[test]
#[ignore = "run and killed by the test below"]
fn the_change_that_is_interrupted() {
    let (host, state) = (std::env::var("VICTIM_URL").unwrap(), std::env::var("VICTIM_STATE").unwrap());
    // Steps are counted for each thread: all that write are one, so that each step is met.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let mut pipeline = start(&host, Path::new(&state));
        while pipeline.settled(2).await != "i:2" {
            pipeline.pods.clear();
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_change_goes_on_with_one_revision_or_the_other() {
    let registry = Registry::start();
    let mut seen = BTreeSet::new();
    for step in 1.. {
        assert!(step < 80, "the change never came to its end");
        let state = tempfile::tempdir().unwrap();
        push(&registry, "1");
        assert_eq!(start(&registry.host, state.path()).settled(2).await, "i:1");
        push(&registry, "2");
        let (host, victim_state) = (registry.host.clone(), state.path().to_owned());
        let status = tokio::task::spawn_blocking(move || killed_after(step, VICTIM, &host, &victim_state)).await.unwrap();
        // Without a registry: what is on disk.
        let offline = start("127.0.0.1:9", state.path()).settled(2).await;
        assert!(["i:1", "i:2"].contains(&offline.as_str()), "after step {step}: {offline}");
        let mut online = start(&registry.host, state.path());
        while online.settled(2).await != "i:2" {
            online.pods.clear();
        }
        if status.success() {
            assert_eq!(offline, "i:2");
            break;
        }
        assert_eq!(status.signal(), Some(9), "after step {step}");
        seen.insert(offline);
    }
    assert_eq!(seen.len(), 2, "it was killed before the change and behind it: {seen:?}");
}
