//! One look: find bundles, verify them, choose one, import its images, record it, report it.

use super::archive::{Head, read_blob, read_head};
use super::choice::{Choice, Verified, choose};
use super::document::BundleDocument;
use super::error::BundleError;
use super::find::{self, Found, Looked};
use super::memory::{self, Kept};
use super::options::BundleOptions;
use super::order::{Last, Rules};
use super::watch::Watch;
use crate::one_line::one_line;
use crate::polling::{Pollable, Polled};
use crate::tree_rules::TreeFiles;
use async_trait::async_trait;
use jiff::Timestamp;
use podstead_artifact::{Artifact, CommitSummary, Place, Surroundings};
use podstead_container::digest::Digest;
use podstead_pod::{Revision, SourceId};
use podstead_telemetry::error_chain;
use podstead_trust::judged_at;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Revision of a source that never had a bundle.
const NO_BUNDLE: &str = "none";

/// The last bundle.
#[derive(Debug)]
enum Known {
    /// Not looked for on disk yet.
    Unread,
    /// Nothing. `reported`: that there is nothing.
    Nothing { reported: bool },
    /// From the disk: not reported since the start. `is_signed`: its signature still holds.
    FromDisk { last: Last, kept: Box<Kept>, is_signed: bool },
    /// Reported, or refused to be.
    Done(Last),
}

/// State of a file. A whole copy of a bundle may follow a damaged one, so that the digest of the document is not enough.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path, file: &File) -> Option<Self> {
        let found = file.metadata().ok()?;
        let (device, inode, size) = (found.dev(), found.ino(), found.size());
        Some(Self { path: path.to_owned(), device, inode, size, changed: (found.ctime(), found.ctime_nsec()) })
    }
}

/// A bundle that was verified and is open.
#[derive(Debug)]
struct Candidate {
    path: PathBuf,
    file: File,
    head: Head,
    signer: Option<String>,
}

/// The places of bundles.
#[derive(Debug)]
pub(super) struct BundlePlace {
    id: SourceId,
    options: Arc<BundleOptions>,
    known: Known,
    watch: Watch,
    /// File that is not read again because of its content, and the reason.
    refused: Option<(Stamp, String)>,
    /// Files among which the last bundle was the one to take: while they stay as they are, none is read again.
    settled: Option<Vec<Stamp>>,
}

#[async_trait]
impl Pollable for BundlePlace {
    async fn poll(&mut self) -> Polled {
        match self.look().await {
            Ok(Some(artifact)) => Polled::New(artifact),
            Ok(None) => Polled::Unchanged,
            Err(reason) => Polled::Failed { reason, retry_after: None },
        }
    }

    async fn changed(&mut self) {
        self.watch.hint().await;
    }
}

impl BundlePlace {
    pub(super) fn new(id: SourceId, options: BundleOptions) -> Self {
        Self { id, options: Arc::new(options), known: Known::Unread, watch: Watch::new(), refused: None, settled: None }
    }

    async fn look(&mut self) -> Result<Option<Artifact>, String> {
        if matches!(self.known, Known::Unread) {
            let options = Arc::clone(&self.options);
            // A panic there is as good as a file that cannot be used.
            let read = tokio::task::spawn_blocking(move || load(&options)).await;
            self.known = read.unwrap_or(Known::Nothing { reported: false });
        }
        // Before the look: what comes after it gives a hint.
        self.watch.set(&self.options);
        let (options, settled) = (Arc::clone(&self.options), self.settled.take());
        let (stamps, verified) = blocking(move || verified(&options, settled.as_deref())).await;
        let Some((candidates, problem)) = verified else {
            self.settled = stamps;
            return self.kept(None).await;
        };
        let rules = Rules {
            name: self.options.name.as_deref(),
            host: &self.options.host,
            allow_rollback: self.options.allow_rollback,
            digests_only: self.options.digests_only,
        };
        let bundles = candidates.into_iter().map(|candidate| Verified {
            document: candidate.head.document.clone(),
            digest: candidate.head.digest(),
            file: candidate,
        });
        match choose(bundles.collect(), rules, self.last()) {
            Choice::Take(bundle) => {
                problem.inspect(|problem| tracing::warn!(source = %self.id, "{problem}"));
                self.take(bundle.file, bundle.digest).await.map(Some)
            }
            Choice::Refuse(bundle, error) => {
                let refused = error_chain(&BundleError::Order { path: bundle.file.path, source: error }).to_string();
                self.kept(Some(refused)).await
            }
            Choice::Last if problem.is_none() => {
                self.settled = stamps;
                self.kept(None).await
            }
            Choice::Last | Choice::Nothing => self.kept(problem).await,
        }
    }

