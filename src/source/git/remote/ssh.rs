//! The system's `ssh`, configured by arguments only: no configuration file, no agent, no prompts. It runs in the place of a job ([`podstead_job::program`]),
//! with copies of keys and known hosts.

use super::url::SshUrl;
use crate::git::error::GitError;
use crate::git::job::ObjectJobs;
use podstead_container::cgroup::JobLimits;
use podstead_job::confine::Rlimits;
use podstead_job::launch::{End, Job, Launcher, StartError};
use podstead_job::program::{CANNOT_RUN, COPIES, COPY_MAX, Copied, NotConfined, Program};
use podstead_job::told::Told;
use podstead_telemetry::error_chain;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

/// Key for authentication, and known host keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshOptions {
    /// A private key that needs no passphrase; without one, ssh's own default files.
    pub key_file: Option<PathBuf>,
    /// The keys that servers are known by; without one, ssh's own default files.
    pub known_hosts_file: Option<PathBuf>,
    /// The program; `None`: `ssh` of the search path. For tests.
    pub program: Option<PathBuf>,
}

/// Time for a message that was sent before the words that were heard.
const TOLD_BEFORE: Duration = Duration::from_millis(100);
/// Bytes of the error output of ssh that are kept.
const SAID: u64 = 16 << 10;

/// Memory of ssh: its own, not that of what it passes on.
const MEMORY: u64 = 64 << 20;
/// Address space of ssh beside that of podstead, for hosts without a memory controller: libraries count, whether they are used or not.
const ADDRESS_SPACE: u64 = 256 << 20;
/// Seconds of processor time of one ssh: several hundred gigabytes on a slow host.
const CPU_SECS: u64 = 3600;
/// Open files of ssh.
const FILES: u64 = 64;
/// Threads of ssh.
const TASKS: u64 = 8;
/// Keys that ssh would try without a configured one, in the home directory of root.
const DEFAULT_KEYS: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];
/// Known hosts that ssh would look up there.
const DEFAULT_KNOWN_HOSTS: [&str; 2] = ["known_hosts", "known_hosts2"];

/// A running ssh, in the place of a job. Ends when dropped.
pub(super) struct Ssh {
    pub(super) input: pipe::Sender,
    /// `None` once it has ended.
    job: Option<Job>,
    jobs: Arc<ObjectJobs>,
    host: String,
    said: JoinHandle<Vec<u8>>,
}

impl Ssh {
    /// Starts `git-upload-pack` on the server.
    pub(super) async fn start(
        url: &SshUrl,
        options: &SshOptions,
        jobs: &Arc<ObjectJobs>,
        timeout: Duration,
    ) -> Result<(Self, pipe::Receiver), GitError> {
        let setup = |reason: String| GitError::Setup(format!("start ssh: {reason}"));
        let program = program(url, options, jobs.launcher(), timeout)?;
        let launcher = Arc::clone(jobs.launcher());
        let started = tokio::task::spawn_blocking(move || start(&launcher, &program)).await;
        let (job, [input, output, errors]) =
            started.map_err(|error| setup(error.to_string()))?.map_err(|error| setup(error_chain(&error).to_string()))?;
        let ends = || {
            let (input, output) = (pipe::Sender::from_owned_fd(input)?, pipe::Receiver::from_owned_fd(output)?);
            io::Result::Ok((input, output, pipe::Receiver::from_owned_fd(errors)?))
        };
        let (input, output, mut errors) = ends().map_err(|error| setup(error.to_string()))?;
        let said = tokio::spawn(async move {
            let mut said = Vec::new();
            // Goes on to the end, so that ssh is never held up; only the beginning is kept.
            (&mut errors).take(SAID).read_to_end(&mut said).await.ok();
            tokio::io::copy(&mut errors, &mut tokio::io::sink()).await.ok();
            said
        });
        Ok((Self { input, job: Some(job), jobs: Arc::clone(jobs), host: url.host.clone(), said }, output))
    }

