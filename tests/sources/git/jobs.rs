//! Repositories that have taken the job over that reads them, objects that git does not make, and jobs that are killed.
//!
//! A file that begins with `podstead-attack:` tells the job of a test build what to try, as one that found an error in libgit2 would. One with
//! `podstead-attack-index:` does so where packs are not compressed.

use super::repository::Repository;
use super::servers::{Inetd, git_daemon};
use super::{jobs, options, shown, start};
use crate::support::{Recorded, Slice, without};
use podstead::artifact::SourceReport;
use podstead::job::launch::{JobSettings, Launcher};
use podstead::source::git::GitOptions;
use podstead::source::git::job::ObjectJobs;
use podstead::telemetry::events::NoEvents;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A repository that is read where it lies; the failure of its source, and the events.
async fn refused(repository: &Repository, settings: JobSettings) -> (String, Vec<String>) {
    let (state, events) = (tempfile::tempdir().unwrap(), Arc::new(Recorded::default()));
    let jobs = jobs(settings, events.clone());
    let text = start(GitOptions { jobs, ..options(&repository.url(), state.path()) }).failure().await;
    let events = events.0.lock().unwrap().clone();
    (text, events)
}

async fn attacked(word: &str, settings: JobSettings) -> (String, Vec<String>) {
    refused(&Repository::with(&[("web.yaml", &format!("podstead-attack: {word}\n"))]), settings).await
}

/// The failure of a source whose pack attacks the job that indexes it.
async fn attacked_by_pack(word: &str) -> String {
    let repository = Repository::new();
    repository.git(&["config", "core.compression", "0"]);
    repository.commit(&[("web.yaml", &format!("podstead-attack-index: {word}\n"))]);
    let (server, state) = (git_daemon(repository.root()), tempfile::tempdir().unwrap());
    let text = start(options(&url(&server), state.path())).failure().await;
    let copy = state.path().join("git/repository");
    assert!(!copy.join("state.json").try_exists().unwrap(), "nothing of it is here");
    assert_eq!(fs::read_dir(copy.join("objects/pack")).unwrap().count(), 0);
    text
}

fn url(server: &Inetd) -> String {
    format!("git://127.0.0.1:{}/fleet.git", server.port)
}

fn impatient() -> JobSettings {
    JobSettings { patience: Duration::from_secs(1), ..JobSettings::default() }
}

#[tokio::test]
async fn forbidden_system_calls_end_the_job() {
    for word in [
        "execve",
        "socket",
        "socket-inet",
        "kill",
        "kill-own",
        "mount",
        "ptrace",
        "unshare",
        "setns",
        "chroot",
        "setuid",
        "fork",
        "keyctl",
        "bpf",
        "io_uring",
        "tty",
        "setuid-program",
    ] {
        let (text, events) = attacked(word, JobSettings::default()).await;
        assert!(text.contains("made a forbidden system call and was killed"), "{word}: {text}");
        assert_eq!(events, ["JobViolation"], "{word}");
    }
    for word in ["execve", "socket", "mount", "fork", "setuid-program"] {
        let text = attacked_by_pack(word).await;
        assert!(text.contains("made a forbidden system call and was killed"), "{word}: {text}");
    }
}

#[tokio::test]
async fn jobs_without_capabilities_to_give_up_rights_refuse_to_work() {
    let programs = tempfile::tempdir().unwrap();
    let repository = Repository::with(&[("web.yaml", "kind: Pod\n")]);
    for (capability, step) in [("sys_admin", "leave the host"), ("setuid", "become another user")] {
        let (state, events) = (tempfile::tempdir().unwrap(), Arc::new(Recorded::default()));
        let launcher = Launcher::new(without(programs.path(), "objects", capability));
        let jobs = Arc::new(ObjectJobs::new(Arc::new(launcher), events.clone()));
        let text = start(GitOptions { jobs, ..options(&repository.url(), state.path()) }).failure().await;
        assert!(text.contains(&format!("cannot give up its rights on this host: '{step}")), "{capability}: {text}");
        assert_eq!(*events.0.lock().unwrap(), ["JobNotConfined"], "{capability}");
    }
}

#[tokio::test]
async fn files_of_the_host_are_not_there() {
    for word in ["name", "dotdot", "proc"] {
        let (text, _) = attacked(word, JobSettings::default()).await;
        assert!(text.contains(&format!("'{word}: No such file or directory")), "{word}: {text}");
        let text = attacked_by_pack(word).await;
        assert!(text.contains(&format!("'{word}: No such file or directory")), "{word}: {text}");
    }
    let (text, _) = attacked("write", JobSettings::default()).await;
    assert!(text.contains("Read-only file system"), "{text}");
}

