//! References that are followed: branches, tags, versions, one commit.

use super::repository::Repository;
use super::servers::git_daemon;
use super::{options, revision, shown, start};
use podstead::artifact::SourceReport;
use podstead::source::git::{Follow, GitOptions};

/// Both ways of reading: in place, and over a protocol into a copy.
fn ways(repository: &Repository, server: &super::servers::Inetd) -> [String; 2] {
    [repository.url(), format!("git://127.0.0.1:{}/fleet.git", server.port)]
}

#[tokio::test]
async fn a_commit_is_delivered_once_and_the_next_one_again() {
    let repository = Repository::with(&[("web.yaml", "one"), ("deep/er/db.yml", "x"), ("README.md", "no")]);
    let server = git_daemon(repository.root());
    for url in ways(&repository, &server) {
        let state = tempfile::tempdir().unwrap();
        let mut source = start(options(&url, state.path()));
        let first = source.artifact().await;
        assert!(shown(&first).starts_with("deep/er/db.yml=x web.yaml="), "{}", shown(&first));
        assert_eq!((first.revision, first.place), (revision(&repository.head()), None));
        assert!(source.poll().await.is_empty(), "unchanged");
        let commit = repository.commit(&[("web.yaml", &format!("two of {url}"))]);
        let second = source.polled_artifact().await;
        assert_eq!(second.revision, revision(&commit));
        assert!(shown(&second).ends_with(&format!("web.yaml=two of {url}")));
    }
}

#[tokio::test]
async fn the_default_branch_is_the_one_that_the_repository_names() {
    let repository = Repository::with(&[("web.yaml", "main")]);
    let server = git_daemon(repository.root());
    for url in ways(&repository, &server) {
        let state = tempfile::tempdir().unwrap();
        let mut source = start(GitOptions { follow: Follow::DefaultBranch, ..options(&url, state.path()) });
        assert_eq!(source.artifact().await.revision, revision(&repository.head()));
    }
}

#[tokio::test]
async fn a_branch_that_is_deleted_is_a_failure_and_comes_back() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    repository.git(&["branch", "site"]);
    let server = git_daemon(repository.root());
    for url in ways(&repository, &server) {
        let state = tempfile::tempdir().unwrap();
        let mut source = start(GitOptions { follow: Follow::Branch("site".into()), ..options(&url, state.path()) });
        source.artifact().await;
        repository.git(&["branch", "-D", "site"]);
        let text = source.polled_failure().await;
        assert!(text.contains("no branch site"), "{text}");
        assert!(source.poll().await.is_empty(), "said once");
        repository.git(&["branch", "site"]);
        assert!(matches!(source.poll().await[..], [SourceReport::Recovered]));
    }
}

#[tokio::test]
async fn annotated_and_light_tags_lead_to_their_commits() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    let tagged = repository.head();
    repository.git(&["tag", "light"]);
    repository.git(&["tag", "--annotate", "heavy", "--message", "m"]);
    repository.git(&["tag", "--annotate", "heavier", "--message", "m", "heavy"]);
    repository.commit(&[("web.yaml", "two")]);
    let server = git_daemon(repository.root());
    for url in ways(&repository, &server) {
        for tag in ["light", "heavy", "heavier"] {
            let state = tempfile::tempdir().unwrap();
            let mut source = start(GitOptions { follow: Follow::Tag(tag.into()), ..options(&url, state.path()) });
            let artifact = source.artifact().await;
            assert_eq!((shown(&artifact).as_str(), artifact.revision), ("web.yaml=one", revision(&tagged)), "{tag} {url}");
            assert!(source.poll().await.is_empty());
        }
    }
}

#[tokio::test]
async fn the_highest_version_in_the_range_is_followed_and_never_a_lower_one() {
    let repository = Repository::with(&[("web.yaml", "1.0.0")]);
    repository.git(&["tag", "v1.0.0"]);
    let server = git_daemon(repository.root());
    for url in ways(&repository, &server) {
        let state = tempfile::tempdir().unwrap();
        let mut source = start(GitOptions { follow: Follow::Semver("^1".parse().unwrap()), ..options(&url, state.path()) });
        source.artifact().await;
        for (file, tag) in [("2.0.0", "v2.0.0"), ("1.2.0", "v1.2.0"), ("1.1.9", "v1.1.9")] {
            repository.commit(&[("web.yaml", file)]);
            repository.git(&["tag", "--annotate", "--message", "m", tag]);
        }
        assert_eq!(shown(&source.polled_artifact().await), "web.yaml=1.2.0");
        repository.git(&["tag", "--delete", "v1.2.0"]);
        let text = source.polled_failure().await;
        assert!(text.contains("1.1.9, lower than 1.2.0, which was accepted before"), "{text}");
        for tag in ["v1.1.9", "v2.0.0"] {
            repository.git(&["tag", "--delete", tag]);
        }
    }
}

#[tokio::test]
async fn a_pinned_commit_needs_the_server_once() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    let pinned = repository.head();
    repository.commit(&[("web.yaml", "two")]);
    let state = tempfile::tempdir().unwrap();
    let server = git_daemon(repository.root());
    let url = format!("git://127.0.0.1:{}/fleet.git", server.port);
    let pinned_options = || GitOptions { follow: Follow::Commit(pinned.parse().unwrap()), ..options(&url, state.path()) };
    let mut source = start(pinned_options());
    assert_eq!(shown(&source.artifact().await), "web.yaml=one");
    drop((source, server));
    let mut source = start(pinned_options());
    assert_eq!(shown(&source.artifact().await), "web.yaml=one", "from the copy, without a server");
}

#[tokio::test]
async fn a_commit_that_the_server_does_not_have_is_named() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    let server = git_daemon(repository.root());
    for url in ways(&repository, &server) {
        let state = tempfile::tempdir().unwrap();
        let missing = "1".repeat(40);
        let mut source = start(GitOptions { follow: Follow::Commit(missing.parse().unwrap()), ..options(&url, state.path()) });
        let text = source.failure().await;
        assert!(text.contains(&missing), "{text}");
    }
}

#[tokio::test]
async fn a_repository_without_commits_is_a_failure_until_it_has_some() {
    let repository = Repository::new();
    let server = git_daemon(repository.root());
    let urls = ways(&repository, &server);
    let states = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut sources: Vec<_> = urls.iter().zip(&states).map(|(url, state)| start(options(url, state.path()))).collect();
    for source in &mut sources {
        assert!(source.failure().await.contains("no branch main"));
    }
    repository.commit(&[("web.yaml", "one")]);
    for source in &mut sources {
        assert_eq!(shown(&source.polled_artifact().await), "web.yaml=one");
    }
}
