//! What all sources want together: one claim per full name and, where manifests fix UIDs, one name per UID.

use super::conflict::{Claimant, Conflict, ConflictKind};
use crate::manifest::Origin;
use crate::mux::DesiredPod;
use crate::pod::{Pod, PodFullName, PodUid, SourceId};
use crate::source::Revision;
use crate::store::Set;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One pod as one source wants it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    pub(super) source: SourceId,
    pub(super) revision: Revision,
    pub(super) origin: Origin,
    /// As admitted, before UID and local annotations are stamped on it.
    pub(super) pod: Arc<Pod>,
}

impl Claim {
    /// A claim that stands for a pod of which only the record is known. It differs from every manifest's.
    pub(super) fn of_record(record: &DesiredPod) -> Self {
        let DesiredPod { uid: _, full_name: _, source, revision, origin, pod } = record;
        Self { source: source.clone(), revision: revision.clone(), origin: origin.clone(), pod: pod.clone() }
    }

    /// The UID that the manifest fixes.
    pub(super) fn fixed_uid(&self) -> Option<PodUid> {
        self.pod.metadata.uid.as_deref().filter(|uid| !uid.is_empty()).map(PodUid::new)
    }

    pub(super) fn claimant(&self) -> Claimant {
        Claimant { source: self.source.clone(), origin: self.origin.clone() }
    }
}

/// The claims of one source, by full name.
pub(super) type Claims = BTreeMap<PodFullName, Claim>;

/// The claims of a SET. Two keys with one full name can only come from a key that does not say what the pod's metadata say; the
/// first wins.
pub(super) fn claims_of(set: Set) -> Claims {
    let mut claims = Claims::new();
    for (key, set_pod) in set.pods {
        let metadata = &set_pod.pod.metadata;
        let full_name = PodFullName {
            name: metadata.name.clone().unwrap_or(key.name),
            namespace: metadata.namespace.clone().unwrap_or(key.namespace),
        };
        claims.entry(full_name).or_insert(Claim {
            source: set.source.clone(),
            revision: set.revision.clone(),
            origin: set_pod.origin,
            pod: set_pod.pod,
        });
    }
    claims
}

/// The union of all sources' claims, and who lost.
#[derive(Debug, Default)]
pub(super) struct Target<'a> {
    pub(super) claims: BTreeMap<&'a PodFullName, &'a Claim>,
    /// Names that are claimed but cannot be granted; what runs under them stays.
    pub(super) refused: BTreeMap<&'a PodFullName, &'a Claim>,
    pub(super) conflicts: Vec<Conflict>,
}

/// Joins the claims of the sources, given in order of precedence.
pub(super) fn union<'a>(sources: impl Iterator<Item = &'a Claims>) -> Target<'a> {
    let mut target = Target::default();
    let mut fixed: BTreeMap<PodUid, &Claim> = BTreeMap::new();
    for (full_name, claim) in sources.flatten() {
        if let Some(winner) = target.claims.get(full_name).or_else(|| target.refused.get(full_name)) {
            target.conflicts.push(Conflict {
                full_name: full_name.clone(),
                kind: ConflictKind::SameName,
                winner: winner.claimant(),
                loser: claim.claimant(),
            });
            continue;
        }
        if let Some(uid) = claim.fixed_uid() {
            if let Some(winner) = fixed.get(&uid) {
                target.conflicts.push(Conflict {
                    full_name: full_name.clone(),
                    kind: ConflictKind::SameUid(uid),
                    winner: winner.claimant(),
                    loser: claim.claimant(),
                });
                target.refused.insert(full_name, claim);
                continue;
            }
            fixed.insert(uid, claim);
        }
        target.claims.insert(full_name, claim);
    }
    target
}
