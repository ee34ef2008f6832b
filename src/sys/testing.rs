//! Private mounts and network namespaces for tests, here and in other crates.
#![allow(clippy::unwrap_used, reason = "what a test needs and cannot have has to fail it")]

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
