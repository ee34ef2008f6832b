//! A crowd of connections at both doors of the API.

use crate::support::{TestHost, eventually};
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Connections at each door.
const CROWD: usize = 1000;
/// A user with a role.
const NOBODY: u32 = 65_534;
/// KiB of anonymous memory that they may take in the daemon: the head of a request may have 128 KiB, and few are let in.
const MOST: u64 = 8 << 10;
/// Open files of the daemon with all of the crowd that it lets in; it has some dozens without.
const MOST_FILES: usize = 600;

/// Opens as many connections at each door as it is told, sends the beginning of a request in each, and holds them until its input ends.
const SCRIPT: &str = "
import resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = []
for number in range(int(sys.argv[3])):
    for family, address in [(socket.AF_INET, ('127.0.0.1', int(sys.argv[1]))), (socket.AF_UNIX, sys.argv[2])]:
        connection = socket.socket(family)
        connection.connect(address)
        try:
            connection.sendall(b'\\x16\\x03\\x01\\x02\\x00' if family == socket.AF_INET else b'GET /api HTTP/1.1\\r\\nA: ' + b'a' * 4096)
        except OSError:
            pass
        held.append(connection)
print('held', flush=True)
sys.stdin.read()
";

struct Crowd(Child);

impl Drop for Crowd {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// KiB of anonymous memory of the daemon.
fn anonymous(host: &TestHost) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", host.daemon_pid())).unwrap();
    let line = text.lines().find(|line| line.starts_with("Anonymous:")).unwrap_or_default();
    line.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap()
}

fn open_files(host: &TestHost) -> usize {
    fs::read_dir(format!("/proc/{}/fd", host.daemon_pid())).unwrap().count()
}

#[test]
fn crowd_leaves_daemon_answering() {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let host = TestHost::start_with(&format!("api: {{tls: {{port: {port}}}, roles: [{{role: view, users: ['{NOBODY}']}}]}}\n"));
    for directory in ["", "run"] {
        fs::set_permissions(host.path(directory), fs::Permissions::from_mode(0o755)).unwrap();
    }
    eventually("the port to be open", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(|error| error.to_string()));
    let (memory, files) = (anonymous(&host), open_files(&host));

    let mut command = Command::new("python3");
    command.args(["-c", SCRIPT, &port.to_string()]).arg(host.path("run/podstead.sock")).arg(CROWD.to_string());
    command.uid(NOBODY).gid(NOBODY).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut crowd = Crowd(command.spawn().unwrap());
    crowd.0.stdout.take().unwrap().read_exact(&mut [0; 5]).unwrap();

    // Root is let in at the socket, and with its token at the port.
    assert!(host.cli_ok(&["status"]).contains("0 pods"), "{}", host.cli_ok(&["status"]));
    let token = host.cli_ok(&["credential"]);
    let credential: serde_json::Value = serde_json::from_str(&token).unwrap();
    let bearer = format!("Authorization: Bearer {}", credential["status"]["token"].as_str().unwrap());
    let url = format!("https://127.0.0.1:{port}/version");
    let curl = Command::new("curl").args(["-sSk", "--fail", "--max-time", "120", "-H", &bearer, &url]).output().unwrap();
    assert!(curl.status.success(), "{curl:?}");
    let (more, held) = (anonymous(&host).saturating_sub(memory), open_files(&host));
    assert!(more <= MOST, "the crowd takes {more} KiB");
    assert!(held <= MOST_FILES, "the daemon has {held} open files, {files} without the crowd");

    drop(crowd);
    eventually("the connections to be closed", || {
        let left = open_files(&host);
        if left <= files + 8 { Ok(()) } else { Err(format!("{left} open files, {files} before")) }
    });
    assert!(!host.daemon_log().contains("panicked"), "{}", host.daemon_log());
}
