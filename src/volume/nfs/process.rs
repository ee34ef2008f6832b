//! The daemon's side of the process that speaks with servers: start, deadline, end.

use super::message::{Reply, Request, TASK, Work};
use super::place::is_nfs;
use podstead_job::PROGRAM_NAME;
use podstead_sys::mounts::mounts;
use podstead_sys::{pidfd, self_exec};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time for a mount to leave the table. It does at once; the rest is the server's.
const DETACH: Duration = Duration::from_secs(10);
/// Time between two looks at the table.
const SLICE: Duration = Duration::from_millis(50);
/// Bytes that a process may say.
const MAX_SAID: u64 = 64 << 10;

/// Lines of a process that ended, or was ended.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) replies: Vec<Reply>,
    /// It was ended at its deadline.
    pub(super) is_late: bool,
}

/// Processes that could not end yet, since the kernel waits for a server in their name.
static LEFT: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// This program.
pub(super) fn own_program() -> PathBuf {
    self_exec::OWN_BINARY.into()
}

/// Has it done by a process of `program`, which is ended after `deadline`. `started` gets the process, to end it earlier.
pub(super) fn run(program: &Path, work: Work, deadline: Duration, started: impl FnOnce(OwnedFd)) -> io::Result<Heard> {
    let Started { mut child, process } = start(program, &Request { work, seconds: Some(deadline.as_secs() + 5) })?;
    started(process.try_clone()?);
    let is_over = wait(&process, deadline).unwrap_or(false);
    let output = child.stdout.take();
    if !is_over {
        // It is not waited for: that may take as long as the server is silent.
        let _ended = child.kill();
    }
    leave(child);
    Ok(Heard { replies: output.map(said).transpose()?.unwrap_or_default(), is_late: !is_over })
}

struct Started {
    child: Child,
    process: OwnedFd,
}

/// Starts a process and sends it its request.
fn start(program: &Path, request: &Request) -> io::Result<Started> {
    let request = serde_json::to_vec(request)?;
    let mut child = Command::new(program)
        .arg0(PROGRAM_NAME)
        .arg(TASK)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // One that has ended says less than it should, which is an error of its own.
        let _taken = input.write_all(&request);
    }
    match pidfd::open(child.id()) {
        Ok(process) => Ok(Started { child, process }),
        Err(errno) => {
            let _ended = child.kill();
            leave(child);
            Err(errno.into())
        }
    }
}

/// Waits for the ends of all that were left, without waiting.
fn leave(child: Child) {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.push(child);
    left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
}

fn wait(process: &OwnedFd, deadline: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + deadline;
    loop {
        match pidfd::wait_for_end(process, deadline.saturating_duration_since(Instant::now())) {
            Err(nix::errno::Errno::EINTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Content of the pipe now: a process that is still there keeps it open.
fn said(output: std::process::ChildStdout) -> io::Result<Vec<Reply>> {
    rustix::io::ioctl_fionbio(&output, true)?;
    let mut bytes = Vec::new();
    match output.take(MAX_SAID).read_to_end(&mut bytes) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
        Ok(_) | Err(_) => {}
    }
    Ok(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// Detaches every NFS mount at and below `directory`, a real path. Users keep it until they end. Returns what could not be done.
pub(crate) fn detach_below(directory: &Path) -> Vec<String> {
    let present = || -> io::Result<Vec<PathBuf>> {
        let found = mounts()?.into_iter().filter(|entry| is_nfs(entry) && entry.point.starts_with(directory));
        Ok(found.map(|entry| entry.point).collect())
    };
    let mut points = match present() {
        Ok(points) if points.is_empty() => return Vec::new(),
        Ok(points) => points,
        Err(error) => return vec![format!("read mounts: {error}")],
    };
    points.reverse();
    let started = start(&own_program(), &Request { work: Work::Detach { points }, seconds: None });
    let Started { mut child, process } = match started {
        Ok(started) => started,
        Err(error) => return vec![format!("unmount NFS below {directory:?}: start a process: {error}")],
    };
    // The last user of a file system writes what is not written yet: that may have to wait for the server. The process stays for it, the pod need not.
    let is_clear = || present().is_ok_and(|points| points.is_empty());
    let deadline = Instant::now() + DETACH;
    while !wait(&process, SLICE).unwrap_or(true) && !is_clear() && Instant::now() < deadline {}
    let output = child.stdout.take();
    leave(child);
    let replies = output.map(said).transpose().ok().flatten().unwrap_or_default();
    let problems = replies.into_iter().filter_map(|reply| match reply {
        Reply::Problem { reason, .. } => Some(reason),
        Reply::Failed(_) | Reply::Done => None,
    });
    match present() {
        Ok(left) if left.is_empty() => Vec::new(),
        Ok(left) => {
            let problems: Vec<String> = problems.collect();
            let silent = || left.iter().map(|point| format!("unmount {point:?}: the NFS server does not answer")).collect();
            if problems.is_empty() { silent() } else { problems }
        }
        Err(error) => vec![format!("read mounts: {error}")],
    }
}
