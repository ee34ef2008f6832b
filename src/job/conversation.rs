//! A job that is asked more than once.

use crate::frame::{self, Decoder};
use crate::launch::{End, Job, MessageError, next_message};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Write};
use std::time::Duration;

/// Bytes read at once.
const READ: usize = 64 << 10;

/// Questions to one job, and its answers. Dropping it ends the job.
#[derive(Debug)]
pub struct Conversation {
    job: Job,
    decoder: Decoder,
    buffer: Vec<u8>,
}

impl Conversation {
    /// A conversation with a job that was started.
    pub fn new(job: Job) -> Self {
        Self { job, decoder: Decoder::new(frame::FROM_JOB), buffer: vec![0; READ] }
    }

    /// Sends a question. A job that has ended, or that reads nothing for `timeout`, is an error.
    pub fn ask(&mut self, question: &impl Serialize, timeout: Duration) -> io::Result<()> {
        let bytes = frame::encode(question, frame::TO_JOB).map_err(io::Error::other)?;
        self.job.socket().set_write_timeout(Some(timeout))?;
        self.job.socket().write_all(&bytes)
    }

    /// The next message within `timeout`; `None` when the job has closed its socket, as it does when it ends.
    pub fn hear<T: DeserializeOwned>(&mut self, timeout: Duration) -> Result<Option<T>, MessageError> {
        next_message(self.job.socket(), &mut self.decoder, &mut self.buffer, timeout)
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Waits at most `patience` for the job to end by itself, ends it, and tells how it ended.
    pub fn end(self, patience: Duration) -> io::Result<End> {
        self.job.wait(patience);
        self.job.end()
    }
}
