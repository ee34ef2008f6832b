//! Ways in which the job itself fails, whatever the layer is.

use super::super::limits::shown_bytes;
use podstead_job::events::{LIMIT, NOT_CONFINED, VIOLATION};
use podstead_job::launch::{End, StartError};
use podstead_job::told::Told;
use std::io;
use std::time::Duration;

/// Reason why a job did not do its task.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// It was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A resource of the job could not be made.
    #[error("prepare the job that unpacks")]
    Prepare(#[source] io::Error),
    /// It could not give up its rights, and refused to work.
    #[error("the job that unpacks cannot give up its rights on this host")]
    Confine(#[source] Told),
    /// It made a system call that no job makes.
    #[error("the job that unpacked made a forbidden system call and was killed: the layer is hostile, or podstead has an error")]
    Violation,
    /// It used up its memory.
    #[error("the job that unpacked used up its {} of memory", shown_bytes(*.0))]
    Memory(u64),
    /// It used up its processor time.
    #[error("the job that unpacked used up its {0} seconds of processor time")]
    ProcessorTime(u64),
    /// It wrote a longer file than any image may have.
    #[error("the job that unpacked wrote a file of more than {}", shown_bytes(*.0))]
    FileSize(u64),
    /// It neither read nor told of anything.
    #[error("the job that unpacked did nothing for {} seconds and was killed", .0.as_secs())]
    Hangs(Duration),
    /// It ended by a signal.
    #[error("the job that unpacked ended by signal {0}")]
    Signal(i32),
    /// It ended without an answer.
    #[error("the job that unpacked ended with code {0} and without an answer")]
    NoAnswer(i32),
    /// It said what no job says.
    #[error("the job that unpacked broke the rules of its messages: {0}")]
    BadAnswer(String),
    /// It panicked.
    #[error("the job that unpacked panicked, which is an error of podstead")]
    Panic(#[source] Told),
}

impl JobError {
    /// Returns true if it did what no job does.
    pub fn is_violation(&self) -> bool {
        matches!(self, Self::Violation | Self::BadAnswer(_))
    }

    /// Returns true if it used up what a job may use.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Memory(_) | Self::ProcessorTime(_) | Self::FileSize(_) | Self::Hangs(_))
    }

    /// Returns true if another attempt with the same content would end in the same way.
    pub fn is_refusal(&self) -> bool {
        self.is_violation() || self.is_limit()
    }

    /// The event that tells of it; `None` where the failure of the pull, import or source is enough.
    pub fn event(&self) -> Option<&'static str> {
        match self {
            error if error.is_violation() => Some(VIOLATION),
            error if error.is_limit() => Some(LIMIT),
            Self::Confine(_) => Some(NOT_CONFINED),
            _ => None,
        }
    }

    /// Returns true if the job ended for a reason that the content may have no part in: killed by somebody, or an error of its own.
    pub fn is_crash(&self) -> bool {
        matches!(self, Self::Signal(_) | Self::NoAnswer(_) | Self::Panic(_))
    }
}

/// Limits of the process, for messages.
#[derive(Clone, Copy, Debug)]
pub struct ProcessLimits {
    /// Bytes of memory.
    pub memory: u64,
    /// Seconds of processor time.
    pub cpu_secs: u64,
    /// Length of a file, in bytes.
    pub file_bytes: u64,
}

/// The error that an end is; `None` for one in order.
pub fn of_end(end: End, limits: &ProcessLimits) -> Option<JobError> {
    match end {
        End::Exit(0) => None,
        End::Exit(code) => Some(JobError::NoAnswer(code)),
        End::Violation => Some(JobError::Violation),
        End::Memory => Some(JobError::Memory(limits.memory)),
        End::ProcessorTime => Some(JobError::ProcessorTime(limits.cpu_secs)),
        End::FileSize => Some(JobError::FileSize(limits.file_bytes)),
        End::Signal(signal) => Some(JobError::Signal(signal)),
    }
}
