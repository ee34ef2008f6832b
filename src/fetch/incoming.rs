//! The daemon's end of a request that a job sends: what comes is checked before it is believed.

use crate::error::JobError;
use crate::message::{BodyEnd, Head, PIECE_MAX, QUESTION_MAX, Question, Reply};
use crate::request::Request;
use crate::running::Running;
use bytes::{Buf, Bytes, BytesMut};
use podstead_job::frame;
use podstead_job::told::Told;
use podstead_outbound::Failure;
use serde::de::DeserializeOwned;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::Instant;

/// Bytes read at once.
const READ: usize = 64 << 10;
/// Bytes of the length before a piece or a message.
const LENGTH: usize = 4;
/// Time after the limit of a request that a job has to tell that it is over.
const GRACE: Duration = Duration::from_secs(5);

/// Reason why a request came to nothing.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It failed on its way, as the job says.
    Failed(Failure),
    /// The job failed.
    Job(JobError),
}

impl From<JobError> for Fault {
    fn from(error: JobError) -> Self {
        Self::Job(error)
    }
}

/// The stream of one request. Dropping it ends the request.
#[derive(Debug)]
pub(crate) struct Incoming {
    job: Arc<Running>,
    stream: UnixStream,
    buffer: BytesMut,
    /// Bytes of the present piece that are still to come.
    piece: usize,
    /// Bytes of the body that may still come, if its length is known.
    left: Option<u64>,
    deadline: Option<Instant>,
    is_over: bool,
}

impl Incoming {
    /// Sends a request to the job, and waits for the answer up to its body.
    pub(crate) async fn begin(job: Arc<Running>, request: &Request) -> Result<(Head, Self), Fault> {
        let deadline = request.timeout.map(|timeout| Instant::now() + timeout + GRACE);
        let question = frame::encode(&Question::of(request), QUESTION_MAX);
        let question = question.map_err(|error| Fault::Failed(Failure::Setup(error.to_string())))?;
        let stream = job.open()?;
        let buffer = BytesMut::new();
        let mut incoming = Self { job, stream, buffer, piece: 0, left: None, deadline, is_over: false };
        within(deadline, async move {
            if incoming.stream.write_all(&question).await.is_err() || incoming.stream.write_all(&request.body).await.is_err() {
                return Err(incoming.job.failure().await.into());
            }
            let head = incoming.head().await?;
            Ok((head, incoming))
        })
        .await
    }

    async fn head(&mut self) -> Result<Head, Fault> {
        match self.message::<Reply>(frame::FROM_JOB).await? {
            Reply::Head(head) if head.is_chosen() => {
                self.left = head.length;
                Ok(head)
            }
            Reply::Head(_) => Err(self.lies("a header that was not asked for").await),
            Reply::Failed(failure) => Err(self.failed(failure).await),
        }
    }

    /// The next part of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        if self.is_over {
            return Ok(None);
        }
        let deadline = self.deadline;
        match within(deadline, self.next_chunk()).await {
            Ok(chunk) => Ok(chunk),
            Err(fault) => {
                self.is_over = true;
                Err(match fault {
                    Fault::Failed(failure) => failure,
                    Fault::Job(error) => {
                        self.job.tell(&error);
                        error.failure()
                    }
                })
            }
        }
    }

    async fn next_chunk(&mut self) -> Result<Option<Bytes>, Fault> {
        if self.piece == 0 {
            self.fill(LENGTH).await?;
            self.piece = self.buffer.get_u32() as usize;
            if self.piece == 0 {
                return self.end().await;
            }
            if self.piece > PIECE_MAX {
                return Err(self.lies("a piece above the limit").await);
            }
        }
        self.fill(1).await?;
        let bytes = self.buffer.split_to(self.buffer.len().min(self.piece)).freeze();
        self.piece -= bytes.len();
        if let Some(left) = &mut self.left {
            match left.checked_sub(bytes.len() as u64) {
                Some(rest) => *left = rest,
                None => return Err(self.lies("more bytes than its Content-Length").await),
            }
        }
        Ok(Some(bytes))
    }

    async fn end(&mut self) -> Result<Option<Bytes>, Fault> {
        let end = self.message::<BodyEnd>(frame::FROM_JOB).await?;
        self.is_over = true;
        match end {
            BodyEnd::Failed(failure) => Err(self.failed(failure).await),
            BodyEnd::Whole if self.left.is_some_and(|left| left > 0) => Err(self.lies("fewer bytes than its Content-Length").await),
            BodyEnd::Whole => Ok(None),
        }
    }

    /// The next message of at most `limit` bytes.
    async fn message<T: DeserializeOwned>(&mut self, limit: usize) -> Result<T, Fault> {
        self.fill(LENGTH).await?;
        let length = self.buffer.get_u32() as usize;
        if length > limit {
            return Err(self.lies("a message above the limit").await);
        }
        self.fill(length).await?;
        match serde_json::from_slice(&self.buffer.split_to(length)) {
            Ok(message) => Ok(message),
            Err(_) => Err(self.lies("an invalid message").await),
        }
    }

    /// Reads until there are `count` bytes.
    async fn fill(&mut self, count: usize) -> Result<(), Fault> {
        while self.buffer.len() < count {
            self.buffer.reserve(READ);
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return Err(self.job.failure().await.into()),
            }
        }
        Ok(())
    }

    /// The failure that the job tells. Its words are those of the resolver, of the system and of rustls, which may quote the server.
    async fn failed(&self, failure: Failure) -> Fault {
        match failure.map_texts(Told::cleaned) {
            Failure::Process(_) => self.lies("a failure that only the daemon reports").await,
            failure => Fault::Failed(failure),
        }
    }

    /// Ends a job that does not keep to the rules.
    async fn lies(&self, rule: &'static str) -> Fault {
        self.job.end_as(JobError::BadAnswer(rule)).await.into()
    }
}

async fn within<T>(deadline: Option<Instant>, answer: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, answer).await.unwrap_or(Err(Fault::Failed(Failure::Stalled))),
        None => answer.await,
    }
}
