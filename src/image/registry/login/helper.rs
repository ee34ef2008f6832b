//! Credential helpers: programs named `docker-credential-NAME` that are asked for the credentials of one registry.
//!
//! A helper is root's, found in fixed directories, run without a shell in a process group of its own, with limits on its time and output. Nothing that
//! it prints is repeated.

use super::super::super::registry_config::{HELPER_NAME_MAX, is_helper_name};
use super::file::check_owner;
use podstead_runtime::credentials::Credentials;
use serde::Deserialize;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// Places of helpers.
pub(crate) const DIRECTORIES: [&str; 3] = ["/usr/libexec/podstead", "/usr/local/bin", "/usr/bin"];
/// A helper may have to ask a server.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_BYTES: u64 = 64 << 10;
/// Answers are used for so long.
const LIFE: Duration = Duration::from_secs(300);
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// User name of an answer that is an identity token.
const TOKEN: &str = "<token>";

/// Credential helpers, and their last answers.
pub(super) struct Helpers {
    directories: Vec<PathBuf>,
    timeout: Duration,
    /// By name and registry.
    answers: Mutex<HashMap<(String, String), (Credentials, Instant)>>,
}

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helpers").field("directories", &self.directories).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(default)]
    username: String,
    #[serde(default)]
    secret: String,
}

impl Helpers {
    pub(super) fn new(directories: Vec<PathBuf>) -> Self {
        Self { directories, timeout: TIMEOUT, answers: Mutex::default() }
    }

    /// Asks a helper, or repeats its last answer. [`Credentials::Anonymous`] if it has none for the registry.
    pub(super) async fn ask(&self, name: &str, server: &str) -> Result<Credentials, String> {
        let key = (name.to_owned(), server.to_owned());
        if let Some((known, _)) = self.lock().get(&key).filter(|(_, until)| *until > Instant::now()) {
            return Ok(known.clone());
        }
        let credentials = self.run(name, server).await?;
        let now = Instant::now();
        let mut answers = self.lock();
        answers.retain(|_, (_, until)| *until > now);
        answers.insert(key, (credentials.clone(), now + LIFE));
        Ok(credentials)
    }

    /// Drops all answers.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), (Credentials, Instant)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Result<PathBuf, String> {
        if !is_helper_name(name) {
            let shown: String = name.chars().take(HELPER_NAME_MAX).collect();
            return Err(format!("{shown:?} is not the name of a credential helper (lower-case letters, digits and -)"));
        }
        let file = format!("docker-credential-{name}");
        for directory in &self.directories {
            let path = directory.join(&file);
            let Ok(about) = std::fs::metadata(&path) else { continue };
            if !about.is_file() || about.mode() & 0o111 == 0 {
                return Err(format!("{} is not a program", path.display()));
            }
            check_owner(about.uid(), about.mode()).map_err(|problem| format!("{} is not run: {problem}", path.display()))?;
            return Ok(path);
        }
        let directories: Vec<String> = self.directories.iter().map(|directory| directory.display().to_string()).collect();
        Err(format!("the credential helper {file} is not in {}", directories.join(", ")))
    }

    async fn run(&self, name: &str, server: &str) -> Result<Credentials, String> {
        let path = self.find(name)?;
        let failed = |what: String| format!("the credential helper {} {what}", path.display());
        let mut child = Command::new(&path)
            .arg("get")
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", "/root")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(format!("cannot be run: {error}")))?;
        let talk = tokio::time::timeout(self.timeout, talk(&mut child, server)).await;
        let (status, output) = match talk {
            Ok(Ok(Some(done))) => done,
            Ok(Ok(None)) => {
                end(&mut child).await;
                return Err(failed(format!("printed more than {MAX_BYTES} bytes")));
            }
            Ok(Err(error)) => {
                end(&mut child).await;
                return Err(failed(format!("cannot be run: {error}")));
            }
            Err(_) => {
                end(&mut child).await;
                return Err(failed(format!("did not answer within {} s", self.timeout.as_secs())));
            }
        };
        answer(status.success(), &output)
            .map_err(|problem| failed(if status.success() { problem } else { format!("failed with {status}") }))
    }
}

/// Reads what a helper printed. The errors of the protocol come on stdout.
fn answer(is_success: bool, output: &[u8]) -> Result<Credentials, String> {
    if !is_success {
        let is_unknown = String::from_utf8_lossy(output).contains("credentials not found");
        return if is_unknown { Ok(Credentials::Anonymous) } else { Err(String::new()) };
    }
    let answer: Answer = serde_json::from_slice(output).map_err(|_| "did not print JSON with Username and Secret".to_owned())?;
    match (answer.username.as_str(), answer.secret.as_str()) {
        (_, "") => Err("printed no Secret".to_owned()),
        (TOKEN, secret) => Ok(Credentials::Identity(secret.to_owned())),
        ("", _) => Err("printed no Username".to_owned()),
        (username, secret) => Ok(Credentials::Password(username.to_owned(), secret.to_owned())),
    }
}

