//! ConfigMaps and Secrets of all sources as one view. As with pods, the source that is configured first wins.

use crate::manifest::ObjectKey;
use crate::pod::SourceId;
use crate::pod::objects::{Object, ObjectKind, ObjectName, ObjectSource, Objects};
use crate::store::Set;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The objects of one source.
pub(super) type Own = BTreeMap<ObjectName, Object>;

/// An object that is not used because an earlier source has one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectConflict {
    /// The object.
    pub name: ObjectName,
    /// The source whose object is used.
    pub winner: SourceId,
    /// The source whose object is not.
    pub loser: SourceId,
}

impl fmt::Display for ObjectConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, winner, loser } = self;
        write!(f, "{name} of source {loser} is not used: source {winner} is configured first and has one of the same name")
    }
}

/// The objects of a SET.
pub(super) fn objects_of(set: &Set) -> Own {
    let name = |kind, key: &ObjectKey| ObjectName { kind, namespace: key.namespace.clone(), name: key.name.clone() };
    let config_maps =
        set.config_maps.iter().map(|(key, object)| (name(ObjectKind::ConfigMap, key), Object::ConfigMap(Arc::clone(object))));
    let secrets = set.secrets.iter().map(|(key, object)| (name(ObjectKind::Secret, key), Object::Secret(Arc::clone(object))));
    config_maps.chain(secrets).collect()
}

/// Joins what the sources deliver, in order of precedence; `None` for a source that has not delivered.
pub(super) fn union<'a>(sources: impl Iterator<Item = (&'a SourceId, Option<&'a Own>)>) -> (Objects, Vec<ObjectConflict>) {
    let sources: Vec<_> = sources.collect();
    let looked = sources.iter().map(|(id, own)| ObjectSource { id: (*id).clone(), has_delivered: own.is_some() });
    let mut view = Objects::of_sources(looked.collect());
    let mut conflicts = Vec::new();
    for (rank, (id, own)) in sources.iter().enumerate() {
        for (name, object) in own.iter().flat_map(|own| own.iter()) {
            if let Some(winner) = view.add(rank, name.clone(), object.clone()) {
                conflicts.push(ObjectConflict { name: name.clone(), winner: winner.clone(), loser: (*id).clone() });
            }
        }
    }
    (view, conflicts)
}
