//! Support of the fields of workloads, apart from their pod templates, which [`super::template`] is about.

use super::Support::{self, Honoured};
use super::entry::OWN_NAME;
use super::table::{WRITTEN_BY_A_SERVER, YES, ignored, ignored_unless};
use super::{Tables, join};
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Fields of one kind, or of a structure that several kinds have.
pub(super) struct Section {
    /// Such as `Deployment`.
    pub(super) kind: &'static str,
    pub(super) fields: &'static [&'static [(&'static str, Support)]],
}

/// The kinds and their fields. What is below a template is not here.
pub(super) const SECTIONS: &[Section] = &[
    Section { kind: "Deployment", fields: &[OBJECT, DEPLOYMENT] },
    Section { kind: "ReplicaSet", fields: &[OBJECT, REPLICA_SET] },
    Section { kind: "ReplicationController", fields: &[OBJECT, REPLICATION_CONTROLLER] },
    Section { kind: "StatefulSet", fields: &[OBJECT, STATEFUL_SET] },
    Section { kind: "DaemonSet", fields: &[OBJECT, DAEMON_SET] },
    Section { kind: "Job", fields: &[OBJECT, JOB] },
    Section { kind: "CronJob", fields: &[OBJECT, CRON_JOB] },
];

const AVAILABLE: Support = Honoured("0 if omitted; counted on the clock that never jumps");
const REPLICAS: Support = Honoured("1 if omitted; at most 500. A template with a host port or a ReadWriteOncePod claim runs once");
const SELECTOR: Support = Honoured("must match the labels of the template; pods belong to the object that made them");
const TEMPLATE: Support = Honoured("as a Pod without a name, see below");
const HISTORY: Support = Honoured("10 if omitted; at most 100 are kept");
const BELONGS_TO_CRON_JOB: &str = "Jobs are named after their CronJob and belong to it";
const NAMED_BY_CRON_JOB: Support = ignored(BELONGS_TO_CRON_JOB);
const NUMBER: Support = Honoured("a number or a percentage");
const LIVING: Support = Honoured("may be edited, which does not start the Job again");

/// Fields of every object.
pub(super) const OBJECT: &[(&str, Support)] = &[
    ("metadata", YES),
    ("metadata.annotations", YES),
    ("metadata.creationTimestamp", WRITTEN_BY_A_SERVER),
    ("metadata.deletionGracePeriodSeconds", WRITTEN_BY_A_SERVER),
    ("metadata.deletionTimestamp", WRITTEN_BY_A_SERVER),
    ("metadata.finalizers", ignored("an object is removed when its manifest is removed")),
    ("metadata.generateName", ignored("an object has the name in its manifest")),
    ("metadata.generation", WRITTEN_BY_A_SERVER),
    ("metadata.labels", YES),
    ("metadata.managedFields", WRITTEN_BY_A_SERVER),
    ("metadata.name", Honoured("names of pods begin with it and end in a number; they have no suffix of the node")),
    ("metadata.namespace", Honoured("`default` if omitted; namespaces need not exist")),
    ("metadata.ownerReferences", ignored("the manifest is the object's only owner")),
    ("metadata.resourceVersion", WRITTEN_BY_A_SERVER),
    ("metadata.selfLink", WRITTEN_BY_A_SERVER),
    ("metadata.uid", WRITTEN_BY_A_SERVER),
    ("spec", YES),
    ("status", ignored_unless("podstead reports the status itself", &["{}"])),
];

const DEPLOYMENT: &[(&str, Support)] = &[
    ("spec.minReadySeconds", AVAILABLE),
    ("spec.paused", YES),
    ("spec.progressDeadlineSeconds", Honoured("600 if omitted; it stands still while the host is off")),
    ("spec.replicas", REPLICAS),
    ("spec.revisionHistoryLimit", HISTORY),
    ("spec.selector", SELECTOR),
    ("spec.strategy", YES),
    ("spec.strategy.rollingUpdate", YES),
    ("spec.strategy.rollingUpdate.maxSurge", NUMBER),
    ("spec.strategy.rollingUpdate.maxUnavailable", NUMBER),
    ("spec.strategy.type", Honoured("`RollingUpdate` if omitted, `Recreate`")),
    ("spec.template", TEMPLATE),
];

const REPLICA_SET: &[(&str, Support)] =
    &[("spec.minReadySeconds", AVAILABLE), ("spec.replicas", REPLICAS), ("spec.selector", SELECTOR), ("spec.template", TEMPLATE)];

const REPLICATION_CONTROLLER: &[(&str, Support)] = &[
    ("spec.minReadySeconds", AVAILABLE),
    ("spec.replicas", REPLICAS),
    ("spec.selector", Honoured("the labels of the template if omitted")),
    ("spec.template", TEMPLATE),
];

const STATEFUL_SET: &[(&str, Support)] = &[
    ("spec.minReadySeconds", AVAILABLE),
    ("spec.ordinals", YES),
    ("spec.ordinals.start", YES),
    ("spec.persistentVolumeClaimRetentionPolicy", YES),
    ("spec.persistentVolumeClaimRetentionPolicy.whenDeleted", Honoured("`Retain` if omitted, `Delete`")),
    ("spec.persistentVolumeClaimRetentionPolicy.whenScaled", Honoured("`Retain` if omitted, `Delete`")),
    ("spec.podManagementPolicy", Honoured("`OrderedReady` if omitted, `Parallel`")),
    ("spec.replicas", REPLICAS),
    ("spec.revisionHistoryLimit", HISTORY),
    ("spec.selector", SELECTOR),
    ("spec.serviceName", Honoured("the subdomain of the pods; it may be edited, which replaces them")),
    ("spec.template", TEMPLATE),
    ("spec.updateStrategy", YES),
    ("spec.updateStrategy.rollingUpdate", YES),
    ("spec.updateStrategy.rollingUpdate.maxUnavailable", Honoured("a number or a percentage; 1 if omitted")),
    ("spec.updateStrategy.rollingUpdate.partition", YES),
    ("spec.updateStrategy.type", Honoured("`RollingUpdate` if omitted, `OnDelete`")),
    (
        "spec.volumeClaimTemplates",
        Honoured("PersistentVolumeClaims `<template>-<name>-<ordinal>`; may be edited, which replaces the pods"),
    ),
];

const DAEMON_SET: &[(&str, Support)] = &[
    ("spec.minReadySeconds", AVAILABLE),
    ("spec.revisionHistoryLimit", HISTORY),
    ("spec.selector", SELECTOR),
    ("spec.template", TEMPLATE),
    ("spec.updateStrategy", YES),
    ("spec.updateStrategy.rollingUpdate", YES),
    ("spec.updateStrategy.rollingUpdate.maxSurge", Honoured("0 if omitted; anything else is 1 pod")),
    ("spec.updateStrategy.rollingUpdate.maxUnavailable", Honoured("1 if omitted")),
    ("spec.updateStrategy.type", Honoured("`RollingUpdate` if omitted, `OnDelete`")),
];

const JOB: &[(&str, Support)] = &[
    ("spec.activeDeadlineSeconds", Honoured("counted while the host is on")),
    ("spec.backoffLimit", Honoured("6 if omitted; attempts that a power cut ended are not counted")),
    ("spec.backoffLimitPerIndex", YES),
    ("spec.completionMode", Honoured("`NonIndexed` if omitted, `Indexed`")),
    ("spec.completions", Honoured("another number starts the Job again, unless it is indexed and equals `parallelism`")),
    ("spec.managedBy", Honoured("only `kubernetes.io/job-controller`")),
    ("spec.manualSelector", YES),
    ("spec.maxFailedIndexes", LIVING),
    ("spec.parallelism", Honoured("1 if omitted; at most 500")),
    ("spec.podFailurePolicy", Honoured("with `restartPolicy: Never`")),
    ("spec.podReplacementPolicy", LIVING),
    ("spec.selector", Honoured("only with `manualSelector`")),
    ("spec.successPolicy", Honoured("of an indexed Job")),
    ("spec.suspend", LIVING),
    ("spec.template", Honoured("as a Pod without a name, see below; another template starts the Job again")),
    ("spec.ttlSecondsAfterFinished", Honoured("pods and logs go; the Job stays listed and does not run again")),
];

const CRON_JOB: &[(&str, Support)] = &[
    ("spec.concurrencyPolicy", Honoured("`Allow` if omitted, `Forbid`, `Replace`")),
    ("spec.failedJobsHistoryLimit", Honoured("1 if omitted")),
    ("spec.jobTemplate", Honoured("runs keep the template of their start")),
    ("spec.jobTemplate.metadata", YES),
    ("spec.jobTemplate.metadata.annotations", YES),
    ("spec.jobTemplate.metadata.creationTimestamp", WRITTEN_BY_A_SERVER),
    ("spec.jobTemplate.metadata.deletionGracePeriodSeconds", WRITTEN_BY_A_SERVER),
    ("spec.jobTemplate.metadata.deletionTimestamp", WRITTEN_BY_A_SERVER),
    ("spec.jobTemplate.metadata.finalizers", NAMED_BY_CRON_JOB),
    ("spec.jobTemplate.metadata.generateName", NAMED_BY_CRON_JOB),
    ("spec.jobTemplate.metadata.generation", WRITTEN_BY_A_SERVER),
    ("spec.jobTemplate.metadata.labels", YES),
    ("spec.jobTemplate.metadata.managedFields", WRITTEN_BY_A_SERVER),
    // kubectl create cronjob writes it.
    ("spec.jobTemplate.metadata.name", ignored_unless(BELONGS_TO_CRON_JOB, &[OWN_NAME])),
    ("spec.jobTemplate.metadata.namespace", NAMED_BY_CRON_JOB),
    ("spec.jobTemplate.metadata.ownerReferences", NAMED_BY_CRON_JOB),
    ("spec.jobTemplate.metadata.resourceVersion", WRITTEN_BY_A_SERVER),
    ("spec.jobTemplate.metadata.selfLink", WRITTEN_BY_A_SERVER),
    ("spec.jobTemplate.metadata.uid", WRITTEN_BY_A_SERVER),
    ("spec.jobTemplate.spec", Honoured("the fields of a Job's `spec`, without a selector")),
    ("spec.schedule", Honoured("five fields, or `@daily` and the like, or `@every` with a duration")),
    ("spec.startingDeadlineSeconds", YES),
    ("spec.successfulJobsHistoryLimit", Honoured("3 if omitted")),
    ("spec.suspend", YES),
    ("spec.timeZone", Honoured("UTC if omitted, on every host")),
];

/// Kind and path of a field, e.g. `Deployment.spec.replicas`, to what is done with it.
static TABLE: LazyLock<HashMap<String, Support>> = LazyLock::new(|| {
    let of_kind = |section: &'static Section| {
        let fields = section.fields.iter().copied().flatten();
        fields.map(move |(field, support)| (join(section.kind, field), *support))
    };
    SECTIONS.iter().flat_map(of_kind).collect()
});

static PARENTS: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| TABLE.keys().filter_map(|field| field.rsplit_once('.')).map(|(parent, _)| parent).collect());