    fn last(&self) -> Option<&Last> {
        match &self.known {
            Known::Unread | Known::Nothing { .. } => None,
            Known::FromDisk { last, .. } | Known::Done(last) => Some(last),
        }
    }

    /// Reports what is known, if it was not reported since the start; the problem otherwise.
    async fn kept(&mut self, problem: Option<String>) -> Result<Option<Artifact>, String> {
        match &self.known {
            Known::FromDisk { last, kept, is_signed: true } => {
                let (last, kept, options) = (last.clone(), kept.clone(), Arc::clone(&self.options));
                let read = blocking(move || {
                    let document = BundleDocument::parse(&kept.document).ok()?;
                    let files = options.jobs.read(&kept.manifests, "", &options.limits).ok()?;
                    Some(artifact(&document, Digest::of(&kept.document), None, files))
                });
                let read = read.await;
                self.known = Known::Done(last);
                match read {
                    Some(artifact) => Ok(Some(artifact)),
                    None => problem.map_or(Ok(None), Err),
                }
            }
            // The last good set stays; the serial counts.
            Known::FromDisk { .. } => Err(problem.unwrap_or_else(|| {
                "the last bundle is not signed by any of the signers that are required now; its manifests stay in force".to_owned()
            })),
            Known::Nothing { reported: false } if problem.is_none() && !self.options.has_last_good => {
                self.known = Known::Nothing { reported: true };
                // Another place than that of any bundle: it removes nothing.
                let place = Some(Place("no bundle".to_owned()));
                let (files, beside, around) = (BTreeMap::new(), BTreeMap::new(), Surroundings::default());
                Ok(Some(Artifact { revision: Revision(NO_BUNDLE.to_owned()), place, commit: None, files, beside, around }))
            }
            Known::Unread | Known::Nothing { .. } | Known::Done(_) => problem.map_or(Ok(None), Err),
        }
    }

    /// Imports a bundle; durable before it is returned.
    async fn take(&mut self, candidate: Candidate, digest: Digest) -> Result<Artifact, String> {
        let Candidate { path, file, head, signer } = candidate;
        let stamp = Stamp::of(&path, &file);
        if let Some((refused, reason)) = &self.refused
            && stamp.as_ref() == Some(refused)
        {
            return Err(reason.clone());
        }
        let last = Last { name: head.document.name.clone(), serial: head.document.serial, digest };
        tracing::info!(source = %self.id, bundle = %path.display(), serial = last.serial, signer, "applying a bundle");
        match self.import(path, Arc::new(file), head, signer).await {
            Ok(artifact) => {
                (self.known, self.refused) = (Known::Done(last), None);
                Ok(artifact)
            }
            Err(error) => {
                let reason = error_chain(&error).to_string();
                self.refused = stamp.filter(|_| is_of_the_content(&error)).map(|stamp| (stamp, reason.clone()));
                Err(reason)
            }
        }
    }

    async fn import(&self, path: PathBuf, file: Arc<File>, head: Head, signer: Option<String>) -> Result<Artifact, BundleError> {
        let (options, opened, shown, document) =
            (Arc::clone(&self.options), Arc::clone(&file), path.clone(), head.document.clone());
        let (manifests, files) = blocking(move || {
            let archive = |source| BundleError::Archive { path: shown.clone(), source };
            let manifests = read_blob(&opened, &options.jobs.lister(), &document, document.manifests).map_err(archive)?;
            let files = options.jobs.read(&manifests, "", &options.limits);
            let files = files.map_err(|source| BundleError::Tree { path: shown, source })?;
            Ok::<_, BundleError>((manifests, files))
        })
        .await?;
        let images = head.document.bundled_images();
        self.options.images.import_bundle(file, &path, images).await.map_err(BundleError::Images)?;
        let (options, digest) = (Arc::clone(&self.options), head.digest());
        let artifact = artifact(&head.document, digest, signer, files);
        blocking(move || {
            let kept = Kept { document: head.bytes, signature: head.signature, manifests };
            memory::save(&options.state, &options.machine_key, &kept)
                .map_err(|source| BundleError::Memory { path: memory::path(&options.state), source })
        })
        .await?;
        Ok(artifact)
    }
}

