//! OpenSSH's server with a key that may do nothing but read repositories.

use super::repository::{Repository, run};
use super::servers::Inetd;
use super::{options, shown, start};
use crate::support::{Recorded, without};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use podstead::job::launch::Launcher;
use podstead::source::git::job::ObjectJobs;
use podstead::source::git::{GitOptions, SshOptions};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Host key, deploy key and everything that sshd needs.
struct Keys {
    directory: tempfile::TempDir,
}

impl Keys {
    fn new() -> Self {
        let keys = Self { directory: tempfile::tempdir().unwrap() };
        for name in ["host", "deploy", "stranger", "other-host"] {
            run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(keys.at(name)));
        }
        // sshd does not start without the directory of its unprivileged part.
        std::fs::create_dir_all("/run/sshd").unwrap();
        let deploy = std::fs::read_to_string(keys.at("deploy.pub")).unwrap();
        let only = r#"restrict,command="git-shell -c \"$SSH_ORIGINAL_COMMAND\"""#;
        std::fs::write(keys.at("authorized_keys"), format!("{only} {deploy}")).unwrap();
        keys
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `current`: with version 2 of the protocol.
    fn server(&self, current: bool) -> Inetd {
        let accepted = if current { "AcceptEnv GIT_PROTOCOL\n" } else { "" };
        let configuration = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\n{accepted}",
            self.at("host").display(),
            self.at("authorized_keys").display()
        );
        let path = self.at("sshd_config");
        std::fs::write(&path, configuration).unwrap();
        let arguments = vec!["-i".into(), "-e".into(), "-f".into(), path.display().to_string()];
        Inetd::start("/usr/sbin/sshd", arguments, Vec::new())
    }

    /// `host`: whose public key is believed to be the server's.
    fn options(&self, key: &str, host: &str, port: u16) -> SshOptions {
        let public = std::fs::read_to_string(self.at(&format!("{host}.pub"))).unwrap();
        let known_hosts = self.at("known hosts");
        std::fs::write(&known_hosts, format!("[127.0.0.1]:{port} {public}")).unwrap();
        SshOptions { key_file: Some(self.at(key)), known_hosts_file: Some(known_hosts), program: None }
    }
}

fn url(repository: &Repository, port: u16) -> String {
    format!("ssh://root@127.0.0.1:{port}{}", repository.path().display())
}

#[tokio::test]
async fn a_deploy_key_fetches_and_polls_in_both_versions_of_the_protocol() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    let keys = Keys::new();
    for current in [true, false] {
        let server = keys.server(current);
        let state = tempfile::tempdir().unwrap();
        let ssh = keys.options("deploy", "host", server.port);
        let mut source = start(GitOptions { ssh, ..options(&url(&repository, server.port), state.path()) });
        assert!(shown(&source.artifact().await).starts_with("web.yaml="));
        assert!(source.poll().await.is_empty());
        let text = format!("two, current: {current}");
        repository.commit(&[("web.yaml", &text)]);
        assert_eq!(shown(&source.polled_artifact().await), format!("web.yaml={text}"));
    }
}

#[tokio::test]
async fn wrong_keys_of_either_side_are_told_apart() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    let keys = Keys::new();
    let server = keys.server(true);
    let at = |ssh| {
        let state = tempfile::tempdir().unwrap();
        (GitOptions { ssh, ..options(&url(&repository, server.port), state.path()) }, state)
    };
    let (with, _state) = at(keys.options("stranger", "host", server.port));
    let text = start(with).failure().await;
    assert!(text.contains("denied access") && text.contains("Permission denied (publickey"), "{text}");
    let (with, _state) = at(keys.options("deploy", "other-host", server.port));
    let text = start(with).failure().await;
    assert!(text.contains("ssh.knownHostsFile"), "{text}");
    let unknown = keys.options("deploy", "host", 1);
    let (with, _state) = at(unknown);
    let text = start(with).failure().await;
    assert!(text.contains("ssh.knownHostsFile") && text.contains("host key"), "{text}");
}

#[tokio::test]
async fn a_missing_repository_and_a_server_that_is_gone_are_told_apart() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    let keys = Keys::new();
    let server = keys.server(true);
    let state = tempfile::tempdir().unwrap();
    let ssh = keys.options("deploy", "host", server.port);
    let missing = format!("{}-not", url(&repository, server.port));
    let text = start(GitOptions { ssh: ssh.clone(), ..options(&missing, state.path()) }).failure().await;
    assert!(text.contains(" not found: "), "{text}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = start(GitOptions { ssh, ..options(&url(&repository, free), state.path()) }).failure().await;
    assert!(text.contains("cannot fetch from ") && text.contains("Connection refused"), "{text}");
}

