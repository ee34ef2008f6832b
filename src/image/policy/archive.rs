//! Signatures in an archive: manifests of signatures in an OCI layout, as `cosign save` writes them, and bundles in a file beside it.

use super::artifact::{self, ArtifactError, LayerFormat};
use super::record::{Evidence, Subject};
use crate::document::{Descriptor, Manifest};
use podstead_container::digest::Digest;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Manifests of a layout that are looked at.
const MANIFESTS_MAX: usize = 1000;
/// Signature documents of an archive.
const EVIDENCE_MAX: usize = 1000;
/// Largest file of bundles beside an archive, in bytes.
const BESIDE_MAX: u64 = 4 << 20;
/// Endings of such a file, behind the name of the archive: one bundle, or one in each line.
pub(in super::super) const BESIDE: [&str; 2] = [".sigstore.json", ".sigstore.jsonl"];

/// Signature documents and what could not be read as one.
#[derive(Debug, Default)]
pub(in super::super) struct Found {
    pub(in super::super) evidence: Vec<Evidence>,
    pub(in super::super) problems: Vec<String>,
}

impl Found {
    /// Adds those of a layout: `entries` of its `index.json`, and indexes in it. `blob` gives documents by digest.
    pub(in super::super) fn add_layout<'a>(&mut self, entries: &[Descriptor], blob: impl Fn(Digest) -> Option<&'a [u8]>) {
        let mut open: Vec<Digest> = entries.iter().map(|entry| entry.digest).collect();
        let mut looked = 0;
        while let Some(digest) = open.pop() {
            looked += 1;
            if looked > MANIFESTS_MAX || self.evidence.len() >= EVIDENCE_MAX {
                return;
            }
            let Some(content) = blob(digest) else { continue };
            if let Ok(Manifest::Index(entries)) = Manifest::parse(content) {
                open.extend(entries.iter().map(|entry| entry.digest));
                continue;
            }
            let name = format!("manifest {digest}");
            match artifact::signatures(content) {
                Ok(layers) => {
                    for layer in layers {
                        let place = format!("{name}, signature {}", layer.number);
                        self.add(place, &layer.format, blob(layer.descriptor.digest));
                    }
                }
                Err(error @ ArtifactError::Notation) => self.problems.push(format!("{name}: {error}")),
                // An image.
                Err(ArtifactError::NoSignature | ArtifactError::Malformed(_) | ArtifactError::TooMany(_)) => {}
            }
        }
    }

    /// Adds those of the files beside an archive.
    pub(in super::super) fn add_beside(&mut self, archive: &Path) {
        for ending in BESIDE {
            let path = PathBuf::from(format!("{}{ending}", archive.display()));
            let content = match read(&path) {
                Ok(Some(content)) => content,
                Ok(None) => continue,
                Err(problem) => {
                    self.problems.push(format!("{}: {problem}", path.display()));
                    continue;
                }
            };
            let bundles: Vec<&[u8]> = match ending.ends_with('l') {
                true => content.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect(),
                false => vec![&content],
            };
            for (index, bundle) in bundles.into_iter().take(EVIDENCE_MAX).enumerate() {
                self.add(format!("{}, bundle {}", path.display(), index + 1), &LayerFormat::Bundle, Some(bundle));
            }
        }
    }

    fn add(&mut self, place: String, format: &LayerFormat, content: Option<&[u8]>) {
        match content.map(|content| Evidence::read(place.clone(), format, content)) {
            Some(Ok(evidence)) => self.evidence.push(evidence),
            Some(Err(fault)) => self.problems.push(format!("{place}: {fault}")),
            None => self.problems.push(format!("{place}: it is missing from the archive")),
        }
    }

    /// The documents with the signatures that are said to be theirs.
    pub(in super::super) fn subjects<'a>(&self, documents: impl IntoIterator<Item = &'a [u8]>) -> Vec<Subject> {
        let subject = |content: &[u8]| {
            let mut subject = Subject::new(content.to_vec());
            let about: Vec<Evidence> = self.evidence.iter().filter(|evidence| evidence.is_about(content)).cloned().collect();
            subject.add(about);
            subject
        };
        documents.into_iter().map(subject).collect()
    }
}

/// Reports whether this manifest of a layout is one of signatures and no image.
pub(in super::super) fn is_signature(manifest: &[u8]) -> bool {
    matches!(artifact::signatures(manifest), Ok(_) | Err(ArtifactError::Notation))
}

/// Content of a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if !file.metadata().map_err(|error| error.to_string())?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut content = Vec::new();
    file.take(BESIDE_MAX + 1).read_to_end(&mut content).map_err(|error| error.to_string())?;
    match content.len() as u64 > BESIDE_MAX {
        true => Err(format!("it is larger than {BESIDE_MAX} bytes")),
        false => Ok(Some(content)),
    }
}
