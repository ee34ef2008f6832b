//! `exec` and `attach` through the command, the WebSocket and the API.

use crate::host::{Host, eventually, exited, text};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

fn web() -> Host {
    let host = Host::start();
    host.publish_running("default", "web");
    host
}

#[test]
fn exec_passes_both_streams_and_exit_code() {
    let host = web();
    let output = host.output(&["exec", "web", "--", "echo", "-n", "a b", "--", "c"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "-n a b -- c in main-0\n".into()));
    assert_eq!(text(&output.stderr), "to stderr\n");
    for code in [0, 1, 42, 137] {
        assert_eq!(host.output(&["exec", "web", "exit", &code.to_string()]).status.code(), Some(code));
    }
}

#[test]
fn stdin_is_copied_to_its_end() {
    let host = web();
    // Larger than every buffer on the way.
    let sent: Vec<u8> = (0..3_000_000u32).map(|number| number as u8).collect();
    let mut child = host.command(&["exec", "-i", "web", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let copy = sent.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&copy).unwrap());
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut received = Vec::new();
        stdout.read_to_end(&mut received).unwrap();
        received
    });
    // Both directions are full for the time: neither may wait for the other.
    eventually("all came back", || reader.is_finished().then_some(()));
    let received = reader.join().unwrap();
    writer.join().unwrap();
    assert!(received == sent, "{} bytes came back", received.len());
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_cannot_be_run_is_said() {
    let host = web();
    let (code, message) = host.fail(&["exec", "web", "--", "nosuch"]);
    assert_eq!((code, message.as_str()), (1, "podstead: execute \"nosuch\": no such file\n"));
    let (code, message) = host.fail(&["exec", "wbe", "--", "cat"]);
    assert_eq!((code, message.as_str()), (1, "podstead: pod \"wbe\" not found, did you mean \"web\"?\n"));
    let (_, message) = host.fail(&["exec", "-c", "side", "web", "--", "cat"]);
    assert_eq!(message, "podstead: container side is not valid for pod web-edge, choose one of: [main]\n");
    let (_, message) = host.fail(&["exec", "web"]);
    assert!(message.contains("COMMAND"), "{message}");
    let dead = host.publish_running("default", "dead");
    host.observe(&dead, "main", 0, exited(1));
    let (_, message) = host.fail(&["exec", "dead", "--", "cat"]);
    assert_eq!(message, "podstead: container \"main\" of pod \"dead-edge\" is not running\n");
}

#[test]
fn client_without_websocket_is_advised() {
    let host = web();
    let (code, status) = host.send(hyper::Method::POST, "/api/v1/namespaces/default/pods/web-edge/exec?command=cat", "");
    assert_eq!(code, 400);
    assert!(status["message"].as_str().unwrap().contains("or podstead exec"), "{status}");
}

