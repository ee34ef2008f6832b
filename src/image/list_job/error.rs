//! Reasons why an archive cannot be listed.

use super::super::tar::TarError;
use super::super::unpack_job::JobError;
use podstead_telemetry::error_chain;
use std::io;

/// Reason why an archive cannot be listed to its end.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The file cannot be read, or not be decompressed.
    #[error("read archive")]
    Read(#[source] io::Error),
    /// It is no archive, or a damaged one; the reason as the job tells it.
    #[error("{0}")]
    Archive(String),
    /// The job failed.
    #[error(transparent)]
    Job(#[from] JobError),
}

impl ListError {
    /// Reports whether the content is to blame, and another attempt would end in the same way.
    pub fn is_of_the_content(&self) -> bool {
        match self {
            Self::Read(_) => false,
            Self::Archive(_) => true,
            Self::Job(error) => error.is_refusal(),
        }
    }
}

impl From<TarError> for ListError {
    fn from(error: TarError) -> Self {
        match error {
            TarError::Read(error) => Self::Read(error),
            error => Self::Archive(error_chain(&error).to_string()),
        }
    }
}
