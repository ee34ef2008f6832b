//! The daemon's side of a job that decompresses an archive of images as a whole.

use super::super::limits::Limits;
use super::super::staging::StagingDirectory;
use super::error::{JobError, of_end};
use super::unpacker::{Unpacker, process_limits};
use super::wire::{Failed, FailedKind, Message, Work};
use podstead_job::launch::Job;
use podstead_job::told::Told;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Output of an archive. Its end is the archive's only if the job says so: all else is an error of the last read.
#[derive(Debug)]
pub struct Decompressed {
    // A socket, for it knows deadlines.
    bytes: UnixStream,
    /// `None` once it has ended.
    job: Option<Job>,
    limits: Limits,
    /// An empty directory: all that the job sees.
    _scratch: StagingDirectory,
}

impl Unpacker {
    /// Has a job decompress `archive`, which is read from its beginning on.
    pub(in super::super) fn decompress(
        &self,
        archive: File,
        scratch: StagingDirectory,
        limits: &Limits,
    ) -> Result<Decompressed, JobError> {
        let (bytes, to_daemon) = UnixStream::pair().map_err(JobError::Prepare)?;
        bytes.set_read_timeout(Some(self.patience())).map_err(JobError::Prepare)?;
        let (archive, to_daemon) = (OwnedFd::from(archive), OwnedFd::from(to_daemon));
        let job = self.start(Work::Decompress, &scratch.tree(), limits, &[archive.as_fd(), to_daemon.as_fd()])?;
        Ok(Decompressed { bytes, job: Some(job), limits: *limits, _scratch: scratch })
    }
}

impl Decompressed {
    /// Asks the job, which has closed its end, whether that was the end of the archive.
    fn end(&mut self) -> io::Result<()> {
        let Some(job) = self.job.take() else { return Ok(()) };
        let rule = |rule: String| io::Error::other(JobError::BadAnswer(rule));
        let timeout = self.bytes.read_timeout()?.unwrap_or_default();
        let answer = job.messages().next_within::<Message>(timeout).map_err(|error| rule(error.to_string()))?;
        job.wait(timeout);
        let end = of_end(job.end()?, &process_limits(&self.limits)).map_or(Ok(()), Err);
        match answer {
            Some(Message::Decompressed) => end.map_err(io::Error::other),
            Some(Message::Failed(Failed { kind, text })) => Err(match (kind, end) {
                (FailedKind::Limit(exceeded), Ok(())) => io::Error::new(io::ErrorKind::InvalidData, exceeded),
                (_, Err(error)) => io::Error::other(error),
                (_, Ok(())) => io::Error::new(io::ErrorKind::InvalidData, Told::new(&text)),
            }),
            Some(_) => Err(rule("an answer to another question".to_owned())),
            None => Err(io::Error::other(end.err().unwrap_or(JobError::NoAnswer(0)))),
        }
    }
}

impl Read for Decompressed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.bytes.read(buffer) {
            Ok(0) if !buffer.is_empty() => self.end().map(|()| 0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Dropped, it is killed.
                self.job = None;
                Err(io::Error::other(JobError::Hangs(self.bytes.read_timeout()?.unwrap_or_default())))
            }
            result => result,
        }
    }
}
