//! Rules for the use of objects of other sources. **Pure**.
//!
//! The one decision behind references, claims, names of DNS, host ports and names of pods; the daemon and `podstead plan` both ask it.
//!
//! * A source without `allow` is unrestricted. Unrestricted sources see each other's objects.
//! * A source with `allow` is restricted. It reaches its own objects, and what another source's `share` names it for. In the other direction
//!   the same holds: no pod uses an object of a restricted source unless that source's `share` names the pod's source.
//! * Nothing of a restricted source takes the place of another source's object: unrestricted sources come first, in whatever order the
//!   sources are configured. Among restricted sources, what is there stays.

use super::SourceId;
use super::objects::ObjectKind;
use std::collections::BTreeSet;

/// Stands for all names.
const ALL: &str = "*";

/// Names of objects; `*` is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedNames(BTreeSet<String>);

impl SharedNames {
    /// These names.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Each name, or `*`.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Nothing is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains(ALL) || self.0.contains(name)
    }
}

/// Objects that a source shares with others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The sources whose pods may use them.
    pub with: BTreeSet<SourceId>,
    /// ConfigMaps.
    pub config_maps: SharedNames,
    /// Secrets, those that images are pulled with included.
    pub secrets: SharedNames,
    /// PersistentVolumeClaims.
    pub persistent_volume_claims: SharedNames,
    /// Subdomains that pods of the other sources may join.
    pub subdomains: SharedNames,
}

/// Settings of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharingSource {
    /// Its name.
    pub id: SourceId,
    /// It has `allow`.
    pub is_restricted: bool,
    /// Its pods may pull with the credentials that this host has for registries.
    pub uses_registry_credentials: bool,
    /// The namespace that is its own because its `allow` names no namespaces.
    pub own_namespace: Option<String>,
    /// Its shares.
    pub shares: Vec<Share>,
}

/// All configured sources, first the one whose objects have precedence: unrestricted ones as configured, then restricted ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    sources: Vec<SharingSource>,
}

impl Sharing {
    /// From sources in the order in which they are configured.
    pub fn new(mut sources: Vec<SharingSource>) -> Self {
        sources.sort_by_key(|source| source.is_restricted);
        Self { sources }
    }

    /// The sources, first the one whose objects have precedence.
    pub fn order(&self) -> impl Iterator<Item = &SourceId> {
        self.sources.iter().map(|source| &source.id)
    }

    /// The place of a source in that order; the last one for a source that is not configured.
    pub fn rank(&self, source: &SourceId) -> usize {
        self.sources.iter().position(|known| known.id == *source).unwrap_or(usize::MAX)
    }

    /// Returns true if the source reaches only its own objects and those shared with it. So does one that is not configured any more.
    pub fn is_restricted(&self, source: &SourceId) -> bool {
        self.source(source).is_none_or(|source| source.is_restricted)
    }

    /// Returns true if pods of the source may pull with the credentials that this host has for registries.
    pub fn uses_registry_credentials(&self, source: &SourceId) -> bool {
        self.source(source).is_some_and(|source| source.uses_registry_credentials)
    }

    /// Returns true if there is a restricted source.
    pub fn restricts_any(&self) -> bool {
        self.sources.iter().any(|source| source.is_restricted)
    }

    /// The namespace that is the source's own by default.
    pub fn own_namespace(&self, source: &SourceId) -> Option<&str> {
        self.source(source)?.own_namespace.as_deref()
    }

    /// Returns true if neither source reaches the other's objects unless they are shared.
    pub fn are_apart(&self, one: &SourceId, other: &SourceId) -> bool {
        one != other && (self.is_restricted(one) || self.is_restricted(other))
    }

