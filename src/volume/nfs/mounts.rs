//! Mounts under way: at most one for each volume, and few for each server.

use super::message::{Reply, Work};
use super::plan::explain;
use super::process::{Heard, own_program, run};
use crate::sub_path::{Missing, SubPathProblem};
use podstead_pod::PodUid;
use podstead_pod::nfs::NfsVolume;
use podstead_sys::pidfd;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Time for one mount, with all its attempts. Those of the kernel may take longer.
const DEADLINE: Duration = Duration::from_secs(60);
/// Time that a pod waits for it in one go: it cannot be removed meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time for finding a path below a volume.
const PIN: Duration = Duration::from_secs(20);
/// Mounts under way, at most.
const MAX_JOBS: usize = 32;
/// Those of one server, at most: others have their share when it is silent.
const MAX_OF_SERVER: usize = 4;

type Key = (PodUid, String);
type Outcome = Result<(), String>;

/// Mounts NFS volumes.
#[derive(Debug)]
pub(crate) struct NfsMounts {
    program: PathBuf,
    deadline: Duration,
    jobs: Arc<Mutex<BTreeMap<Key, Job>>>,
}

/// A mount under way, or one that failed.
#[derive(Debug)]
struct Job {
    volume: NfsVolume,
    /// `None` while it is under way.
    outcome: watch::Receiver<Option<Outcome>>,
    process: Arc<Mutex<Process>>,
}

/// The process of a mount.
#[derive(Debug)]
enum Process {
    /// It is being started.
    Starting,
    /// It was started; it may have ended.
    Started(OwnedFd),
    /// It shall not go on, whether it was started or not.
    Unwanted,
}

impl Process {
    /// Enters `Started`, or ends a process that is not wanted any more.
    fn start(&mut self, handle: OwnedFd) {
        match self {
            Self::Starting | Self::Started(_) => *self = Self::Started(handle),
            Self::Unwanted => kill(&handle),
        }
    }

    /// Enters `Unwanted`.
    fn end(&mut self) {
        if let Self::Started(handle) = std::mem::replace(self, Self::Unwanted) {
            kill(&handle);
        }
    }
}

fn kill(process: &OwnedFd) {
    // One that has ended needs no signal.
    let _sent = pidfd::send_signal(process, nix::libc::SIGKILL);
}

impl Job {
    fn is_under_way(&self) -> bool {
        self.outcome.borrow().is_none()
    }

    fn end(&self) {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).end();
    }
}

impl NfsMounts {
    /// Nothing is under way yet.
    pub(crate) fn new() -> Self {
        Self { program: own_program(), deadline: DEADLINE, jobs: Arc::default() }
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<Key, Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Mounts a volume that is not mounted, or not as wanted; the directory above `place` is there. Waits a moment for a server; an error that comes later is that of the next call.
    pub(crate) async fn ensure(&self, uid: &PodUid, name: &str, volume: &NfsVolume, place: &Path) -> Outcome {
        let (mut outcome, earlier) = self.begin((uid.clone(), name.to_owned()), volume, place)?;
        let ended = async { outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone()) };
        match tokio::time::timeout(PATIENCE, ended).await {
            Ok(ended) => ended.unwrap_or_else(|| Err(format!("mount {volume}: interrupted"))),
            Err(_) => Err(earlier.unwrap_or_else(|| format!("mount {volume}: waiting for an answer of {}", volume.server))),
        }
    }