/// The tables for a kind.
pub(super) fn tables(kind: &'static str) -> Tables {
    Tables { root: kind, support: |pattern| TABLE.get(pattern), has_fields: |pattern| PARENTS.contains(pattern) }
}

#[cfg(test)]
mod tests {
    use super::super::judge_workload;
    use super::super::schema_test::members_of;
    use super::*;
    use crate::field::Problems;
    use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
    use k8s_openapi::api::batch::v1::{CronJob, Job};
    use k8s_openapi::api::core::v1::ReplicationController;
    use std::collections::BTreeSet;

    #[test]
    fn every_field_of_workloads_has_an_entry() {
        let mut api = BTreeSet::new();
        let is_parent = |pattern: &str| PARENTS.contains(pattern);
        members_of::<Deployment>("Deployment", &is_parent, &mut api);
        members_of::<ReplicaSet>("ReplicaSet", &is_parent, &mut api);
        members_of::<ReplicationController>("ReplicationController", &is_parent, &mut api);
        members_of::<StatefulSet>("StatefulSet", &is_parent, &mut api);
        members_of::<DaemonSet>("DaemonSet", &is_parent, &mut api);
        members_of::<Job>("Job", &is_parent, &mut api);
        members_of::<CronJob>("CronJob", &is_parent, &mut api);
        let table: BTreeSet<String> = TABLE.keys().cloned().collect();
        assert_eq!(api.difference(&table).collect::<Vec<_>>(), Vec::<&String>::new(), "fields without an entry");
        assert_eq!(table.difference(&api).collect::<Vec<_>>(), Vec::<&String>::new(), "entries without a field");
    }

    #[test]
    fn template_of_cron_job_may_repeat_its_name() {
        let told = |name: &str| {
            let template = serde_json::json!({"metadata": {"name": name}, "spec": {}});
            let object = serde_json::json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
                "spec": {"schedule": "@daily", "jobTemplate": template}});
            let mut problems = Problems::default();
            judge_workload("CronJob", &object, &mut problems);
            problems.into_vec().into_iter().map(|problem| problem.field.clone()).collect::<Vec<_>>()
        };
        assert_eq!(told("nightly"), [""; 0]);
        assert_eq!(told("other"), ["spec.jobTemplate.metadata.name"]);
    }

    #[test]
    fn exported_state_is_reported() {
        let object = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "uid": "x", "labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": {"replicas": 1, "template": {"spec": {"runtimeClassName": "x"}}}, "status": {"replicas": 1}});
        let mut problems = Problems::default();
        judge_workload("Deployment", &object, &mut problems);
        let told: Vec<String> =
            problems.into_vec().into_iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect();
        let expected =
            ["metadata.uid: has no effect: set by an API server", "status: has no effect: podstead reports the status itself"];
        assert_eq!(told, expected);
    }
}
