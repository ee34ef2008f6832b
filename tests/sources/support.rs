//! Other programs.

use crate::follower::DEADLINE;
use podstead::container::cgroup::Cgroups;
use podstead::fetch::Requester;
use podstead::job::launch::{JobSettings, Launcher};
use podstead::telemetry::events::{EventRecorder, EventType, NoEvents, Subject};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Reasons of all events.
#[derive(Debug, Default)]
pub(crate) struct Recorded(pub(crate) Mutex<Vec<String>>);

impl EventRecorder for Recorded {
    fn record(&self, _: &Subject, _: EventType, reason: &str, _: &str) {
        self.0.lock().unwrap().push(reason.to_owned());
    }
}

/// The program that jobs are: this test is another one.
pub(crate) fn program() -> PathBuf {
    assert!(nix::unistd::geteuid().is_root(), "jobs give up rights that only root has: these tests need root");
    match std::env::var_os("PODSTEAD_BIN_DIR") {
        Some(directory) => Path::new(&directory).join("podstead"),
        None => env!("CARGO_BIN_EXE_podstead").into(),
    }
}

/// Settings whose program runs the jobs of `task` without a capability, as in a container that does not have it.
pub(crate) fn without(directory: &Path, task: &str, capability: &str) -> JobSettings {
    use std::os::unix::fs::PermissionsExt as _;
    let run = format!("exec -a podstead-job {} \"$@\"", program().display());
    let script = format!(
        "#!/bin/bash\n[ \"$1\" = {task} ] && exec setpriv --bounding-set=-{capability} bash -c '{run}' job \"$@\"\n{run}\n"
    );
    let program = directory.join(format!("{task}-without-{capability}"));
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    JobSettings { program, ..JobSettings::default() }
}

/// Requests of jobs. A process whose steps are counted until it is killed asks by itself: steps of a job are not on the disk.
pub(crate) fn requester() -> Requester {
    if std::env::var_os("VICTIM_STATE").is_some() {
        return Requester::here();
    }
    let settings = JobSettings { program: program(), ..JobSettings::default() };
    Requester::jobs(Arc::new(Launcher::new(settings)), Arc::new(NoEvents))
}

/// Runs a command that has to succeed; returns what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{error}", output.status);
    out.into_owned()
}

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + DEADLINE;
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A top cgroup of this test's own, which tells its jobs from those of other tests.
#[derive(Debug)]
pub(crate) struct Slice(String);

impl Slice {
    pub(crate) fn new(name: &str) -> Self {
        Self(format!("podstead-{name}-{}.slice", std::process::id()))
    }

    pub(crate) fn name(&self) -> String {
        self.0.clone()
    }

    /// The groups of its jobs.
    pub(crate) fn groups(&self) -> Vec<PathBuf> {
        let mounted = Path::new("/sys/fs/cgroup").read_dir().unwrap().map(|entry| entry.unwrap().path());
        let jobs = mounted.chain(["/sys/fs/cgroup".into()]).map(|root| root.join(&self.0).join("jobs"));
        let entries = jobs.flat_map(|jobs| jobs.read_dir().into_iter().flatten().flatten());
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }

    /// Jobs at work, in the order of the hierarchies that list them: one may be there more than once.
    fn jobs(&self) -> Vec<i32> {
        let listed = self.groups().into_iter().filter_map(|group| std::fs::read_to_string(group.join("cgroup.procs")).ok());
        listed.flat_map(|text| text.lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
    }

    /// Kills all jobs that are at work.
    pub(crate) fn kill(&self) -> usize {
        let kill = |pid: &&i32| nix::sys::signal::kill(nix::unistd::Pid::from_raw(**pid), nix::sys::signal::SIGKILL).is_ok();
        self.jobs().iter().filter(kill).count()
    }

    /// Waits until a job is at work that has no other mount than its root directory: it has given up its rights then.
    pub(crate) async fn wait_for_one_mount(&self) {
        let mounts = |pid| std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
        let is_root_alone = |text: String| text.lines().count() == 1 && text.split(' ').nth(4) == Some("/");
        eventually("a job with one mount", || self.jobs().into_iter().map(mounts).any(is_root_alone)).await;
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        let path = Path::new("/").join(&self.0);
        Cgroups::detect(&self.0).and_then(|groups| groups.remove(&path, Duration::from_secs(10))).ok();
    }
}
