//! Reasons why a job did not do what it was asked for.

use super::super::protocol::ObjectId;
use super::error::JobError;
use super::wire::{Failed, FailedKind};
use podstead_job::conversation::Conversation;
use podstead_job::told::Told;
use std::time::Duration;

/// Time for a job that has answered to end.
pub(super) const END: Duration = Duration::from_secs(10);

/// Reason why a job did not do what it was asked for.
#[derive(Debug)]
pub(in crate::git) enum Failure {
    /// It failed itself.
    Job(JobError),
    /// It tells of damage of the objects.
    Damaged(Told),
    /// It tells of a pack that is none.
    Pack(Told),
    /// It tells of a pack beyond a limit.
    TooMuch(Told),
    /// It tells of a pack that was cut off.
    Cut,
    /// It tells of an error of the disk.
    Disk(Told),
    /// An object was made to collide with another one.
    Collision(ObjectId),
}

impl From<JobError> for Failure {
    fn from(error: JobError) -> Self {
        Self::Job(error)
    }
}

impl Failure {
    /// The error for a failure that a job reports.
    pub(super) fn of_failure(Failed { kind, text }: &Failed) -> Self {
        let told = Told::new(text);
        match kind {
            FailedKind::Confine => JobError::Confine(told).into(),
            FailedKind::Panic => JobError::Panic(told).into(),
            FailedKind::Pack => Self::Pack(told),
            FailedKind::TooMuch => Self::TooMuch(told),
            FailedKind::Cut => Self::Cut,
            FailedKind::Disk => Self::Disk(told),
            FailedKind::Damaged => Self::Damaged(told),
        }
    }
}

/// The reason for the end of a job: its own end counts where it gave no answer.
pub(super) fn ended(conversation: Conversation, failure: Failure) -> Failure {
    match (failure, conversation) {
        (Failure::Job(JobError::NoAnswer(_)), conversation) => match conversation.end(END) {
            Ok(end) => JobError::of_end(end).into(),
            Err(error) => JobError::Prepare(error).into(),
        },
        (failure, _) => failure,
    }
}