/// Content that is wrong stays wrong as long as the file is the same.
fn is_of_the_content(error: &BundleError) -> bool {
    match error {
        BundleError::Archive { source, .. } => source.is_of_the_content(),
        BundleError::Tree { source, .. } => source.is_of_the_content(),
        BundleError::List { .. }
        | BundleError::Mount { .. }
        | BundleError::Open { .. }
        | BundleError::Signers(_)
        | BundleError::Unsigned(_)
        | BundleError::Signature { .. }
        | BundleError::Order { .. }
        // A policy, the disk or the medium may change.
        | BundleError::Images(_)
        | BundleError::Memory { .. } => false,
    }
}

/// Reads what an earlier run left. Blocks.
fn load(options: &BundleOptions) -> Known {
    let Some((kept, document)) = memory::load(&options.state, &options.machine_key) else {
        return Known::Nothing { reported: false };
    };
    let last = Last { name: document.name, serial: document.serial, digest: Digest::of(&kept.document) };
    let is_signed = signer(options, Path::new(""), &kept.document, kept.signature.as_deref()).is_ok();
    Known::FromDisk { last, kept: Box::new(kept), is_signed }
}

/// State of all files.
type Stamps = Option<Vec<Stamp>>;
/// Bundles whose document is signed as required, and the first problem of the others.
type Judged = (Vec<Candidate>, Option<String>);

/// Looks at all files, and reads them unless they are as those that are `settled`. Blocks.
fn verified(options: &BundleOptions, settled: Option<&[Stamp]>) -> (Stamps, Option<Judged>) {
    if let Err(error) = std::fs::create_dir_all(&options.directory) {
        tracing::debug!(path = %options.directory.display(), %error, "cannot create the directory of bundles");
    }
    let Looked { found, mut problems } = find::look(&options.directory, options.removable, options.labelled.as_deref());
    let stamps: Stamps = found.iter().map(|found| Stamp::of(&found.path, &found.file)).collect();
    if problems.is_empty() && settled.is_some() && stamps.as_deref() == settled {
        return (stamps, None);
    }
    let (mut candidates, lister) = (Vec::new(), options.jobs.lister());
    for Found { path, file } in found {
        let head = match read_head(&file, &lister) {
            Ok(head) => head,
            Err(source) => {
                problems.push(BundleError::Archive { path, source });
                continue;
            }
        };
        match signer(options, &path, &head.bytes, head.signature.as_deref()) {
            Ok(signer) => candidates.push(Candidate { path, file, head, signer }),
            Err(error) => problems.push(error),
        }
    }
    (stamps, Some((candidates, problems.first().map(|problem| error_chain(problem).to_string()))))
}

/// Verifies the signature of a document, if one is required. Blocks.
fn signer(options: &BundleOptions, path: &Path, document: &[u8], signature: Option<&[u8]>) -> Result<Option<String>, BundleError> {
    let Some(required) = &options.signature else { return Ok(None) };
    let Some(signature) = signature else { return Err(BundleError::Unsigned(path.to_owned())) };
    // A detached SSH signature has no time, so the host's clock counts.
    let signer = required.trusted()?.verify(document, signature, judged_at(Timestamp::now(), None, None));
    let signer = signer.map_err(|source| BundleError::Signature { path: path.to_owned(), source })?;
    Ok(Some(signer.to_string()))
}

fn artifact(document: &BundleDocument, digest: Digest, signer: Option<String>, files: TreeFiles) -> Artifact {
    let revision = if document.revision.is_empty() { String::new() } else { format!(" ({})", document.revision) };
    let created = document.created.strftime("%Y-%m-%d");
    let subject = one_line(format!("{} {} of {created}{revision}", document.name, document.serial).as_bytes());
    let commit = Some(CommitSummary { subject, author: one_line(signer.unwrap_or_default().as_bytes()) });
    let TreeFiles { files, beside, around } = files;
    Artifact { revision: Revision(digest.to_string()), place: None, commit, files, beside, around }
}

/// Runs blocking work on the blocking pool.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
