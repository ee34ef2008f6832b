//! The daemon's side: starts jobs, limits them, and sees to their end.

use crate::PROGRAM_NAME;
use crate::frame::{self, Decoder, FrameError};
use crate::mounts;
use crate::user::{self, JobUser};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use podstead_container::cgroup::{CgroupError, Cgroups, JobLimits};
use podstead_sys::spawn::{self, Program, SpawnError};
use podstead_sys::{descriptor_passing, pidfd, self_exec};
use rustix::process::WaitOptions;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time for which the kernel may say that a group is busy whose last process has ended.
const GROUP_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes read from a job at once.
const READ: usize = 64 << 10;

/// The error of starting a job.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The process.
    #[error("start a job with {program:?}")]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// Its group.
    #[error("limit a job")]
    Group(#[source] CgroupError),
    /// Its socket.
    #[error("send a job its request")]
    Send(#[source] io::Error),
    /// The request is longer than any may be.
    #[error("write a job's request")]
    Request(#[source] FrameError),
}

/// Settings for the start of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSettings {
    /// The program that is executed: this one, but for tests, which are none.
    pub program: PathBuf,
    /// Name of the top cgroup; `None`: jobs get no group of their own.
    pub slice: Option<String>,
    /// The list of users.
    pub passwd: PathBuf,
    /// Time for which a job may neither read nor tell of anything.
    pub patience: Duration,
}

impl Default for JobSettings {
    fn default() -> Self {
        Self {
            program: self_exec::OWN_BINARY.into(),
            slice: None,
            passwd: user::PASSWD.into(),
            // A slow disk may hold a write up for minutes.
            patience: Duration::from_secs(300),
        }
    }
}

/// Starts jobs.
#[derive(Debug)]
pub struct Launcher {
    settings: JobSettings,
    /// Found when it is needed first; `None` where jobs have no group.
    groups: OnceLock<Option<Cgroups>>,
    /// Made when it is needed first; `None` where it cannot be made.
    mounts: OnceLock<Option<OwnedFd>>,
    next: AtomicU64,
}

impl Launcher {
    /// A launcher. What jobs of an earlier daemon left of their groups is removed before the first job starts.
    pub fn new(settings: JobSettings) -> Self {
        Self { settings, groups: OnceLock::new(), mounts: OnceLock::new(), next: AtomicU64::new(0) }
    }

    /// The user of jobs, as it is now.
    pub fn user(&self) -> JobUser {
        user::find(&self.settings.passwd)
    }

    /// The user of programs of the host, as it is now.
    pub fn user_of_programs(&self) -> JobUser {
        user::find_listed(&self.settings.passwd)
    }

    /// Home directory of root.
    pub fn home_of_root(&self) -> Option<PathBuf> {
        user::home_of_root(&self.settings.passwd)
    }

    /// Time for which a job may neither read nor tell of anything.
    pub fn patience(&self) -> Duration {
        self.settings.patience
    }

    /// Removes the groups of jobs that an earlier daemon left. To be called when no job of that daemon can be at work any more.
    pub fn sweep(&self) {
        let _found = self.groups();
    }

    fn groups(&self) -> Option<&Cgroups> {
        let find = || {
            let groups = Cgroups::detect(self.settings.slice.as_deref()?);
            match groups.and_then(|groups| groups.sweep_jobs(GROUP_PATIENCE).map(|()| groups)) {
                Ok(groups) => Some(groups),
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "jobs have no cgroup of their own: limits of the process hold"
                    );
                    None
                }
            }
        };
        self.groups.get_or_init(find).as_ref()
    }

    /// The mount namespace without anything in it that jobs enter.
    fn mounts(&self) -> Option<&OwnedFd> {
        let make = || {
            let request = frame::encode(&(), frame::TO_JOB).map_err(io::Error::other)?;
            let job = self.spawn(mounts::TASK, None, None).map_err(io::Error::other)?;
            descriptor_passing::send_all(&job.socket, &request, &[])?;
            mounts::take(&job)
        };
        let made = || {
            let made: io::Result<OwnedFd> = make();
            made.inspect_err(|error| {
                tracing::warn!(%error, "cannot make an empty mount namespace: each job takes a copy of the mounts of the host");
            })
            .ok()
        };
        self.mounts.get_or_init(made).as_ref()
    }

    /// Starts a job and sends it its request. It is in its group before it is told anything.
    ///
    /// A job that ends before it takes its request is no error here: [`Job::messages`] has none, and [`Job::end`] tells the reason.
    pub fn start(
        &self,
        task: &str,
        limits: &JobLimits,
        request: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Job, StartError> {
        let request = frame::encode(request, frame::TO_JOB).map_err(StartError::Request)?;
        let group = self.groups().map(|groups| self.make_group(groups, limits)).transpose()?;
        let job = self.spawn(task, self.mounts(), group)?;
        match descriptor_passing::send_all(&job.socket, &request, descriptors) {
            // The job has ended already, for which its end gives the reason.
            Ok(()) | Err(Errno::EPIPE | Errno::ECONNRESET) => Ok(job),
            Err(errno) => Err(StartError::Send(errno.into())),
        }
    }

    fn make_group(&self, groups: &Cgroups, limits: &JobLimits) -> Result<Group, StartError> {
        // A number that is taken is of a job whose group could not be removed.
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let path = groups.create_job(&name, limits).map_err(StartError::Group)?;
        Ok(Group { groups: groups.clone(), path })
    }

    /// Starts a job in its group, with the mount namespace that it enters.
    fn spawn(&self, task: &str, mounts: Option<&OwnedFd>, group: Option<Group>) -> Result<Job, StartError> {
        let failed = |source| StartError::Spawn { program: self.settings.program.clone(), source };
        let (near, far) = UnixStream::pair().map_err(failed)?;
        let far = OwnedFd::from(far);
        let nothing = File::options().read(true).write(true).open("/dev/null").map_err(failed)?;
        let mounts = mounts.map_or(nothing.as_fd(), AsFd::as_fd);
        // What a job says comes by its socket: the daemon's log is not for others to write.
        let streams = [far.as_fd(), mounts, nothing.as_fd()];
        let started = match &group {
            Some(group) => self.spawn_in(group, task, streams)?,
            None => None,
        };
        let (id, moved) = match started {
            Some(id) => (id, None),
            None => (self.spawn_outside(task, streams).map_err(failed)?, group.as_ref()),
        };
        // Not waited for, its number cannot be another one's.
        let process = pidfd::open(id).map_err(|errno| {
            let _ended = nix::sys::signal::kill(Pid::from_raw(id.cast_signed()), Signal::SIGKILL);
            let _status = wait_for(id);
            failed(errno.into())
        })?;
        let moved = moved.map(|group| group.groups.attach_job(&group.path, id));
        let job = Job { id, process, socket: near, group, status: None };
        moved.transpose().map_err(StartError::Group)?;
        Ok(job)
    }

    /// Starts a job that is in its group from its first moment on; returns its id. `None` where the kernel cannot do that.
    fn spawn_in(&self, group: &Group, task: &str, streams: [BorrowedFd<'_>; 3]) -> Result<Option<u32>, StartError> {
        let entrances = group.groups.job_entrances(&group.path).map_err(StartError::Group)?;
        let program = Program {
            path: &self.settings.program,
            arguments: &[PROGRAM_NAME, task],
            streams,
            groups_v1: &entrances.v1,
            group_v2: entrances.v2.as_ref().map(AsFd::as_fd),
        };
        match spawn::spawn(&program) {
            Ok(id) => Ok(Some(id)),
            Err(SpawnError::Execute(source)) => Err(StartError::Spawn { program: self.settings.program.clone(), source }),
            Err(error @ (SpawnError::Fork(_) | SpawnError::Join(_))) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "a job is moved into its group after its start");
                Ok(None)
            }
        }
    }

    /// Starts a job in the groups of this process; returns its id.
    fn spawn_outside(&self, task: &str, streams: [BorrowedFd<'_>; 3]) -> io::Result<u32> {
        let [input, output, errors] = streams.map(|stream| stream.try_clone_to_owned().map(Stdio::from));
        let mut command = Command::new(&self.settings.program);
        command.arg0(PROGRAM_NAME).arg(task).env_clear().stdin(input?).stdout(output?).stderr(errors?);
        Ok(command.spawn()?.id())
    }
}

