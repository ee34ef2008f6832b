//! The process that speaks with servers: what it does until it is done, or killed.

use super::message::{Failure, Reply, Request, Work};
use super::place::{is_nfs, is_noted, lock, note, real};
use super::plan::{Attempt, after, attempts};
use crate::sub_path::{self, Missing, SubPathProblem};
use podstead_pod::nfs::{MountFlag, NfsOptions, NfsVolume};
use podstead_sys::atomic_file::write_atomic;
use podstead_sys::mounts::{detach, mounts};
use podstead_sys::process;
use rustix::fs::{FlockOperation, flock};
use rustix::mount::MountFlags;
use std::ffi::CString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Bytes of a request, at most.
const MAX_REQUEST: u64 = 1 << 20;

/// Does what the daemon sends to standard input.
pub fn run() -> ExitCode {
    process::close_others();
    let mut text = Vec::new();
    let read = io::stdin().lock().take(MAX_REQUEST).read_to_end(&mut text);
    let request = read.and_then(|_| serde_json::from_slice::<Request>(&text).map_err(io::Error::from));
    let Ok(Request { work, seconds }) = request else { return ExitCode::FAILURE };
    // The kernel ends its waiting with the process: a daemon that is gone cannot.
    if let Some(seconds) = seconds {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(seconds));
            process::exit_at_once(1);
        });
    }
    let outcome = match work {
        Work::Mount { volume, place } => mount(&volume, &place),
        Work::Pin { volume, path, pin, is_made } => hold(&volume, &path, &pin, is_made),
        Work::Detach { points } => {
            let failures = points.iter().filter_map(|point| detach(point).err().map(|error| format!("unmount {point:?}: {error}")));
            failures.map(passing).for_each(|problem| tell(&problem));
            Ok(true)
        }
    };
    match outcome {
        Ok(true) => tell(&Reply::Done),
        // The failures were told.
        Ok(false) => {}
        Err(problem) => tell(&problem),
    }
    ExitCode::SUCCESS
}

/// A daemon that is gone does not miss it.
fn tell(reply: &Reply) {
    if let Ok(mut line) = serde_json::to_vec(reply) {
        line.push(b'\n');
        let _told = io::stdout().lock().write_all(&line).and_then(|()| io::stdout().lock().flush());
    }
}

fn passing(reason: String) -> Reply {
    Reply::Problem { reason, is_lasting: false }
}

/// Mounts the volume, unless it is mounted. False if no attempt succeeded.
fn mount(volume: &NfsVolume, place: &Path) -> Result<bool, Reply> {
    let failed = |step: &'static str| move |error: io::Error| passing(format!("mount {volume}: {step}: {error}"));
    let options = NfsOptions::parse(&volume.options).map_err(|rule| passing(format!("mount {volume}: {rule}")))?;
    let addresses = resolve(&volume.server).map_err(|error| passing(format!("resolve NFS server {:?}: {error}", volume.server)))?;
    // Nothing above it is made: a pod that went meanwhile stays away.
    let place = real(place).map_err(failed("find its directory"))?;
    let mut lock_file = fs::OpenOptions::new();
    let locked =
        lock_file.write(true).create(true).truncate(false).mode(0o600).open(lock(&place)).map_err(failed("open its lock"))?;
    flock(&locked, FlockOperation::LockExclusive).map_err(|error| failed("lock")(error.into()))?;
    let present = mounts().map_err(failed("read mounts"))?;
    let present: Vec<_> = present.iter().filter(|entry| entry.point == place).collect();
    if present.iter().any(|entry| is_nfs(entry)) && is_noted(&place, volume) {
        return Ok(true);
    }
    // Containers keep an earlier one.
    for _ in &present {
        detach(&place).map_err(failed("unmount the earlier one"))?;
    }
    match fs::DirBuilder::new().mode(0o750).create(&place) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed("make its directory")(error)),
        Ok(()) | Err(_) => {}
    }
    // Before the mount: what is mounted is always what was noted last.
    let noted = serde_json::to_vec(volume).map_err(|error| failed("note it")(error.into()))?;
    write_atomic(&note(&place), &noted, 0o600).map_err(failed("note it"))?;
    let mut left = attempts(&options, &addresses);
    while !left.is_empty() {
        let attempt = left.remove(0);
        let Err(errno) = try_one(volume, &options, &attempt, &place) else { return Ok(true) };
        let failure = Failure { address: attempt.address, version: attempt.version, errno: errno.raw_os_error() };
        left = after(&failure, &left);
        tell(&Reply::Failed(failure));
    }
    Ok(false)
}

fn resolve(server: &str) -> io::Result<Vec<SocketAddr>> {
    let bare = server.trim_start_matches('[').trim_end_matches(']');
    Ok((bare, 0).to_socket_addrs()?.collect())
}

fn try_one(volume: &NfsVolume, options: &NfsOptions, attempt: &Attempt, place: &Path) -> Result<(), rustix::io::Errno> {
    // Devices of another host are none of this one.
    let mut flags = MountFlags::NODEV;
    flags.set(MountFlags::RDONLY, volume.read_only);
    for flag in &options.flags {
        flags |= match flag {
            MountFlag::NoAccessTime => MountFlags::NOATIME,
            MountFlag::NoDevices => MountFlags::NODEV,
            MountFlag::NoDirectoryAccessTime => MountFlags::NODIRATIME,
            MountFlag::NoPrograms => MountFlags::NOEXEC,
            MountFlag::NoSetUser => MountFlags::NOSUID,
            MountFlag::ReadOnly => MountFlags::RDONLY,
        };
    }
    let text = CString::new(options.kernel_text(attempt.version, &attempt.address)).map_err(|_| rustix::io::Errno::INVAL)?;
    rustix::mount::mount(volume.to_string(), place, "nfs", flags, text.as_c_str())
}

fn hold(volume: &Path, path: &Path, pin: &Path, is_made: bool) -> Result<bool, Reply> {
    let missing = if is_made { Missing::Made } else { Missing::Refused };
    match sub_path::pin(volume, path, pin, missing) {
        Ok(()) => Ok(true),
        Err(SubPathProblem::Lasting(reason)) => Err(Reply::Problem { reason, is_lasting: true }),
        Err(SubPathProblem::Passing(reason)) => Err(passing(reason)),
    }
}
