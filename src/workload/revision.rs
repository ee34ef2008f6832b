//! Revisions of a pod template (W10, W11).

use crate::context::Context;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The name of a revision: a short hash of its template (W10).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TemplateHash(String);

impl TemplateHash {
    /// Hashes a template. `collisions` other templates had the same hash before.
    pub fn of(template: &PodTemplateSpec, collisions: u32) -> Self {
        let mut text = serde_json::to_vec(template).unwrap_or_default();
        if collisions > 0 {
            text.extend_from_slice(collisions.to_string().as_bytes());
        }
        Self(safe_encode(fnv_1a(&text)))
    }

    /// The hash as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TemplateHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// FNV-1a with 32 bits.
fn fnv_1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// A number in ten symbols without vowels, so that no word comes of it.
fn safe_encode(number: u32) -> String {
    const SYMBOLS: &[u8; 10] = b"456789bcdf";
    number.to_string().bytes().map(|digit| char::from(SYMBOLS[usize::from(digit - b'0')])).collect()
}

/// Revisions without pods that are kept at most, whatever the object asks for: each holds a whole template on disk.
pub const MOST_REVISIONS: usize = 100;

/// One revision of a template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Revision {
    /// Its number: the newest has the highest.
    pub number: u64,
    /// Its name.
    pub hash: TemplateHash,
    /// UID of the ReplicaSet or ControllerRevision that stands for it.
    pub uid: String,
    /// The time at which it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// The template as written.
    pub template: PodTemplateSpec,
    /// Other fields of the object that belong to the revision, such as the service name and the claim templates of a StatefulSet, as JSON.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub beside: serde_json::Value,
    /// Annotations of the object when the revision was made or came back.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// The way in which a template became the newest revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It was already.
    Unchanged,
    /// It was an earlier one (W11, W12).
    Returned,
    /// It was never there.
    New,
}

/// The revisions of one workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Revisions {
    /// Templates that had the hash of another one.
    #[serde(default)]
    pub collisions: u32,
    /// In ascending order of their numbers.
    list: Vec<Revision>,
}

impl Revisions {
    /// All of them, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Revision> {
        self.list.iter()
    }

    /// The newest one.
    pub fn newest(&self) -> Option<&Revision> {
        self.list.last()
    }

    /// The one with this hash.
    pub fn find(&self, hash: &TemplateHash) -> Option<&Revision> {
        self.list.iter().find(|revision| revision.hash == *hash)
    }

    /// Makes `template` the newest revision. Returns it, and how it became it.
    pub fn take(
        &mut self,
        template: &PodTemplateSpec,
        beside: &serde_json::Value,
        annotations: &BTreeMap<String, String>,
        context: &Context<'_>,
    ) -> (&Revision, Arrival) {
        let wanted = (context.canonical)(template);
        let known =
            self.list.iter().position(|revision| (context.canonical)(&revision.template) == wanted && revision.beside == *beside);
        let number = self.newest().map_or(1, |newest| newest.number + 1);
        let arrival = match known {
            Some(index) if index + 1 == self.list.len() => {
                self.list[index].annotations.clone_from(annotations);
                Arrival::Unchanged
            }
            Some(index) => {
                let mut revision = self.list.remove(index);
                (revision.number, revision.annotations) = (number, annotations.clone());
                self.list.push(revision);
                Arrival::Returned
            }
            None => {
                let hash = self.free_hash(template);
                let (uid, template) = ((context.fresh_uid)(), template.clone());
                let (beside, annotations) = (beside.clone(), annotations.clone());
                self.list.push(Revision { number, hash, uid, created: Some(context.wall), template, beside, annotations });
                Arrival::New
            }
        };
        (&self.list[self.list.len() - 1], arrival)
    }

    fn free_hash(&mut self, template: &PodTemplateSpec) -> TemplateHash {
        loop {
            let hash = TemplateHash::of(template, self.collisions);
            if self.find(&hash).is_none() {
                return hash;
            }
            self.collisions += 1;
        }
    }

    /// Forgets the oldest revisions beyond `limit`, at most [`MOST_REVISIONS`], not counting the newest; those that `is_used` names stay (W11).
    pub fn prune(&mut self, limit: usize, is_used: impl Fn(&Revision) -> bool) {
        let limit = limit.min(MOST_REVISIONS);
        let newest = self.newest().map(|revision| revision.number);
        let unused = |revision: &Revision| Some(revision.number) != newest && !is_used(revision);
        let mut surplus = self.list.iter().filter(|revision| unused(revision)).count().saturating_sub(limit);
        self.list.retain(|revision| {
            let goes = surplus > 0 && unused(revision);
            surplus -= usize::from(goes);
            !goes
        });
    }
}
