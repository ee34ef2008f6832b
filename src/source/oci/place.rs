//! One poll: resolve the name, fetch another artifact, verify it, read it, record it, report it.

use super::error::OciError;
use super::manifest::ArtifactManifest;
use super::memory::{self, Kept, Label};
use super::options::{MAX_LAYER, OciOptions};
use super::order::{check_created, check_version};
use super::select::{OciFollow, highest};
use crate::polling::{Pollable, Polled};
use crate::tree_rules::TreeFiles;
use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use podstead_artifact::Artifact;
use podstead_container::digest::Digest;
use podstead_image::{RepositoryError, Signed};
use podstead_pod::{Revision, SourceId};
use podstead_telemetry::error_chain;
use std::sync::Arc;

/// Name of the demand for signatures in messages.
const RULE: &str = "requireSignature";

/// Artifact that the name means now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    digest: Digest,
    label: Label,
}

/// The last delivered artifact.
#[derive(Debug)]
enum Known {
    /// Not looked for on disk yet.
    Unread,
    /// Nothing.
    Nothing,
    /// From the disk: not reported since the start. Left by the first good poll.
    FromDisk(Box<Kept>),
    /// Reported. Its bytes are on disk, and its files with the intake.
    Reported {
        target: Target,
        /// Time of its push, as its manifest states it.
        created: Option<Timestamp>,
    },
}

/// A repository that can be asked.
#[derive(Debug)]
pub(super) struct OciPlace {
    id: SourceId,
    options: Arc<OciOptions>,
    known: Known,
    /// Artifact that is not fetched again because of its content, and the reason.
    refused: Option<(Digest, String)>,
}

#[async_trait]
impl Pollable for OciPlace {
    async fn poll(&mut self) -> Polled {
        let (timeout, url) = (self.options.timeout, self.options.url.to_string());
        let looked = tokio::time::timeout(timeout, self.look()).await;
        match looked.unwrap_or(Err(OciError::Late { url, timeout })) {
            Ok(Some(artifact)) => Polled::New(artifact),
            Ok(None) => Polled::Unchanged,
            Err(error) => Polled::Failed { reason: error_chain(&error).to_string(), retry_after: error.retry_after() },
        }
    }
}

impl OciPlace {
    pub(super) fn new(id: SourceId, options: OciOptions) -> Self {
        Self { id, options: Arc::new(options), known: Known::Unread, refused: None }
    }

    async fn look(&mut self) -> Result<Option<Artifact>, OciError> {
        if matches!(self.known, Known::Unread) {
            let options = Arc::clone(&self.options);
            let load = move || memory::load(&options.state, &options.url.to_string(), &options.machine_key);
            // A panic there is as good as a file that cannot be used.
            let read = tokio::task::spawn_blocking(load).await;
            self.known = read.ok().flatten().map_or(Known::Nothing, |kept| Known::FromDisk(Box::new(kept)));
        }
        let target = self.locate().await?;
        if matches!(&self.known, Known::Reported { target: last, .. } if *last == target) {
            return Ok(None);
        }
        if !self.options.allow_rollback
            && let Some(last) = self.last()
        {
            check_version(&target.label, last)?;
        }
        if let Some((refused, reason)) = &self.refused
            && *refused == target.digest
        {
            return Err(OciError::Again(reason.clone()));
        }
        let taken = self.take(&target).await;
        if let Err(error) = &taken
            && error.is_of_the_content()
        {
            self.refused = Some((target.digest, error_chain(error).to_string()));
        }
        let (artifact, created) = taken?;
        let was_reported = matches!(&self.known, Known::Reported { target: last, .. } if last.digest == target.digest);
        (self.known, self.refused) = (Known::Reported { target, created }, None);
        // Another tag of the artifact that was reported before.
        Ok((!was_reported).then_some(artifact))
    }

    /// The label of the last delivered artifact.
    fn last(&self) -> Option<&Label> {
        match &self.known {
            Known::Unread | Known::Nothing => None,
            Known::FromDisk(kept) => Some(&kept.label),
            Known::Reported { target, .. } => Some(&target.label),
        }
    }

    /// Asks what the name means now.
    async fn locate(&self) -> Result<Target, OciError> {
        let OciOptions { repositories, url, follow, .. } = &*self.options;
        let what = format!("{follow} of {url}");
        let (tag, version) = match follow {
            OciFollow::Digest(digest) => return Ok(Target { digest: *digest, label: Label { what, tag: None, version: None } }),
            OciFollow::Tag(tag) => (tag.clone(), None),
            OciFollow::Semver(range) => {
                let tags = repositories.tags(url.repository()).await?;
                let none = || OciError::NoVersion { url: url.to_string(), range: follow.to_string() };
                let (version, tag) = highest(&tags, range).ok_or_else(none)?;
                (tag, Some(version.to_string()))
            }
        };
        let reference = url.tagged(&tag).ok_or_else(|| OciError::BadTag(tag.clone()))?;
        let digest = repositories.digest(&reference).await?;
        Ok(Target { digest, label: Label { what, tag: Some(tag), version } })
    }

