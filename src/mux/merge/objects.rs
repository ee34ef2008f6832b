//! Objects of all sources as one view. As with pods, the source that has precedence wins; see [`podstead_pod::sharing`].

use podstead_manifest::ObjectKey;
use podstead_pod::objects::{Object, ObjectKind, ObjectName, Objects};
use podstead_pod::sharing::Sharing;
use podstead_pod::{Severity, SourceId};
use podstead_store::Set;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The objects of one source.
pub(super) type Own = BTreeMap<Arc<ObjectName>, Object>;

/// Faults of objects that one source refuses and does not have.
pub(super) type Refused = BTreeMap<ObjectName, Arc<str>>;

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
        write!(f, "{name} of source {loser} is ignored: source {winner} takes precedence and has one of the same name")
    }
}

/// The objects of a SET.
pub(super) fn objects_of(set: &Set) -> Own {
    let name = |kind, key: &ObjectKey| Arc::new(ObjectName { kind, namespace: key.namespace.clone(), name: key.name.clone() });
    let config_maps =
        set.config_maps.iter().map(|(key, object)| (name(ObjectKind::ConfigMap, key), Object::ConfigMap(Arc::clone(object))));
    let secrets = set.secrets.iter().map(|(key, object)| (name(ObjectKind::Secret, key), Object::Secret(Arc::clone(object))));
    let claims = set
        .claims
        .iter()
        .map(|(key, object)| (name(ObjectKind::PersistentVolumeClaim, key), Object::PersistentVolumeClaim(Arc::clone(object))));
    let network = set
        .network
        .iter()
        .map(|(key, object)| (name(ObjectKind::Network(object.kind()), key), Object::Network(Arc::clone(object))));
    config_maps.chain(secrets).chain(claims).chain(network).collect()
}

/// The objects of a SET that its source refuses and has in no accepted version, each with its first fault.
pub(super) fn refused_of(set: &Set, own: &Own) -> Refused {
    let mut refused = Refused::new();
    for problem in set.problems.iter().filter(|problem| problem.severity == Severity::Error) {
        let Some(key) = &problem.object else { continue };
        let kind = match key.kind.as_str() {
            "ConfigMap" => ObjectKind::ConfigMap,
            "Secret" => ObjectKind::Secret,
            "PersistentVolumeClaim" => ObjectKind::PersistentVolumeClaim,
            _ => continue,
        };
        let name = ObjectName { kind, namespace: key.namespace.clone(), name: key.name.clone() };
        if !own.contains_key(&name) {
            refused.entry(name).or_insert_with(|| problem.fault().into());
        }
    }
    refused
}

