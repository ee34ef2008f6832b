//! Copies that a crash, a bad disk or somebody left behind.

use super::repository::Repository;
use super::servers::{Inetd, git_daemon};
use super::{Running, options, revision, shown, start};
use crate::mounts::{in_own_mounts, unmount};
use nix::mount::MsFlags;
use podstead::artifact::SourceReport;
use podstead::source::git::GitOptions;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

struct Bench {
    repository: Repository,
    server: Inetd,
    state: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let repository = Repository::with(&[("web.yaml", "one"), ("db.yaml", "x")]);
        let server = git_daemon(repository.root());
        Self { repository, server, state: tempfile::tempdir().unwrap() }
    }

    fn options(&self) -> GitOptions {
        options(&format!("git://127.0.0.1:{}/fleet.git", self.server.port), self.state.path())
    }

    fn copy(&self) -> PathBuf {
        self.state.path().join("git/repository")
    }

    fn packs(&self, extension: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(self.copy().join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
    }

    async fn started(&self) -> Running {
        let mut source = start(self.options());
        source.artifact().await;
        source
    }
}

fn flip(path: &Path, at: u64) {
    let mut file = fs::File::options().read(true).write(true).open(path).unwrap();
    let byte = fs::read(path).unwrap()[usize::try_from(at).unwrap()];
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&[!byte]).unwrap();
}

