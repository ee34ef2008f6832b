//! Signatures that the real `ssh-keygen` and `git` make, judged by `podstead::trust`.

use jiff::{SignedDuration, Timestamp};
use podstead::trust::{
    AllowedSigners, DOCUMENT_NAMESPACE, GIT_NAMESPACE, ObjectKind, SignedParts, TrustError, judged_at, signed_parts, verify,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory with keys, and a repository that signs with one of them.
struct Bench {
    root: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Makes a key pair; returns the public key as one line.
    fn key(&self, name: &str, kind: &str, bits: &str) -> String {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-N", "", "-C", name, "-t", kind, "-f"]).arg(self.path(name));
        if !bits.is_empty() {
            command.args(["-b", bits]);
        }
        run(&mut command);
        fs::read_to_string(self.path(&format!("{name}.pub"))).unwrap().trim_end().to_owned()
    }

    fn ed25519(&self, name: &str) -> String {
        self.key(name, "ed25519", "")
    }

    /// `ssh-keygen -Y sign`.
    fn sign(&self, key: &str, namespace: &str, text: &str, options: &[&str]) -> Vec<u8> {
        let file = self.path("text");
        fs::write(&file, text).unwrap();
        let signature = self.path("text.sig");
        fs::remove_file(&signature).ok();
        run(Command::new("ssh-keygen")
            .args(["-q", "-Y", "sign", "-n", namespace, "-f"])
            .arg(self.path(key))
            .args(options)
            .arg(&file));
        fs::read(signature).unwrap()
    }

    /// Runs git in the repository, which is made by the first call.
    fn git(&self, arguments: &[&str]) -> Vec<u8> {
        let repository = self.path("repository");
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.arg("-C").arg(&repository).args(["-c", "gpg.format=ssh", "-c"]);
            command.arg(format!("user.signingKey={}", self.path("key").display())).args(arguments);
            command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.root.path());
            for who in ["AUTHOR", "COMMITTER"] {
                command.env(format!("GIT_{who}_NAME"), "Ann").env(format!("GIT_{who}_EMAIL"), "ann@example.org");
                command.env(format!("GIT_{who}_DATE"), "2025-03-01T12:00:00Z");
            }
            run(&mut command)
        };
        if !repository.join(".git").is_dir() {
            fs::create_dir_all(&repository).unwrap();
            git(&["init", "-q", "-b", "main"]);
        }
        git(arguments)
    }

    /// The parts of a raw object.
    fn parts(&self, kind: &str, name: &str) -> Result<SignedParts, TrustError> {
        signed_parts(&self.git(&["cat-file", kind, name]))
    }
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn signers(line: &str) -> AllowedSigners {
    AllowedSigners::parse(line.as_bytes()).unwrap()
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// The fingerprint as ssh-keygen shows it.
fn fingerprint(public: &Path) -> String {
    let line = String::from_utf8(run(Command::new("ssh-keygen").args(["-l", "-f"]).arg(public))).unwrap();
    line.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn signatures_of_every_kind_of_key_are_verified_and_tampered_ones_are_not() {
    let bench = Bench::new();
    for (kind, bits) in [("ed25519", ""), ("ecdsa", "256"), ("ecdsa", "384"), ("rsa", "2048"), ("rsa", "3072")] {
        let name = format!("{kind}{bits}");
        let allowed = signers(&format!("ann@example.org {}", bench.key(&name, kind, bits)));
        for hash in ["sha256", "sha512"] {
            let signature = bench.sign(&name, DOCUMENT_NAMESPACE, "kind: Pod\n", &["-O", &format!("hashalg={hash}")]);
            let signer = verify(&allowed, DOCUMENT_NAMESPACE, b"kind: Pod\n", &signature, now()).unwrap();
            assert_eq!(signer.principal, "ann@example.org");
            assert_eq!(signer.key.to_string(), fingerprint(&bench.path(&format!("{name}.pub"))));
            let other = verify(&allowed, DOCUMENT_NAMESPACE, b"kind: Pod \n", &signature, now());
            assert!(matches!(other, Err(TrustError::Mismatch { .. })), "{name}: {other:?}");
        }
    }
}

#[test]
fn no_changed_byte_of_a_signature_passes() {
    let bench = Bench::new();
    let allowed = signers(&format!("ann {}", bench.ed25519("key")));
    let signature = bench.sign("key", DOCUMENT_NAMESPACE, "text", &[]);
    let is_trusted = |signature: &[u8]| verify(&allowed, DOCUMENT_NAMESPACE, b"text", signature, now()).is_ok();
    assert!(is_trusted(&signature));
    let end = signature.len() - 1;
    for at in 0..end {
        let mut changed = signature.clone();
        changed[at] ^= 1;
        assert!(!is_trusted(&changed), "byte {at}");
        assert!(!is_trusted(&signature[..at]), "cut at {at}");
    }
}

#[test]
fn a_signature_counts_for_its_own_namespace_only() {
    let bench = Bench::new();
    let key = bench.ed25519("key");
    let signature = bench.sign("key", DOCUMENT_NAMESPACE, "text", &[]);
    let error = verify(&signers(&format!("ann {key}")), GIT_NAMESPACE, b"text", &signature, now()).unwrap_err();
    assert_eq!(error, TrustError::OtherNamespace { wanted: "git".into(), found: "podstead".into() });
    let only_git = signers(&format!("ann namespaces=\"git\" {key}"));
    let error = verify(&only_git, DOCUMENT_NAMESPACE, b"text", &signature, now()).unwrap_err();
    assert!(matches!(error, TrustError::NamespaceNotAllowed { .. }), "{error}");
}

#[test]
fn strangers_and_keys_that_are_weak_or_not_supported_are_refused() {
    let bench = Bench::new();
    let allowed = signers(&format!("ann {}", bench.ed25519("key")));
    bench.ed25519("stranger");
    let error =
        verify(&allowed, DOCUMENT_NAMESPACE, b"text", &bench.sign("stranger", DOCUMENT_NAMESPACE, "text", &[]), now()).unwrap_err();
    assert_eq!(error.to_string(), format!("the signing key {} is not an allowed signer", fingerprint(&bench.path("stranger.pub"))));
    for (name, kind, bits, word) in [("short", "rsa", "1024", "2048"), ("long", "ecdsa", "521", "P-521")] {
        let public = bench.key(name, kind, bits);
        let problem = AllowedSigners::parse(format!("ann {public}").as_bytes()).unwrap_err().remove(0);
        assert!(problem.line == 1 && problem.message.contains(word), "{problem}");
        let signature = bench.sign(name, DOCUMENT_NAMESPACE, "text", &[]);
        let error = verify(&allowed, DOCUMENT_NAMESPACE, b"text", &signature, now()).unwrap_err();
        assert!(matches!(&error, TrustError::Algorithm { reason, .. } if reason.contains(word)), "{error}");
    }
}

#[test]
fn a_signed_commit_is_verified_with_the_time_it_states() {
    let bench = Bench::new();
    let allowed = signers(&format!("ann@example.org namespaces=\"git\" {}", bench.ed25519("key")));
    bench.git(&["commit", "-q", "-S", "--allow-empty", "-m", "first\n\nbody"]);
    bench.git(&["commit", "-q", "-S", "--allow-empty", "-m", "second"]);
    for name in ["HEAD", "HEAD~"] {
        let parts = bench.parts("commit", name).unwrap();
        assert_eq!((parts.kind.clone(), parts.stated_at), (ObjectKind::Commit, "2025-03-01T12:00:00Z".parse().unwrap()));
        verify(&allowed, GIT_NAMESPACE, &parts.payload, &parts.signature, now()).unwrap();
        let text = String::from_utf8(parts.payload).unwrap();
        for (from, to) in [("Ann", "Bob"), ("tree ", "tree  "), ("\n\n", "\nx y\n\n")] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text);
            let verdict = verify(&allowed, GIT_NAMESPACE, changed.as_bytes(), &parts.signature, now());
            assert!(matches!(verdict, Err(TrustError::Mismatch { .. })), "{from}");
        }
    }
    bench.git(&["commit", "-q", "--allow-empty", "-m", "unsigned"]);
    assert_eq!(bench.parts("commit", "HEAD"), Err(TrustError::Unsigned));
}

