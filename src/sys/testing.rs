//! Private mounts and network namespaces for tests, here and in other crates.
#![allow(clippy::unwrap_used, reason = "what a test needs and cannot have has to fail it")]

use std::ffi::CStr;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

const PRIVATE: &str = "PODSTEAD_TEST_PRIVATE_MOUNTS";

/// Runs `body` in a process of its own with a mount namespace of its own, in which nothing is shared with the host: whatever it
/// mounts is gone when it ends, also when it fails. `test` is the full name of the calling test, which is run again there.
pub fn in_private_mounts(test: &str, body: impl FnOnce()) {
    if std::env::var_os(PRIVATE).is_some() {
        return body();
    }
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(PRIVATE, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("1 passed"), "no test is called {test:?}: {told}");
}

/// Gives `body` the path of a new network namespace, and a way to ask whether `lo` is up in it.
pub fn in_new_netns(body: impl FnOnce(&Path, &dyn Fn() -> bool)) {
    // The namespace lives as long as the process that waits in it for its input to end.
    let mut holder = Command::new("unshare")
        .args(["--net", "sh", "-c", "echo ready; cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut ready).unwrap();
    let netns = format!("/proc/{}/ns/net", holder.id());
    let is_up = || {
        let output = Command::new("nsenter").arg(format!("--net={netns}")).args(["cat", "/proc/net/fib_trie"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().contains("127.0.0.1")
    };
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(Path::new(&netns), &is_up)));
    drop(holder.stdin.take());
    holder.wait().unwrap();
    result.unwrap();
}

/// Tries what no job may do; returns what came of it. Most words do not come back.
#[expect(unsafe_code, reason = "the calls are made as an attacker would make them")]
pub fn attack(word: &str) -> String {
    const SHADOW: &CStr = c"/etc/shadow";
    // SAFETY: all pointers are to static strings, to an address on the stack, or null; a call that succeeds ends this process, which is there to be attacked.
    let result = unsafe {
        match word {
            "execve" => i64::from(libc::execv(c"/bin/true".as_ptr(), [c"true".as_ptr(), std::ptr::null()].as_ptr())),
            "socket" => i64::from(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)),
            "socket-inet" => i64::from(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0)),
            "socket-netlink" => i64::from(libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, 0)),
            "socket-packet" => i64::from(libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)),
            "socket-raw" => i64::from(libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)),
            "bind" => {
                let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
                let address = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: 0,
                    sin_addr: libc::in_addr { s_addr: 0 },
                    sin_zero: [0; 8],
                };
                let length = std::mem::size_of_val(&address) as libc::socklen_t;
                i64::from(libc::bind(socket, (&raw const address).cast(), length))
            }
            "listen" => i64::from(libc::listen(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0), 1)),
            "socket-option" => {
                let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
                i64::from(libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, std::ptr::null(), 0))
            }
            "overwrite" => i64::from(libc::open(c"/etc/hosts".as_ptr(), libc::O_WRONLY)),
            "make" => i64::from(libc::open(c"/etc/file".as_ptr(), libc::O_WRONLY | libc::O_CREAT, 0o600)),
            "kill" => i64::from(libc::kill(1, 0)),
            "kill-own" => i64::from(libc::kill(libc::getpid(), libc::SIGUSR1)),
            "mount" => i64::from(libc::mount(c"none".as_ptr(), c"/".as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null())),
            "ptrace" => libc::ptrace(libc::PTRACE_ATTACH, 1, 0, 0),
            "unshare" => i64::from(libc::unshare(libc::CLONE_NEWUSER)),
            "setns" => i64::from(libc::setns(0, 0)),
            "chroot" => i64::from(libc::chroot(c"/".as_ptr())),
            "setuid" => libc::syscall(libc::SYS_setresuid, 0, 0, 0),
            "fork" => libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0),
            "keyctl" => libc::syscall(libc::SYS_keyctl, 0, 0, 0, 0, 0),
            "bpf" => libc::syscall(libc::SYS_bpf, 0, 0, 0),
            "io_uring" => libc::syscall(libc::SYS_io_uring_setup, 1, 0),
            "tty" => i64::from(libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr())),
            "name" => i64::from(libc::open(SHADOW.as_ptr(), libc::O_RDONLY)),
            "dotdot" => i64::from(libc::open(c"../../../../../../etc/shadow".as_ptr(), libc::O_RDONLY)),
            "proc" => i64::from(libc::open(c"/proc/1/root/etc/shadow".as_ptr(), libc::O_RDONLY)),
            "trusted" => i64::from(libc::lsetxattr(c"/".as_ptr(), c"trusted.overlay.opaque".as_ptr(), c"y".as_ptr().cast(), 1, 0)),
            "disk" => {
                libc::mknodat(libc::AT_FDCWD, c"/disk".as_ptr(), libc::S_IFBLK | 0o666, libc::makedev(254, 0));
                i64::from(libc::openat(libc::AT_FDCWD, c"/disk".as_ptr(), libc::O_RDONLY))
            }
            "setuid-program" => {
                // It may be made, as layers have such files; nothing of it may be executed.
                libc::openat(libc::AT_FDCWD, c"/program".as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0o4755);
                i64::from(libc::execv(c"/program".as_ptr(), [c"program".as_ptr(), std::ptr::null()].as_ptr()))
            }
            "memory" => {
                let mut taken: Vec<Vec<u8>> = Vec::new();
                loop {
                    taken.push(vec![1; 1 << 20]);
                }
            }
            "spin" => loop {
                std::hint::spin_loop();
            },
            "sleep" => loop {
                libc::sleep(1000);
            },
            "segfault" => i64::from(*std::hint::black_box(8 as *const u8)),
            _ => -1,
        }
    };
    if result < 0 { io::Error::last_os_error().to_string() } else { format!("done with {result}") }
}