#[test]
fn killed_client_takes_its_process_along() {
    let host = web();
    let mut child = host.command(&["exec", "web", "--", "hang"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the session is dropped", || (*host.runtime.abandoned.borrow() == 1).then_some(()));
}

#[test]
fn killed_client_is_noticed_without_input_reader() {
    let host = web();
    let mut command = host.command(&["exec", "-i", "web", "--", "hang"]);
    let mut child = command.stdin(File::open("/dev/zero").unwrap()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the session is dropped", || (*host.runtime.abandoned.borrow() == 1).then_some(()));
}

#[test]
fn killed_client_is_noticed_after_last_read() {
    let host = web();
    let mut command = host.command(&["exec", "-i", "web", "--", "hang"]);
    let mut child = command.stdin(File::open("/dev/zero").unwrap()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 8]).unwrap();
    // It reads no more of its input when it cannot send any.
    let (mut before, mut same) = (0, 0);
    eventually("the client is held up", || {
        let account = std::fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap();
        let read: u64 = account.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).unwrap();
        same = if read == before { same + 1 } else { 0 };
        before = read;
        (read > 1 << 20 && same > 20).then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the session is dropped", || (*host.runtime.abandoned.borrow() == 1).then_some(()));
}

/// A child on a terminal of its own.
struct OnTerminal {
    child: Child,
    user: File,
    terminal: OwnedFd,
    screen: Arc<Mutex<String>>,
}

impl OnTerminal {
    fn start(host: &Host, arguments: &[&str], columns: u16, rows: u16) -> Self {
        let pty = nix::pty::openpty(None, None).unwrap();
        tcsetwinsize(&pty.slave, size(columns, rows)).unwrap();
        let mut command = host.command(arguments);
        let stream = || Stdio::from(pty.slave.try_clone().unwrap());
        let child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap();
        let user = File::from(pty.master);
        let screen = Arc::new(Mutex::new(String::new()));
        let (mut reader, shown) = (user.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length) = reader.read(&mut buffer) {
                shown.lock().unwrap().push_str(&text(&buffer[..length]));
            }
        });
        Self { child, user, terminal: pty.slave, screen }
    }

    fn shows(&self, expected: &str) {
        eventually(expected, || self.screen.lock().unwrap().contains(expected).then_some(()));
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.terminal).unwrap().local_modes.contains(LocalModes::ICANON)
    }

    fn exit_code(&mut self) -> Option<i32> {
        eventually("the command ends", || self.child.try_wait().unwrap()).code()
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 }
}

#[test]
fn raw_terminal_tells_size_and_is_restored() {
    let host = web();
    let mut session = OnTerminal::start(&host, &["exec", "-it", "web", "--", "sizes"], 120, 40);
    session.shows("Some((120, 40))");
    assert!(session.is_raw());
    tcsetwinsize(&session.terminal, size(99, 33)).unwrap();
    // Not its controlling terminal, so that the kernel does not signal it.
    nix::sys::signal::kill(pid(&session.child), nix::sys::signal::Signal::SIGWINCH).unwrap();
    session.shows("Some((99, 33))");
    session.user.write_all(b"7").unwrap();
    assert_eq!(session.exit_code(), Some(7));
    assert!(!session.is_raw(), "the terminal is as it was");
}

#[test]
fn terminal_is_restored_when_signal_ends_command() {
    let host = web();
    let mut session = OnTerminal::start(&host, &["exec", "-it", "web", "--", "sizes"], 80, 24);
    session.shows("Some((80, 24))");
    assert!(session.is_raw());
    nix::sys::signal::kill(pid(&session.child), nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(session.exit_code(), Some(130));
    assert!(!session.is_raw());
}

#[test]
fn terminal_is_restored_when_daemon_goes_away() {
    let host = web();
    let mut session = OnTerminal::start(&host, &["exec", "-it", "web", "--", "sizes"], 80, 24);
    session.shows("Some((80, 24))");
    host.tokio.shutdown_background();
    assert_eq!(session.exit_code(), Some(1));
    assert!(!session.is_raw());
}

#[test]
fn ctrl_p_ctrl_q_detaches_only() {
    let host = Host::start();
    let extra = serde_json::json!({"containers": [{"name": "main", "stdin": true, "tty": true}]});
    let desired = crate::host::desired("default", "shell", extra);
    host.observe(&desired, "main", 0, crate::host::running());
    let status = serde_json::from_value(crate::host::running_status()).unwrap();
    podstead::status::PodStatusSink::publish(&*host.published, &desired, status);
    let mut session = OnTerminal::start(&host, &["attach", "-it", "shell"], 80, 24);
    eventually("the terminal is raw", || session.is_raw().then_some(()));
    session.user.write_all(b"hello\n").unwrap();
    session.shows("hello");
    session.user.write_all(b"\x10\x11").unwrap();
    assert_eq!(session.exit_code(), Some(0));
    session.shows("detached; the container keeps running");
    assert!(!session.is_raw());
}

fn pid(child: &Child) -> nix::unistd::Pid {
    nix::unistd::Pid::from_raw(child.id().try_into().unwrap())
}
