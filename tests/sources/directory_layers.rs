//! A directory that hosts share in layers.

use crate::follower::{Follower, content, follow_with, options, put};
use podstead::artifact::{Layers, SourceReport};
use podstead::source::dir::DirectoryOptions;
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn in_layers(root: &Path, layers: &[&str]) -> Follower {
    let layers: Vec<String> = layers.iter().map(|layer| (*layer).to_owned()).collect();
    follow_with(root, DirectoryOptions { layers: Arc::new(Layers::parse(&layers).unwrap()), ..options() })
}

fn checkout(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (file, text) in files {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

#[tokio::test]
async fn only_the_files_of_layers_are_read_and_their_names_have_their_way() {
    let root = checkout(&[
        ("base/web.yaml", "b"),
        ("base/deeper/x.yaml", "x"),
        ("apps/a/b/deep.yaml", "d"),
        ("hosts/edge.yaml", "e"),
        ("hosts/other.yaml", "o"),
        ("top.yaml", "t"),
    ]);
    let mut source = in_layers(root.path(), &["base", "apps/**", "hosts/edge.yaml", "none"]);
    let all = [("apps/a/b/deep.yaml", "d"), ("base/web.yaml", "b"), ("hosts/edge.yaml", "e")];
    source.content(&all).await;
    put(&root.path().join("hosts/other.yaml"), "o2");
    put(&root.path().join("hosts/edge.yaml"), "e2");
    let next = source.artifact().await;
    assert_eq!(content(&next)["hosts/edge.yaml"], "e2", "what does not count is not reported");
    let mut source = in_layers(root.path(), &["."]);
    source.content(&[("top.yaml", "t")]).await;
}

#[tokio::test]
async fn a_change_in_any_layer_is_told_by_an_event() {
    let root = checkout(&[("base/web.yaml", "b"), ("apps/a/x.yaml", "x"), ("hosts/edge/web.yaml", "h")]);
    // Nothing is found by looking.
    let far = std::time::Duration::from_secs(3600);
    let layers = ["base", "apps/**", "hosts/edge"].map(str::to_owned);
    let layers = Arc::new(Layers::parse(&layers).unwrap());
    let mut source = follow_with(root.path(), DirectoryOptions { look: far, relist: far, layers, ..options() });
    let mut all = vec![("apps/a/x.yaml", "x"), ("base/web.yaml", "b"), ("hosts/edge/web.yaml", "h")];
    source.content(&all).await;
    for (index, file) in ["apps/a/x.yaml", "base/web.yaml", "hosts/edge/web.yaml"].into_iter().enumerate() {
        put(&root.path().join(file), "new");
        all[index].1 = "new";
        source.content(&all).await;
    }
    // A directory that is new below a layer is seen, and what comes into it later.
    fs::create_dir(root.path().join("apps/b")).unwrap();
    put(&root.path().join("apps/b/y.yaml"), "y");
    all.insert(1, ("apps/b/y.yaml", "y"));
    source.content(&all).await;
    put(&root.path().join("apps/b/y.yaml"), "y2");
    all[1].1 = "y2";
    source.content(&all).await;
    fs::remove_dir_all(root.path().join("hosts/edge")).unwrap();
    all.pop();
    source.content(&all).await;
}

#[tokio::test]
async fn files_beside_a_kustomization_are_followed() {
    let overlay = "overlays/a/kustomization.yaml";
    let root = checkout(&[("base/kustomization.yaml", "k"), ("base/web.yaml", "b"), ("base/app.conf", "1")]);
    // Nothing is found by looking.
    let far = std::time::Duration::from_secs(3600);
    let layers = Arc::new(Layers::parse(&["overlays/a".to_owned()]).unwrap());
    fs::create_dir_all(root.path().join("overlays/a")).unwrap();
    let mut source = follow_with(root.path(), DirectoryOptions { look: far, relist: far, layers, ..options() });
    source.content(&[]).await;
    put(&root.path().join(overlay), "o");
    let beside = |artifact: &podstead::artifact::Artifact| {
        let text = |content: &podstead::artifact::FileContent| String::from_utf8(content.as_ref().unwrap().read()).unwrap();
        artifact.beside.iter().map(|(name, content)| format!("{name}={}", text(content))).collect::<Vec<_>>()
    };
    let first = source.artifact().await;
    assert_eq!(content(&first).into_keys().collect::<Vec<_>>(), [overlay]);
    assert_eq!(beside(&first), ["base/app.conf=1", "base/kustomization.yaml=k", "base/web.yaml=b"]);
    put(&root.path().join("base/app.conf"), "2");
    let second = source.artifact().await;
    assert_ne!(second.revision, first.revision);
    assert_eq!(beside(&second)[0], "base/app.conf=2");
    fs::create_dir(root.path().join("more")).unwrap();
    put(&root.path().join("more/x"), "3");
    assert_eq!(beside(&source.artifact().await).last().unwrap(), "more/x=3");
    fs::remove_file(root.path().join(overlay)).unwrap();
    let last = source.artifact().await;
    assert_eq!((last.files.len(), last.beside.len()), (0, 0));
}

#[tokio::test]
async fn a_layer_that_comes_later_is_found() {
    let root = checkout(&[("base/web.yaml", "b")]);
    let mut source = in_layers(root.path(), &["base", "hosts/edge", "roles/kiosk.yaml"]);
    source.content(&[("base/web.yaml", "b")]).await;
    fs::create_dir_all(root.path().join("hosts/edge")).unwrap();
    put(&root.path().join("hosts/edge/web.yaml"), "h");
    source.content(&[("base/web.yaml", "b"), ("hosts/edge/web.yaml", "h")]).await;
    fs::create_dir(root.path().join("roles")).unwrap();
    put(&root.path().join("roles/kiosk.yaml"), "k");
    source.content(&[("base/web.yaml", "b"), ("hosts/edge/web.yaml", "h"), ("roles/kiosk.yaml", "k")]).await;
}

#[tokio::test]
async fn a_checkout_that_is_swapped_as_a_whole_is_never_reported_in_part() {
    let root = tempfile::tempdir().unwrap();
    for version in ["1", "2", "3"] {
        for file in ["base/web.yaml", "hosts/edge/db.yaml"] {
            let path = root.path().join(version).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, version).unwrap();
        }
    }
    let current = root.path().join("current");
    std::os::unix::fs::symlink("1", &current).unwrap();
    let mut source = in_layers(&current, &["base", "hosts/edge"]);
    source.content(&[("base/web.yaml", "1"), ("hosts/edge/db.yaml", "1")]).await;
    for version in ["2", "3"] {
        let link = root.path().join("new");
        std::os::unix::fs::symlink(version, &link).unwrap();
        fs::rename(&link, &current).unwrap();
        let artifact = source.artifact().await;
        let texts: Vec<String> = content(&artifact).into_values().collect();
        assert_eq!(texts, [version, version]);
    }
}

#[tokio::test]
async fn a_path_that_is_gone_and_a_layer_that_cannot_be_read_are_failures() {
    let root = checkout(&[("base/web.yaml", "b")]);
    let mut source = in_layers(root.path(), &["base", "hosts"]);
    source.content(&[("base/web.yaml", "b")]).await;
    std::os::unix::fs::symlink("nothing", root.path().join("hosts")).unwrap();
    assert!(source.failure().await.contains("hosts is a dangling symlink"));
    fs::remove_file(root.path().join("hosts")).unwrap();
    assert!(matches!(source.next().await, SourceReport::Recovered));
    let path = root.path().to_owned();
    fs::rename(&path, path.with_extension("gone")).unwrap();
    assert!(source.failure().await.contains("does not exist"));
    fs::rename(path.with_extension("gone"), &path).unwrap();
    assert!(matches!(source.next().await, SourceReport::Recovered));
}