/// One way to damage a copy.
type Damage = (&'static str, fn(&Bench));

const DAMAGES: &[Damage] = &[
    ("a truncated pack", |bench| {
        let file = fs::File::options().write(true).open(&bench.packs("pack")[0]).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    }),
    ("a flipped pack", |bench| {
        let pack = &bench.packs("pack")[0];
        flip(pack, fs::metadata(pack).unwrap().len() / 2);
    }),
    ("a flipped index", |bench| {
        let index = &bench.packs("idx")[0];
        // In the sorted names, behind header and fan-out.
        (0..20).for_each(|offset| flip(index, 8 + 1024 + offset));
    }),
    ("a truncated index", |bench| fs::File::options().write(true).open(&bench.packs("idx")[0]).unwrap().set_len(100).unwrap()),
    ("no index", |bench| fs::remove_file(&bench.packs("idx")[0]).unwrap()),
    ("no packs", |bench| fs::remove_dir_all(bench.copy().join("objects")).unwrap()),
    ("no record", |bench| fs::remove_file(bench.copy().join("state.json")).unwrap()),
    ("half a record", |bench| fs::write(bench.copy().join("state.json"), "{\"version\":1,").unwrap()),
    ("a record of another version", |bench| {
        fs::write(bench.copy().join("state.json"), r#"{"version":9,"commits":[],"shallow":[],"base_bytes":0}"#).unwrap();
    }),
    ("a record of something else", |bench| {
        let text = fs::read_to_string(bench.copy().join("state.json")).unwrap();
        let other = "1".repeat(40);
        fs::write(bench.copy().join("state.json"), text.replace(&bench.repository.head(), &other)).unwrap();
    }),
    ("a file in place of the copy", |bench| {
        fs::remove_dir_all(bench.copy()).unwrap();
        fs::write(bench.copy(), "x").unwrap();
    }),
];

#[tokio::test]
async fn a_damaged_copy_is_fetched_anew_at_the_next_start() {
    for (what, damage) in DAMAGES {
        let bench = Bench::new();
        let accepted = bench.started().await;
        drop(accepted);
        damage(&bench);
        let last_accepted = Some(revision(&bench.repository.head()));
        let mut source = start(GitOptions { last_accepted, ..bench.options() });
        match source.next().await {
            SourceReport::Artifact(artifact) => assert_eq!(shown(&artifact), "db.yaml=x web.yaml=one", "{what}"),
            other => panic!("{what}: {other:?}"),
        }
        bench.repository.commit(&[("web.yaml", "two")]);
        assert_eq!(shown(&source.polled_artifact().await), "db.yaml=x web.yaml=two", "{what}");
    }
}

#[tokio::test]
async fn a_copy_that_is_damaged_while_it_is_used_is_fetched_anew_at_the_next_change() {
    for (what, damage) in DAMAGES {
        let bench = Bench::new();
        let mut source = bench.started().await;
        damage(&bench);
        assert!(source.poll().await.is_empty(), "{what}: what is not read does not matter");
        bench.repository.commit(&[("web.yaml", "two")]);
        assert_eq!(shown(&source.polled_artifact().await), "db.yaml=x web.yaml=two", "{what}");
    }
}

#[tokio::test]
async fn a_damaged_copy_and_no_server_is_a_failure_that_says_both() {
    let mut bench = Bench::new();
    let mut source = bench.started().await;
    drop(source);
    // The references can still be asked for, but not the objects.
    (DAMAGES[1].1)(&bench);
    fs::rename(bench.repository.path().join("objects"), bench.repository.path().join("gone")).unwrap();
    fs::create_dir(bench.repository.path().join("objects")).unwrap();
    source = start(bench.options());
    let text = source.failure().await;
    assert!(!text.is_empty());
    fs::remove_dir(bench.repository.path().join("objects")).unwrap();
    fs::rename(bench.repository.path().join("gone"), bench.repository.path().join("objects")).unwrap();
    assert_eq!(shown(&source.polled_artifact().await), "db.yaml=x web.yaml=one");
    drop(source);
    bench.server = git_daemon(Path::new("/nonexistent"));
    let text = start(bench.options()).failure().await;
    assert!(text.contains("git://127.0.0.1"), "{text}");
}

#[tokio::test]
async fn what_a_crash_left_is_removed_at_start() {
    let bench = Bench::new();
    drop(bench.started().await);
    let leftovers = [bench.copy().join("incoming/pack_git2_ab12"), bench.state.path().join("git/fresh/objects/pack/x")];
    for path in &leftovers {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "half").unwrap();
    }
    fs::write(bench.copy().join(".state.json.tmp"), "half").unwrap();
    drop(bench.started().await);
    for path in &leftovers {
        assert!(!path.try_exists().unwrap(), "{}", path.display());
    }
}

#[tokio::test]
async fn locks_that_a_dead_process_left_hold_nobody_up() {
    let bench = Bench::new();
    drop(bench.started().await);
    for name in ["HEAD.lock", "config.lock", "index.lock", "packed-refs.lock", "shallow.lock", "refs/heads/main.lock"] {
        let path = bench.copy().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let mut source = bench.started().await;
    bench.repository.commit(&[("web.yaml", "two")]);
    assert_eq!(shown(&source.polled_artifact().await), "db.yaml=x web.yaml=two");
}

#[tokio::test]
async fn a_source_that_takes_over_waits_for_the_one_before() {
    let bench = Bench::new();
    let first = bench.started().await;
    let mut second = start(bench.options());
    drop(first);
    assert_eq!(shown(&second.artifact().await), "db.yaml=x web.yaml=one");
}

#[tokio::test]
async fn a_copy_does_not_grow_without_bound() {
    let bench = Bench::new();
    let mut source = bench.started().await;
    let mut most = 0;
    for number in 0..60 {
        let text = format!("{number} {}", "x".repeat(1000));
        bench.repository.commit(&[("web.yaml", &text)]);
        assert_eq!(shown(&source.polled_artifact().await), format!("db.yaml=x web.yaml={text}"));
        most = most.max(bench.packs("pack").len());
    }
    let now = bench.packs("pack").len();
    println!("at most {most} packs, {now} in the end");
    assert!((40..=51).contains(&most) && now < 20, "{most} {now}");
    drop(source);
    let mut source = start(GitOptions { last_accepted: Some(revision(&bench.repository.head())), ..bench.options() });
    assert!(shown(&source.artifact().await).contains("web.yaml=59"));
}

#[test]
fn a_full_disk_is_a_failure_until_there_is_room() {
    in_own_mounts(|| async {
        let repository = Repository::with(&[("web.yaml", "one")]);
        // What does not compress.
        let noise: String =
            (0..20_000_u64).map(|number| format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17))).collect();
        repository.commit(&[("noise.bin", &noise)]);
        let server = git_daemon(repository.root());
        let state = tempfile::tempdir().unwrap();
        let mount = |size: &str| {
            let flags = if size == "64k" { MsFlags::empty() } else { MsFlags::MS_REMOUNT };
            let size = format!("size={size}");
            nix::mount::mount(Some("tmpfs"), state.path(), Some("tmpfs"), flags, Some(size.as_str())).unwrap();
        };
        mount("64k");
        let mut source = start(options(&format!("git://127.0.0.1:{}/fleet.git", server.port), state.path()));
        let text = source.failure().await;
        assert!(text.contains("No space left") && text.contains("repository"), "{text}");
        mount("16m");
        assert_eq!(shown(&source.polled_artifact().await), "web.yaml=one");
        drop(source);
        unmount(state.path());
    });
}
