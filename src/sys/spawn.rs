//! Starts a program that is in its cgroups from its first moment on, which waits for nobody: a move of a running process waits for all processors
//! ([`crate::cgroup_moves`]).
#![expect(unsafe_code, reason = "between fork and execve only raw system calls are allowed")]

use crate::process::{self, Fork, fork_with_threads};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::unistd::pipe2;
use std::ffi::{CStr, CString, c_char};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A program to be started, with an empty environment.
#[derive(Debug)]
pub struct Program<'a> {
    /// Path of the program.
    pub path: &'a Path,
    /// Arguments; the first one is the name that it sees.
    pub arguments: &'a [&'a str],
    /// Its standard input, output and error output.
    pub streams: [BorrowedFd<'a>; 3],
    /// Files `tasks` of groups of v1, open for writing.
    pub groups_v1: &'a [File],
    /// Directory of a group of v2.
    pub group_v2: Option<BorrowedFd<'a>>,
}

/// Reason why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no process: the kernel has no such fork, the group is not there, or there are too many processes.
    #[error("fork into a cgroup")]
    Fork(#[source] io::Error),
    /// The process could not go into a group of v1.
    #[error("join a cgroup")]
    Join(#[source] io::Error),
    /// The program could not be executed.
    #[error("execute the program")]
    Execute(#[source] io::Error),
}

/// Starts a program; returns the process id of the child, which the caller has to wait for. Any thread may call it.
pub fn spawn(program: &Program<'_>) -> Result<u32, SpawnError> {
    let failed = |errno: Errno| SpawnError::Fork(errno.into());
    let path = CString::new(program.path.as_os_str().as_bytes()).map_err(|error| SpawnError::Execute(error.into()))?;
    let arguments = program.arguments.iter().map(|argument| CString::new(*argument));
    let arguments: Vec<CString> = arguments.collect::<Result<_, _>>().map_err(|error| SpawnError::Execute(error.into()))?;
    let pointers: Vec<*const c_char> = arguments.iter().map(|argument| argument.as_ptr()).chain([std::ptr::null()]).collect();
    let (told, tell) = pipe2(OFlag::O_CLOEXEC).map_err(failed)?;
    // A copy has a number above the places that the streams are put in, so that none is overwritten before it is used.
    let copy = |stream: &BorrowedFd<'_>| stream.try_clone_to_owned().map_err(SpawnError::Fork);
    let streams: Vec<OwnedFd> = program.streams.iter().map(copy).collect::<Result<_, _>>()?;
    let child =
        Prepared { path: &path, arguments: &pointers, streams: &streams, groups_v1: program.groups_v1, tell: tell.as_raw_fd() };
    let forked = without_signals(|| match fork_with_threads(program.group_v2) {
        Ok(Fork::Child) => child.run(),
        Ok(Fork::Parent(id)) => Ok(id),
        Err(errno) => Err(errno),
    });
    let id = forked.map_err(failed)?;
    drop(tell);
    let mut report = [0; REPORT];
    match File::from(told).read_exact(&mut report) {
        // The pipe ends where the program begins.
        Err(_) => Ok(id),
        Ok(()) => {
            wait(id);
            Err(failure(report))
        }
    }
}

/// All that the new process needs, so that it allocates nothing.
struct Prepared<'a> {
    path: &'a CStr,
    /// With a null at its end.
    arguments: &'a [*const c_char],
    /// Above the first three.
    streams: &'a [OwnedFd],
    groups_v1: &'a [File],
    tell: RawFd,
}

/// Bytes of a report: its step, and the number of the error.
const REPORT: usize = 5;
const JOIN: u8 = 1;
const EXECUTE: u8 = 2;

impl Prepared<'_> {
    /// Becomes the program. Other threads of the parent may have held any lock: system calls alone are made here.
    fn run(&self) -> ! {
        for group in self.groups_v1 {
            // SAFETY: the descriptor is open and the buffer has one byte.
            if unsafe { libc::write(group.as_raw_fd(), b"0".as_ptr().cast(), 1) } != 1 {
                self.give_up(JOIN);
            }
        }
        for (stream, place) in self.streams.iter().zip(0..) {
            // SAFETY: numbers alone. The source is not one of the places.
            if unsafe { libc::dup2(stream.as_raw_fd(), place) } < 0 {
                self.give_up(EXECUTE);
            }
        }
        process::reset_signals();
        let environment = [std::ptr::null::<c_char>()];
        // SAFETY: the strings end with zero and the lists with null; they live in the memory of this process.
        unsafe { libc::execve(self.path.as_ptr(), self.arguments.as_ptr(), environment.as_ptr()) };
        self.give_up(EXECUTE)
    }

    fn give_up(&self, step: u8) -> ! {
        let [a, b, c, d] = Errno::last_raw().to_ne_bytes();
        let report = [step, a, b, c, d];
        // SAFETY: the descriptor is open, and the buffer has as many bytes. A parent that is gone does not miss it.
        let _told = unsafe { libc::write(self.tell, report.as_ptr().cast(), REPORT) };
        process::exit_at_once(127)
    }
}

