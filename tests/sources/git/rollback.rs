//! That nothing goes back by itself, and that history may still be rewritten where that is meant.

use super::repository::Repository;
use super::servers::{Counter, git_daemon};
use super::{options, revision, shown, start};
use podstead::source::git::{Follow, GitOptions};
use std::path::Path;

/// A repository whose branch was forced back after it was followed, with the two commits.
async fn forced_back(url: &dyn Fn(&Repository) -> String, state: &Path) -> (Repository, String, String) {
    let repository = Repository::with(&[("web.yaml", "one")]);
    let old = repository.head();
    let new = repository.commit(&[("web.yaml", "two")]);
    let mut source = start(options(&url(&repository), state));
    assert_eq!(source.artifact().await.revision, revision(&new));
    repository.git(&["reset", "--quiet", "--hard", &old]);
    let text = source.polled_failure().await;
    assert!(
        text.contains(&format!("refused: commit {old} is not a descendant of {new}")) && text.contains("allowRollback"),
        "{text}"
    );
    assert!(source.poll().await.is_empty(), "said once");
    (repository, old, new)
}

#[tokio::test]
async fn a_force_push_is_refused_until_it_is_allowed() {
    let state = tempfile::tempdir().unwrap();
    let (repository, old, new) = forced_back(&Repository::url, state.path()).await;
    let at = |last: &str| GitOptions { last_accepted: Some(revision(last)), ..options(&repository.url(), state.path()) };
    let text = start(at(&new)).failure().await;
    assert!(text.contains("is not a descendant"), "also after a restart: {text}");
    let mut allowed = start(GitOptions { allow_rollback: true, ..at(&new) });
    assert_eq!(allowed.artifact().await.revision, revision(&old));
}

#[tokio::test]
async fn what_the_configuration_names_may_be_older() {
    let state = tempfile::tempdir().unwrap();
    let (repository, old, new) = forced_back(&Repository::url, state.path()).await;
    let at = || GitOptions { last_accepted: Some(revision(&new)), ..options(&repository.url(), state.path()) };
    let pinned = GitOptions { follow: Follow::Commit(old.parse().unwrap()), ..at() };
    assert_eq!(start(pinned).artifact().await.revision, revision(&old));
    repository.git(&["branch", "site", &old]);
    let state = tempfile::tempdir().unwrap();
    start(GitOptions { store: state.path().join("git"), follow: Follow::Commit(new.parse().unwrap()), ..at() }).artifact().await;
    let other = GitOptions { store: state.path().join("git"), follow: Follow::Branch("site".into()), ..at() };
    assert_eq!(start(other).artifact().await.revision, revision(&old));
}

#[tokio::test]
async fn over_a_protocol_a_force_push_a_rewrite_and_an_orphan_are_refused_alike_and_cost_one_fetch() {
    let repository = Repository::with(&[("web.yaml", "0")]);
    for number in 1..100 {
        repository.commit(&[("web.yaml", &number.to_string())]);
    }
    let new = repository.head();
    let server = git_daemon(repository.root());
    let counter = Counter::before(server.port);
    let state = tempfile::tempdir().unwrap();
    let mut source = start(options(&format!("git://127.0.0.1:{}/fleet.git", counter.port), state.path()));
    assert_eq!(shown(&source.artifact().await), "web.yaml=99");

    repository.git(&["commit", "--quiet", "--amend", "--message", "rewritten"]);
    let text = source.polled_failure().await;
    assert!(text.contains("is not a descendant"), "{text}");
    let before = counter.count().0;
    assert!(source.poll().await.is_empty());
    assert!(counter.count().0 - before < 4096, "what was refused is not fetched again");

    repository.git(&["checkout", "--quiet", "--orphan", "fresh"]);
    repository.commit(&[("web.yaml", "orphan")]);
    repository.git(&["branch", "--force", "main", "fresh"]);
    let text = source.polled_failure().await;
    assert!(text.contains("is not a descendant"), "{text}");

    repository.git(&["checkout", "--quiet", "-B", "main", &new]);
    let merged = repository.commit(&[("web.yaml", "100")]);
    assert_eq!(source.polled_artifact().await.revision, revision(&merged), "what follows from the accepted one is accepted");
}

#[tokio::test]
async fn a_merge_of_an_older_branch_and_a_long_absence_are_descendants() {
    let repository = Repository::with(&[("web.yaml", "0")]);
    repository.git(&["branch", "old"]);
    let server = git_daemon(repository.root());
    let state = tempfile::tempdir().unwrap();
    let url = format!("git://127.0.0.1:{}/fleet.git", server.port);
    let accepted = repository.commit(&[("web.yaml", "1")]);
    let mut source = start(options(&url, state.path()));
    assert_eq!(source.artifact().await.revision, revision(&accepted));

    repository.git(&["checkout", "--quiet", "old"]);
    repository.commit(&[("db.yaml", "x")]);
    repository.git(&["checkout", "--quiet", "main"]);
    repository.git(&["merge", "--quiet", "--no-ff", "--message", "merge", "old"]);
    assert_eq!(shown(&source.polled_artifact().await), "db.yaml=x web.yaml=1");

    for number in 0..150 {
        repository.commit(&[("web.yaml", &number.to_string())]);
    }
    assert_eq!(shown(&source.polled_artifact().await), "db.yaml=x web.yaml=149", "more than 64 generations later");
    // The copy is lost, and with it the accepted commit.
    drop(source);
    std::fs::remove_dir_all(state.path().join("git/repository")).unwrap();
    let last_accepted = Some(revision(&repository.head()));
    repository.commit(&[("web.yaml", "last")]);
    let mut source = start(GitOptions { last_accepted, ..options(&url, state.path()) });
    assert_eq!(shown(&source.artifact().await), "db.yaml=x web.yaml=last");
}