    /// Returns the error output of ssh after it ended.
    pub(super) async fn last_words(&mut self, patience: Duration) -> String {
        let words = match tokio::time::timeout(patience, &mut self.said).await {
            Ok(Ok(words)) => String::from_utf8_lossy(&words).into_owned(),
            Ok(Err(_)) | Err(_) => String::new(),
        };
        if words.starts_with(CANNOT_RUN) {
            self.tell_of_refusal();
        }
        let telling = |line: &&str| !line.is_empty() && !line.chars().all(|c| c == '@');
        let lines: Vec<&str> = words.lines().map(str::trim).filter(telling).collect();
        if !lines.is_empty() {
            return lines.join(" ").chars().filter(|c| !c.is_control()).collect();
        }
        let end = match self.job.take() {
            Some(job) => tokio::task::spawn_blocking(move || {
                job.wait(patience);
                job.end().ok()
            }),
            None => return "ssh ended without an error message".to_owned(),
        };
        told_end(end.await.ok().flatten())
    }

    /// Records that the process could not give up its rights, if that is why ssh was not executed.
    fn tell_of_refusal(&self) {
        let Some(job) = &self.job else { return };
        if let Ok(Some(NotConfined { reason })) = job.messages().next_within(TOLD_BEFORE) {
            self.jobs.tell_of_ssh(&self.host, &Told::new(&reason));
        }
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        // Its end is waited for, which no asynchronous thread does.
        if let (Some(job), Ok(runtime)) = (self.job.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn_blocking(move || drop(job));
        }
    }
}

/// For people: the way in which ssh ended that said nothing. **Pure**.
fn told_end(end: Option<End>) -> String {
    match end {
        Some(End::Memory) => format!("ssh used up its {} MiB of memory", MEMORY >> 20),
        Some(End::ProcessorTime) => format!("ssh used up its {CPU_SECS} seconds of processor time"),
        Some(End::Exit(code)) => format!("ssh ended with code {code} and without an error message"),
        Some(End::Signal(signal)) => format!("ssh was ended by signal {signal}"),
        Some(End::Violation | End::FileSize) | None => "ssh ended without an error message".to_owned(),
    }
}

/// Starts the program; returns the other ends of its input, output and error output.
fn start(launcher: &Launcher, program: &Program) -> Result<(Job, [OwnedFd; 3]), StartError> {
    let pipe = || io::pipe().map(|(reader, writer)| (OwnedFd::from(reader), OwnedFd::from(writer))).map_err(StartError::Send);
    let ((its_input, input), (output, its_output), (errors, its_errors)) = (pipe()?, pipe()?, pipe()?);
    let group = JobLimits { memory: MEMORY, tasks: TASKS };
    let its_own = [its_input.as_fd(), its_output.as_fd(), its_errors.as_fd()];
    let job = launcher.start(podstead_job::program::TASK, &group, program, &its_own)?;
    Ok((job, [input, output, errors]))
}