/// Waits for the end of a child of this process.
fn wait_for(id: u32) -> io::Result<ExitStatus> {
    let pid = rustix::process::Pid::from_raw(id.cast_signed()).ok_or(io::ErrorKind::InvalidInput)?;
    loop {
        match rustix::process::waitpid(Some(pid), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(ExitStatus::from_raw(status.as_raw())),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// A group of one job, which goes when it is dropped.
#[derive(Debug)]
struct Group {
    groups: Cgroups,
    path: PathBuf,
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = self.groups.remove(&self.path, GROUP_PATIENCE) {
            // The next start of the daemon sweeps it.
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot remove the cgroup of a job");
        }
    }
}

/// A job at work. Dropping it kills it, and waits for its end.
#[derive(Debug)]
pub struct Job {
    /// A child of this process, which nobody has waited for as long as `status` has nothing.
    id: u32,
    process: OwnedFd,
    socket: UnixStream,
    group: Option<Group>,
    status: Option<ExitStatus>,
}

/// The way in which a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exit(i32),
    /// It made a system call that no job makes.
    Violation,
    /// It used up its memory.
    Memory,
    /// It used up its processor time.
    ProcessorTime,
    /// It wrote a longer file than it may.
    FileSize,
    /// By another signal, among them SIGKILL of the daemon.
    Signal(i32),
}

impl Job {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Its messages.
    pub fn messages(&self) -> Messages<'_> {
        Messages { socket: &self.socket, decoder: Decoder::new(frame::FROM_JOB), buffer: vec![0; READ] }
    }

    /// Sends it a further message with descriptors, at most four. It is an error if it takes nothing within `timeout`.
    pub fn send_with(&self, message: &impl Serialize, descriptors: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<()> {
        let bytes = frame::encode(message, frame::TO_JOB).map_err(io::Error::other)?;
        self.socket.set_write_timeout(Some(timeout))?;
        Ok(descriptor_passing::send_all(&self.socket, &bytes, descriptors)?)
    }

    /// Its socket, for questions after the first one.
    pub(crate) fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Kills it; for any thread, at any time.
    pub fn kill(&self) {
        match pidfd::send_signal(&self.process, libc::SIGKILL) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => tracing::warn!(%error, pid = self.id, "cannot kill a job"),
        }
    }

    /// Kills it if it still runs, waits for its end, removes its group; tells how it ended.
    pub fn end(mut self) -> io::Result<End> {
        self.finish()
    }

    /// Waits for its end, at most so long; returns true when it has ended.
    pub fn wait(&self, timeout: Duration) -> bool {
        pidfd::wait_for_end(&self.process, timeout).unwrap_or(true)
    }

    fn finish(&mut self) -> io::Result<End> {
        self.kill();
        let status = match self.status {
            Some(status) => status,
            None => *self.status.insert(wait_for(self.id)?),
        };
        let group = self.group.take();
        let killed = group.as_ref().is_some_and(|group| group.groups.job_was_out_of_memory(&group.path));
        drop(group);
        Ok(end_of(status, killed))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.status.is_none()
            && let Err(error) = self.finish()
        {
            tracing::warn!(%error, "cannot wait for the end of a job");
        }
    }
}