/// Gives the registry and reads the answer; `None` for one that is too long.
async fn talk(child: &mut Child, server: &str) -> io::Result<Option<(ExitStatus, Vec<u8>)>> {
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(server.as_bytes()).await {
            // It does not want to know.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written?,
        }
    }
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MAX_BYTES + 1).read_to_end(&mut output).await?;
    }
    if output.len() as u64 > MAX_BYTES {
        return Ok(None);
    }
    Ok(Some((child.wait().await?, output)))
}

/// Kills a helper with its group, whose number is its own until it is waited for.
async fn end(child: &mut Child) {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // ESRCH: all of it has ended.
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
    }
    child.wait().await.ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Bench {
        directory: tempfile::TempDir,
        helpers: Helpers,
    }

    impl Bench {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let helpers = Helpers { timeout: Duration::from_secs(1), ..Helpers::new(vec![directory.path().to_owned()]) };
            Self { directory, helpers }
        }

        fn write(&self, name: &str, script: &str, mode: u32) {
            let path = self.directory.path().join(format!("docker-credential-{name}"));
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }

        async fn ask(&self, script: &str) -> Result<Credentials, String> {
            self.write("x", script, 0o755);
            self.helpers.forget();
            self.helpers.ask("x", "r.lan:5000").await
        }
    }

    #[tokio::test]
    async fn helper_is_asked_for_one_registry() {
        let bench = Bench::new();
        let script = r#"[ "$1" = get ] && [ $# = 1 ] && [ -z "$CARGO_MANIFEST_DIR" ] && read -r server; echo '{"ServerURL":"x","Username":"me","Secret":"'$server'"}'"#;
        assert_eq!(bench.ask(script).await, Ok(Credentials::Password("me".into(), "r.lan:5000".into())));
        let token = r#"echo '{"Username":"<token>","Secret":"s"}'"#;
        assert_eq!(bench.ask(token).await, Ok(Credentials::Identity("s".into())));
        let none = "echo 'credentials not found in native keychain'; exit 1";
        assert_eq!(bench.ask(none).await, Ok(Credentials::Anonymous));
    }

    #[tokio::test]
    async fn answers_are_kept_for_a_while() {
        let bench = Bench::new();
        let counting = r#"echo x >>"$0.count"; echo '{"Username":"me","Secret":"s"}'"#;
        bench.ask(counting).await.unwrap();
        bench.helpers.ask("x", "r.lan:5000").await.unwrap();
        let count = || std::fs::read_to_string(bench.directory.path().join("docker-credential-x.count")).unwrap().lines().count();
        assert_eq!(count(), 1);
        bench.helpers.ask("x", "other.lan").await.unwrap();
        bench.helpers.forget();
        bench.helpers.ask("x", "r.lan:5000").await.unwrap();
        assert_eq!(count(), 3);
    }

    #[tokio::test]
    async fn helper_that_misbehaves_is_ended() {
        let bench = Bench::new();
        for (script, expected) in [
            ("echo hunter2; exit 3", "failed with exit status: 3"),
            ("echo hunter2", "did not print JSON"),
            ("echo '{\"Username\":\"hunter2\"}'", "no Secret"),
            ("exec yes hunter2", "more than 65536 bytes"),
            // A child of it keeps the output open.
            ("sleep 1000 & echo $! >\"$0.pid\"; exit 0", "did not answer within 1 s"),
        ] {
            let problem = bench.ask(script).await.unwrap_err();
            assert!(problem.contains(expected) && !problem.contains("hunter2"), "{script}: {problem}");
        }
        let pid = std::fs::read_to_string(bench.directory.path().join("docker-credential-x.pid")).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        while !state().is_empty() && !state().contains(") Z ") {
            assert!(std::time::Instant::now() < deadline, "the child is left");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn only_helpers_of_root_are_run() {
        let bench = Bench::new();
        for (name, expected) in [
            ("../x", "is not the name"),
            ("X", "is not the name"),
            ("", "is not the name"),
            ("a b", "is not the name"),
            ("gone", "is not in"),
        ] {
            assert!(bench.helpers.ask(name, "r.lan").await.unwrap_err().contains(expected), "{name}");
        }
        bench.write("open", "echo {}", 0o777);
        assert!(bench.helpers.ask("open", "r.lan").await.unwrap_err().contains("chmod go-w"));
        bench.write("text", "echo {}", 0o644);
        assert!(bench.helpers.ask("text", "r.lan").await.unwrap_err().contains("is not a program"));
    }
}
