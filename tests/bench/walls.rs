//! Cost of the processes that read what others wrote: polls of sources in which nothing changed, and what stays of them at rest.

use crate::figures::{Series, row};
use crate::idle::spent;
use crate::memory::{anonymous_kib, pss_kib};
use crate::support::TestHost;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 30;
/// Processes that ask servers end ten seconds after their last answer, threads that block ten seconds after their last work.
const REST: Duration = Duration::from_secs(30);
const MANIFEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n";

/// A git source over HTTP, an HTTP source and a directory that do not change: each of them is polled, and then all rest.
pub(crate) fn polls_and_rest() {
    let directory = tempfile::tempdir().unwrap();
    repository(directory.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let root = directory.path().to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let root = root.clone();
            // Who hangs up has heard enough.
            std::thread::spawn(move || drop(serve(stream, &root)));
        }
    });
    let host = TestHost::start_with(&format!(
        "  - name: git\n    git: {{url: 'http://127.0.0.1:{port}/fleet.git', branch: main, intervalSeconds: 3600}}\n  \
           - name: http\n    http: {{url: 'http://127.0.0.1:{port}/pods.yaml', intervalSeconds: 3600}}\n"
    ));
    for name in ["git", "http"] {
        let mut taken = Series::default();
        host.cli_ok(&["sync", name, "--wait"]);
        for _ in 0..RUNS {
            // Sources that are woken without pause are held back.
            std::thread::park_timeout(Duration::from_millis(700));
            let before = Instant::now();
            host.cli_ok(&["sync", name, "--wait"]);
            taken.push(before.elapsed());
        }
        row(&format!("poll of an unchanged source of type {name}: podstead sync --wait"), &taken.text(), "-", "-");
    }
    let mut command = Series::default();
    for _ in 0..RUNS {
        let before = Instant::now();
        host.cli_ok(&["get", "sources"]);
        command.push(before.elapsed());
    }
    row("a command that waits for nothing: podstead get sources", &command.text(), "-", "-");
    std::thread::park_timeout(REST);
    let daemon = host.daemon_pid();
    let before = spent(&[daemon]);
    std::thread::park_timeout(REST);
    let after = spent(&[daemon]);
    let rested = format!("{} processes, {} ms, {} B", children(daemon), (after.0 - before.0) * 10, after.1 - before.1);
    row("no pods, two sources at rest for 30 s: processes of the daemon, CPU time, bytes written", &rested, "-", "-");
    let memory = format!("{} KiB ({} KiB anonymous)", pss_kib(daemon), anonymous_kib(daemon));
    row("no pods, two sources: memory of the daemon (PSS)", &memory, "-", "-");
}

/// Children of a process, of any of its threads.
fn children(pid: u32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    listed.map(|text| text.split_whitespace().count()).sum()
}

/// A repository with one commit, `fleet.git`.
fn repository(directory: &Path) {
    let git = |place: &str, arguments: &[&str]| {
        let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "init.defaultBranch=main"];
        let status = Command::new("git").current_dir(directory.join(place)).args(identity).args(arguments).status().unwrap();
        assert!(status.success(), "git {arguments:?}: {status}");
    };
    git("", &["init", "-q", "--bare", "fleet.git"]);
    git("", &["clone", "-q", "fleet.git", "work"]);
    std::fs::write(directory.join("work/settings.yaml"), MANIFEST).unwrap();
    git("work", &["add", "."]);
    git("work", &["commit", "-q", "-m", "begin"]);
    git("work", &["push", "-q", "origin", "HEAD:main"]);
}

/// Answers one request: for git by its own program, else with a manifest that never changes.
fn serve(stream: TcpStream, root: &Path) -> std::io::Result<()> {
    let (mut from, mut to) = (BufReader::new(stream.try_clone()?), stream);
    let mut first = String::new();
    from.read_line(&mut first)?;
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        match line.trim().split_once(':') {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
            None => break,
        };
    }
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if !target.starts_with("/fleet.git") {
        return match headers.contains_key("if-none-match") {
            true => to.write_all(b"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nConnection: close\r\n\r\n"),
            false => write!(
                to,
                "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{MANIFEST}",
                MANIFEST.len()
            ),
        };
    }
    let mut body = vec![0; headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0)];
    from.read_exact(&mut body)?;
    let answer = backend(root, method, target, &headers, &body)?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(answer.len().saturating_sub(4));
    let (head, content) = answer.split_at(end + 4);
    write!(to, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n", content.len())?;
    to.write_all(head)?;
    to.write_all(content)
}

/// The answer of `git http-backend`, headers first.
fn backend(root: &Path, method: &str, target: &str, headers: &BTreeMap<String, String>, body: &[u8]) -> std::io::Result<Vec<u8>> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .envs([("REQUEST_METHOD", method), ("PATH_INFO", path), ("QUERY_STRING", query)])
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().map_or(Ok(()), |mut input| input.write_all(body))?;
    Ok(child.wait_with_output()?.stdout)
}
