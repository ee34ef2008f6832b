//! Pods that run while NetworkPolicies select them that are not enforced. **Pure**.
//!
//! They go on (P1), and are told of: when they are connected, when a policy comes, and when their labels change.

use podstead_pod::{PodFullName, PodUid};
use podstead_policy::compile::{PolicedPod, Policies};
use std::collections::BTreeMap;

/// Reasons of events.
const POLICY_IGNORED: &str = "NetworkPolicyIgnored";
const POLICY_NOT_ENFORCED: &str = "NetworkPolicyNotEnforced";

/// Reason why policies are not enforced for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It is on the host's network (N10).
    HostNetwork,
    /// Plugins make its first interface (N15).
    Plugins,
}

impl Way {
    /// Reason and message of the event of a pod that these policies select.
    pub(super) fn event(self, names: &str) -> (&'static str, String) {
        match self {
            Self::HostNetwork => (
                POLICY_IGNORED,
                format!(
                    "NetworkPolicy {names} selects this pod, but is not enforced: the pod is on the host's network; remove hostNetwork, or \
                     use the host's firewall"
                ),
            ),
            Self::Plugins => (
                POLICY_NOT_ENFORCED,
                format!(
                    "NetworkPolicy {names} selects this pod, and podstead cannot enforce it for a pod that CNI plugins connect: \
                     set network.cni.enforcesPolicies if they do, or remove the policy"
                ),
            ),
        }
    }
}

/// Event of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) uid: PodUid,
    pub(super) pod: PodFullName,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

#[derive(Debug)]
struct OpenPod {
    name: PodFullName,
    facts: PolicedPod,
    way: Way,
    /// The policies that it was told of.
    told: Option<String>,
}

impl OpenPod {
    /// The notice of policies that it was not told of.
    fn notice(&mut self, uid: &PodUid, policies: &Policies) -> Option<Notice> {
        let names = names_of(policies, &self.facts);
        if names == self.told {
            return None;
        }
        self.told = names;
        let (reason, message) = self.way.event(self.told.as_ref()?);
        Some(Notice { uid: uid.clone(), pod: self.name.clone(), reason, message })
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct OpenPods {
    pods: BTreeMap<PodUid, OpenPod>,
}

impl OpenPods {
    /// Takes in a pod that runs, or its other labels. `policies` are asked for only if it is not known so.
    pub(super) fn learn(
        &mut self,
        uid: &PodUid,
        name: PodFullName,
        facts: PolicedPod,
        way: Way,
        policies: impl FnOnce() -> Policies,
    ) -> Option<Notice> {
        let known = self.pods.remove(uid);
        let is_known = known.as_ref().is_some_and(|known| known.facts == facts && known.way == way);
        let told = known.and_then(|known| known.told);
        let pod = self.pods.entry(uid.clone()).or_insert(OpenPod { name, facts, way, told });
        if is_known { None } else { pod.notice(uid, &policies()) }
    }

    /// Forgets a pod that is gone.
    pub(super) fn forget(&mut self, uid: &PodUid) {
        self.pods.remove(uid);
    }

    /// Returns true if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// The notices after a change of policies.
    pub(super) fn look(&mut self, policies: &Policies) -> Vec<Notice> {
        self.pods.iter_mut().filter_map(|(uid, pod)| pod.notice(uid, policies)).collect()
    }
}

/// Names of the policies that select a pod, in words; `None` if there is none.
pub(super) fn names_of(policies: &Policies, pod: &PolicedPod) -> Option<String> {
    let names: Vec<&str> = policies.selecting(pod).map(|policy| &*policy.name.name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::policed;
    use podstead_policy::definition::Policy;
    use serde_json::json;

    /// Policies of the namespace `default`, for pods with the label `app` of their names.
    fn policies(names: &[&str]) -> Policies {
        let policy = |name: &&str| {
            let spec = json!({"podSelector": {"matchLabels": {"app": "web"}}});
            let object = json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec});
            Policy::of(&serde_json::from_value(object).unwrap()).unwrap()
        };
        Policies::new(names.iter().map(policy), BTreeMap::new())
    }

    fn learn(pods: &mut OpenPods, app: &str, way: Way, names: &[&str]) -> Option<String> {
        let metadata = json!({"name": "p", "namespace": "default", "labels": {"app": app}});
        let pod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        let name = PodFullName { namespace: "default".to_owned(), name: "p".to_owned() };
        pods.learn(&PodUid::new("u"), name, policed(&pod), way, || policies(names)).map(|notice| notice.message)
    }

    fn look(pods: &mut OpenPods, names: &[&str]) -> Vec<String> {
        let begins = |notice: Notice| notice.message.split(" selects").next().unwrap().to_owned();
        pods.look(&policies(names)).into_iter().map(begins).collect()
    }

    #[test]
    fn pod_is_told_of_once_for_each_change() {
        let mut pods = OpenPods::default();
        assert!(learn(&mut pods, "web", Way::Plugins, &["a"]).unwrap().contains("network.cni.enforcesPolicies"));
        assert_eq!(learn(&mut pods, "web", Way::Plugins, &["a"]), None);
        assert_eq!(look(&mut pods, &["a"]), [""; 0]);
        assert_eq!(look(&mut pods, &["b", "a"]), ["NetworkPolicy a, b"]);
        assert_eq!(look(&mut pods, &[]), [""; 0]);
        assert_eq!(look(&mut pods, &["a"]), ["NetworkPolicy a"], "it came again");
        pods.forget(&PodUid::new("u"));
        assert!(pods.is_empty() && look(&mut pods, &["c"]).is_empty());
    }

    #[test]
    fn labels_and_network_of_a_pod_count() {
        let mut pods = OpenPods::default();
        assert_eq!(learn(&mut pods, "db", Way::Plugins, &["a"]), None);
        assert!(learn(&mut pods, "web", Way::Plugins, &["a"]).is_some());
        assert_eq!(learn(&mut pods, "db", Way::Plugins, &["a"]), None);
        assert!(learn(&mut pods, "web", Way::HostNetwork, &["a"]).unwrap().contains("remove hostNetwork"));
    }
}
