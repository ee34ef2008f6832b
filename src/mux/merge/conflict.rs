//! Conflicts between two manifests.

use podstead_pod::host_ports::HostPort;
use podstead_pod::{Origin, PodFullName, PodUid, SourceId};
use std::fmt;

/// A manifest that claims a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claimant {
    /// The source that delivers it.
    pub source: SourceId,
    /// File and position of its manifest.
    pub origin: Origin,
}

impl fmt::Display for Claimant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "source {} ({})", self.source, self.origin)
    }
}

/// Property that only one manifest may have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ConflictKind {
    /// Name and namespace.
    SameName,
    /// A `metadata.uid` that another pod has.
    SameUid(PodUid),
    /// A port of the host, which a restricted source leaves to an unrestricted one.
    SameHostPort(HostPort),
}

/// A manifest that is not used because another one wants the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conflict {
    /// The loser's full name.
    pub full_name: PodFullName,
    /// The property that they share.
    pub kind: ConflictKind,
    /// The manifest that is used.
    pub winner: Claimant,
    /// The one that is not.
    pub loser: Claimant,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ConflictKind::SameName => write!(
                f,
                "pod {} of {} is ignored: {} takes precedence and has a pod of the same name",
                self.full_name, self.loser, self.winner
            ),
            ConflictKind::SameHostPort(port) => write!(
                f,
                "pod {} of {} is ignored: host port {port} is used by the pod of {}, whose source has no allow and takes precedence",
                self.full_name, self.loser, self.winner
            ),
            ConflictKind::SameUid(uid) => {
                write!(
                    f,
                    "pod {} of {} is ignored: its metadata.uid {uid} is used by the pod of {}",
                    self.full_name, self.loser, self.winner
                )
            }
        }
    }
}
