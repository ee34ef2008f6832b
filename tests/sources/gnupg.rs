//! Real `gpg` in a home of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A home with keys. Its agent ends with it.
pub(crate) struct Gnupg {
    home: tempfile::TempDir,
}

impl Drop for Gnupg {
    fn drop(&mut self) {
        // Asks the agent of this home alone; where none runs, nothing happens.
        Command::new("gpgconf").args(["--homedir"]).arg(self.home.path()).args(["--kill", "gpg-agent"]).output().ok();
    }
}

impl Gnupg {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self { home }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Runs gpg without questions and returns what it says.
    pub(crate) fn gpg(&self, arguments: &[&str]) -> Vec<u8> {
        self.gpg_told("", arguments)
    }

    /// The same, with answers to its questions.
    pub(crate) fn gpg_told(&self, answers: &str, arguments: &[&str]) -> Vec<u8> {
        let told = self.path("answers");
        fs::write(&told, answers).unwrap();
        let mut command = Command::new("gpg");
        command.args(["--batch", "--quiet", "--no-tty", "--yes", "--pinentry-mode", "loopback", "--passphrase", ""]);
        command.args(arguments).env("GNUPGHOME", self.home()).env("LC_ALL", "C").stdin(Stdio::from(fs::File::open(told).unwrap()));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Makes a key and returns its fingerprint.
    pub(crate) fn key(&self, user: &str, algorithm: &str, more: &[&str]) -> String {
        self.gpg(&[more, &["--quick-generate-key", user, algorithm, "sign"]].concat());
        self.fingerprint(user)
    }

    /// As gpg shows it.
    pub(crate) fn fingerprint(&self, user: &str) -> String {
        self.fingerprints(user).remove(0)
    }

    /// That of the key, and those of its subkeys.
    pub(crate) fn fingerprints(&self, user: &str) -> Vec<String> {
        let listed = String::from_utf8(self.gpg(&["--with-colons", "--list-keys", user])).unwrap();
        let fingerprints = listed.lines().filter(|line| line.starts_with("fpr:"));
        fingerprints.map(|line| line.trim_end_matches(':').rsplit(':').next().unwrap().to_owned()).collect()
    }

    /// The public keys of these users, in armour.
    pub(crate) fn exported(&self, users: &[&str]) -> Vec<u8> {
        self.gpg(&[&["--armor", "--export"], users].concat())
    }

    /// A detached signature over `text`.
    pub(crate) fn sign(&self, user: &str, text: &[u8], more: &[&str]) -> Vec<u8> {
        let file = self.path("text");
        fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        self.gpg(&[more, &["--local-user", user, "--output", "-", "--detach-sign", file]].concat())
    }

    /// The certificate of revocation that gpg made with the key; it stands behind a colon, so that nobody uses it by accident.
    pub(crate) fn revocation(&self, fingerprint: &str) -> String {
        let text = fs::read_to_string(self.path(&format!("openpgp-revocs.d/{fingerprint}.rev"))).unwrap();
        let start = text.find(":-----BEGIN").unwrap() + 1;
        text[start..].to_owned()
    }
}