fn end_of(status: ExitStatus, out_of_memory: bool) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exit(code),
        (None, Some(libc::SIGSYS)) => End::Violation,
        (None, Some(libc::SIGKILL)) if out_of_memory => End::Memory,
        // An allocation that fails ends in abort(3); a panic is told before.
        (None, Some(libc::SIGABRT)) => End::Memory,
        (None, Some(libc::SIGXCPU)) => End::ProcessorTime,
        (None, Some(libc::SIGXFSZ)) => End::FileSize,
        (None, signal) => End::Signal(signal.unwrap_or_default()),
    }
}

/// Reason why there is no next message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// Nothing came within the time.
    #[error("no message within the time")]
    Late,
    /// It is none.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The stream ends in a message.
    #[error("a message is cut off")]
    Cut,
    /// The socket.
    #[error("read from a job")]
    Read(#[source] io::Error),
}

/// Messages of a job, which nobody vouches for.
#[derive(Debug)]
pub struct Messages<'a> {
    socket: &'a UnixStream,
    decoder: Decoder,
    buffer: Vec<u8>,
}

impl Messages<'_> {
    /// The next message within `timeout`; `None` when the job has closed its socket, as it does when it ends.
    pub fn next_within<T: DeserializeOwned>(&mut self, timeout: Duration) -> Result<Option<T>, MessageError> {
        next_message(self.socket, &mut self.decoder, &mut self.buffer, timeout)
    }
}