    /// The artifact, from the disk or from the registry; durable before it is returned.
    async fn take(&self, target: &Target) -> Result<(Artifact, Option<Timestamp>), OciError> {
        let kept = match self.on_disk(target).await {
            Some(kept) => kept,
            None => self.fetch(target).await?,
        };
        let (options, name, digest) = (Arc::clone(&self.options), self.name(target), target.digest);
        let known = match &self.known {
            Known::FromDisk(kept) => Some(kept.clone()),
            Known::Unread | Known::Nothing | Known::Reported { .. } => None,
        };
        blocking(move || {
            let manifest = parse(&kept.manifest, &name)?;
            let TreeFiles { files, beside, around } =
                options.jobs.read(&kept.layer, &options.path, &options.limits).map_err(|source| OciError::Tree { name, source })?;
            if known.as_deref() != Some(&kept) {
                remember(&options, &kept)?;
            }
            let commit = manifest.summary(kept.label.tag.as_deref());
            let revision = Revision(digest.to_string());
            Ok((Artifact { revision, place: None, commit: Some(commit), files, beside, around }, manifest.created))
        })
        .await
    }

    /// The kept artifact, if its signatures still suffice.
    async fn on_disk(&self, target: &Target) -> Option<Kept> {
        let options = Arc::clone(&self.options);
        let digest = target.digest;
        let read = match &self.known {
            Known::Unread | Known::Nothing => return None,
            Known::FromDisk(kept) => Some(Kept::clone(kept)),
            Known::Reported { target: last, .. } if last.digest == digest => None,
            Known::Reported { .. } => return None,
        };
        let load = move || {
            let kept = read.or_else(|| memory::load(&options.state, &options.url.to_string(), &options.machine_key))?;
            (Digest::of(&kept.manifest) == digest && is_signed(&options, &kept)).then_some(kept)
        };
        // A panic there is as good as a file that cannot be used.
        let kept = tokio::task::spawn_blocking(load).await.ok().flatten()?;
        Some(Kept { label: target.label.clone(), ..kept })
    }

    async fn fetch(&self, target: &Target) -> Result<Kept, OciError> {
        let OciOptions { repositories, url, timeout, keys, .. } = &*self.options;
        let name = self.name(target);
        let manifest = repositories.manifest(&url.at(target.digest)).await?;
        let parsed = parse(&manifest, &name)?;
        if parsed.layer.size > MAX_LAYER {
            return Err(OciError::TooLarge { name, size: parsed.layer.size });
        }
        // Before anything but documents is fetched.
        let signatures = match keys.is_empty() {
            true => None,
            false => {
                let record = self.signatures(&manifest, &name).await?;
                self.check_created(&parsed, target)?;
                Some(record)
            }
        };
        let layer = repositories.blob(url.repository(), &parsed.layer, "layer", MAX_LAYER, *timeout).await?;
        Ok(Kept { label: target.label.clone(), manifest, signatures, layer })
    }

    /// Checks the time of a signed artifact, unless the configuration follows something else than before.
    fn check_created(&self, found: &ArtifactManifest, target: &Target) -> Result<(), OciError> {
        let accepted = match &self.known {
            _ if self.options.allow_rollback || self.last().is_none_or(|last| last.what != target.label.what) => return Ok(()),
            Known::Unread | Known::Nothing => return Ok(()),
            Known::FromDisk(kept) => ArtifactManifest::parse(&kept.manifest).ok().and_then(|manifest| manifest.created),
            Known::Reported { created, .. } => *created,
        };
        Ok(check_created(found.created, accepted)?)
    }

    /// Name of an artifact in messages.
    fn name(&self, target: &Target) -> String {
        let tag = target.label.tag.as_ref().map(|tag| format!(":{tag}")).unwrap_or_default();
        format!("{}{tag}@{}", self.options.url, target.digest)
    }

    async fn signatures(&self, manifest: &Bytes, name: &str) -> Result<Vec<u8>, OciError> {
        let OciOptions { repositories, url, keys, .. } = &*self.options;
        match repositories.signed(url.repository(), manifest, keys.clone(), RULE).await {
            Ok(Signed { keys, record }) => {
                tracing::info!(source = %self.id, signers = %keys.join(", "), "signature verified");
                Ok(record)
            }
            Err(RepositoryError::Refused(refusal)) => Err(OciError::Unsigned { name: name.to_owned(), refusal }),
            Err(error) => Err(error.into()),
        }
    }
}

/// Repeats the verification with the keys as they are now. Blocks.
fn is_signed(options: &OciOptions, kept: &Kept) -> bool {
    let verify = |record: &[u8]| Signed::verify_again(record, &kept.manifest, options.keys.clone(), RULE).is_ok();
    options.keys.is_empty() || kept.signatures.as_deref().is_some_and(verify)
}

/// Durable before it is reported, so that no crash between the two lets a lower version come back. Blocks.
fn remember(options: &OciOptions, kept: &Kept) -> Result<(), OciError> {
    let Err(source) = memory::save(&options.state, &options.url.to_string(), &options.machine_key, kept) else { return Ok(()) };
    let error = OciError::Memory { path: memory::path(&options.state), source };
    // Otherwise what is on disk only saves a request.
    if kept.label.version.is_some() || kept.signatures.is_some() {
        return Err(error);
    }
    tracing::warn!(error = %error_chain(&error), "cannot record the fetched artifact; the next start fetches it again");
    Ok(())
}

/// Runs blocking work on the blocking pool.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, OciError> + Send + 'static) -> Result<T, OciError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn parse(manifest: &[u8], name: &str) -> Result<ArtifactManifest, OciError> {
    ArtifactManifest::parse(manifest).map_err(|source| OciError::Manifest { name: name.to_owned(), source })
}