fn program(url: &SshUrl, options: &SshOptions, launcher: &Launcher, timeout: Duration) -> Result<Program, GitError> {
    let (keys, known_hosts) = files(options, launcher.home_of_root())?;
    let path = options.program.clone().or_else(|| search("ssh", &std::env::var_os("PATH")?));
    let path = path.ok_or_else(|| GitError::Setup("there is no program ssh: install openssh-client".to_owned()))?;
    let user = launcher.user_of_programs();
    Ok(Program {
        path,
        arguments: arguments(url, options, &keys, &known_hosts, timeout),
        // The words are looked at, so they have to be English.
        environment: [("LC_ALL", "C"), ("GIT_PROTOCOL", "version=2")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        files: [keys, known_hosts].concat(),
        rlimits: Rlimits { memory: ADDRESS_SPACE, cpu_secs: CPU_SECS, files: FILES, file_bytes: COPY_MAX },
        uid: user.uid,
        gid: user.gid,
    })
}

/// The first executable file of this name in the directories of `path`.
fn search(name: &str, path: &OsStr) -> Option<PathBuf> {
    let candidates = std::env::split_paths(path).filter(|directory| directory.is_absolute()).map(|directory| directory.join(name));
    candidates.into_iter().find(|candidate| rustix::fs::access(candidate, rustix::fs::Access::EXEC_OK).is_ok())
}

/// Files with keys and with known hosts, which only root may read. A certificate stands beside its key.
fn files(options: &SshOptions, home: Option<PathBuf>) -> Result<(Vec<Copied>, Vec<Copied>), GitError> {
    let default = |names: &[&str]| -> Vec<PathBuf> {
        let directory = home.iter().map(|home| home.join(".ssh"));
        directory.flat_map(|directory| names.iter().map(move |name| directory.join(name)).collect::<Vec<_>>()).collect()
    };
    let keys = options.key_file.clone().map_or_else(|| default(&DEFAULT_KEYS), |key| vec![key]);
    let known_hosts = options.known_hosts_file.clone().map_or_else(|| default(&DEFAULT_KNOWN_HOSTS), |hosts| vec![hosts]);
    for (field, path) in [("ssh.keyFile", &options.key_file), ("ssh.knownHostsFile", &options.known_hosts_file)] {
        if let Some(path) = path {
            std::fs::File::open(path).map_err(|error| GitError::Setup(format!("{field} {}: {error}", path.display())))?;
        }
    }
    let exists = |path: &PathBuf| path.is_file();
    let mut copies = Vec::new();
    for (number, key) in keys.into_iter().filter(exists).enumerate() {
        let mut certificate = key.clone().into_os_string();
        certificate.push("-cert.pub");
        let certificate = PathBuf::from(certificate);
        copies.push(Copied { from: key, name: format!("key-{number}") });
        if certificate.is_file() {
            copies.push(Copied { from: certificate, name: format!("key-{number}-cert.pub") });
        }
    }
    let hosts = known_hosts.into_iter().filter(exists).enumerate();
    Ok((copies, hosts.map(|(number, from)| Copied { from, name: format!("known-hosts-{number}") }).collect()))
}

fn arguments(url: &SshUrl, options: &SshOptions, keys: &[Copied], known_hosts: &[Copied], timeout: Duration) -> Vec<String> {
    let mut arguments: Vec<String> = ["-T", "-a", "-x", "-F", "/dev/null"].map(String::from).into();
    let mut option = |name: &str, value: &str| arguments.extend(["-o".to_owned(), format!("{name}={value}")]);
    for (name, value) in [
        ("BatchMode", "yes"),
        ("StrictHostKeyChecking", "yes"),
        ("UpdateHostKeys", "no"),
        ("ClearAllForwardings", "yes"),
        ("PermitLocalCommand", "no"),
        ("ControlMaster", "no"),
        ("ControlPath", "none"),
        ("SendEnv", "GIT_PROTOCOL"),
        ("ServerAliveInterval", "15"),
        ("ServerAliveCountMax", "2"),
        ("IdentitiesOnly", "yes"),
        ("IdentityAgent", "none"),
    ] {
        option(name, value);
    }
    option("ConnectTimeout", &timeout.as_secs().max(1).to_string());
    for key in keys.iter().filter(|key| !key.name.ends_with(".pub")) {
        option("IdentityFile", &format!("{COPIES}/{}", key.name));
    }
    let names: Vec<String> = known_hosts.iter().map(|hosts| format!("{COPIES}/{}", hosts.name)).collect();
    option("UserKnownHostsFile", if names.is_empty() { "none".to_owned() } else { names.join(" ") }.as_str());
    if options.known_hosts_file.is_some() {
        option("GlobalKnownHostsFile", "none");
    }
    if let Some(port) = url.port {
        arguments.extend(["-p".to_owned(), port.to_string()]);
    }
    if let Some(user) = &url.user {
        arguments.extend(["-l".to_owned(), user.clone()]);
    }
    arguments.push("--".to_owned());
    arguments.push(url.host.clone());
    // The path holds no quotes: the URL would have been refused.
    arguments.push(format!("git-upload-pack '{}'", url.path));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(url: &str, options: &SshOptions, home: Option<PathBuf>) -> String {
        let super::super::url::RemoteUrl::Ssh(url) = url.parse().unwrap() else { panic!() };
        let (keys, known_hosts) = files(options, home).unwrap();
        arguments(&url, options, &keys, &known_hosts, Duration::from_secs(7)).join(" ")
    }

    #[test]
    fn nothing_but_the_arguments_decides() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["my key", "my key-cert.pub", "h h%"] {
            std::fs::write(at(name), name).unwrap();
        }
        let options = SshOptions { key_file: Some(at("my key")), known_hosts_file: Some(at("h h%")), program: None };
        let line = line("ssh://git@git.lan:2222/srv/a.git", &options, None);
        for part in [
            "-F /dev/null",
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "ConnectTimeout=7",
            "IdentitiesOnly=yes",
            "IdentityFile=/podstead/key-0 ",
            "UserKnownHostsFile=/podstead/known-hosts-0 ",
            "GlobalKnownHostsFile=none",
            "-p 2222 -l git -- git.lan git-upload-pack '/srv/a.git'",
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
        let (keys, _) = files(&options, None).unwrap();
        assert_eq!(keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["key-0", "key-0-cert.pub"]);
    }

    #[test]
    fn default_files_are_those_of_root() {
        let home = tempfile::tempdir().unwrap();
        let ssh = home.path().join(".ssh");
        std::fs::create_dir(&ssh).unwrap();
        let options = SshOptions::default();
        let without = line("git.lan:a.git", &options, Some(home.path().to_owned()));
        assert!(!without.contains("IdentityFile") && without.contains("UserKnownHostsFile=none"), "{without}");
        for name in ["id_ed25519", "id_rsa", "known_hosts", "known_hosts2"] {
            std::fs::write(ssh.join(name), name).unwrap();
        }
        let with = line("git.lan:a.git", &options, Some(home.path().to_owned()));
        for part in
            ["IdentityFile=/podstead/key-0 -o IdentityFile=/podstead/key-1 ", "=/podstead/known-hosts-0 /podstead/known-hosts-1 "]
        {
            assert!(with.contains(part), "{part} in {with}");
        }
        assert!(!with.contains("GlobalKnownHostsFile"));
    }

    #[test]
    fn missing_files_are_told_with_their_field() {
        let options = SshOptions { key_file: Some("/nowhere/key".into()), ..SshOptions::default() };
        let error = files(&options, None).unwrap_err().to_string();
        assert!(error.starts_with("ssh.keyFile /nowhere/key: No such file"), "{error}");
    }

    #[test]
    fn program_is_searched_for_in_absolute_directories() {
        let found = search("sh", OsStr::new("bin:/nowhere:/bin"));
        assert_eq!(found.as_deref(), Some(std::path::Path::new("/bin/sh")));
        assert_eq!(search("no-such-program", OsStr::new("/bin")), None);
    }

    #[test]
    fn the_command_is_one_word_after_the_host() {
        let url = "git.lan:team/fleet.git";
        assert!(line(url, &SshOptions::default(), None).ends_with("-- git.lan git-upload-pack 'team/fleet.git'"));
    }

    #[test]
    fn ends_without_words_are_told() {
        assert_eq!(told_end(Some(End::Memory)), "ssh used up its 64 MiB of memory");
        assert_eq!(told_end(Some(End::Exit(255))), "ssh ended with code 255 and without an error message");
        assert_eq!(told_end(None), "ssh ended without an error message");
    }
}
