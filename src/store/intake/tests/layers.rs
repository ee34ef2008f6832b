//! Layers on the way from report to SET.

use super::*;

#[tokio::test]
async fn a_later_layer_replaces_objects_and_other_hosts_do_not_count() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start_in_layers(root.path(), "", &["base", "hosts/edge"]);
    let (web, db, mine, other) = (pod("web", "v1"), pod("db", "v1"), pod("web", "v2"), pod("web", "v3"));
    let all = [("base/a", &*web), ("base/b", &*db), ("hosts/edge/z", &*mine), ("hosts/other/a", &*other)];
    running.artifact("p", &all).await;
    assert_eq!(running.pods().await, ["db=v1", "web=v2"]);
    assert_eq!(running.status().await.problems, []);
    let refused = mine.replace("containers", "containerz");
    running.artifact("p", &[("base/a", &web), ("hosts/edge/z", &refused)]).await;
    assert_eq!(running.pods().await, ["web=v2"], "what is refused in a layer keeps that layer's last good version");
    running.artifact("p", &[("base/a", &web)]).await;
    assert_eq!(running.pods().await, ["web=v1"], "without the layer the base counts");
    running.end().await;
}

#[tokio::test]
async fn what_a_start_restores_has_the_precedence_of_layers() {
    let root = tempfile::tempdir().unwrap();
    let layers = ["base", "hosts/edge"];
    let mut running = start_in_layers(root.path(), "", &layers);
    running.artifact("p", &[("base/a", &pod("web", "v1")), ("hosts/edge/a", &pod("web", "v2"))]).await;
    assert_eq!(running.pods().await, ["web=v2"]);
    running.end().await;
    let mut running = start_in_layers(root.path(), "", &layers);
    assert_eq!(running.pods().await, ["web=v2"]);
    running.end().await;
}

#[tokio::test]
async fn when_no_layer_has_a_manifest_everything_stays_and_prune_removes_it() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start_in_layers(root.path(), "", &["base", "hosts/edge"]);
    running.artifact("p", &[("base/a", &pod("web", "v1"))]).await;
    assert_eq!(running.pods().await, ["web=v1"]);
    for files in [&[("renamed/a", "x")][..], &[]] {
        running.artifact("p", files).await;
        let status = running.status().await;
        let error = status.last_error.unwrap();
        assert!(error.contains("no manifests in any layer: base, hosts/edge. Nothing changed; "), "{error}");
        assert!(!error.contains("--prune"), "{error}");
        assert_eq!(status.pods, 1);
    }
    assert_eq!(running.handle.prune(&id()).await.unwrap(), 1);
    assert_eq!(running.pods().await, [""; 0]);
    running.artifact("p", &[("base/a", &pod("web", "v2"))]).await;
    assert_eq!(running.pods().await, ["web=v2"]);
    assert_eq!(running.status().await.last_error, None);
    running.end().await;
}
