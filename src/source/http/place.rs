//! One poll: request, verify, record, report.

use super::ask::{self, Answered};
use super::error::PollError;
use super::memory::{self, Fetched, Validators};
use super::serial::{self, Accepted};
use super::{FILE, HttpOptions, signature};
use crate::http_client::HttpClient;
use crate::polling::{Pollable, Polled};
use crate::revision::{ContentHash, revision_of};
use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use podstead_artifact::{Artifact, Surroundings};
use podstead_pod::SourceId;
use podstead_telemetry::error_chain;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Body and signature are two requests, and the body may be replaced between them: then another look helps.
const LOOKS: usize = 2;

/// The last good body.
#[derive(Debug)]
enum Known {
    /// Not looked for on disk yet.
    Unread,
    /// Nothing.
    Nothing,
    /// From the disk: not reported since the start. Left by the first good poll.
    FromDisk(Fetched),
    /// Reported. Its bytes are on disk and with the intake.
    Reported { hash: ContentHash, validators: Validators, serial: Option<u64> },
}

/// A URL that can be asked.
#[derive(Debug)]
pub(super) struct HttpPlace {
    id: SourceId,
    options: Arc<HttpOptions>,
    client: HttpClient,
    known: Known,
}

#[async_trait]
impl Pollable for HttpPlace {
    async fn poll(&mut self) -> Polled {
        let looked = self.look().await;
        self.client.rest();
        match looked {
            Ok(Some(artifact)) => Polled::New(artifact),
            Ok(None) => Polled::Unchanged,
            Err(error) => Polled::Failed { reason: error_chain(&error).to_string(), retry_after: error.retry_after() },
        }
    }
}

impl HttpPlace {
    pub(super) fn new(id: SourceId, options: HttpOptions, client: HttpClient) -> Self {
        Self { id, options: Arc::new(options), client, known: Known::Unread }
    }

    async fn look(&mut self) -> Result<Option<Artifact>, PollError> {
        if matches!(self.known, Known::Unread) {
            let options = Arc::clone(&self.options);
            // A panic there is as good as a file that cannot be used.
            let read = tokio::task::spawn_blocking(move || memory::load(&options.state, &options.url, &options.machine_key)).await;
            self.known = read.ok().flatten().map_or(Known::Nothing, Known::FromDisk);
        }
        let mut looks = 0;
        loop {
            looks += 1;
            match self.look_once().await {
                Err(PollError::Signature { .. }) if looks < LOOKS => {}
                looked => return looked,
            }
        }
    }

    async fn look_once(&mut self) -> Result<Option<Artifact>, PollError> {
        let HttpOptions { url, timeout, .. } = &*self.options;
        match ask::body(&self.client, url, *timeout, &self.validators()).await? {
            Answered::NotModified => Ok(self.report_what_is_known()),
            Answered::Body(body, validators) => self.take(body, validators).await,
        }
    }

    /// With what the next request is made conditional: what may be reported without its body.
    fn validators(&self) -> Validators {
        match &self.known {
            Known::Unread | Known::Nothing => Validators::default(),
            Known::FromDisk(fetched) if self.vouched_for(fetched) => fetched.validators.clone(),
            Known::FromDisk(_) => Validators::default(),
            Known::Reported { validators, .. } => validators.clone(),
        }
    }

