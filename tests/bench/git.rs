//! From a push to the new container, with a repository on this machine.

use crate::figures::{Series, row};
use crate::latency::{manifest, wait_for_file};
use crate::memory::pss_kib;
use crate::steps::Steps;
use crate::support::{TestHost, eventually};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const RUNS: usize = 20;

fn git(directory: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "init.defaultBranch=main"];
    let status = Command::new("git").current_dir(directory).args(identity).args(arguments).status().unwrap();
    assert!(status.success(), "git {arguments:?}: {status}");
}

/// A push that adds a pod, until its process runs. The repository is a directory here; its hook calls the webhook, as a server would.
pub(crate) fn push_to_running() {
    let repository = tempfile::tempdir().unwrap();
    let (bare, work) = (repository.path().join("fleet.git"), repository.path().join("work"));
    git(repository.path(), &["init", "-q", "--bare", "fleet.git"]);
    git(repository.path(), &["clone", "-q", "fleet.git", "work"]);
    std::fs::create_dir(work.join("pods")).unwrap();
    let commit = |name: &str| {
        git(&work, &["add", "."]);
        git(&work, &["commit", "-q", "--allow-empty", "-m", name]);
        git(&work, &["push", "-q", "origin", "HEAD:main"]);
    };
    std::fs::write(work.join("pods/.gitkeep"), "").unwrap();
    commit("begin");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let secret = repository.path().join("secret");
    std::fs::write(&secret, "bench").unwrap();
    let hook = bare.join("hooks/post-receive");
    let called = repository.path().join("called");
    let call = format!("curl -sf -X POST -H 'X-Gitlab-Token: bench' http://127.0.0.1:{port}/sources/fleet >/dev/null");
    std::fs::write(&hook, format!("#!/bin/sh\ndate +%s%N > {}\n{call}\n", called.display())).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (url, secret) = (bare.display(), secret.display());
    let source = format!(
        "  - name: fleet\n    git: {{url: {url}, branch: main, path: pods, intervalSeconds: 3600}}\n\
         webhook: {{port: {port}, secretFile: {secret}}}\n"
    );
    let host = TestHost::start_with(&source);
    eventually("the image to be listed", || {
        let list = host.cli_ok(&["image", "ls"]);
        if list.contains("localhost/busybox") { Ok(()) } else { Err(list) }
    });
    let out = host.path("out");
    std::fs::create_dir(&out).unwrap();
    host.cli_ok(&["sync", "fleet", "--wait"]);
    row("one git source, no pods: memory (PSS)", &format!("daemon {} KiB", pss_kib(host.daemon_pid())), "-", "-");
    let (mut running, mut since_call, mut steps) = (Series::default(), Series::default(), Steps::default());
    for number in 0..RUNS {
        let name = format!("pushed{number}");
        std::fs::write(work.join("pods").join(format!("{name}.yaml")), manifest(&name, &out, "exec sleep 1000000")).unwrap();
        git(&work, &["add", "."]);
        git(&work, &["commit", "-q", "-m", &name]);
        // Pushes do not follow each other at once: a source that is woken without pause is held back.
        std::thread::park_timeout(Duration::from_millis(700));
        let start = Instant::now();
        git(&work, &["push", "-q", "origin", "HEAD:main"]);
        wait_for_file(&out.join(&name));
        running.push(start.elapsed());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let call: u64 = std::fs::read_to_string(&called).unwrap().trim().parse().unwrap();
        since_call.push(now.saturating_sub(Duration::from_nanos(call)));
        steps.push(&host, &name);
    }
    row("git push (begun) -> process of the new pod running", &running.text(), "-", "-");
    row("- hook of the repository begins to call the webhook -> process of the new pod running", &since_call.text(), "-", "-");
    steps.print();
}