#[tokio::test]
async fn no_mount_of_the_host_is_there() {
    let slice = Slice::new("objects-mounts");
    let repository = Repository::with(&[("web.yaml", "podstead-attack: sleep\n")]);
    let state = tempfile::tempdir().unwrap();
    let jobs = jobs(JobSettings { slice: Some(slice.name()), ..JobSettings::default() }, Arc::new(NoEvents));
    let mut source = start(GitOptions { jobs, ..options(&repository.url(), state.path()) });
    slice.wait_for_one_mount().await;
    slice.kill();
    assert!(source.failure().await.contains("ended by signal 9"));
}

#[tokio::test]
async fn memory_and_time_end_at_their_limits() {
    let (text, events) = attacked("memory", JobSettings::default()).await;
    assert!(text.contains("used up its 1024 MiB of memory"), "{text}");
    assert_eq!(events, ["LimitExceeded"]);
    for word in ["spin", "sleep", "silent"] {
        let (text, events) = attacked(word, impatient()).await;
        assert!(text.contains("did nothing for 1 seconds and was killed"), "{word}: {text}");
        assert_eq!(events, ["LimitExceeded"], "{word}");
    }
}

#[tokio::test]
async fn crashes_are_told() {
    for (word, expected) in [("segfault", "ended by signal 11"), ("panic", "panicked, which is an error of podstead: '")] {
        let (text, events) = attacked(word, JobSettings::default()).await;
        assert!(text.contains(expected), "{word}: {text}");
        assert_eq!(events, Vec::<String>::new(), "{word}");
        assert!(attacked_by_pack(word).await.contains(expected), "{word}");
    }
}

#[tokio::test]
async fn lies_of_a_job_are_not_believed() {
    for (word, expected) in [
        ("another", "the job answered with another object than"),
        ("kind", "the job answered with another object than"),
        ("more", "a list of another length"),
        ("none", "a list of another length"),
        ("giant", "more than was asked for"),
        ("endless", "an answer to another question"),
    ] {
        let (text, events) = attacked(word, JobSettings::default()).await;
        assert!(text.contains(expected), "{word}: {text}");
        assert_eq!(events, ["JobViolation"], "{word}");
    }
    for word in ["huge", "words"] {
        let (text, _) = attacked(word, JobSettings::default()).await;
        assert!(text.len() < 4096 && !text.contains(char::is_control), "{} bytes: {text:?}", text.len());
    }
    for (word, expected) in [
        ("escape", "a name that no pack has"),
        ("link", "files that no pack has"),
        ("endless", "progress without any, or too often"),
    ] {
        let text = attacked_by_pack(word).await;
        assert!(text.contains(expected), "{word}: {text}");
    }
}

impl Repository {
    /// Writes a tree that git would not make, and a commit of it; entries are mode, name and object.
    fn commit_tree(&self, entries: &[(&str, &str, &str)]) {
        let bytes: Vec<u8> = entries
            .iter()
            .flat_map(|(mode, name, id)| {
                let id = (0..40).step_by(2).map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap());
                [format!("{mode} {name}\0").into_bytes(), id.collect()].concat()
            })
            .collect();
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(self.path()).args(["hash-object", "-t", "tree", "-w", "--literally", "--stdin"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let tree = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let commit = self.git(&["commit-tree", tree.trim(), "-m", "made"]);
        self.git(&["update-ref", "refs/heads/main", &commit]);
    }
}

#[tokio::test]
async fn trees_that_git_does_not_make_are_refused() {
    let repository = Repository::with(&[("web.yaml", "one"), ("d/x.yaml", "two")]);
    let (file, directory) = (repository.git(&["rev-parse", "HEAD:web.yaml"]), repository.git(&["rev-parse", "HEAD:d"]));
    let server = git_daemon(repository.root());
    for (entries, expected) in [
        ([("100644", "..", &*file), ("100644", "web.yaml", &*file)], "is called . or .."),
        ([("40000", ".git", &*directory), ("100644", "web.yaml", &*file)], "is called .git"),
        ([("100644", "a/../b.yaml", &*file), ("100644", "web.yaml", &*file)], "a name with a slash"),
        ([("100644", "web.yaml", &*file), ("100644", "web.yaml", &*file)], "two entries of the same name"),
        ([("100644", "d.yaml", &*directory), ("100644", "web.yaml", &*file)], "of another kind"),
    ] {
        repository.commit_tree(&entries);
        let (text, events) = refused(&repository, JobSettings::default()).await;
        assert!(text.contains("is refused: ") && text.contains(expected), "{expected}: {text}");
        assert_eq!(events, Vec::<String>::new());
        let state = tempfile::tempdir().unwrap();
        let text = start(options(&url(&server), state.path())).failure().await;
        // git itself does not serve a file that is none.
        assert!(text.contains(expected) || expected == "of another kind", "{expected}: {text}");
    }
}

#[tokio::test]
async fn unchanged_repository_starts_no_job() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    let server = git_daemon(repository.root());
    for url in [repository.url(), url(&server)] {
        let state = tempfile::tempdir().unwrap();
        let link = state.path().join("program");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_podstead"), &link).unwrap();
        let slice = Slice::new("objects-unchanged");
        let settings = JobSettings { program: link.clone(), slice: Some(slice.name()), ..JobSettings::default() };
        let jobs = Arc::new(ObjectJobs::new(Arc::new(Launcher::new(settings)), Arc::new(NoEvents)));
        let mut source = start(GitOptions { jobs, ..options(&url, state.path()) });
        source.artifact().await;
        fs::remove_file(&link).unwrap();
        assert!(source.poll().await.is_empty(), "{url}: no job could be started");
        repository.commit(&[("web.yaml", &url)]);
        assert!(source.polled_failure().await.contains("start a job"), "{url}");
        assert_eq!(slice.groups(), Vec::<PathBuf>::new(), "the group of a job that was not started");
    }
}

