//! SIGKILL at any moment, then another start.

use super::repository::Repository;
use super::servers::{Counter, Cut, cut_off, git_daemon, wait};
use super::{options, revision, shown, start};
use podstead::source::git::GitOptions;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Runs a source in a process of its own, which polls without end.
fn victim(url: &str, state: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "--ignored", "git::crash::the_source_that_is_killed"])
        .env("VICTIM_URL", url)
        .env("VICTIM_STATE", state);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[tokio::test]
#[ignore = "run and killed by the tests below"]
async fn the_source_that_is_killed() {
    let (url, state) = (std::env::var("VICTIM_URL").unwrap(), std::env::var("VICTIM_STATE").unwrap());
    let mut source = start(options(&url, Path::new(&state)));
    source.next().await;
    // Until it is killed, but not for ever.
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    while tokio::time::Instant::now() < end {
        source.poll().await;
    }
}

fn killed(mut victim: Child) {
    victim.kill().unwrap();
    victim.wait().unwrap();
}

#[tokio::test]
async fn a_process_that_is_killed_in_the_middle_of_a_fetch_leaves_nothing_that_matters() {
    let repository = Repository::with(&[("web.yaml", "one"), ("db.yaml", &"x\n".repeat(2000))]);
    let server = git_daemon(repository.root());
    let whole = {
        let counter = Counter::before(server.port);
        let state = tempfile::tempdir().unwrap();
        start(options(&format!("git://127.0.0.1:{}/fleet.git", counter.port), state.path())).artifact().await;
        counter.server_bytes()
    };
    for part in 1..=9 {
        let left = Arc::new(AtomicU64::new(whole * part / 10));
        let port = cut_off(server.port, left.clone(), Cut::Stall);
        let state = tempfile::tempdir().unwrap();
        let victim = victim(&format!("git://127.0.0.1:{port}/fleet.git"), state.path());
        wait("the fetch to be stuck", || left.load(Ordering::SeqCst) == 0);
        killed(victim);
        let mut source = start(options(&format!("git://127.0.0.1:{}/fleet.git", server.port), state.path()));
        assert!(shown(&source.artifact().await).ends_with("web.yaml=one"), "{part}");
        let left_over = std::fs::read_dir(state.path().join("git/repository/incoming")).unwrap().count();
        assert_eq!(left_over, 0, "{part}");
    }
}

#[tokio::test]
async fn a_process_that_is_killed_at_any_moment_of_many_updates_goes_on_with_the_newest() {
    let repository = Repository::with(&[("web.yaml", "0")]);
    let server = git_daemon(repository.root());
    let url = format!("git://127.0.0.1:{}/fleet.git", server.port);
    let state = tempfile::tempdir().unwrap();
    let record = state.path().join("git/followed.json");
    let mut delivered = None;
    for round in 0..12_u64 {
        let victim = victim(&url, state.path());
        let text = format!("{round}");
        // Killed while it looks at a new commit, a little later each time.
        repository.commit(&[("web.yaml", &text)]);
        wait("the source to have worked", || record.try_exists().unwrap());
        std::thread::park_timeout(Duration::from_millis(17 * round));
        killed(victim);
        // What another start is told was in force: whatever was delivered before the kill.
        let mut source = start(GitOptions { last_accepted: delivered.clone(), ..options(&url, state.path()) });
        let artifact = source.artifact().await;
        assert_eq!((shown(&artifact), &artifact.revision), (format!("web.yaml={text}"), &revision(&repository.head())));
        delivered = Some(artifact.revision);
    }
}
