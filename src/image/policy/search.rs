//! Signatures of an image at its registry, in the places where cosign puts them.
//!
//! For a digest: the tag `sha256-<hex>.sig`, then the referrers of the digest (OCI 1.1), from a registry without such lists the tag
//! `sha256-<hex>`. The places are asked one after the other until the signatures suffice. Nothing that a registry says here makes an image
//! acceptable: it can only hide signatures, and then the image is refused.

use super::artifact::{self, LayerFormat, SignatureLayer};
use super::judge::{Refusal, Trusted, judge};
use super::record::{Evidence, Subject};
use crate::ask::{Ask, DOCUMENT_TIMEOUT};
use crate::registry::RegistryError;
use bytes::Bytes;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_trust::image::DOCUMENT_MAX;
use std::time::Duration;

/// Time limit of the whole search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(120);

/// Failure of a search.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum SearchError {
    /// The registry was asked for everything, and the signatures do not suffice.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The registry could not be asked.
    #[error("ask for signatures")]
    Registry(#[from] RegistryError),
}

/// The hosts of an image.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Place<'a> {
    pub(in super::super) ask: Ask<'a>,
    pub(in super::super) reference: &'a Reference,
}

/// A place for signatures of a digest.
#[derive(Clone, Copy, Debug)]
enum Shelf {
    Tag,
    Referrers,
}

/// Looks for signatures of the `documents` (indexes from the outermost on, then the manifest) until they suffice with those that are `kept` of the
/// image; returns all that were looked at.
pub(in super::super) async fn search(
    place: Place<'_>,
    documents: &[Bytes],
    kept: Vec<Subject>,
    trusted: &Trusted,
) -> Result<Vec<Subject>, SearchError> {
    let late = |_| RegistryError::Stalled { host: place.reference.host().to_owned() };
    tokio::time::timeout(SEARCH_TIMEOUT, search_all(place, documents, kept, trusted)).await.map_err(late)?
}

async fn search_all(
    place: Place<'_>,
    documents: &[Bytes],
    kept: Vec<Subject>,
    trusted: &Trusted,
) -> Result<Vec<Subject>, SearchError> {
    let mut subjects: Vec<Subject> = documents.iter().map(|content| Subject::new(content.to_vec())).collect();
    for subject in kept {
        match subjects.iter_mut().find(|known| known.content == subject.content) {
            Some(known) => known.add(subject.evidence),
            None => subjects.push(subject),
        }
    }
    let mut problems = Vec::new();
    let mut verdict = judge(trusted, &subjects, &problems);
    if verdict.is_ok() {
        return Ok(subjects);
    }
    for index in 0..documents.len() {
        for shelf in [Shelf::Tag, Shelf::Referrers] {
            let Some(subject) = subjects.get_mut(index) else { continue };
            let found = place.look(shelf, subject.digest(), &mut problems).await?;
            subject.add(found);
            verdict = judge(trusted, &subjects, &problems);
            if verdict.is_ok() {
                return Ok(subjects);
            }
        }
    }
    Ok(verdict.map(|_| subjects)?)
}

impl Place<'_> {
    async fn look(self, shelf: Shelf, digest: Digest, problems: &mut Vec<String>) -> Result<Vec<Evidence>, RegistryError> {
        match shelf {
            Shelf::Tag => {
                let tag = format!("sha256-{}.sig", digest.hex());
                match tolerated(&tag, self.ask.signatures(&self.reference.tagged(&tag)).await, problems)? {
                    Some(manifest) => self.signatures(&format!("tag {tag}"), &manifest, problems).await,
                    None => Ok(Vec::new()),
                }
            }
            Shelf::Referrers => self.referrers(digest, problems).await,
        }
    }

    async fn referrers(self, digest: Digest, problems: &mut Vec<String>) -> Result<Vec<Evidence>, RegistryError> {
        let at = self.reference.at(digest);
        let list = match tolerated("referrers", self.ask.referrers(&at).await, problems)?.flatten() {
            Some(list) => Some(list),
            None => {
                let tag = format!("sha256-{}", digest.hex());
                tolerated(&tag, self.ask.signatures(&self.reference.tagged(&tag)).await, problems)?
            }
        };
        let Some(list) = list else { return Ok(Vec::new()) };
        let (referrers, notation) = match artifact::referrers(&list) {
            Ok(found) => found,
            Err(error) => {
                problems.push(format!("referrers of {digest}: {error}"));
                return Ok(Vec::new());
            }
        };
        if notation > 0 {
            problems.push(format!("{notation} signatures of notation, which are not supported"));
        }
        let mut evidence = Vec::new();
        for referrer in referrers {
            let name = format!("referrer {referrer}");
            let at = self.reference.at(referrer);
            let Some((manifest, _)) = tolerated(&name, self.ask.manifest(&at).await, problems)? else { continue };
            evidence.extend(self.signatures(&name, &manifest, problems).await?);
        }
        Ok(evidence)
    }

    /// The signature documents of a manifest.
    async fn signatures(self, name: &str, manifest: &[u8], problems: &mut Vec<String>) -> Result<Vec<Evidence>, RegistryError> {
        let layers = match artifact::signatures(manifest) {
            Ok(layers) => layers,
            Err(error) => {
                problems.push(format!("{name}: {error}"));
                return Ok(Vec::new());
            }
        };
        let mut evidence = Vec::new();
        for SignatureLayer { number, descriptor, format } in layers {
            let name = match format {
                LayerFormat::Simple(_) => format!("{name}, signature {number}"),
                LayerFormat::Bundle => name.to_owned(),
            };
            let fetched = self.ask.blob(self.reference, &descriptor, "signature", DOCUMENT_MAX as u64, DOCUMENT_TIMEOUT).await;
            let content = tolerated(&name, fetched, problems)?;
            match content.map(|content| Evidence::read(name.clone(), &format, &content)) {
                Some(Ok(found)) => evidence.push(found),
                Some(Err(fault)) => problems.push(format!("{name}: {fault}")),
                None => {}
            }
        }
        Ok(evidence)
    }
}

/// The answer; `None` for one that the registry does not give, which is a finding. Other errors mean that it was not asked.
fn tolerated<T>(name: &str, answer: Result<T, RegistryError>, problems: &mut Vec<String>) -> Result<Option<T>, RegistryError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_absence() => Ok(None),
        Err(error) if error.is_denial() => {
            problems.push(format!("{name}: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
