//! A path that names one file.

use crate::follower::{content, follow, put};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

fn name(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_single_file_takes_any_name_and_is_followed_through_renames_and_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pods.conf");
    fs::write(&path, "one").unwrap();
    let mut source = follow(&path);
    assert_eq!(source.content(&[(&name(&path), "one")]).await.place, None);
    put(&path, "two");
    source.content(&[(&name(&path), "two")]).await;
    fs::write(&path, "three").unwrap();
    source.content(&[(&name(&path), "three")]).await;
}

#[tokio::test]
async fn a_single_file_that_vanishes_is_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.yaml");
    fs::write(&path, "one").unwrap();
    let mut source = follow(&path);
    source.content(&[(&name(&path), "one")]).await;
    fs::remove_file(&path).unwrap();
    assert_eq!(source.failure().await, format!("{} does not exist", path.display()));
    put(&path, "two");
    source.content(&[(&name(&path), "two")]).await;
}

#[tokio::test]
async fn a_single_file_behind_a_swapped_directory_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for generation in ["..1", "..2"] {
        fs::create_dir(at(generation)).unwrap();
        fs::write(at(generation).join("p.yaml"), generation).unwrap();
    }
    symlink("..1", at("..data")).unwrap();
    symlink("..data/p.yaml", at("p.yaml")).unwrap();
    let mut source = follow(&at("p.yaml"));
    source.content(&[(&name(&at("p.yaml")), "..1")]).await;
    symlink("..2", at("..tmp")).unwrap();
    fs::rename(at("..tmp"), at("..data")).unwrap();
    source.content(&[(&name(&at("p.yaml")), "..2")]).await;
}

#[tokio::test]
async fn a_file_that_becomes_a_directory_is_followed_as_one() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("manifests");
    fs::write(&path, "one").unwrap();
    let mut source = follow(&path);
    source.content(&[(&name(&path), "one")]).await;
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    put(&path.join("p.yaml"), "two");
    let seen = source.content(&[("p.yaml", "two")]).await;
    assert!(seen.place.is_some(), "{:?}", content(&seen));
}