#[tokio::test]
async fn copy_of_an_earlier_version_stays_in_use() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    let (server, state) = (git_daemon(repository.root()), tempfile::tempdir().unwrap());
    start(options(&url(&server), state.path())).artifact().await;
    let objects = state.path().join("git/repository/objects");
    let packs = || -> Vec<PathBuf> { fs::read_dir(objects.join("pack")).unwrap().map(|entry| entry.unwrap().path()).collect() };
    let before = packs();
    for pack in &before {
        let metadata = fs::metadata(pack).unwrap();
        assert_eq!((metadata.uid(), metadata.mode() & 0o777), (0, 0o444), "no job can change it");
        fs::set_permissions(pack, fs::Permissions::from_mode(0o600)).unwrap();
    }
    for directory in [&objects, &objects.join("pack")] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    }
    assert_eq!(shown(&start(options(&url(&server), state.path())).artifact().await), "web.yaml=one");
    assert_eq!(packs(), before, "nothing was fetched");
    assert_eq!(fs::metadata(state.path().join("git")).unwrap().mode() & 0o777, 0o700, "nobody else can reach it");
}

#[tokio::test]
async fn commits_are_whole_or_not_there_while_jobs_are_killed() {
    let slice = Arc::new(Slice::new("objects"));
    let repository = Repository::with(&[("web.yaml", "0")]);
    let (server, state) = (git_daemon(repository.root()), tempfile::tempdir().unwrap());
    let jobs = jobs(JobSettings { slice: Some(slice.name()), ..JobSettings::default() }, Arc::new(NoEvents));
    let mut source = start(GitOptions { jobs, ..options(&url(&server), state.path()) });
    source.artifact().await;
    let mut killed = 0;
    for round in 1..=20 {
        let text = round.to_string();
        repository.commit(&[("web.yaml", &text)]);
        let done = Arc::new(AtomicBool::new(false));
        let killer = std::thread::spawn({
            let (slice, done) = (slice.clone(), done.clone());
            move || {
                let mut count = 0;
                // Later and later, so that each step is met.
                while !done.load(Ordering::Relaxed) && count < 2 {
                    std::thread::park_timeout(Duration::from_millis(round % 7));
                    count += slice.kill();
                }
                count
            }
        });
        let report = source.poll().await.pop();
        done.store(true, Ordering::Relaxed);
        killed += killer.join().unwrap();
        let artifact = match report {
            Some(SourceReport::Failed(_)) => source.polled_artifact().await,
            Some(SourceReport::Artifact(artifact)) => artifact,
            other => panic!("{other:?}"),
        };
        assert_eq!(shown(&artifact), format!("web.yaml={text}"));
        let incoming = state.path().join("git/repository/incoming");
        assert_eq!(fs::read_dir(incoming).unwrap().count(), 0, "nothing is left over");
        assert_eq!(slice.groups(), Vec::<PathBuf>::new());
    }
    assert!(killed > 0, "no job was met");
}
