//! Many files at once.

use crate::follower::{content, follow, put};
use crate::mounts::{in_own_mounts, mount_tmpfs};
use std::fs;
use std::path::Path;
use std::time::Instant;

const FILES: usize = 20_000;

fn write_all(directory: &Path, extension: &str, text: &'static str) -> std::thread::JoinHandle<()> {
    let (directory, extension) = (directory.to_owned(), extension.to_owned());
    std::thread::spawn(move || {
        for number in 0..FILES {
            fs::write(directory.join(format!("{number}.{extension}")), text).unwrap();
        }
    })
}

#[test]
fn no_file_of_a_storm_is_lost_and_the_directory_is_listed_few_times() {
    // In memory: what the disk does meanwhile is not what is tested.
    in_own_mounts(|| async {
        let directory = tempfile::tempdir().unwrap();
        mount_tmpfs(directory.path());
        let mut source = follow(directory.path());
        source.content(&[]).await;
        for text in ["one", "two"] {
            let before = source.artifacts;
            let started = Instant::now();
            let writer = write_all(directory.path(), "yaml", text);
            loop {
                let artifact = source.artifact().await;
                if artifact.files.len() == FILES && content(&artifact).values().all(|content| content == text) {
                    break;
                }
            }
            writer.join().unwrap();
            let artifacts = source.artifacts - before;
            println!("{FILES} files: {:?}, {artifacts} artifacts", started.elapsed());
            assert!(artifacts <= 30, "{artifacts} artifacts");
        }
        put(&directory.path().join("last.yaml"), "x");
        assert_eq!(source.artifact().await.files.len(), FILES + 1);
    });
}

#[test]
fn a_storm_of_other_files_hides_no_manifest() {
    // In memory: what the disk does meanwhile is not what is tested.
    in_own_mounts(|| async {
        let directory = tempfile::tempdir().unwrap();
        mount_tmpfs(directory.path());
        let mut source = follow(directory.path());
        source.content(&[]).await;
        let writer = write_all(directory.path(), "tmp", "x");
        put(&directory.path().join("p.yaml"), "one");
        source.content(&[("p.yaml", "one")]).await;
        writer.join().unwrap();
        put(&directory.path().join("p.yaml"), "two");
        source.content(&[("p.yaml", "two")]).await;
        // One for each change, and a few more on a busy machine; not one for each of the other files.
        assert!(source.artifacts <= 10, "{} artifacts", source.artifacts);
    });
}