/// In the place of ssh: tells what a program could do that a server took over, and waits for its end.
const TAKEN_OVER: &str = r#"#!/bin/sh
say() { echo "$*;" >&2; }
say "user $(id -u), groups $(id -G)"
say "copies $(ls -A /podstead | tr '\n' ' ')"
for path in SECRET /root /proc/self /proc/1 /sys /run /var /home /dev/sda /dev/kmsg; do
    [ -e "$path" ] && say "sees $path"
done
for path in /etc/passwd /usr/lib/new /podstead/key-0 /podstead/new /new; do
    (echo x >>"$path") 2>/dev/null && say "writes $path"
done
cat /podstead/key-0 >/dev/null || say "cannot read its key"
cat /etc/shadow 2>/dev/null && say "reads shadow"
kill -0 TEST 2>/dev/null && say "signals others"
mount -t tmpfs none /usr 2>/dev/null && say "mounts"
read line
"#;

/// The process that executes the script at `path`.
fn process_of(path: &Path) -> Option<i32> {
    let needle = path.to_str().unwrap();
    fs::read_dir("/proc").unwrap().find_map(|entry| {
        let entry = entry.unwrap();
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let mut words = line.split('\0');
        (words.next() == Some("/bin/sh") && words.next() == Some(needle)).then(|| entry.file_name().to_str()?.parse().ok())?
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ssh_without_capabilities_to_give_up_rights_is_not_executed() {
    let keys = Keys::new();
    let programs = tempfile::tempdir().unwrap();
    for (capability, step) in [("sys_admin", "leave the host's files"), ("setuid", "become another user")] {
        let (state, events) = (tempfile::tempdir().unwrap(), Arc::new(Recorded::default()));
        let launcher = Launcher::new(without(programs.path(), "program", capability));
        let jobs = Arc::new(ObjectJobs::new(Arc::new(launcher), events.clone()));
        let ssh = keys.options("deploy", "host", 22);
        let options = GitOptions { ssh, jobs, ..options("ssh://git@git.invalid/a.git", state.path()) };
        let text = start(options).failure().await;
        assert!(text.contains(&format!("podstead cannot run ssh: {step}")), "{capability}: {text}");
        assert_eq!(*events.0.lock().unwrap(), ["JobNotConfined"], "{capability}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ssh_has_neither_rights_nor_files() {
    let keys = Keys::new();
    let (programs, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for directory in [&programs, &other] {
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    }
    let secret = other.path().join("secret");
    fs::write(&secret, "for everyone on the host").unwrap();
    let program = programs.path().join("taken-over");
    let script = TAKEN_OVER.replace("SECRET", secret.to_str().unwrap()).replace("TEST", &std::process::id().to_string());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let state = tempfile::tempdir().unwrap();
    let ssh = SshOptions { program: Some(program.clone()), ..keys.options("deploy", "host", 22) };
    let mut running = start(GitOptions { ssh, ..options("ssh://git@git.invalid/a.git", state.path()) });
    let mut look = tokio::time::interval(Duration::from_millis(20));
    let mut waits = async || loop {
        look.tick().await;
        // Its children have the same command line for a moment: what waits is the script itself.
        let waiting = process_of(&program).filter(|pid| {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            children.is_empty() && status.contains("State:\tS")
        });
        if let Some(pid) = waiting {
            return pid;
        }
    };
    let pid = tokio::time::timeout(Duration::from_secs(15), waits()).await.expect("the program to wait");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(value(set), "0000000000000000", "{set}");
    }
    assert_eq!(value("NoNewPrivs:"), "1");
    assert!(!value("Uid:").split_whitespace().any(|uid| uid == "0"), "{status}");
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    let text = running.failure().await;
    let words = text.split_once("user ").expect("words").1;
    let mut words = words.split(';').map(str::trim);
    let user = words.next().unwrap();
    assert!(!user.starts_with('0') && !user.contains(" 0"), "{text}");
    assert_eq!(words.next(), Some("copies key-0 known-hosts-0"), "{text}");
    let more: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    // A file of the resolver's may be there.
    assert!(more.iter().all(|word| *word == "sees /run"), "{text}");
}