    /// Begins a mount, or finds the one that is under way; with the error of the one before.
    fn begin(
        &self,
        key: Key,
        volume: &NfsVolume,
        place: &Path,
    ) -> Result<(watch::Receiver<Option<Outcome>>, Option<String>), String> {
        let mut jobs = self.jobs();
        let earlier = match jobs.remove(&key) {
            Some(job) if job.volume == *volume && job.is_under_way() => {
                let outcome = job.outcome.clone();
                jobs.insert(key, job);
                return Ok((outcome, None));
            }
            Some(job) => {
                job.end();
                (job.volume == *volume).then(|| job.outcome.borrow().clone()).flatten().and_then(Result::err)
            }
            None => None,
        };
        let under_way = || jobs.values().filter(|job| job.is_under_way());
        if under_way().filter(|job| job.volume.server == volume.server).count() >= MAX_OF_SERVER {
            return Err(format!(
                "mount {volume}: waiting, since {MAX_OF_SERVER} other mounts wait for an answer of {}",
                volume.server
            ));
        }
        if under_way().count() >= MAX_JOBS {
            return Err(format!("mount {volume}: waiting, since {MAX_JOBS} other mounts wait for their servers"));
        }
        let (sender, outcome) = watch::channel(None);
        let process = Arc::new(Mutex::new(Process::Starting));
        let (program, deadline, work) =
            (self.program.clone(), self.deadline, Work::Mount { volume: volume.clone(), place: place.to_owned() });
        let (started, owned) = (Arc::clone(&process), volume.clone());
        // Not one of the executor's threads: nothing that ends waits for it.
        let thread = std::thread::Builder::new().name("nfs-mount".to_owned()).spawn(move || {
            let begun = |handle| started.lock().unwrap_or_else(PoisonError::into_inner).start(handle);
            let ended = match run(&program, work, deadline, begun) {
                Ok(heard) => judge(&owned, heard),
                Err(error) => Err(format!("mount {owned}: start a process: {error}")),
            };
            sender.send_replace(Some(ended));
        });
        thread.map_err(|error| format!("mount {volume}: start a thread: {error}"))?;
        jobs.insert(key, Job { volume: volume.clone(), outcome: outcome.clone(), process });
        Ok((outcome, earlier))
    }

    /// Ends the mounts of a pod that are under way, but for those of the volumes that `is_kept` names.
    pub(crate) fn end(&self, uid: &PodUid, is_kept: impl Fn(&str) -> bool) {
        self.jobs().retain(|(owner, name), job| {
            let stays = owner != uid || is_kept(name);
            if !stays {
                job.end();
            }
            stays
        });
    }

    /// Finds a path below a mounted volume and holds it at `pin`. Waits for the server.
    pub(crate) fn pin(&self, volume: &Path, path: &Path, pin: &Path, missing: Missing) -> Result<(), SubPathProblem> {
        let work =
            Work::Pin { volume: volume.to_owned(), path: path.to_owned(), pin: pin.to_owned(), is_made: missing == Missing::Made };
        let heard = run(&self.program, work, PIN, drop);
        let heard = heard.map_err(|error| SubPathProblem::Passing(format!("open subPath {path:?}: start a process: {error}")))?;
        match heard.replies.into_iter().next_back() {
            Some(Reply::Done) => Ok(()),
            Some(Reply::Problem { reason, is_lasting: true }) => Err(SubPathProblem::Lasting(reason)),
            Some(Reply::Problem { reason, is_lasting: false }) => Err(SubPathProblem::Passing(reason)),
            Some(Reply::Failed(_)) | None => {
                let reason = if heard.is_late { "the NFS server does not answer" } else { "its process ended early" };
                Err(SubPathProblem::Passing(format!("open subPath {path:?}: {reason}")))
            }
        }
    }
}

