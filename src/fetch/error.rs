//! Ways in which the job itself fails, whatever the server answers.

use podstead_job::events::{LIMIT, NOT_CONFINED, VIOLATION};
use podstead_job::launch::{End, StartError};
use podstead_job::told::Told;
use podstead_outbound::Failure;
use podstead_telemetry::error_chain;
use std::io;
use std::sync::Arc;

/// Memory of a job.
pub(crate) const MEMORY: u64 = 512 << 20;
/// Processor time of a job, in seconds: a pull over a slow line may take days, and a gigabyte over TLS takes a slow processor a minute.
pub(crate) const CPU_SECS: u64 = 4 * 3600;

/// Reason why a job did not do its task.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum JobError {
    /// It was not started.
    #[error(transparent)]
    Start(Arc<StartError>),
    /// A resource of the job could not be made.
    #[error("prepare the job that asks servers")]
    Prepare(#[source] Arc<io::Error>),
    /// It could not give up its rights, and refused to work.
    #[error("the job that asks servers cannot give up its rights on this host")]
    Confine(#[source] Told),
    /// It made a system call that no job makes.
    #[error(
        "the job that asked the server made a forbidden system call and was killed: the server is hostile, or podstead has an error"
    )]
    Violation,
    /// It used up its memory.
    #[error("the job that asked the server used up its {} MiB of memory", MEMORY >> 20)]
    Memory,
    /// It used up its processor time.
    #[error("the job that asked the server used up its {} hours of processor time", CPU_SECS / 3600)]
    ProcessorTime,
    /// It ended by a signal.
    #[error("the job that asked the server ended by signal {0}")]
    Signal(i32),
    /// It ended without an answer.
    #[error("the job that asked the server ended with code {0} and without an answer")]
    NoAnswer(i32),
    /// It said what no job says.
    #[error("the job that asked the server broke the rules of its messages: {0}")]
    BadAnswer(&'static str),
    /// It takes no requests.
    #[error("the job that asks servers takes no request")]
    Hangs,
    /// It panicked.
    #[error("the job that asked the server panicked, which is an error of podstead")]
    Panic(#[source] Told),
}

impl JobError {
    /// The resource that could not be made.
    pub(crate) fn prepare(error: impl Into<io::Error>) -> Self {
        Self::Prepare(Arc::new(error.into()))
    }

    /// The event that tells of it; `None` where the failure of the request is enough.
    pub(crate) fn event(&self) -> Option<&'static str> {
        match self {
            Self::Violation | Self::BadAnswer(_) => Some(VIOLATION),
            Self::Memory | Self::ProcessorTime => Some(LIMIT),
            Self::Confine(_) => Some(NOT_CONFINED),
            Self::Start(_) | Self::Prepare(_) | Self::Signal(_) => None,
            Self::NoAnswer(_) | Self::Hangs | Self::Panic(_) => None,
        }
    }

    /// Returns true if the job was ended from outside, and another one may not be.
    pub(crate) fn is_crash(&self) -> bool {
        matches!(self, Self::Signal(_) | Self::NoAnswer(_))
    }

    /// The error that an end is.
    pub(crate) fn of_end(end: End) -> Self {
        match end {
            End::Exit(code) => Self::NoAnswer(code),
            End::Violation => Self::Violation,
            End::Memory => Self::Memory,
            End::ProcessorTime => Self::ProcessorTime,
            // It writes no files.
            End::FileSize => Self::Violation,
            End::Signal(signal) => Self::Signal(signal),
        }
    }

    /// The failure of a request.
    pub(crate) fn failure(&self) -> Failure {
        Failure::Process(error_chain(self).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_and_violations_are_events() {
        let told = |end| {
            let error = JobError::of_end(end);
            (error.failure().with_host("r.lan"), error.event())
        };
        let (text, event) = told(End::Violation);
        assert!(text.starts_with("no response from r.lan: the job that asked") && text.contains("forbidden system call"), "{text}");
        assert_eq!(event, Some("JobViolation"));
        assert_eq!(told(End::Memory).1, Some("LimitExceeded"));
        assert!(told(End::Memory).0.ends_with("used up its 512 MiB of memory"));
        assert_eq!(told(End::Signal(9)).1, None);
        assert!(JobError::of_end(End::Signal(9)).is_crash() && !JobError::of_end(End::Violation).is_crash());
    }
}
