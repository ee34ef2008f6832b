//! Servers that are silent, cut off, or no git servers at all.

use super::repository::Repository;
use super::servers::{Counter, Cut, cut_off, git_daemon, link};
use super::{Artifact, Running, SourceReport, options, revision, shown, start};
use podstead::source::git::GitOptions;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(500);

/// Answers every connection with `answer` and then does nothing more. Returns the port.
fn answering(answer: &'static [u8], close: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            if matches!(stream.read(&mut request), Ok(1..)) {
                stream.write_all(answer).ok();
            }
            if !close {
                kept.push(stream);
            }
        }
    });
    port
}

/// The reason for the failure of a source that waits for so long. It does not wait for long in any case.
async fn failure_within(timeout: Duration, url: &str) -> String {
    let state = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let text = start(GitOptions { timeout, ..options(url, state.path()) }).failure().await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    text
}

/// The reason for the failure of a source that has not waited in vain.
async fn failure_of(url: &str) -> String {
    failure_within(Duration::from_secs(60), url).await
}

/// The artifact of one of the next polls: a machine that is busy may not answer in [`SHORT`] time.
async fn artifact_in_the_end(source: &mut Running) -> Artifact {
    for _ in 0..20 {
        if let Some(SourceReport::Artifact(artifact)) = source.poll().await.pop() {
            return artifact;
        }
    }
    panic!("twenty polls brought nothing");
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let port = answering(b"", false);
    for url in [format!("http://127.0.0.1:{port}/fleet.git"), format!("git://127.0.0.1:{port}/fleet.git")] {
        let text = failure_within(SHORT, &url).await;
        assert!(text.contains("timed out after"), "{text}");
    }
    let text = failure_within(SHORT, &format!("ssh://127.0.0.1:{port}/fleet.git")).await;
    assert!(text.contains("timed out after") || text.contains("cannot fetch from "), "{text}");
}

#[tokio::test]
async fn a_page_instead_of_a_repository_is_called_that() {
    let page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<html></html>";
    let text = failure_of(&format!("http://127.0.0.1:{}/fleet.git", answering(page, true))).await;
    assert!(text.contains("did not answer like a git server") && text.contains("captive portal"), "{text}");
    let kind =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/x-git-upload-pack-advertisement\r\ncontent-length: 13\r\n\r\n<html></html>";
    let text = failure_of(&format!("http://127.0.0.1:{}/fleet.git", answering(kind, true))).await;
    assert!(text.contains("did not answer like a git server"), "{text}");
    let text = failure_of(&format!("git://127.0.0.1:{}/fleet.git", answering(b"SSH-2.0-OpenSSH\r\n", true))).await;
    assert!(text.contains("did not answer like a git server"), "{text}");
}

#[tokio::test]
async fn a_busy_server_is_told_from_a_broken_one() {
    let busy =
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 7\r\ncontent-type: text/plain\r\ncontent-length: 11\r\n\r\nmaintenance";
    let text = failure_of(&format!("http://127.0.0.1:{}/fleet.git", answering(busy, true))).await;
    assert!(text.contains("is temporarily unavailable") && text.contains("503") && text.contains("maintenance"), "{text}");
}

#[tokio::test]
async fn a_host_that_is_not_there_is_not_reachable() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for url in [format!("http://127.0.0.1:{free}/fleet.git"), format!("git://127.0.0.1:{free}/fleet.git")] {
        let text = failure_of(&url).await;
        assert!(text.contains("cannot fetch from ") && text.contains("efused"), "{text}");
    }
}

#[tokio::test]
async fn a_fetch_that_is_cut_off_anywhere_leaves_nothing_and_succeeds_later() {
    let repository = Repository::with(&[("web.yaml", "one"), ("db.yaml", &"x\n".repeat(100))]);
    let server = git_daemon(repository.root());
    let whole = {
        let counter = Counter::before(server.port);
        let state = tempfile::tempdir().unwrap();
        start(options(&format!("git://127.0.0.1:{}/fleet.git", counter.port), state.path())).artifact().await;
        counter.server_bytes()
    };
    for cut in [Cut::Close, Cut::Stall] {
        for part in 1..=7 {
            let left = Arc::new(AtomicU64::new(whole * part / 8));
            let port = cut_off(server.port, left.clone(), cut);
            let state = tempfile::tempdir().unwrap();
            let url = format!("git://127.0.0.1:{port}/fleet.git");
            let (timeout, reason) = match cut {
                Cut::Stall => (SHORT, "timed out after"),
                Cut::Close | Cut::Link => (Duration::from_secs(60), "cannot fetch from "),
            };
            let mut source = start(GitOptions { timeout, ..options(&url, state.path()) });
            let text = source.failure().await;
            assert!(text.contains(reason), "{part} {cut:?}: {text}");
            left.store(u64::MAX, Ordering::SeqCst);
            assert_eq!(shown(&artifact_in_the_end(&mut source).await).len(), "db.yaml= web.yaml=one".len() + 200, "{part} {cut:?}");
        }
    }
}

#[test]
fn a_network_that_goes_away_in_the_middle_of_a_fetch_changes_nothing_and_comes_back() {
    let thread = std::thread::spawn(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        link("up");
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let repository = Repository::with(&[("web.yaml", "one"), ("db.yaml", &"x\n".repeat(100))]);
            let server = git_daemon(repository.root());
            let left = Arc::new(AtomicU64::new(u64::MAX));
            let port = cut_off(server.port, left.clone(), Cut::Link);
            let state = tempfile::tempdir().unwrap();
            let url = format!("git://127.0.0.1:{port}/fleet.git");
            let mut source = start(GitOptions { timeout: SHORT, ..options(&url, state.path()) });
            artifact_in_the_end(&mut source).await;
            let commit = repository.commit(&[("web.yaml", "two")]);
            left.store(500, Ordering::SeqCst);
            let text = source.polled_failure().await;
            assert!(text.contains("timed out after"), "{text}");
            source.poll().await;
            left.store(u64::MAX, Ordering::SeqCst);
            link("up");
            assert_eq!(artifact_in_the_end(&mut source).await.revision, revision(&commit));
        });
    });
    thread.join().unwrap();
}
