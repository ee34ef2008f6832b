//! Signers that a revision needs.

use super::repository::{Repository, run};
use super::{options, revision, shown, start};
use podstead::source::SignatureRequirement;
use podstead::source::git::{Follow, GitOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

struct Signers {
    directory: tempfile::TempDir,
}

impl Signers {
    /// `ann` is allowed, `eve` is not.
    fn new() -> Self {
        let signers = Self { directory: tempfile::tempdir().unwrap() };
        for name in ["ann", "eve"] {
            run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(signers.at(name)));
        }
        signers.allow(&["ann"]);
        signers
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn allow(&self, names: &[&str]) {
        let line =
            |name: &&str| format!("{name}@example.org {}", std::fs::read_to_string(self.at(&format!("{name}.pub"))).unwrap());
        std::fs::write(self.at("allowed"), names.iter().map(line).collect::<String>()).unwrap();
    }

    fn options(&self, repository: &Repository, state: &Path) -> GitOptions {
        let trust = Some(SignatureRequirement {
            allowed_signers_file: Some(self.at("allowed")),
            openpgp_keyring_file: None,
            namespace: "git".into(),
        });
        GitOptions { trust, ..options(&repository.url(), state) }
    }

    /// Makes git sign with this key from now on.
    fn sign_with(&self, repository: &Repository, name: &str) {
        repository.git(&["config", "gpg.format", "ssh"]);
        repository.git(&["config", "user.signingKey", self.at(name).to_str().unwrap()]);
        repository.git(&["config", "commit.gpgSign", "true"]);
    }
}

#[tokio::test]
async fn only_commits_of_allowed_signers_are_delivered() {
    let (signers, state) = (Signers::new(), tempfile::tempdir().unwrap());
    let repository = Repository::with(&[("web.yaml", "unsigned")]);
    let mut source = start(signers.options(&repository, state.path()));
    let text = source.failure().await;
    assert!(text.contains("refused") && text.contains("not signed") && text.contains(&repository.head()), "{text}");
    signers.sign_with(&repository, "ann");
    repository.commit(&[("web.yaml", "signed")]);
    assert_eq!(shown(&source.polled_artifact().await), "web.yaml=signed");
    signers.sign_with(&repository, "eve");
    repository.commit(&[("web.yaml", "forged")]);
    let text = source.polled_failure().await;
    assert!(text.contains("not an allowed signer"), "{text}");
    signers.allow(&["ann", "eve"]);
    assert_eq!(shown(&source.polled_artifact().await), "web.yaml=forged", "the file of signers is read anew");
}

#[tokio::test]
async fn a_signed_tag_speaks_for_its_commit_under_its_own_name_only() {
    let (signers, state) = (Signers::new(), tempfile::tempdir().unwrap());
    let repository = Repository::with(&[("web.yaml", "one")]);
    signers.sign_with(&repository, "ann");
    repository.git(&["config", "commit.gpgSign", "false"]);
    repository.git(&["tag", "--sign", "--message", "m", "v1.0.0"]);
    let of = |tag: &str| GitOptions { follow: Follow::Tag(tag.into()), ..signers.options(&repository, state.path()) };
    assert_eq!(start(of("v1.0.0")).artifact().await.revision, revision(&repository.head()));
    repository.git(&["update-ref", "refs/tags/v2.0.0", "refs/tags/v1.0.0"]);
    let text = start(of("v2.0.0")).failure().await;
    assert!(text.contains("the signature is for the tag name \"v1.0.0\""), "{text}");
    let branch = signers.options(&repository, state.path());
    let text = start(branch).failure().await;
    assert!(text.contains("not signed"), "{text}");
}

#[tokio::test]
async fn an_unsigned_tag_cannot_bring_an_older_signed_commit_back_as_a_higher_version() {
    let (signers, state) = (Signers::new(), tempfile::tempdir().unwrap());
    let repository = Repository::new();
    signers.sign_with(&repository, "ann");
    let old = repository.commit(&[("web.yaml", "old")]);
    repository.commit(&[("web.yaml", "new")]);
    repository.git(&["tag", "v1.0.0"]);
    let mut source =
        start(GitOptions { follow: Follow::Semver("1".parse().unwrap()), ..signers.options(&repository, state.path()) });
    assert_eq!(shown(&source.artifact().await), "web.yaml=new");
    repository.git(&["tag", "v1.9.0", &old]);
    let text = source.polled_failure().await;
    assert!(text.contains("is not a descendant"), "{text}");
}

#[tokio::test]
async fn a_file_of_signers_that_cannot_be_used_refuses_everything() {
    let (signers, state) = (Signers::new(), tempfile::tempdir().unwrap());
    let repository = Repository::new();
    signers.sign_with(&repository, "ann");
    repository.commit(&[("web.yaml", "one")]);
    std::fs::write(signers.at("allowed"), "ann@example.org nonsense\n").unwrap();
    let mut source = start(signers.options(&repository, state.path()));
    let text = source.failure().await;
    assert!(text.contains("allowed signers") && text.contains("line 1"), "{text}");
    std::fs::remove_file(signers.at("allowed")).unwrap();
    let text = source.polled_failure().await;
    assert!(text.contains("allowed signers"), "{text}");
    signers.allow(&["ann"]);
    assert_eq!(shown(&source.polled_artifact().await), "web.yaml=one");
}