/// The outcome of a process. **Pure**.
fn judge(volume: &NfsVolume, heard: Heard) -> Outcome {
    let mut failures = Vec::new();
    for reply in heard.replies {
        match reply {
            Reply::Failed(failure) => failures.push(failure),
            Reply::Problem { reason, .. } => return Err(reason),
            Reply::Done => return Ok(()),
        }
    }
    match (failures.is_empty(), heard.is_late) {
        (false, _) => Err(explain(volume, &failures)),
        (true, true) => Err(format!("mount {volume}: {} has not answered within {} s", volume.server, DEADLINE.as_secs())),
        (true, false) => Err(format!("mount {volume}: its process ended early")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Failure;
    use super::*;
    use podstead_pod::nfs::NfsVersion;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn volume(server: &str) -> NfsVolume {
        NfsVolume { server: server.into(), path: "/x".into(), read_only: false, options: String::new() }
    }

    /// Mounts by a script in the place of the program.
    fn mounts(root: &Path, script: &str) -> NfsMounts {
        let program = root.join("program");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        NfsMounts { program, ..NfsMounts::new() }
    }

    fn failure(errno: nix::errno::Errno) -> Reply {
        Reply::Failed(Failure { address: "192.0.2.1".into(), version: NfsVersion::V4(2), errno: errno as i32 })
    }

    #[test]
    fn replies_become_an_outcome() {
        let judged = |replies: Vec<Reply>, is_late| judge(&volume("nas"), Heard { replies, is_late });
        assert_eq!(judged(vec![failure(nix::errno::Errno::EPROTONOSUPPORT), Reply::Done], false), Ok(()));
        let silent = judged(vec![], true).unwrap_err();
        assert_eq!(silent, "mount nas:/x: nas has not answered within 60 s");
        let told = judged(vec![failure(nix::errno::Errno::ENOENT)], true).unwrap_err();
        assert_eq!(told, "mount nas:/x: nas exports no directory /x");
        assert_eq!(judged(vec![], false).unwrap_err(), "mount nas:/x: its process ended early");
    }

    #[tokio::test]
    async fn failure_of_the_process_is_told() {
        let root = tempfile::tempdir().unwrap();
        let line = serde_json::to_string(&failure(nix::errno::Errno::ENODEV)).unwrap();
        let mounts = mounts(root.path(), &format!("read -r _; echo '{line}'"));
        let told = mounts.ensure(&PodUid::new("u"), "v", &volume("nas"), &root.path().join("v")).await.unwrap_err();
        assert!(told.contains("this host's kernel has no NFS client"), "{told}");
    }

    #[tokio::test(start_paused = true)]
    async fn silent_server_holds_few_mounts_and_others_go_on() {
        let root = tempfile::tempdir().unwrap();
        let mounts = mounts(root.path(), "exec sleep 1000");
        let uid = PodUid::new("u");
        let place = root.path().join("v");
        for name in ["a", "a", "b", "c", "d"] {
            let told = mounts.ensure(&uid, name, &volume("nas"), &place).await.unwrap_err();
            assert_eq!(told, "mount nas:/x: waiting for an answer of nas", "{name}");
        }
        assert_eq!(mounts.jobs().len(), MAX_OF_SERVER);
        let told = mounts.ensure(&uid, "e", &volume("nas"), &place).await.unwrap_err();
        assert_eq!(told, "mount nas:/x: waiting, since 4 other mounts wait for an answer of nas");
        let told = mounts.ensure(&uid, "e", &volume("other"), &place).await.unwrap_err();
        assert_eq!(told, "mount other:/x: waiting for an answer of other");
        // The pod goes, and the processes with it.
        let mut outcomes: Vec<_> = mounts.jobs().values().map(|job| job.outcome.clone()).collect();
        mounts.end(&uid, |_| false);
        assert!(mounts.jobs().is_empty());
        tokio::time::resume();
        for outcome in &mut outcomes {
            assert!(outcome.wait_for(Option::is_some).await.unwrap().as_ref().unwrap().is_err());
        }
    }

    #[test]
    fn process_is_ended_at_its_deadline() {
        let root = tempfile::tempdir().unwrap();
        let mounts = mounts(root.path(), "exec sleep 1000");
        let work = Work::Detach { points: Vec::new() };
        let heard = run(&mounts.program, work, Duration::from_millis(50), drop).unwrap();
        assert!(heard.is_late && heard.replies.is_empty());
    }
}