/// Joins what the sources deliver; `None` for a source that has not delivered.
pub(super) fn union<'a>(
    sharing: &Arc<Sharing>,
    delivered: impl Fn(&SourceId) -> Option<&'a Own>,
) -> (Objects, Vec<ObjectConflict>) {
    let mut view = Objects::new(Arc::clone(sharing), |source| delivered(source).is_some());
    let mut conflicts = Vec::new();
    for source in sharing.order() {
        for (name, object) in delivered(source).into_iter().flatten() {
            if let Some(winner) = view.add(source, Arc::clone(name), object.clone()) {
                conflicts.push(ObjectConflict { name: ObjectName::clone(name), winner, loser: source.clone() });
            }
        }
    }
    view.shrink();
    (view, conflicts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::Applied;
    use crate::merge::tests::{Bench, set, short};
    use k8s_openapi::api::core::v1::ConfigMap;
    use podstead_manifest::Problem;
    use podstead_pod::PodUid;
    use podstead_pod::Position;
    use podstead_pod::testing::seen as seen_by_first;

    /// A SET with one pod `web` and these ConfigMaps.
    fn with_objects(source: &str, pod: &str, config_maps: &[(&str, &str)]) -> Set {
        let mut set = set(source, &[("web", pod)]);
        for (name, text) in config_maps {
            let key = ObjectKey { kind: "ConfigMap".into(), namespace: "default".into(), name: (*name).into() };
            let data = Some(BTreeMap::from([("text".to_owned(), (*text).to_owned())]));
            set.config_maps.insert(key, Arc::new(ConfigMap { data, ..ConfigMap::default() }));
        }
        set
    }

    /// Content of the view, by name.
    fn seen(bench: &Bench) -> Vec<String> {
        let text = |object: &Object| object.text("text").unwrap().unwrap().to_owned();
        bench.merge.objects().iter().map(|(name, held)| format!("{}={}@{}", name.name, text(&held.object), held.source)).collect()
    }

    fn changed(applied: &Applied) -> Vec<Vec<&str>> {
        applied.updates.iter().map(|update| update.objects.iter().map(|name| name.name.as_str()).collect()).collect()
    }

    #[test]
    fn the_source_that_is_configured_first_wins_and_the_other_takes_over() {
        let mut bench = Bench::new(&["a", "b"], Vec::new());
        bench.apply(with_objects("b", "1", &[("m", "of-b"), ("n", "of-b")]));
        assert_eq!(seen(&bench), ["m=of-b@b", "n=of-b@b"]);
        let both = bench.apply(with_objects("a", "1", &[("m", "of-a")]));
        assert_eq!(seen(&bench), ["m=of-a@a", "n=of-b@b"]);
        assert_eq!(
            both.object_conflicts.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["ConfigMap default/m of source b is ignored: source a takes precedence and has one of the same name"]
        );
        let gone = bench.apply(with_objects("a", "1", &[]));
        assert_eq!((seen(&bench), gone.object_conflicts), (vec!["m=of-b@b".to_owned(), "n=of-b@b".to_owned()], Vec::new()));
    }

    #[test]
    fn what_changed_is_named_by_the_last_operation_of_its_set() {
        let mut bench = Bench::new(&["a"], Vec::new());
        let first = bench.apply(with_objects("a", "1", &[("m", "1"), ("n", "1")]));
        assert_eq!((short(&first), changed(&first)), (vec!["Add a web 1 u1".to_owned()], vec![vec!["m", "n"]]));
        let both = bench.apply(with_objects("a", "2", &[("m", "2"), ("n", "1")]));
        assert_eq!((short(&both), changed(&both)), (vec!["Update a web 2 u1".to_owned()], vec![vec!["m"]]));
        let alone = bench.apply(with_objects("a", "2", &[("n", "2")]));
        assert_eq!((short(&alone), changed(&alone)), (vec!["Update a -".to_owned()], vec![vec!["n", "m"]]));
        let same = bench.apply(with_objects("a", "2", &[("n", "2")]));
        assert_eq!((same.updates, same.objects.is_none()), (Vec::new(), true));
    }

    #[test]
    fn a_source_that_has_not_delivered_leaves_the_view_unsettled() {
        let mut bench = Bench::new(&["a", "b"], Vec::new());
        let name = |name: &str| ObjectName { kind: ObjectKind::ConfigMap, namespace: "default".into(), name: name.into() };
        bench.apply(with_objects("a", "1", &[("m", "1")]));
        assert!(
            seen_by_first(bench.merge.objects()).is_settled(&name("m"))
                && !seen_by_first(bench.merge.objects()).is_settled(&name("other"))
        );
        let heard = bench.apply(set("b", &[]));
        assert!(heard.objects.is_some_and(|objects| seen_by_first(&objects).is_settled(&name("other"))));
    }

    #[test]
    fn an_incarnation_made_anew_changes_no_object_and_takes_no_conflict_back() {
        let mut bench = Bench::new(&["a", "b"], Vec::new());
        bench.apply(with_objects("a", "1", &[("m", "1")]));
        let conflicts = bench.apply(with_objects("b", "1", &[("m", "2")])).object_conflicts;
        assert_eq!(conflicts.len(), 1);
        let again = bench.turn(|merge, now, new_uid| merge.recreate(&PodUid::new("u1"), now, new_uid));
        assert_eq!((again.objects.is_none(), again.object_conflicts), (true, conflicts));
    }

    #[test]
    fn refused_object_is_missing_for_its_fault() {
        let mut bench = Bench::new(&["a", "b"], Vec::new());
        let name = ObjectName { kind: ObjectKind::ConfigMap, namespace: "default".into(), name: "m".into() };
        let told = |bench: &Bench| {
            seen_by_first(bench.merge.objects()).find(&name).map(|held| held.source.to_string()).map_err(|error| error.to_string())
        };
        let refused = |message: &str, severity: Severity| {
            let mut set = with_objects("b", "1", &[]);
            set.problems.push(Problem {
                severity,
                code: "unknown-field".into(),
                file: "m.yaml".into(),
                position: Some(Position { line: 4, column: 1 }),
                field: "dta".into(),
                message: message.into(),
                hint: Some("did you mean \"data\"?".into()),
                object: Some(ObjectKey { kind: "ConfigMap".into(), namespace: "default".into(), name: "m".into() }),
            });
            set
        };
        bench.apply(set("a", &[]));
        bench.apply(with_objects("b", "1", &[]));
        assert_eq!(told(&bench), Err("configmap \"m\" not found in namespace \"default\" (looked in source a, b)".into()));
        let update = bench.apply(refused("unknown field", Severity::Error));
        assert_eq!(
            told(&bench),
            Err("configmap \"m\" not found in namespace \"default\": source b refuses it: m.yaml:4:1: dta: unknown field (did you mean \"data\"?)".into())
        );
        assert_eq!(changed(&update), [["m"]], "pods that wait for it are told");
        let other = bench.apply(refused("another fault", Severity::Error));
        assert!(changed(&other) == [["m"]] && told(&bench).unwrap_err().contains("another fault"));
        bench.apply(refused("of no consequence", Severity::Warning));
        assert!(told(&bench).unwrap_err().contains("looked in source a, b"));
        // The last accepted version stays.
        let mut kept = refused("unknown field", Severity::Error);
        kept.config_maps = with_objects("b", "1", &[("m", "1")]).config_maps;
        bench.apply(kept);
        assert_eq!(told(&bench), Ok("b".into()));
    }
}