/// The next message from `socket` within `timeout`; `None` when it was closed.
pub(crate) fn next_message<T: DeserializeOwned>(
    socket: &UnixStream,
    decoder: &mut Decoder,
    buffer: &mut [u8],
    timeout: Duration,
) -> Result<Option<T>, MessageError> {
    loop {
        if let Some(message) = decoder.next_message()? {
            return Ok(Some(message));
        }
        socket.set_read_timeout(Some(timeout)).map_err(MessageError::Read)?;
        match (&mut &*socket).read(buffer) {
            Ok(0) if decoder.has_rest() => return Err(MessageError::Cut),
            Ok(0) => return Ok(None),
            Ok(count) => decoder.push(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(MessageError::Late),
            // A job that was killed with its request unread.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(MessageError::Read(error)),
        }
    }
}

/// Returns true if jobs can be started with this program: it is there.
pub fn is_startable(program: &Path) -> bool {
    program.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_is_told_by_status_and_group() {
        let signal = ExitStatus::from_raw;
        assert_eq!(end_of(signal(libc::SIGSYS), false), End::Violation);
        assert_eq!(end_of(signal(libc::SIGKILL), true), End::Memory);
        assert_eq!(end_of(signal(libc::SIGKILL), false), End::Signal(libc::SIGKILL));
        assert_eq!(end_of(signal(libc::SIGXCPU), false), End::ProcessorTime);
        assert_eq!(end_of(ExitStatus::from_raw(3 << 8), true), End::Exit(3));
    }

    #[test]
    fn end_without_a_request_is_told() {
        let launcher = Launcher::new(JobSettings { program: "/bin/false".into(), ..JobSettings::default() });
        let limits = JobLimits { memory: 1 << 20, tasks: 4 };
        // Before or after the end of the program.
        for _ in 0..20 {
            let job = launcher.start("unpack", &limits, &"request", &[]).unwrap();
            assert!(job.messages().next_within::<String>(Duration::from_secs(60)).unwrap().is_none());
            assert!(job.wait(Duration::from_secs(60)));
            assert_eq!(job.end().unwrap(), End::Exit(1));
        }
    }

    #[test]
    fn program_that_is_missing_is_named() {
        let launcher = Launcher::new(JobSettings { program: "/nowhere/podstead".into(), ..JobSettings::default() });
        let limits = JobLimits { memory: 1 << 20, tasks: 4 };
        let error = launcher.start("unpack", &limits, &"request", &[]).unwrap_err();
        assert!(matches!(&error, StartError::Spawn { program, .. } if program == Path::new("/nowhere/podstead")), "{error:?}");
    }
}
