//! Objects as pods of one source see them.

use super::{Held, ObjectError, ObjectName, Objects};
use crate::SourceId;
use std::collections::BTreeSet;

/// The view of pods of one source.
#[derive(Clone, Copy, Debug)]
pub struct SourceView<'a> {
    objects: &'a Objects,
    reader: &'a SourceId,
}

impl<'a> SourceView<'a> {
    pub(super) const fn new(objects: &'a Objects, reader: &'a SourceId) -> Self {
        Self { objects, reader }
    }

    /// The object, or why pods of this source cannot use it.
    pub fn find(&self, name: &ObjectName) -> Result<&'a Held, ObjectError> {
        let held = self.objects.held.get(name).map(Vec::as_slice).unwrap_or_default();
        if let Some(found) = self.sources(name).find_map(|(source, _)| held.iter().find(|held| held.source == *source)) {
            return Ok(found);
        }
        match held.first() {
            // While the source itself has yet to deliver, the object may be its own.
            Some(other) if self.has_delivered() => {
                Err(ObjectError::NotShared { name: name.clone(), owner: other.source.clone(), reader: self.reader.clone() })
            }
            Some(_) | None => Err(self.objects.missing(name, |source| self.may_use(source, name))),
        }
    }

    /// Returns true if the object comes from a restricted source.
    pub fn is_of_restricted(&self, held: &Held) -> bool {
        self.objects.sharing.is_restricted(&held.source)
    }

    /// The namespace that is a source's own by default.
    pub fn own_namespace(&self, source: &SourceId) -> Option<&'a str> {
        self.objects.sharing.own_namespace(source)
    }

    /// Returns true if no source that has yet to deliver could change the object that pods see under `name`.
    pub fn is_settled(&self, name: &ObjectName) -> bool {
        let held = self.objects.held.get(name).map(Vec::as_slice).unwrap_or_default();
        let is_here = |source: &SourceId| held.iter().any(|held| held.source == *source);
        self.sources(name).take_while(|(source, _)| !is_here(source)).all(|(_, has_delivered)| has_delivered)
    }

    /// Returns true if pods of this source see the same under all of `names` in another view, including the reasons for missing objects.
    pub fn agrees(&self, other: &Objects, names: &BTreeSet<ObjectName>) -> bool {
        let then = other.seen_by(self.reader);
        let is_same = |name: &ObjectName| match (self.find(name), then.find(name)) {
            (Ok(now), Ok(then)) => now.source == then.source && now.object.has_content_of(&then.object),
            (Err(now), Err(then)) => now == then,
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
        };
        names.iter().all(|name| is_same(name) && self.is_settled(name) == then.is_settled(name))
    }

    /// Sources whose object of this name pods may use, the one that is used first, and whether each has delivered. A restricted source's own
    /// objects come first: nothing else of that name is meant in its manifests.
    fn sources(&self, name: &ObjectName) -> impl Iterator<Item = (&'a SourceId, bool)> {
        let Self { objects, reader } = *self;
        let own_first = objects.sharing.is_restricted(reader);
        let all = move || objects.sharing.order().zip(objects.has_delivered.iter().copied());
        let own = all().filter(move |(source, _)| own_first && *source == reader);
        let name = name.clone();
        let others = all().filter(move |(source, _)| {
            !(own_first && *source == reader) && objects.sharing.may_use(reader, source, name.kind, &name.name)
        });
        own.chain(others)
    }

    fn may_use(&self, source: &SourceId, name: &ObjectName) -> bool {
        self.objects.sharing.may_use(self.reader, source, name.kind, &name.name)
    }

    fn has_delivered(&self) -> bool {
        let mut sources = self.objects.sharing.order().zip(&self.objects.has_delivered);
        sources.find(|(source, _)| *source == self.reader).is_none_or(|(_, delivered)| *delivered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::ObjectKind;
    use crate::testing::{config_map, shared_view, sharing};

    fn name(kind: ObjectKind) -> ObjectName {
        ObjectName { kind, namespace: "default".into(), name: "m".into() }
    }

    /// The source whose ConfigMap `m` pods of `reader` use, or why none.
    fn found(sources: &[&str], shares: &[(&str, &str, &str)], having: &[&str], reader: &str) -> Result<String, String> {
        let m = config_map("m", "{k: v}");
        let delivered: Vec<(&str, Option<&str>)> = sources
            .iter()
            .map(|source| source.trim_end_matches('!'))
            .map(|source| (source, Some(if having.contains(&source) { m.as_str() } else { "" })))
            .collect();
        let view = shared_view(&sharing(sources, shares), &delivered);
        let reader = SourceId::new(reader);
        let found = view.seen_by(&reader).find(&name(ObjectKind::ConfigMap)).map(|held| held.source.to_string());
        found.map_err(|error| error.to_string())
    }

    #[test]
    fn unrestricted_sources_see_each_other_by_precedence() {
        for reader in ["a", "b"] {
            assert_eq!(found(&["a", "b"], &[], &["a", "b"], reader), Ok("a".into()));
            assert_eq!(found(&["a", "b"], &[], &["b"], reader), Ok("b".into()));
        }
    }

    #[test]
    fn restricted_source_shadows_nobody_in_either_order() {
        for sources in [["r!", "a"], ["a", "r!"]] {
            assert_eq!(found(&sources, &[], &["a", "r"], "a"), Ok("a".into()));
            assert_eq!(found(&sources, &[], &["a", "r"], "r"), Ok("r".into()), "its pods use its own");
            // Not even where there is no other one.
            let refused = found(&sources, &[], &["r"], "a").unwrap_err();
            assert!(refused.contains("belongs to source r and is not shared with source a"), "{refused}");
            assert_eq!(found(&sources, &[("r", "a", "m")], &["r"], "a"), Ok("r".into()));
            assert_eq!(found(&sources, &[("r", "a", "m")], &["a", "r"], "a"), Ok("a".into()));
        }
    }

    #[test]
    fn restricted_source_uses_what_is_shared_with_it() {
        let sources = ["a", "r!", "s!"];
        let refused = found(&sources, &[("a", "s", "m"), ("a", "r", "other")], &["a"], "r").unwrap_err();
        assert_eq!(
            refused,
            "configmap \"m\" in namespace \"default\" belongs to source a and is not shared with source r (to share it, set with: [r] and \
             configMaps: [m] under share of source a in podstead's configuration)"
        );
        assert_eq!(found(&sources, &[("a", "r", "m")], &["a"], "r"), Ok("a".into()));
        assert_eq!(found(&sources, &[("a", "r", "*")], &["a", "r"], "r"), Ok("r".into()));
        assert_eq!(found(&sources, &[], &["s", "r"], "r"), Ok("r".into()));
        assert!(found(&sources, &[], &["s"], "r").is_err());
        // Sources that it does not reach are not named where nobody has the object.
        let missing = found(&sources, &[("s", "r", "m")], &[], "r").unwrap_err();
        assert!(missing.ends_with("(looked in source r, s)"), "{missing}");
    }

    #[test]
    fn claim_of_an_unrestricted_source_leaves_no_room() {
        let claim = "{kind: PersistentVolumeClaim, metadata: {name: m}}";
        for sources in [["r!", "a"], ["a", "r!"]] {
            let (a, r) = (SourceId::new("a"), SourceId::new("r"));
            let claim_name = name(ObjectKind::PersistentVolumeClaim);
            let both = shared_view(&sharing(&sources, &[]), &[("r", Some(claim)), ("a", Some(claim))]);
            assert_eq!(both.seen_by(&a).find(&claim_name).unwrap().source, a);
            assert!(matches!(both.seen_by(&r).find(&claim_name), Err(ObjectError::NotShared { .. })));
            let shared = shared_view(&sharing(&sources, &[("a", "r", "m")]), &[("r", Some(claim)), ("a", Some(claim))]);
            assert_eq!(shared.seen_by(&r).find(&claim_name).unwrap().source, a);
        }
    }

    #[test]
    fn view_is_settled_when_the_sources_that_count_have_delivered() {
        let m = config_map("m", "{k: v}");
        let settled = |shares: &[(&str, &str, &str)], a: Option<&str>, r: Option<&str>, reader: &str| {
            let view = shared_view(&sharing(&["a", "r!"], shares), &[("a", a), ("r", r)]);
            view.seen_by(&SourceId::new(reader)).is_settled(&name(ObjectKind::ConfigMap))
        };
        assert!(settled(&[], None, Some(&m), "r"), "its own comes first");
        assert!(settled(&[], None, Some(""), "r"), "the other one does not count");
        assert!(!settled(&[("a", "r", "m")], None, Some(""), "r"));
        assert!(!settled(&[], Some(&m), None, "r"));
        assert!(settled(&[], Some(""), None, "a"));
        assert!(!settled(&[], None, Some(&m), "a"));
    }

    #[test]
    fn sharing_otherwise_is_a_change() {
        let m = config_map("m", "{k: v}");
        let view = |shares: &[(&str, &str, &str)]| shared_view(&sharing(&["a", "r!"], shares), &[("a", Some(&m)), ("r", Some(""))]);
        let (before, after, r) = (view(&[]), view(&[("a", "r", "m")]), SourceId::new("r"));
        let m = name(ObjectKind::ConfigMap);
        assert_eq!(after.changes(&before), std::slice::from_ref(&m));
        assert!(!after.seen_by(&r).agrees(&before, &[m.clone()].into()));
        assert!(after.seen_by(&r).agrees(&after, &[m.clone()].into()));
        let dated = config_map("m, creationTimestamp: '2026-01-01T00:00:00Z'", "{k: v}");
        let dated = shared_view(&sharing(&["a", "r!"], &[("a", "r", "m")]), &[("a", Some(&dated)), ("r", Some(""))]);
        assert!(dated.seen_by(&r).agrees(&after, &[m.clone()].into()), "the time of creation is not seen");
        let nothing = shared_view(&sharing(&["a", "r!"], &[]), &[("a", Some("")), ("r", Some(""))]);
        assert!(!before.seen_by(&r).agrees(&nothing, &[m].into()), "it is missing for another reason");
    }
}
