//! Processes of a group, and killing them.

use super::control::{children, keyed, read, write};
use super::tree::below;
use super::{CgroupError, CgroupVersion, Cgroups};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time to wait for a frozen state before the processes are killed anyway: one that hangs in the kernel never freezes.
const FREEZE_PATIENCE: Duration = Duration::from_millis(20);

impl Cgroups {
    /// Processes in the group and below. A group that is not there has none.
    pub fn processes(&self, path: &Path) -> Result<Vec<u32>, CgroupError> {
        let mut found = Vec::new();
        collect(&below(self.hierarchies.tracking(), path), &mut found)?;
        Ok(found)
    }

    /// Returns true if a process is in the group or below.
    pub fn is_populated(&self, path: &Path) -> Result<bool, CgroupError> {
        match self.version() {
            CgroupVersion::V2 => Ok(keyed(&self.events(path), "populated")? == Some(1)),
            CgroupVersion::V1 => Ok(!self.processes(path)?.is_empty()),
        }
    }

    /// Waits until nothing is in the group or below; false when `patience` is over before.
    pub fn wait_empty(&self, path: &Path, patience: Duration) -> Result<bool, CgroupError> {
        let deadline = Instant::now() + patience;
        let mut pause = Duration::from_micros(250);
        // v2 tells; v1 has to be asked.
        let events = match self.version() {
            CgroupVersion::V2 => File::open(self.events(path)).ok(),
            CgroupVersion::V1 => None,
        };
        loop {
            if !self.is_populated(path)? {
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            match &events {
                Some(file) => wait_for_change(file, left),
                None => {
                    std::thread::sleep(pause.min(left));
                    pause = (pause * 2).min(Duration::from_millis(10));
                }
            }
        }
    }

    /// Kills every process in the group and below at once, and waits until they are gone. Nothing in it can escape by forking.
    /// A group that is not there is success.
    pub fn kill(&self, path: &Path, patience: Duration) -> Result<(), CgroupError> {
        let deadline = Instant::now() + patience;
        loop {
            if !self.is_populated(path)? {
                return Ok(());
            }
            self.signal_all(path)?;
            let left = deadline.saturating_duration_since(Instant::now());
            // Looked at again from time to time: what forked while it was killed without a freezer is killed the next time.
            if self.wait_empty(path, left.min(Duration::from_millis(50)))? {
                return Ok(());
            }
            if left.is_zero() {
                return Err(CgroupError::NotEmpty { path: path.to_owned(), waited: patience });
            }
        }
    }

    fn signal_all(&self, path: &Path) -> Result<(), CgroupError> {
        let freezer = match self.version() {
            CgroupVersion::V2 => {
                let group = below(self.hierarchies.tracking(), path);
                match write(&group.join("cgroup.kill"), "1") {
                    Ok(()) => return Ok(()),
                    // A kernel before 5.14, or a group that has gone in between.
                    Err(_) => Freezer::V2(group),
                }
            }
            CgroupVersion::V1 => match self.hierarchies.controller("freezer") {
                Some(root) => Freezer::V1(below(root, path)),
                None => Freezer::None,
            },
        };
        freezer.freeze();
        let processes = self.processes(path);
        for pid in processes.iter().flatten() {
            let pid = Pid::from_raw(i32::try_from(*pid).unwrap_or(i32::MAX));
            match kill(pid, Signal::SIGKILL) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => tracing::warn!(%pid, %error, "cannot kill a process of a cgroup"),
            }
        }
        freezer.thaw();
        processes.map(drop)
    }

    fn events(&self, path: &Path) -> PathBuf {
        below(self.hierarchies.tracking(), path).join("cgroup.events")
    }
}

/// Holds processes still, so that none can fork while the list of them is walked. Failure only means that more rounds are needed.
enum Freezer {
    V1(PathBuf),
    V2(PathBuf),
    None,
}

impl Freezer {
    fn freeze(&self) {
        let deadline = Instant::now() + FREEZE_PATIENCE;
        let is_frozen = || match self {
            Self::V1(group) => {
                read(&group.join("freezer.state")).is_ok_and(|state| state.is_none_or(|state| state.trim() == "FROZEN"))
            }
            Self::V2(group) => keyed(&group.join("cgroup.events"), "frozen").is_ok_and(|frozen| frozen != Some(0)),
            Self::None => true,
        };
        self.set("FROZEN", "1");
        while !is_frozen() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    fn thaw(&self) {
        self.set("THAWED", "0");
    }

    fn set(&self, v1: &str, v2: &str) {
        let written = match self {
            Self::V1(group) => write(&group.join("freezer.state"), v1),
            Self::V2(group) => write(&group.join("cgroup.freeze"), v2),
            Self::None => Ok(()),
        };
        if let Err(error) = written {
            tracing::debug!(error = &error as &dyn std::error::Error, "cannot freeze or thaw a cgroup");
        }
    }
}

/// Waits for `cgroup.events` to change, which the kernel tells as an exceptional condition.
fn wait_for_change(events: &File, patience: Duration) {
    let timeout = PollTimeout::try_from(patience.max(Duration::from_millis(1))).unwrap_or(PollTimeout::MAX);
    let mut waiting = [PollFd::new(events.as_fd(), PollFlags::POLLPRI)];
    if let Err(error) = poll(&mut waiting, timeout) {
        // EINTR included: the caller looks at the group and at the clock in any case.
        tracing::trace!(%error, "polling cgroup.events failed");
    }
}

fn collect(group: &Path, found: &mut Vec<u32>) -> Result<(), CgroupError> {
    let listed = read(&group.join("cgroup.procs"))?.unwrap_or_default();
    // 0 is a process of another PID namespace, which cannot be named from here.
    found.extend(listed.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|pid| *pid != 0));
    for child in children(group)? {
        collect(&group.join(child), found)?;
    }
    Ok(())
}