#[test]
fn a_signed_tag_is_verified_and_says_its_name_and_target() {
    let bench = Bench::new();
    let allowed = signers(&format!("ann {}", bench.key("key", "ecdsa", "256")));
    bench.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    bench.git(&["tag", "-s", "-m", "release\n\nnotes", "v1.2.0"]);
    let parts = bench.parts("tag", "v1.2.0").unwrap();
    let target = String::from_utf8(bench.git(&["rev-parse", "HEAD"])).unwrap().trim_end().to_owned();
    assert_eq!(parts.kind, ObjectKind::Tag { name: "v1.2.0".into(), target });
    verify(&allowed, GIT_NAMESPACE, &parts.payload, &parts.signature, now()).unwrap();
    bench.git(&["tag", "-a", "-m", "release", "v1.3.0"]);
    assert_eq!(bench.parts("tag", "v1.3.0"), Err(TrustError::Unsigned));
}

#[test]
fn a_merge_of_a_signed_tag_keeps_the_commits_own_signature() {
    let bench = Bench::new();
    let allowed = signers(&format!("ann {}", bench.ed25519("key")));
    bench.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    bench.git(&["checkout", "-q", "-b", "side"]);
    bench.git(&["commit", "-q", "--allow-empty", "-m", "side"]);
    bench.git(&["tag", "-s", "-m", "release", "v1"]);
    bench.git(&["checkout", "-q", "main"]);
    bench.git(&["merge", "-q", "-S", "--no-ff", "-m", "merge", "v1"]);
    let parts = bench.parts("commit", "HEAD").unwrap();
    assert!(String::from_utf8_lossy(&parts.payload).contains("\nmergetag object"));
    verify(&allowed, GIT_NAMESPACE, &parts.payload, &parts.signature, now()).unwrap();
}