fn failure([step, a, b, c, d]: [u8; REPORT]) -> SpawnError {
    let error = io::Error::from_raw_os_error(i32::from_ne_bytes([a, b, c, d]));
    if step == JOIN { SpawnError::Join(error) } else { SpawnError::Execute(error) }
}

/// Does `work` while no signal is handled in this thread: a handler of the parent must not run in the child.
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    let mut before = SigSet::empty();
    let blocked = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before));
    let done = work();
    if blocked.is_ok() {
        let _as_before = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
    }
    done
}

/// Waits for a child that has ended or is about to.
fn wait(id: u32) {
    let _ended = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(id.cast_signed()), None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::Pid;
    use std::os::fd::AsFd;

    /// The status and the output of a program.
    fn run(path: &str, arguments: &[&str]) -> Result<(WaitStatus, String), SpawnError> {
        let nothing = File::open("/dev/null").unwrap();
        let (mut output, its_output) = io::pipe().unwrap();
        let streams = [nothing.as_fd(), its_output.as_fd(), nothing.as_fd()];
        let id = spawn(&Program { path: Path::new(path), arguments, streams, groups_v1: &[], group_v2: None })?;
        drop(its_output);
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        Ok((waitpid(Pid::from_raw(id.cast_signed()), None).unwrap(), text))
    }

    #[test]
    fn program_runs_with_its_streams_and_nothing_else() {
        let script = "echo $0 $1; env | grep -v -e ^PWD= -e ^SHLVL= -e ^_=; ls /proc/self/fd | wc -l; exit 7";
        let (status, text) = run("/bin/sh", &["name", "-c", script, "zero", "one"]).unwrap();
        assert!(matches!(status, WaitStatus::Exited(_, 7)), "{status:?}");
        // Whoever started this test may have left descriptors open.
        let usual = std::process::Command::new("/bin/sh").args(["-c", script, "zero", "one"]).env_clear().output().unwrap();
        assert!(text.starts_with("zero one\n") && text.as_bytes() == usual.stdout, "{text} {usual:?}");
    }

    #[test]
    fn signals_have_their_default_effect() {
        process::ignore_signal(nix::sys::signal::Signal::SIGPIPE);
        let (_, text) = run("/bin/sh", &["sh", "-c", "grep -e SigBlk -e SigIgn /proc/self/status"]).unwrap();
        assert!(text.lines().all(|line| line.ends_with("0000000000000000")), "{text}");
    }

    #[test]
    fn program_that_is_missing_is_told() {
        let error = run("/nowhere/program", &["program"]).unwrap_err();
        assert!(matches!(&error, SpawnError::Execute(error) if error.kind() == io::ErrorKind::NotFound), "{error:?}");
    }

    #[test]
    fn group_that_takes_nobody_is_told() {
        let nothing = File::open("/dev/null").unwrap();
        let streams = [nothing.as_fd(); 3];
        // Not open for writing.
        let groups = [File::open("/dev/null").unwrap()];
        let program = Program { path: Path::new("/bin/true"), arguments: &["true"], streams, groups_v1: &groups, group_v2: None };
        assert!(matches!(spawn(&program), Err(SpawnError::Join(_))));
        let directory = tempfile::tempdir().unwrap();
        let no_group = File::open(directory.path()).unwrap();
        let program = Program { groups_v1: &[], group_v2: Some(no_group.as_fd()), ..program };
        assert!(matches!(spawn(&program), Err(SpawnError::Fork(_))));
    }

    #[test]
    fn many_threads_start_programs_at_once() {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for number in 0..20 {
                        let text = number.to_string();
                        assert_eq!(run("/bin/echo", &["echo", &text]).unwrap().1, format!("{text}\n"));
                    }
                });
            }
        });
    }
}
