//! Signatures of an image as they are kept beside it: what was looked at when it came, so that it can be judged again without a registry. **Pure**.

use super::super::document::Manifest;
use super::artifact::LayerFormat;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use podstead_container::digest::Digest;
use podstead_trust::image::{Bundle, SignatureFault, SimpleSigning};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The only version so far.
const VERSION: u32 = 1;
/// Manifests and indexes of one image whose signatures are kept: an image may be part of more than one index.
const SUBJECTS_MAX: usize = 8;
/// Bytes of signature documents kept for one of them.
const DOCUMENTS_MAX: usize = 1 << 20;
/// Signature documents kept for one of them.
const EVIDENCE_MAX: usize = 32;

/// A manifest or an index, and what is said to be signatures of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Subject {
    pub(in super::super) content: Vec<u8>,
    pub(in super::super) evidence: Vec<Evidence>,
}

/// A signature document that can be read. It proves nothing before it is verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Evidence {
    /// Place where it was found, for messages.
    pub(super) place: String,
    document: Document,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Document {
    Simple { payload: Encoded, signature: String },
    Bundle(Encoded),
}

/// Bytes that are written in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Encoded(Vec<u8>);

impl TryFrom<String> for Encoded {
    type Error = base64::DecodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        STANDARD.decode(text).map(Self)
    }
}

impl From<Encoded> for String {
    fn from(Encoded(bytes): Encoded) -> Self {
        STANDARD.encode(bytes)
    }
}

/// A parsed signature document.
pub(super) enum Parsed {
    Simple(SimpleSigning),
    Bundle(Bundle),
}

impl Evidence {
    /// From a document in the format that its layer has.
    pub(super) fn read(place: String, format: &LayerFormat, content: &[u8]) -> Result<Self, SignatureFault> {
        let document = match format {
            LayerFormat::Simple(signature) => Document::Simple { payload: Encoded(content.to_vec()), signature: signature.clone() },
            LayerFormat::Bundle => Document::Bundle(Encoded(content.to_vec())),
        };
        let evidence = Self { place, document };
        evidence.parse().map(|_| evidence)
    }

    pub(super) fn parse(&self) -> Result<Parsed, SignatureFault> {
        match &self.document {
            Document::Simple { payload, signature } => SimpleSigning::parse(&payload.0, signature).map(Parsed::Simple),
            Document::Bundle(bundle) => Bundle::parse(&bundle.0).map(Parsed::Bundle),
        }
    }

    /// Reports whether it is about this manifest or index, true or not.
    pub(super) fn is_about(&self, content: &[u8]) -> bool {
        let subject = podstead_trust::image::Subject::of(content);
        match self.parse() {
            Ok(Parsed::Simple(document)) => document.is_about(&subject),
            Ok(Parsed::Bundle(document)) => document.is_about(&subject),
            Err(_) => false,
        }
    }

    fn size(&self) -> usize {
        match &self.document {
            Document::Simple { payload, signature } => payload.0.len() + signature.len(),
            Document::Bundle(bundle) => bundle.0.len(),
        }
    }
}

impl Subject {
    pub(in super::super) fn new(content: Vec<u8>) -> Self {
        Self { content, evidence: Vec::new() }
    }

    pub(in super::super) fn digest(&self) -> Digest {
        Digest::of(&self.content)
    }

    /// Adds what is not there yet, as long as there is room.
    pub(in super::super) fn add(&mut self, evidence: impl IntoIterator<Item = Evidence>) {
        let mut size: usize = self.evidence.iter().map(Evidence::size).sum();
        for new in evidence {
            size += new.size();
            if size > DOCUMENTS_MAX || self.evidence.len() == EVIDENCE_MAX {
                return;
            }
            if !self.evidence.iter().any(|known| known.document == new.document) {
                self.evidence.push(new);
            }
        }
    }
}

/// Record of the signatures of an image, named by its manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct SignatureRecord {
    version: u32,
    subjects: Vec<StoredSubject>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredSubject {
    content: Encoded,
    evidence: Vec<Evidence>,
}

impl SignatureRecord {
    /// Of these subjects, with those of an older record of the same image. `None` if there is no signature.
    pub(in super::super) fn merged(new: &[Subject], older: Vec<Subject>) -> Option<Self> {
        let mut subjects: Vec<Subject> = new.to_vec();
        for old in older {
            let has_room = subjects.len() < SUBJECTS_MAX;
            match subjects.iter_mut().find(|subject| subject.content == old.content) {
                Some(subject) => subject.add(old.evidence),
                None if has_room => subjects.push(old),
                None => {}
            }
        }
        if subjects.iter().all(|subject| subject.evidence.is_empty()) {
            return None;
        }
        let stored = |Subject { content, evidence }: Subject| StoredSubject { content: Encoded(content), evidence };
        Some(Self { version: VERSION, subjects: subjects.into_iter().map(stored).collect() })
    }

    /// The subjects that are the image with this manifest: itself, and indexes that lead to it. A record that cannot be read has none.
    pub(in super::super) fn subjects(bytes: &[u8], manifest: Digest) -> Vec<Subject> {
        let Some(record) = serde_json::from_slice::<Self>(bytes).ok().filter(|record| record.version == VERSION) else {
            return Vec::new();
        };
        let subject = |StoredSubject { content, evidence }| Subject { content: Encoded::into_bytes(content), evidence };
        leading_to(manifest, record.subjects.into_iter().map(subject).collect())
    }
}

impl Encoded {
    fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Those of the subjects that are the manifest or lead to it.
fn leading_to(manifest: Digest, subjects: Vec<Subject>) -> Vec<Subject> {
    let entries = |subject: &Subject| match Manifest::parse(&subject.content) {
        Ok(Manifest::Index(entries)) => entries.iter().map(|entry| entry.digest).collect(),
        Ok(Manifest::Image(_)) | Err(_) => BTreeSet::new(),
    };
    let known: Vec<(Digest, BTreeSet<Digest>)> = subjects.iter().map(|subject| (subject.digest(), entries(subject))).collect();
    let mut reach = BTreeSet::from([manifest]);
    // An index in an index needs a turn of its own.
    for _ in 0..known.len() {
        let more = known.iter().filter(|(_, entries)| !entries.is_disjoint(&reach)).map(|(digest, _)| *digest).collect::<Vec<_>>();
        reach.extend(more);
    }
    subjects.into_iter().filter(|subject| reach.contains(&subject.digest())).collect()
}
