//! The resources of workloads: the names by which clients ask for them.

use podstead_workload::object::WorkloadKind;

/// Names of a kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadResource {
    /// Its kind.
    pub kind: WorkloadKind,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource, such as `deployments`.
    pub plural: &'static str,
    /// The name of one of them, such as `deployment`.
    pub singular: &'static str,
    /// The short name, such as `deploy`; `None` where Kubernetes has none.
    pub short: Option<&'static str>,
    /// The resource with its group, as messages have it, such as `deployments.apps`.
    pub qualified: &'static str,
    /// True if it has a subresource `scale`.
    pub is_scalable: bool,
}

/// All kinds in the order of discovery, which is the one of `kubectl get all`.
pub const WORKLOAD_KINDS: [WorkloadKind; 7] = [
    WorkloadKind::ReplicationController,
    WorkloadKind::DaemonSet,
    WorkloadKind::Deployment,
    WorkloadKind::ReplicaSet,
    WorkloadKind::StatefulSet,
    WorkloadKind::CronJob,
    WorkloadKind::Job,
];

/// The resource of a kind.
pub const fn workload_resource(kind: WorkloadKind) -> WorkloadResource {
    match kind {
        WorkloadKind::Deployment => WorkloadResource {
            kind,
            group: "apps",
            plural: "deployments",
            singular: "deployment",
            short: Some("deploy"),
            qualified: "deployments.apps",
            is_scalable: true,
        },
        WorkloadKind::ReplicaSet => WorkloadResource {
            kind,
            group: "apps",
            plural: "replicasets",
            singular: "replicaset",
            short: Some("rs"),
            qualified: "replicasets.apps",
            is_scalable: true,
        },
        WorkloadKind::StatefulSet => WorkloadResource {
            kind,
            group: "apps",
            plural: "statefulsets",
            singular: "statefulset",
            short: Some("sts"),
            qualified: "statefulsets.apps",
            is_scalable: true,
        },
        WorkloadKind::DaemonSet => WorkloadResource {
            kind,
            group: "apps",
            plural: "daemonsets",
            singular: "daemonset",
            short: Some("ds"),
            qualified: "daemonsets.apps",
            is_scalable: false,
        },
        WorkloadKind::Job => WorkloadResource {
            kind,
            group: "batch",
            plural: "jobs",
            singular: "job",
            short: None,
            qualified: "jobs.batch",
            is_scalable: false,
        },
        WorkloadKind::CronJob => WorkloadResource {
            kind,
            group: "batch",
            plural: "cronjobs",
            singular: "cronjob",
            short: Some("cj"),
            qualified: "cronjobs.batch",
            is_scalable: false,
        },
        WorkloadKind::ReplicationController => WorkloadResource {
            kind,
            group: "",
            plural: "replicationcontrollers",
            singular: "replicationcontroller",
            short: Some("rc"),
            qualified: "replicationcontrollers",
            is_scalable: true,
        },
    }
}

impl WorkloadResource {
    /// The resources of a group; the empty one is the core group.
    pub fn of_group(group: &str) -> impl Iterator<Item = Self> {
        WORKLOAD_KINDS.into_iter().map(workload_resource).filter(move |resource| resource.group == group)
    }

    /// The resource of a group with this plural.
    pub(super) fn find(group: &str, plural: &str) -> Option<Self> {
        Self::of_group(group).find(|resource| resource.plural == plural)
    }

    /// The name of one of them with the group, as `-o name` prints it, such as `deployment.apps`.
    pub fn qualified_singular(&self) -> String {
        if self.group.is_empty() { self.singular.to_owned() } else { format!("{}.{}", self.singular, self.group) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree_with_group_of_kind() {
        for kind in WorkloadKind::ALL {
            assert!(WORKLOAD_KINDS.contains(&kind));
            let resource = workload_resource(kind);
            let version = if resource.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", resource.group) };
            assert_eq!(version, kind.api_version());
            assert_eq!(resource.singular, kind.as_str().to_lowercase());
            assert_eq!(resource.plural, format!("{}s", resource.singular));
            let qualified = [resource.plural, resource.group].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
            assert_eq!(resource.qualified, qualified.join("."));
        }
    }
}
