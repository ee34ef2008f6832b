//! A bare repository that git itself works on.

use std::path::{Path, PathBuf};
use std::process::Command;

/// `fleet.git`, with a work tree beside it.
pub(super) struct Repository {
    directory: tempfile::TempDir,
}

impl Repository {
    /// Without commits; its own branch is `main`.
    pub(super) fn new() -> Self {
        let repository = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir(repository.tree()).unwrap();
        let path = repository.path();
        run(Command::new("git").args(["init", "--quiet", "--bare", "--initial-branch=main"]).arg(&path));
        repository.git(&["config", "http.uploadpack", "true"]);
        std::fs::write(path.join("git-daemon-export-ok"), "").unwrap();
        repository
    }

    /// With one commit that has these files.
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let repository = Self::new();
        repository.commit(files);
        repository
    }

    /// The path of the bare repository.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join("fleet.git")
    }

    /// The directory that holds it.
    pub(super) fn root(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn url(&self) -> String {
        format!("file://{}", self.path().display())
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.directory.path().join("tree")
    }

    /// Runs git and returns what it says.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(self.path()).arg("--work-tree").arg(self.tree()).args(arguments);
        run(command.current_dir(self.tree()))
    }

    /// Writes files, commits all that the work tree has, and returns the commit.
    pub(super) fn commit(&self, files: &[(&str, &str)]) -> String {
        for (name, text) in files {
            let path = self.tree().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "change"]);
        self.head()
    }

    pub(super) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }
}

/// Runs a program as if nobody had configured it.
pub(super) fn run(command: &mut Command) -> String {
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    for (name, value) in [("AUTHOR", "a"), ("COMMITTER", "c")] {
        command.env(format!("GIT_{name}_NAME"), value).env(format!("GIT_{name}_EMAIL"), format!("{value}@example.org"));
    }
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
