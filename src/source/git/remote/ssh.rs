//! The system's `ssh`, configured by arguments only: no configuration file, no agent, no prompts.

use super::url::SshUrl;
use crate::git::error::GitError;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// Key for authentication, and known host keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshOptions {
    /// A private key that needs no passphrase; without one, ssh's own default files.
    pub key_file: Option<PathBuf>,
    /// The keys that servers are known by; without one, ssh's own default files.
    pub known_hosts_file: Option<PathBuf>,
}

/// Bytes of the error output of ssh that are kept.
const SAID: u64 = 16 << 10;

/// A running ssh. Ends when dropped.
pub(super) struct Ssh {
    pub(super) input: ChildStdin,
    child: Child,
    said: JoinHandle<Vec<u8>>,
}

impl Ssh {
    /// Starts `git-upload-pack` on the server.
    pub(super) fn start(url: &SshUrl, options: &SshOptions, timeout: Duration) -> Result<(Self, ChildStdout), GitError> {
        let setup = |reason: String| GitError::Setup(format!("start ssh (is openssh-client installed?): {reason}"));
        let mut command = Command::new("ssh");
        command.args(arguments(url, options, timeout));
        // The words are looked at, so they have to be English.
        command.env("LC_ALL", "C").env("GIT_PROTOCOL", "version=2");
        for name in ["SSH_AUTH_SOCK", "SSH_ASKPASS", "DISPLAY"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| setup(error.to_string()))?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
            return Err(setup("no pipes".to_owned()));
        };
        let said = tokio::spawn(async move {
            let mut said = Vec::new();
            // Goes on to the end, so that ssh is never held up; only the beginning is kept.
            let mut errors = errors;
            (&mut errors).take(SAID).read_to_end(&mut said).await.ok();
            tokio::io::copy(&mut errors, &mut tokio::io::sink()).await.ok();
            said
        });
        Ok((Self { input, child, said }, output))
    }

    /// Returns the error output of ssh after it ended.
    pub(super) async fn last_words(&mut self, patience: Duration) -> String {
        let words = match tokio::time::timeout(patience, &mut self.said).await {
            Ok(Ok(words)) => String::from_utf8_lossy(&words).into_owned(),
            Ok(Err(_)) | Err(_) => String::new(),
        };
        let telling = |line: &&str| !line.is_empty() && !line.chars().all(|c| c == '@');
        let lines: Vec<&str> = words.lines().map(str::trim).filter(telling).collect();
        if lines.is_empty() {
            let status = tokio::time::timeout(patience, self.child.wait()).await;
            return match status {
                Ok(Ok(status)) => format!("ssh ended without an error message: {status}"),
                Ok(Err(_)) | Err(_) => "ssh ended without an error message".to_owned(),
            };
        }
        lines.join(" ").chars().filter(|c| !c.is_control()).collect()
    }
}

fn arguments(url: &SshUrl, options: &SshOptions, timeout: Duration) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["-T", "-a", "-x", "-F", "/dev/null"].map(OsString::from).into();
    let mut option = |name: &str, value: OsString| {
        let mut text = OsString::from(format!("{name}="));
        text.push(value);
        arguments.extend(["-o".into(), text]);
    };
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
    ] {
        option(name, value.into());
    }
    option("ConnectTimeout", timeout.as_secs().max(1).to_string().into());
    if let Some(key) = &options.key_file {
        option("IdentitiesOnly", "yes".into());
        option("IdentityAgent", "none".into());
        option("IdentityFile", quoted(key));
    }
    if let Some(known_hosts) = &options.known_hosts_file {
        option("UserKnownHostsFile", quoted(known_hosts));
        option("GlobalKnownHostsFile", "/dev/null".into());
    }
    if let Some(port) = url.port {
        arguments.extend(["-p".into(), port.to_string().into()]);
    }
    if let Some(user) = &url.user {
        arguments.extend(["-l".into(), user.into()]);
    }
    arguments.push("--".into());
    arguments.push(url.host.clone().into());
    // The path holds no quotes: the URL would have been refused.
    arguments.push(format!("git-upload-pack '{}'", url.path).into());
    arguments
}

/// As ssh reads it in a configuration file: a path may have spaces, and `%` begins a token.
fn quoted(path: &std::path::Path) -> OsString {
    let mut text = OsString::from("\"");
    text.push(path.as_os_str());
    text.push("\"");
    match text.to_str() {
        Some(plain) => plain.replace('%', "%%").into(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(url: &str, options: &SshOptions) -> String {
        let super::super::url::RemoteUrl::Ssh(url) = url.parse().unwrap() else { panic!() };
        let arguments = arguments(&url, options, Duration::from_secs(7));
        arguments.iter().map(|argument| argument.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn nothing_but_the_arguments_decides() {
        let options = SshOptions { key_file: Some("/k".into()), known_hosts_file: Some("/h h%".into()) };
        let line = line("ssh://git@git.lan:2222/srv/a.git", &options);
        for part in [
            "-F /dev/null",
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "ConnectTimeout=7",
            "IdentitiesOnly=yes",
            "IdentityFile=\"/k\"",
            "UserKnownHostsFile=\"/h h%%\"",
            "-p 2222 -l git -- git.lan git-upload-pack '/srv/a.git'",
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }

    #[test]
    fn the_command_is_one_word_after_the_host() {
        let url = "git.lan:team/fleet.git";
        assert!(line(url, &SshOptions::default()).ends_with("-- git.lan git-upload-pack 'team/fleet.git'"));
    }
}