    /// Returns true if pods of `reader` may use an object of `owner`.
    pub fn may_use(&self, reader: &SourceId, owner: &SourceId, kind: ObjectKind, name: &str) -> bool {
        let names = |share: &Share| match kind {
            ObjectKind::ConfigMap => share.config_maps.has(name),
            ObjectKind::Secret => share.secrets.has(name),
            ObjectKind::PersistentVolumeClaim => share.persistent_volume_claims.has(name),
            ObjectKind::Network(_) => share.subdomains.has(name),
        };
        !self.are_apart(reader, owner) || self.shares(owner, reader, names)
    }

    /// Returns true if pods of `joiner` may be members of a subdomain of `owner`.
    pub fn may_join(&self, joiner: &SourceId, owner: &SourceId, subdomain: &str) -> bool {
        !self.are_apart(joiner, owner) || self.shares(owner, joiner, |share| share.subdomains.has(subdomain))
    }

    fn shares(&self, owner: &SourceId, with: &SourceId, names: impl Fn(&Share) -> bool) -> bool {
        self.source(owner).is_some_and(|owner| owner.shares.iter().any(|share| share.with.contains(with) && names(share)))
    }

    fn source(&self, id: &SourceId) -> Option<&SharingSource> {
        self.sources.iter().find(|source| source.id == *id)
    }
}

/// Unrestricted sources, as configured.
impl<T: IntoIterator<Item = SourceId>> From<T> for Sharing {
    fn from(sources: T) -> Self {
        let open = |id| SharingSource {
            id,
            is_restricted: false,
            uses_registry_credentials: true,
            own_namespace: None,
            shares: Vec::new(),
        };
        Self::new(sources.into_iter().map(open).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sharing;

    fn id(name: &str) -> SourceId {
        SourceId::new(name)
    }

    #[test]
    fn unrestricted_sources_come_first_as_configured() {
        let sharing = sharing(&["r!", "a", "s!", "b"], &[]);
        assert_eq!(sharing.order().map(SourceId::as_str).collect::<Vec<_>>(), ["a", "b", "r", "s"]);
        assert_eq!((sharing.rank(&id("r")), sharing.rank(&id("gone"))), (2, usize::MAX));
    }

    #[test]
    fn restricted_source_reaches_only_what_is_shared() {
        let sharing = sharing(&["a", "b", "r!", "s!"], &[("a", "r", "login"), ("s", "a", "*")]);
        for (reader, owner, name, expected) in [
            ("a", "b", "login", true),
            ("r", "r", "any", true),
            ("r", "a", "login", true),
            ("r", "a", "other", false),
            ("r", "b", "login", false),
            ("r", "s", "login", false),
            // The other direction is another matter.
            ("a", "r", "login", false),
            ("a", "s", "any", true),
            ("b", "s", "any", false),
            ("gone", "a", "login", false),
        ] {
            for kind in [ObjectKind::ConfigMap, ObjectKind::Secret, ObjectKind::PersistentVolumeClaim] {
                assert_eq!(sharing.may_use(&id(reader), &id(owner), kind, name), expected, "{reader} {owner} {name}");
            }
            assert_eq!(sharing.may_join(&id(reader), &id(owner), name), expected, "{reader} {owner} {name}");
        }
    }

    #[test]
    fn kinds_are_shared_one_by_one() {
        let share = Share { with: [id("r")].into(), secrets: SharedNames::new(["*".to_owned()]), ..Share::default() };
        let owner = SharingSource {
            id: id("a"),
            is_restricted: false,
            uses_registry_credentials: true,
            own_namespace: None,
            shares: vec![share],
        };
        let reader = SharingSource {
            id: id("r"),
            is_restricted: true,
            uses_registry_credentials: false,
            own_namespace: None,
            shares: Vec::new(),
        };
        let sharing = Sharing::new(vec![owner, reader]);
        assert!(sharing.may_use(&id("r"), &id("a"), ObjectKind::Secret, "x"));
        assert!(!sharing.may_use(&id("r"), &id("a"), ObjectKind::ConfigMap, "x"));
        assert!(!sharing.may_join(&id("r"), &id("a"), "x"));
    }
}