    /// Reports whether a body from the disk meets the present configuration.
    fn vouched_for(&self, fetched: &Fetched) -> bool {
        let HttpOptions { url, signature: required, .. } = &*self.options;
        match (required, &fetched.signature) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(required), Some(text)) => signature::check(required, url, &fetched.body, text, Timestamp::now()).is_ok(),
        }
    }

    /// Not modified: reports what is from the disk, which nobody has heard of since the start.
    fn report_what_is_known(&mut self) -> Option<Artifact> {
        match std::mem::replace(&mut self.known, Known::Nothing) {
            Known::FromDisk(fetched) => {
                let hash = ContentHash::of_bytes(&fetched.body);
                self.known = Known::Reported { hash, validators: fetched.validators, serial: fetched.serial };
                Some(artifact(fetched.body, hash))
            }
            known @ (Known::Unread | Known::Nothing | Known::Reported { .. }) => {
                self.known = known;
                None
            }
        }
    }

    /// Judges a body; `None` if it is the one that was reported last.
    async fn take(&mut self, body: Bytes, validators: Validators) -> Result<Option<Artifact>, PollError> {
        let hash = ContentHash::of_bytes(&body);
        if let Known::Reported { hash: last, validators: old, .. } = &mut self.known
            && *last == hash
        {
            *old = validators;
            return Ok(None);
        }
        let signature = self.signature(&body).await?;
        let serial = self.serial(&body, hash)?;
        let fetched = Fetched { body, validators, signature, serial };
        self.remember(&fetched).await?;
        let Fetched { body, validators, signature: _, serial } = fetched;
        self.known = Known::Reported { hash, validators, serial };
        Ok(Some(artifact(body, hash)))
    }

    async fn signature(&self, body: &Bytes) -> Result<Option<Vec<u8>>, PollError> {
        let HttpOptions { url, timeout, signature: required, .. } = &*self.options;
        let Some(required) = required else { return Ok(None) };
        let text = ask::signature(&self.client, signature::urls_of(url, required), *timeout).await?;
        let signer = signature::check(required, url, body, &text, Timestamp::now())?;
        tracing::info!(source = %self.id, %signer, "signature verified");
        Ok(Some(text.to_vec()))
    }

    fn serial(&self, body: &Bytes, hash: ContentHash) -> Result<Option<u64>, PollError> {
        let found = match serial::find(body) {
            Ok(found) => found,
            // Then it bears no order, as if it had none.
            Err(_) if self.options.allow_rollback => None,
            Err(error) => return Err(PollError::Serial(error)),
        };
        let accepted = match &self.known {
            Known::Unread | Known::Nothing => None,
            Known::FromDisk(fetched) => {
                Some(Accepted { serial: fetched.serial, same_body: ContentHash::of_bytes(&fetched.body) == hash })
            }
            Known::Reported { serial, hash: last, .. } => Some(Accepted { serial: *serial, same_body: *last == hash }),
        };
        if !self.options.allow_rollback {
            serial::may_follow(found, accepted, self.options.signature.is_some()).map_err(PollError::Serial)?;
        }
        Ok(found)
    }

    /// Durable before it is reported, so that no crash between the two lets an older serial come back.
    async fn remember(&self, fetched: &Fetched) -> Result<(), PollError> {
        if matches!(&self.known, Known::FromDisk(on_disk) if on_disk == fetched) {
            return Ok(());
        }
        let (options, written) = (Arc::clone(&self.options), fetched.clone());
        let saved =
            tokio::task::spawn_blocking(move || memory::save(&options.state, &options.url, &options.machine_key, &written)).await;
        let source = match saved {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(panic) => panic.into(),
        };
        PollError::Memory { path: memory::path(&self.options.state), source }.tolerated(fetched.serial)
    }
}

impl PollError {
    /// Without a serial, what is on disk only saves a request.
    fn tolerated(self, serial: Option<u64>) -> Result<(), Self> {
        match serial {
            Some(_) => Err(self),
            None => {
                tracing::warn!(error = %error_chain(&self), "cannot record the fetched body; the next start fetches it again");
                Ok(())
            }
        }
    }
}

fn artifact(body: Bytes, hash: ContentHash) -> Artifact {
    let files = BTreeMap::from([(FILE.to_owned(), Ok(body.as_ref().into()))]);
    Artifact {
        revision: revision_of([(FILE, hash)].into_iter()),
        place: None,
        commit: None,
        files,
        beside: BTreeMap::new(),
        around: Surroundings::default(),
    }
}
