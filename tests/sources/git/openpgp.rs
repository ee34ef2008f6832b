//! Commits and tags that git signs with gpg.

use super::repository::{Repository, run};
use super::{options, revision, shown, start};
use crate::gnupg::Gnupg;
use podstead::source::SignatureRequirement;
use podstead::source::git::{Follow, GitOptions};
use std::path::Path;
use std::process::Command;

/// Ann's key is in the ring, eve's is not; and a file of allowed signers for Bob's SSH key.
struct Signers(Gnupg);

impl Signers {
    fn new() -> Self {
        let gnupg = Gnupg::new();
        for name in ["ann", "eve"] {
            gnupg.key(&format!("{name} <{name}@example.org>"), "ed25519", &[]);
        }
        std::fs::write(gnupg.path("keyring"), gnupg.exported(&["ann@example.org"])).unwrap();
        // Git finds the keys by itself.
        let wrapper = format!("#!/bin/sh\nexec env GNUPGHOME='{}' gpg \"$@\"\n", gnupg.home().display());
        std::fs::write(gnupg.path("gpg.sh"), wrapper).unwrap();
        run(Command::new("chmod").arg("755").arg(gnupg.path("gpg.sh")));
        run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "bob", "-f"]).arg(gnupg.path("bob")));
        let public = std::fs::read_to_string(gnupg.path("bob.pub")).unwrap();
        std::fs::write(gnupg.path("signers"), format!("bob@example.org {public}")).unwrap();
        Self(gnupg)
    }

    fn required(&self, ssh: bool) -> Option<SignatureRequirement> {
        Some(SignatureRequirement {
            allowed_signers_file: ssh.then(|| self.0.path("signers")),
            openpgp_keyring_file: Some(self.0.path("keyring")),
            namespace: "git".into(),
        })
    }

    fn options(&self, repository: &Repository, state: &Path) -> GitOptions {
        GitOptions { trust: self.required(false), ..options(&repository.url(), state) }
    }

    /// Makes git sign with this OpenPGP key from now on.
    fn sign_with(&self, repository: &Repository, name: &str) {
        repository.git(&["config", "gpg.format", "openpgp"]);
        repository.git(&["config", "gpg.program", self.0.path("gpg.sh").to_str().unwrap()]);
        repository.git(&["config", "user.signingKey", &self.0.fingerprint(name)]);
        repository.git(&["config", "commit.gpgSign", "true"]);
    }

    fn sign_with_ssh(&self, repository: &Repository) {
        repository.git(&["config", "gpg.format", "ssh"]);
        repository.git(&["config", "user.signingKey", self.0.path("bob").to_str().unwrap()]);
    }
}

#[tokio::test]
async fn only_commits_signed_by_keys_of_the_ring_are_delivered() {
    let (signers, state) = (Signers::new(), tempfile::tempdir().unwrap());
    let repository = Repository::with(&[("web.yaml", "unsigned")]);
    let mut source = start(signers.options(&repository, state.path()));
    let text = source.failure().await;
    assert!(text.contains("refused") && text.contains("not signed"), "{text}");
    signers.sign_with(&repository, "ann");
    repository.commit(&[("web.yaml", "signed")]);
    assert_eq!(shown(&source.polled_artifact().await), "web.yaml=signed");
    signers.sign_with(&repository, "eve");
    repository.commit(&[("web.yaml", "forged")]);
    let text = source.polled_failure().await;
    assert!(text.contains(&format!("the signing key {} is not in the keyring", signers.0.fingerprint("eve"))), "{text}");
    std::fs::write(signers.0.path("keyring"), signers.0.exported(&[])).unwrap();
    assert_eq!(shown(&source.polled_artifact().await), "web.yaml=forged", "the keyring is read anew");
}

#[tokio::test]
async fn a_commit_that_was_changed_after_it_was_signed_is_refused() {
    let (signers, state) = (Signers::new(), tempfile::tempdir().unwrap());
    let repository = Repository::new();
    signers.sign_with(&repository, "ann");
    repository.commit(&[("web.yaml", "one")]);
    let signed = repository.git(&["cat-file", "commit", "HEAD"]);
    let file = signers.0.path("commit");
    std::fs::write(&file, signed.replacen("committer c", "committer d", 1) + "\n").unwrap();
    let changed = repository.git(&["hash-object", "-t", "commit", "-w", file.to_str().unwrap()]);
    repository.git(&["update-ref", "refs/heads/main", &changed]);
    let text = start(signers.options(&repository, state.path())).failure().await;
    assert!(text.contains("content was changed after it was signed"), "{text}");
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
}

#[tokio::test]
async fn ssh_and_openpgp_signers_deploy_side_by_side_where_both_are_named() {
    let (signers, state) = (Signers::new(), tempfile::tempdir().unwrap());
    let repository = Repository::new();
    signers.sign_with(&repository, "ann");
    repository.commit(&[("web.yaml", "openpgp")]);
    let mut source = start(GitOptions { trust: signers.required(true), ..signers.options(&repository, state.path()) });
    assert_eq!(shown(&source.artifact().await), "web.yaml=openpgp");
    signers.sign_with_ssh(&repository);
    repository.commit(&[("web.yaml", "ssh")]);
    assert_eq!(shown(&source.polled_artifact().await), "web.yaml=ssh");
    drop(source);
    let text = start(signers.options(&repository, state.path())).failure().await;
    assert!(text.contains("has an SSH signature, but requireSignature has no allowedSignersFile"), "{text}");
}

#[tokio::test]
async fn a_keyring_that_cannot_be_used_refuses_everything() {
    let (signers, state) = (Signers::new(), tempfile::tempdir().unwrap());
    let repository = Repository::new();
    signers.sign_with(&repository, "ann");
    repository.commit(&[("web.yaml", "one")]);
    std::fs::write(signers.0.path("keyring"), "nonsense\n").unwrap();
    let mut source = start(signers.options(&repository, state.path()));
    let text = source.failure().await;
    assert!(text.contains("OpenPGP keyring") && text.contains("something other than OpenPGP armour"), "{text}");
    std::fs::write(signers.0.path("keyring"), signers.0.exported(&["ann@example.org"])).unwrap();
    assert_eq!(shown(&source.polled_artifact().await), "web.yaml=one");
}