#[test]
fn a_key_whose_time_is_over_signs_nothing_new_whatever_the_clock_of_the_host_says() {
    let bench = Bench::new();
    let key = bench.ed25519("key");
    bench.git(&["commit", "-q", "-S", "--allow-empty", "-m", "first"]);
    let parts = bench.parts("commit", "HEAD").unwrap();
    let judge = |line: &str, at| verify(&signers(line), GIT_NAMESPACE, &parts.payload, &parts.signature, at);
    let [boot, stated] = [Timestamp::UNIX_EPOCH, parts.stated_at];
    let ended = format!("ann valid-before=\"20250401Z\" {key}");
    assert!(matches!(judge(&ended, judged_at(now(), None, Some(stated))), Err(TrustError::Expired { .. })));
    assert!(judge(&ended, judged_at(boot, None, Some(stated))).is_ok(), "it was valid when the commit says it was made");
    let accepted = stated + SignedDuration::from_hours(24 * 60);
    assert!(matches!(judge(&ended, judged_at(boot, Some(accepted), Some(stated))), Err(TrustError::Expired { .. })));
    let begun = format!("ann valid-after=\"20250201Z\" {key}");
    assert!(judge(&begun, judged_at(boot, None, Some(stated))).is_ok());
    let error = judge(&begun, boot).unwrap_err().to_string();
    assert!(
        error.contains("not valid before 2025-02-01T00:00:00Z, and it is 1970-01-01T00:00:00Z (check the host's clock)"),
        "{error}"
    );
}
