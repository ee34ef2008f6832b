//! Union of all sources: one claim per full name and, where manifests fix UIDs, one name per UID.

use super::conflict::{Claimant, Conflict, ConflictKind};
use podstead_pod::host_ports::{HostPort, host_ports};
use podstead_pod::sharing::Sharing;
use podstead_pod::{DesiredPod, Origin, Pod, PodFullName, PodUid, Revision, SourceId};
use podstead_store::Set;
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
            name: metadata.name.clone().unwrap_or_else(|| key.name.into()),
            namespace: metadata.namespace.clone().unwrap_or_else(|| key.namespace.into()),
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

/// Joins the claims of the sources, given in order of precedence. `incumbent` is the source of the pod that is there under a name.
pub(super) fn union<'a>(
    sources: impl Iterator<Item = &'a Claims>,
    sharing: &Sharing,
    incumbent: &dyn Fn(&PodFullName) -> Option<&'a SourceId>,
) -> Target<'a> {
    let mut target = Target::default();
    let mut fixed: BTreeMap<PodUid, &Claim> = BTreeMap::new();
    for (full_name, claim) in winners(sources, sharing, incumbent, &mut target.conflicts) {
        let uid = claim.fixed_uid();
        if let Some((uid, winner)) = uid.as_ref().and_then(|uid| Some((uid, *fixed.get(uid)?))) {
            target.conflicts.push(conflict(full_name, ConflictKind::SameUid(uid.clone()), winner, claim));
            // What runs of a restricted source does not hold the UID against an unrestricted one.
            if !outranks(sharing, &winner.source, &claim.source) {
                target.refused.insert(full_name, claim);
            }
            continue;
        }
        fixed.extend(uid.map(|uid| (uid, claim)));
        target.claims.insert(full_name, claim);
    }
    target.free_host_ports(sharing);
    target
}

/// Reports whether `other` is a restricted source that gives way to the unrestricted `one`.
pub(super) fn outranks(sharing: &Sharing, one: &SourceId, other: &SourceId) -> bool {
    !sharing.is_restricted(one) && sharing.is_restricted(other)
}

fn conflict(full_name: &PodFullName, kind: ConflictKind, winner: &Claim, loser: &Claim) -> Conflict {
    Conflict { full_name: full_name.clone(), kind, winner: winner.claimant(), loser: loser.claimant() }
}

/// The claim that is granted of each full name, in order of precedence. Among restricted sources the one whose pod is there keeps the name.
fn winners<'a>(
    sources: impl Iterator<Item = &'a Claims>,
    sharing: &Sharing,
    incumbent: &dyn Fn(&PodFullName) -> Option<&'a SourceId>,
    conflicts: &mut Vec<Conflict>,
) -> Vec<(&'a PodFullName, &'a Claim)> {
    let mut by_name: BTreeMap<&PodFullName, Vec<&Claim>> = BTreeMap::new();
    for (full_name, claim) in sources.flatten() {
        by_name.entry(full_name).or_default().push(claim);
    }
    let mut winners = Vec::new();
    for (full_name, claims) in by_name {
        let of_incumbent = |claim: &&&Claim| incumbent(full_name) == Some(&claim.source);
        let first = claims.first().filter(|first| claims.len() == 1 || !sharing.is_restricted(&first.source));
        let Some(winner) = first.or_else(|| claims.iter().find(of_incumbent)).or(claims.first()).copied() else { continue };
        let losers = claims.into_iter().filter(|claim| claim.source != winner.source);
        conflicts.extend(losers.map(|loser| conflict(full_name, ConflictKind::SameName, winner, loser)));
        winners.push((full_name, winner));
    }
    winners.sort_by_key(|(_, claim)| sharing.rank(&claim.source));
    winners
}

impl<'a> Target<'a> {
    /// Removes pods of restricted sources that want a host port which a pod of an unrestricted source has.
    fn free_host_ports(&mut self, sharing: &Sharing) {
        if !sharing.restricts_any() {
            return;
        }
        let (restricted, others): (Vec<_>, Vec<_>) =
            self.claims.iter().map(|(name, claim)| (*name, *claim)).partition(|(_, claim)| sharing.is_restricted(&claim.source));
        let taken: Vec<(HostPort, &'a Claim)> =
            others.into_iter().flat_map(|(_, claim)| host_ports(&claim.pod).into_iter().map(move |port| (port, claim))).collect();
        for (full_name, claim) in restricted {
            let wanted = host_ports(&claim.pod);
            let clash = taken.iter().find_map(|(taken, winner)| Some((wanted.iter().find(|port| port.collides(taken))?, *winner)));
            if let Some((port, winner)) = clash {
                self.claims.remove(full_name);
                self.conflicts.push(conflict(full_name, ConflictKind::SameHostPort(*port), winner, claim));
            }
        }
    }
}
