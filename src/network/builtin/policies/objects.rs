//! NetworkPolicies and labels of namespaces as sources have them, and their record (R14).

use super::super::lease::Facts;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use podstead_pod::{Pod, PodFullName};
use podstead_policy::compile::{PolicedPod, Policies};
use podstead_policy::definition::Policy;
use podstead_policy::selector::Labels;
use podstead_service::name::ObjectName;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A NetworkPolicy and the pods that it may select.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopedPolicy {
    /// The policy.
    pub object: NetworkPolicy,
    /// The source whose pods alone it selects; `None` for pods of all sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_of: Option<String>,
}

/// All NetworkPolicies, and the labels of namespaces that have an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyObjects {
    /// Policies.
    pub policies: Vec<ScopedPolicy>,
    /// Labels by namespace.
    #[serde(default)]
    pub namespaces: BTreeMap<String, Labels>,
}

impl PolicyObjects {
    /// These objects, and those of an earlier time that are not among them: none of the latter is taken away before all sources were read (R14).
    pub(in super::super) fn with_earlier(&self, earlier: &Self) -> Self {
        let key = |policy: &ScopedPolicy| (ObjectName::of(&policy.object.metadata), policy.only_of.clone());
        let keys: BTreeSet<_> = self.policies.iter().map(key).collect();
        let is_missing = |policy: &&ScopedPolicy| !keys.contains(&key(policy));
        let policies = self.policies.iter().chain(earlier.policies.iter().filter(is_missing)).cloned().collect();
        let mut namespaces = earlier.namespaces.clone();
        namespaces.extend(self.namespaces.clone());
        Self { policies, namespaces }
    }

    /// The policies without problems: sources deliver no others.
    pub fn read(&self) -> Policies {
        let read = self.policies.iter().filter_map(|scoped| {
            let policy = Policy::of(&scoped.object).ok()?;
            Some(Policy { only_of: scoped.only_of.clone(), ..policy })
        });
        Policies::new(read, self.namespaces.clone())
    }
}

/// A pod that this network does not connect, as policies see it.
pub(crate) fn policed(pod: &Pod) -> PolicedPod {
    Facts::of(pod).policed(&PodFullName::of(pod), Vec::new())
}

/// The policies that sources want.
pub trait PolicySource: Send + Sync + fmt::Debug + 'static {
    /// The objects as they are now: those of a SET are in it before its pods are set up. Also returns true if all sources have been read.
    fn policies(&self) -> (Arc<PolicyObjects>, bool);
}

/// No policies.
#[derive(Debug, Default)]
pub struct NoPolicies {
    none: Arc<PolicyObjects>,
}

impl PolicySource for NoPolicies {
    fn policies(&self) -> (Arc<PolicyObjects>, bool) {
        (Arc::clone(&self.none), true)
    }
}
