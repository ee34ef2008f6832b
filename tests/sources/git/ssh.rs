//! OpenSSH's server with a key that may do nothing but read repositories.

use super::repository::{Repository, run};
use super::servers::Inetd;
use super::{options, shown, start};
use podstead::source::git::{GitOptions, SshOptions};
use std::path::PathBuf;
use std::process::Command;

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
        SshOptions { key_file: Some(self.at(key)), known_hosts_file: Some(known_hosts) }
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
