//! Index from objects to the pods that refer to them, so that a change wakes these pods and no others. **Pure**.

use podstead_pod::PodUid;
use podstead_pod::objects::ObjectName;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Pods by the ConfigMaps and Secrets that they name.
#[derive(Debug, Default)]
pub(super) struct ReferenceIndex {
    pods: BTreeMap<ObjectName, BTreeSet<PodUid>>,
    names: HashMap<PodUid, BTreeSet<ObjectName>>,
}

impl ReferenceIndex {
    /// The pod refers to these and no longer to others.
    pub(super) fn set(&mut self, uid: &PodUid, names: BTreeSet<ObjectName>) {
        self.forget(uid);
        if names.is_empty() {
            return;
        }
        for name in &names {
            self.pods.entry(name.clone()).or_default().insert(uid.clone());
        }
        self.names.insert(uid.clone(), names);
    }

    /// The pod is gone.
    pub(super) fn forget(&mut self, uid: &PodUid) {
        for name in self.names.remove(uid).unwrap_or_default() {
            if let Some(pods) = self.pods.get_mut(&name) {
                pods.remove(uid);
                if pods.is_empty() {
                    self.pods.remove(&name);
                }
            }
        }
    }

    /// Pods that refer to one of these, each once.
    pub(super) fn of_any(&self, names: &[ObjectName]) -> BTreeSet<PodUid> {
        names.iter().filter_map(|name| self.pods.get(name)).flatten().cloned().collect()
    }

    /// All that is referred to.
    pub(super) fn names(&self) -> impl Iterator<Item = &ObjectName> {
        self.pods.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::objects::ObjectKind;

    fn name(name: &str) -> ObjectName {
        ObjectName { kind: ObjectKind::ConfigMap, namespace: "default".into(), name: name.into() }
    }

    fn uids(texts: &[&str]) -> BTreeSet<PodUid> {
        texts.iter().map(|text| PodUid::new(*text)).collect()
    }

    #[test]
    fn a_change_finds_exactly_the_pods_that_refer_to_it_now() {
        let mut index = ReferenceIndex::default();
        index.set(&PodUid::new("1"), [name("a"), name("b")].into());
        index.set(&PodUid::new("2"), [name("b")].into());
        assert_eq!(index.of_any(&[name("b"), name("a")]), uids(&["1", "2"]));
        index.set(&PodUid::new("1"), [name("c")].into());
        assert_eq!((index.of_any(&[name("a")]), index.of_any(&[name("b")])), (uids(&[]), uids(&["2"])));
        index.forget(&PodUid::new("1"));
        index.forget(&PodUid::new("2"));
        assert_eq!(index.names().count(), 0);
    }
}
