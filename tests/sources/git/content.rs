//! Content of a commit, and its files that are no manifests.

use super::repository::Repository;
use super::servers::git_daemon;
use super::{options, shown, start};
use podstead::source::git::{GitLimits, GitOptions, ReadLimits};
use std::os::unix::fs::symlink;

#[tokio::test]
async fn only_the_path_counts_and_it_may_be_a_file() {
    let repository = Repository::with(&[("base/a.yaml", "a"), ("sites/one/b.yaml", "b"), ("sites/one/c", "c"), ("d.yaml", "d")]);
    for (path, expected) in [("sites/one", "b.yaml=b"), ("sites", "one/b.yaml=b"), ("sites/one/c", "c=c"), ("base", "a.yaml=a")] {
        let state = tempfile::tempdir().unwrap();
        let mut source = start(GitOptions { path: path.into(), ..options(&repository.url(), state.path()) });
        assert_eq!(shown(&source.artifact().await), expected, "{path}");
    }
}

#[tokio::test]
async fn a_path_without_manifests_is_empty_and_a_path_that_is_gone_is_a_failure() {
    let repository = Repository::with(&[("site/web.yaml", "one"), ("other.yaml", "x")]);
    let state = tempfile::tempdir().unwrap();
    let mut source = start(GitOptions { path: "site".into(), ..options(&repository.url(), state.path()) });
    assert_eq!(shown(&source.artifact().await), "web.yaml=one");
    std::fs::remove_file(repository.tree().join("site/web.yaml")).unwrap();
    let commit = repository.commit(&[]);
    let text = source.polled_failure().await;
    assert!(text.contains(&format!("commit {commit} has no site")) && text.contains(".gitkeep"), "{text}");
    repository.commit(&[("site/.gitkeep", "")]);
    let artifact = source.polled_artifact().await;
    assert_eq!((shown(&artifact).as_str(), artifact.place), ("", None));
    std::fs::remove_dir_all(repository.tree().join("site")).unwrap();
    repository.commit(&[("site", "a file now")]);
    assert_eq!(shown(&source.polled_artifact().await), "site=a file now");
}

#[tokio::test]
async fn hidden_files_and_directories_are_left_out() {
    let repository =
        Repository::with(&[(".github/workflows/ci.yaml", "x"), (".hidden.yaml", "x"), ("a/.b/c.yaml", "x"), ("web.yaml", "one")]);
    let state = tempfile::tempdir().unwrap();
    let mut source = start(options(&repository.url(), state.path()));
    assert_eq!(shown(&source.artifact().await), "web.yaml=one");
}

#[tokio::test]
async fn other_files_are_read_beside_a_kustomization() {
    let repository = Repository::with(&[("site/web.yaml", "one"), ("site/app.conf", "a"), ("site/.hidden", "h"), ("outside", "o")]);
    let state = tempfile::tempdir().unwrap();
    let limits = GitLimits { read: ReadLimits { max_file_bytes: 100, ..ReadLimits::default() }, ..GitLimits::default() };
    let mut source = start(GitOptions { path: "site".into(), limits, ..options(&repository.url(), state.path()) });
    assert_eq!(source.artifact().await.beside.len(), 0);
    symlink("app.conf", repository.tree().join("site/link")).unwrap();
    repository.commit(&[("site/a/Kustomization", "k"), ("site/large", &"x".repeat(101))]);
    let artifact = source.polled_artifact().await;
    assert_eq!(shown(&artifact), "a/Kustomization=k web.yaml=one");
    let seen: Vec<(&str, bool)> = artifact.beside.iter().map(|(name, file)| (name.as_str(), file.is_ok())).collect();
    assert_eq!(seen, [("app.conf", true), ("large", false), ("link", false)]);
    repository.commit(&[("site/app.conf", "b")]);
    assert_eq!(source.polled_artifact().await.beside["app.conf"].as_ref().unwrap().read(), b"b");
}

#[tokio::test]
async fn directories_that_an_overlay_refers_to_are_read() {
    let repository = Repository::with(&[
        ("apps/overlays/dev/kustomization.yaml", "resources: [../../base]\n"),
        ("apps/base/kustomization.yaml", "resources: [web.yaml, ../../parts/tls]\n"),
        ("apps/base/app.conf", "a"),
        ("apps/base/.hidden", "h"),
        ("parts/tls/kustomization.yaml", "resources: []\n"),
        ("parts/other.yaml", "o"),
    ]);
    symlink("app.conf", repository.tree().join("apps/base/link")).unwrap();
    repository.commit(&[("apps/base/web.yaml", "one")]);
    let server = git_daemon(repository.root());
    for url in [repository.url(), format!("git://127.0.0.1:{}/fleet.git", server.port)] {
        let state = tempfile::tempdir().unwrap();
        let mut source = start(GitOptions { path: "apps/overlays/dev".into(), ..options(&url, state.path()) });
        let artifact = source.artifact().await;
        assert_eq!(artifact.files.keys().collect::<Vec<_>>(), ["kustomization.yaml"]);
        let around: Vec<(&str, bool)> = artifact.around.files.iter().map(|(path, file)| (path.as_str(), file.is_ok())).collect();
        let expected = [
            ("apps/base/app.conf", true),
            ("apps/base/kustomization.yaml", true),
            ("apps/base/link", false),
            ("apps/base/web.yaml", true),
            ("parts/tls/kustomization.yaml", true),
        ];
        assert_eq!(around, expected);
    }
}

