//! The real kubectl against a real daemon with a writable source.

use super::TestHost;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

/// A host whose source is writable, and kubectl for it.
#[derive(Debug)]
pub(crate) struct Kubectl {
    pub(crate) host: TestHost,
    address: SocketAddr,
}

/// Copies between a TCP port that the kernel chose and the socket of the daemon.
fn bridge(host: &TestHost) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let socket = host.path("run/podstead.sock");
    thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            // While the daemon is away, kubectl is told by a closed connection.
            let Ok(unix) = UnixStream::connect(&socket) else { continue };
            let (tcp_in, unix_in) = (tcp.try_clone().unwrap(), unix.try_clone().unwrap());
            let (tcp_end, unix_end) = (tcp.try_clone().unwrap(), unix.try_clone().unwrap());
            thread::spawn(move || {
                copy(tcp_in, unix_in);
                unix_end.shutdown(Shutdown::Both).ok();
            });
            thread::spawn(move || {
                copy(unix, tcp);
                tcp_end.shutdown(Shutdown::Both).ok();
            });
        }
    });
    address
}

fn copy(mut from: impl Read, mut to: impl Write) {
    std::io::copy(&mut from, &mut to).ok();
}

impl Kubectl {
    /// A host whose source is writable, with `more` lines about it; `None` where there is no kubectl.
    pub(crate) fn start(more: &str) -> Option<Self> {
        let exists = |directory: &Path| directory.join("kubectl").is_file();
        let path = std::env::var_os("PATH")?;
        if !std::env::split_paths(&path).any(|directory| exists(&directory)) {
            std::io::stderr().write_all(b"no kubectl in PATH: skipped\n").unwrap();
            return None;
        }
        let host = TestHost::start_with(&format!("    writable: true\n{more}"));
        let address = bridge(&host);
        Some(Self { host, address })
    }

    /// The address of the API.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs the kubectl in PATH with this input.
    pub(crate) fn output(&self, arguments: &[&str], input: &str) -> Output {
        self.output_of(Path::new("kubectl"), arguments, input)
    }

    /// This kubectl for this host.
    pub(crate) fn command(&self, kubectl: &Path) -> Command {
        self.for_this_host(Command::new(kubectl))
    }

    fn for_this_host(&self, mut command: Command) -> Command {
        command.env("HOME", self.host.path("")).env_remove("KUBECONFIG").arg(format!("--server=http://{}", self.address));
        command
    }

    /// Runs this kubectl. One that does not end is killed, and its exit code is 124.
    pub(crate) fn output_of(&self, kubectl: &Path, arguments: &[&str], input: &str) -> Output {
        let mut command = Command::new("timeout");
        command.arg("300").arg(kubectl);
        let mut command = self.for_this_host(command);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        child.wait_with_output().unwrap()
    }

    /// The minor version of this kubectl.
    pub(crate) fn minor_version(&self, kubectl: &Path) -> u32 {
        let told = text(&self.output_of(kubectl, &["version", "--client", "-o", "json"], "").stdout);
        let version: serde_json::Value = serde_json::from_str(&told).unwrap();
        let minor = version["clientVersion"]["minor"].as_str().unwrap();
        minor.trim_end_matches('+').parse().unwrap()
    }

    /// Runs kubectl, which must succeed; returns both outputs.
    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> String {
        let output = self.output(arguments, input);
        let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "kubectl {arguments:?}: {told}\n{}", self.host.daemon_log());
        told
    }

    /// Runs kubectl, which must fail; returns its message.
    pub(crate) fn fail(&self, arguments: &[&str], input: &str) -> String {
        let output = self.output(arguments, input);
        assert!(!output.status.success(), "kubectl {arguments:?}: {}", text(&output.stdout));
        text(&output.stderr)
    }

    /// Applies a manifest; returns what kubectl says.
    pub(crate) fn apply(&self, manifest: &str) -> String {
        self.run(&["apply", "--validate=false", "-f", "-"], manifest)
    }

    /// The text of a file of the source.
    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.host.path("manifests").join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The text of each file.
    pub(crate) fn files(&self) -> BTreeMap<String, String> {
        let entries =
            fs::read_dir(self.host.path("manifests")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        entries.map(|name| (name.clone(), self.file(&name))).collect()
    }

    /// Names of the objects of a kind that have files.
    pub(crate) fn names_of(&self, kind: &str) -> Vec<String> {
        let ending = format!(".{kind}.yaml");
        self.files().keys().filter_map(|file| file.strip_suffix(&ending)).map(str::to_owned).collect()
    }

    /// Reports whether the source has a file of this name.
    pub(crate) fn has_file(&self, name: &str) -> bool {
        self.host.path("manifests").join(name).try_exists().unwrap()
    }
}

/// Bytes as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Every kubectl of this machine: the one in PATH, and those of the Google Cloud SDK, whose names end in their versions.
pub(crate) fn every_kubectl() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/google-cloud-sdk/bin")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kubectl.")))
        .collect();
    found.push("kubectl".into());
    found
}
