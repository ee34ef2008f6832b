//! Pods of one full name: at most one is started at a time, the others wait in the order in which they came (kubelet rule C9). **Pure**.

use podstead_pod::{PodFullName, PodUid};
use std::collections::{HashMap, VecDeque};

/// Owners of pod names, and the pods that wait for a name.
#[derive(Debug, Default)]
pub struct NameExclusion {
    claims: HashMap<PodFullName, VecDeque<PodUid>>,
}

impl NameExclusion {
    /// Claims a name. Whether the pod has it now. Claiming again changes nothing.
    pub fn claim(&mut self, name: &PodFullName, uid: &PodUid) -> bool {
        let claims = self.claims.entry(name.clone()).or_default();
        if !claims.contains(uid) {
            claims.push_back(uid.clone());
        }
        claims.front() == Some(uid)
    }

    /// Returns true if the pod owns the name.
    pub fn has(&self, name: &PodFullName, uid: &PodUid) -> bool {
        self.claims.get(name).and_then(VecDeque::front) == Some(uid)
    }

    /// Gives a name, or the wait for it, up. Returns the pod that has it from now on, if that is another one than before.
    pub fn release(&mut self, name: &PodFullName, uid: &PodUid) -> Option<PodUid> {
        let claims = self.claims.get_mut(name)?;
        let had_it = claims.front() == Some(uid);
        claims.retain(|claim| claim != uid);
        if claims.is_empty() {
            self.claims.remove(name);
            return None;
        }
        claims.front().filter(|_| had_it).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> PodFullName {
        PodFullName { name: "web-node".into(), namespace: "default".into() }
    }

    fn uid(letter: &str) -> PodUid {
        PodUid::new(letter)
    }

    #[test]
    fn the_next_in_line_gets_the_name_and_those_who_left_are_skipped() {
        let mut names = NameExclusion::default();
        assert!(names.claim(&name(), &uid("a")));
        assert!(!names.claim(&name(), &uid("b")));
        assert!(!names.claim(&name(), &uid("c")));
        assert!(names.claim(&name(), &uid("a")), "claiming again changes nothing");
        assert_eq!(names.release(&name(), &uid("b")), None);
        assert_eq!(names.release(&name(), &uid("a")), Some(uid("c")));
        assert!(names.has(&name(), &uid("c")));
        assert_eq!(names.release(&name(), &uid("c")), None);
        assert!(names.claim(&name(), &uid("d")));
    }

    #[test]
    fn releasing_what_one_does_not_have_changes_nothing() {
        let mut names = NameExclusion::default();
        assert_eq!(names.release(&name(), &uid("a")), None);
        names.claim(&name(), &uid("a"));
        assert_eq!(names.release(&name(), &uid("b")), None);
        assert!(names.has(&name(), &uid("a")));
    }
}