#[tokio::test]
async fn what_only_stands_for_a_manifest_is_an_error_of_that_file() {
    let repository = Repository::with(&[("web.yaml", "one"), ("base/db.yaml", "x"), ("notes.txt", "x")]);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
    symlink("base/db.yaml", repository.tree().join("link.yaml")).unwrap();
    symlink("base", repository.tree().join("everything")).unwrap();
    symlink("notes.txt", repository.tree().join("harmless")).unwrap();
    symlink("/etc", repository.tree().join("outside")).unwrap();
    repository.commit(&[("large.yaml", pointer)]);
    let entry = format!("160000,{},vendor", repository.head());
    repository.git(&["update-index", "--add", "--cacheinfo", &entry]);
    repository.git(&["commit", "--quiet", "--message", "submodule"]);
    let server = git_daemon(repository.root());
    for url in [repository.url(), format!("git://127.0.0.1:{}/fleet.git", server.port)] {
        let state = tempfile::tempdir().unwrap();
        let artifact = start(options(&url, state.path())).artifact().await;
        let files: Vec<(&str, Result<usize, &str>)> = artifact
            .files
            .iter()
            .map(|(name, file)| (name.as_str(), file.as_ref().map(|bytes| bytes.len()).map_err(String::as_str)))
            .collect();
        let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["base/db.yaml", "everything", "large.yaml", "link.yaml", "vendor", "web.yaml"]);
        for (name, word) in [("everything", "symlink"), ("link.yaml", "symlink"), ("large.yaml", "LFS"), ("vendor", "submodule")] {
            let reason = files.iter().find(|(file, _)| *file == name).unwrap().1.unwrap_err();
            assert!(reason.contains(word), "{name}: {reason}");
        }
        for path in ["everything", "link.yaml", "vendor", "everything/db.yaml", "vendor/a"] {
            let state = tempfile::tempdir().unwrap();
            let text = start(GitOptions { path: path.into(), ..options(&url, state.path()) }).failure().await;
            assert!(text.contains("symlink") || text.contains("submodule"), "{path}: {text}");
        }
    }
}

#[tokio::test]
async fn more_than_the_limits_is_refused_and_a_large_file_alone_is_an_error_of_its_own() {
    let files: Vec<(String, String)> = (0..20).map(|number| (format!("{number:02}.yaml"), "x".repeat(100))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let repository = Repository::with(&files);
    let limits = |read| GitLimits { read, ..GitLimits::default() };
    let read = ReadLimits::default();
    for (read, word) in [
        (ReadLimits { max_files: 19, ..read }, "more than 19 manifests"),
        (ReadLimits { max_total_bytes: 1999, ..read }, "more than 1999 bytes"),
        (ReadLimits { max_names: 19, ..read }, "more than 19 files and directories"),
    ] {
        let state = tempfile::tempdir().unwrap();
        let mut source = start(GitOptions { limits: limits(read), ..options(&repository.url(), state.path()) });
        let text = source.failure().await;
        assert!(text.contains(word), "{text}");
    }
    repository.commit(&[("20.yaml", &"y".repeat(101))]);
    let state = tempfile::tempdir().unwrap();
    let read = ReadLimits { max_file_bytes: 100, ..read };
    let mut source = start(GitOptions { limits: limits(read), ..options(&repository.url(), state.path()) });
    let artifact = source.artifact().await;
    assert_eq!(artifact.files.len(), 21);
    assert!(artifact.files["20.yaml"].as_ref().unwrap_err().contains("101 bytes"));
}

#[tokio::test]
async fn a_pack_above_the_limit_is_refused_and_not_fetched_twice() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    // What does not compress.
    let noise: String = (0..20_000_u64).map(|number| format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    repository.commit(&[("noise.bin", &noise)]);
    let server = git_daemon(repository.root());
    let counter = super::servers::Counter::before(server.port);
    let state = tempfile::tempdir().unwrap();
    let url = format!("git://127.0.0.1:{}/fleet.git", counter.port);
    let limits = GitLimits { max_fetch_bytes: 64 << 10, ..GitLimits::default() };
    let mut source = start(GitOptions { limits, ..options(&url, state.path()) });
    let text = source.failure().await;
    assert!(text.contains("limit of 65536 bytes"), "{text}");
    assert!(source.poll().await.is_empty(), "said once");
    // What the first server had sent ahead is counted by now.
    let (before, _) = counter.count();
    source.poll().await;
    assert!(counter.count().0 - before < 4096, "asked again, and not fetched again");
    std::fs::remove_file(repository.tree().join("noise.bin")).unwrap();
    repository.commit(&[]);
    assert_eq!(shown(&source.polled_artifact().await), "web.yaml=one");
}
