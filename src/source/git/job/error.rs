//! Ways in which the job itself fails, whatever the repository is.

use super::super::protocol::ObjectId;
use podstead_job::events::{LIMIT, NOT_CONFINED, VIOLATION};
use podstead_job::launch::{End, StartError};
use podstead_job::told::Told;
use std::io;
use std::time::Duration;

/// Memory of a job.
pub(super) const MEMORY: u64 = 1 << 30;
/// Processor time of a job, in seconds.
pub(super) const CPU_SECS: u64 = 600;

/// Reason why a job did not do its task.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// It was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A resource of the job could not be made.
    #[error("prepare the job that reads git objects")]
    Prepare(#[source] io::Error),
    /// It could not give up its rights, and refused to work.
    #[error("the job that reads git objects cannot give up its rights on this host")]
    Confine(#[source] Told),
    /// It made a system call that no job makes.
    #[error(
        "the job that read git objects made a forbidden system call and was killed: the repository is hostile, or podstead has an error"
    )]
    Violation,
    /// It used up its memory.
    #[error("the job that read git objects used up its {} MiB of memory", MEMORY >> 20)]
    Memory,
    /// It used up its processor time.
    #[error("the job that read git objects used up its {CPU_SECS} seconds of processor time")]
    ProcessorTime,
    /// It wrote a longer file than any pack is.
    #[error("the job that read git objects wrote a longer file than any pack may be")]
    FileSize,
    /// It neither read nor told of anything.
    #[error("the job that read git objects did nothing for {} seconds and was killed", .0.as_secs())]
    Hangs(Duration),
    /// It ended by a signal.
    #[error("the job that read git objects ended by signal {0}")]
    Signal(i32),
    /// It ended without an answer.
    #[error("the job that read git objects ended with code {0} and without an answer")]
    NoAnswer(i32),
    /// It said what no job says.
    #[error("the job that read git objects broke the rules of its messages: {0}")]
    BadAnswer(String),
    /// Its object has another name.
    #[error("the job answered with another object than {0}")]
    AnotherObject(ObjectId),
    /// It panicked.
    #[error("the job that read git objects panicked, which is an error of podstead")]
    Panic(#[source] Told),
}

impl JobError {
    /// The event that tells of it; `None` where the failure of the source is enough.
    pub(super) fn event(&self) -> Option<&'static str> {
        match self {
            Self::Violation | Self::BadAnswer(_) | Self::AnotherObject(_) => Some(VIOLATION),
            Self::Memory | Self::ProcessorTime | Self::FileSize | Self::Hangs(_) => Some(LIMIT),
            Self::Confine(_) => Some(NOT_CONFINED),
            Self::Start(_) | Self::Prepare(_) | Self::Signal(_) | Self::NoAnswer(_) | Self::Panic(_) => None,
        }
    }

    /// Returns true if a file could not be read from its disk while libgit2 had it in memory.
    pub(in crate::git) fn is_of_the_disk(&self) -> bool {
        matches!(self, Self::Signal(signal) if *signal == rustix::process::Signal::BUS.as_raw())
    }

    /// The error that an end is.
    pub(super) fn of_end(end: End) -> Self {
        match end {
            End::Exit(code) => Self::NoAnswer(code),
            End::Violation => Self::Violation,
            End::Memory => Self::Memory,
            End::ProcessorTime => Self::ProcessorTime,
            End::FileSize => Self::FileSize,
            End::Signal(signal) => Self::Signal(signal),
        }
    }
}
