//! Defaults of all kinds (W20, W31, W34, W45, W50, W68), as readers of an API expect them. Pod templates are left as written: their defaults are
//! those of a Pod.

use crate::object::Workload;
use crate::{cron, job};
use k8s_openapi::api::apps::v1::{
    DaemonSet, Deployment, DeploymentSpec, ReplicaSet, RollingUpdateDaemonSet, RollingUpdateDeployment,
    RollingUpdateStatefulSetStrategy, StatefulSet, StatefulSetSpec,
};
use k8s_openapi::api::core::v1::ReplicationController;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Replicas of every kind that has them.
const REPLICAS: i32 = 1;
/// Revisions that are kept.
const HISTORY: i32 = 10;
/// Seconds in which a Deployment has to make progress.
const PROGRESS_DEADLINE: i32 = 600;
/// Surge and unavailable pods of a Deployment.
const QUARTER: &str = "25%";
const ROLLING_UPDATE: &str = "RollingUpdate";

impl Workload {
    /// The object with the defaults of its kind.
    #[must_use]
    pub fn with_defaults(mut self) -> Self {
        match &mut self {
            Self::Deployment(object) => deployment(object),
            Self::ReplicaSet(object) => replica_set(object),
            Self::ReplicationController(object) => replication_controller(object),
            Self::StatefulSet(object) => stateful_set(object),
            Self::DaemonSet(object) => daemon_set(object),
            Self::Job(object) => job::defaults::fill_in(object),
            Self::CronJob(object) => {
                cron::fill_defaults(object);
                if let Some(spec) = object.spec.as_mut().and_then(|spec| spec.job_template.spec.as_mut()) {
                    job::defaults::fill_in_spec(spec);
                }
            }
        }
        self
    }
}

/// Fills in the fields of a Deployment (W20).
pub fn deployment(object: &mut Deployment) {
    let Some(spec) = &mut object.spec else { return };
    let DeploymentSpec { replicas, revision_history_limit, progress_deadline_seconds, strategy, .. } = spec;
    replicas.get_or_insert(REPLICAS);
    revision_history_limit.get_or_insert(HISTORY);
    progress_deadline_seconds.get_or_insert(PROGRESS_DEADLINE);
    let strategy = strategy.get_or_insert_default();
    if strategy_type(&mut strategy.type_) == ROLLING_UPDATE {
        let RollingUpdateDeployment { max_surge, max_unavailable } = strategy.rolling_update.get_or_insert_default();
        let quarter = || IntOrString::String(QUARTER.to_owned());
        max_surge.get_or_insert_with(quarter);
        max_unavailable.get_or_insert_with(quarter);
    }
}

/// Fills in the fields of a ReplicaSet (W31).
pub fn replica_set(object: &mut ReplicaSet) {
    if let Some(spec) = &mut object.spec {
        spec.replicas.get_or_insert(REPLICAS);
    }
}

/// Fills in the fields of a ReplicationController (W31). Its selector and its labels are those of its template.
pub fn replication_controller(object: &mut ReplicationController) {
    let Some(spec) = &mut object.spec else { return };
    spec.replicas.get_or_insert(REPLICAS);
    let labels = spec.template.as_ref().and_then(|template| template.metadata.as_ref()?.labels.clone());
    if spec.selector.as_ref().is_none_or(|selector| selector.is_empty()) {
        spec.selector.clone_from(&labels);
    }
    if object.metadata.labels.as_ref().is_none_or(|labels| labels.is_empty()) {
        object.metadata.labels = labels;
    }
}

/// Fills in the fields of a StatefulSet (W34).
pub fn stateful_set(object: &mut StatefulSet) {
    let Some(spec) = &mut object.spec else { return };
    let StatefulSetSpec {
        replicas,
        revision_history_limit,
        pod_management_policy,
        update_strategy,
        persistent_volume_claim_retention_policy,
        ..
    } = spec;
    replicas.get_or_insert(REPLICAS);
    revision_history_limit.get_or_insert(HISTORY);
    fill(pod_management_policy, "OrderedReady");
    let strategy = update_strategy.get_or_insert_default();
    if strategy_type(&mut strategy.type_) == ROLLING_UPDATE {
        let RollingUpdateStatefulSetStrategy { partition, .. } = strategy.rolling_update.get_or_insert_default();
        partition.get_or_insert(0);
    }
    let retention = persistent_volume_claim_retention_policy.get_or_insert_default();
    fill(&mut retention.when_deleted, "Retain");
    fill(&mut retention.when_scaled, "Retain");
}

/// Fills in the fields of a DaemonSet (W45).
pub fn daemon_set(object: &mut DaemonSet) {
    let Some(spec) = &mut object.spec else { return };
    spec.revision_history_limit.get_or_insert(HISTORY);
    let strategy = spec.update_strategy.get_or_insert_default();
    if strategy_type(&mut strategy.type_) == ROLLING_UPDATE {
        let RollingUpdateDaemonSet { max_surge, max_unavailable } = strategy.rolling_update.get_or_insert_default();
        max_unavailable.get_or_insert(IntOrString::Int(1));
        max_surge.get_or_insert(IntOrString::Int(0));
    }
}

fn strategy_type(type_: &mut Option<String>) -> &str {
    fill(type_, ROLLING_UPDATE)
}

/// The text, which gets the default if it is empty: that is the unset value of Kubernetes.
fn fill<'a>(text: &'a mut Option<String>, default: &str) -> &'a str {
    text.take_if(|text| text.is_empty());
    text.get_or_insert_with(|| default.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::WorkloadKind;
    use serde_json::{Value, json};

    fn filled(kind: WorkloadKind, spec: &Value) -> Value {
        let object = json!({"metadata": {"name": "a"}, "spec": spec});
        let workload = match kind {
            WorkloadKind::Deployment => Workload::Deployment(serde_json::from_value(object).unwrap()),
            WorkloadKind::ReplicaSet => Workload::ReplicaSet(serde_json::from_value(object).unwrap()),
            WorkloadKind::ReplicationController => Workload::ReplicationController(serde_json::from_value(object).unwrap()),
            WorkloadKind::StatefulSet => Workload::StatefulSet(serde_json::from_value(object).unwrap()),
            WorkloadKind::DaemonSet => Workload::DaemonSet(serde_json::from_value(object).unwrap()),
            WorkloadKind::Job => Workload::Job(serde_json::from_value(object).unwrap()),
            WorkloadKind::CronJob => Workload::CronJob(serde_json::from_value(object).unwrap()),
        };
        let filled = workload.with_defaults();
        assert_eq!(filled, filled.clone().with_defaults(), "once is enough");
        filled.to_json()["spec"].clone()
    }

    fn written() -> Value {
        json!({"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}, "serviceName": "s"})
    }

    #[test]
    fn defaults_are_those_of_kubernetes() {
        let deployment = filled(WorkloadKind::Deployment, &written());
        assert_eq!(
            (&deployment["replicas"], &deployment["revisionHistoryLimit"], &deployment["progressDeadlineSeconds"]),
            (&json!(1), &json!(10), &json!(600))
        );
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
        assert_eq!(deployment["strategy"], rolling);
        assert_eq!(deployment["template"], written()["template"], "the template stays as written");

        let set = filled(WorkloadKind::StatefulSet, &written());
        assert_eq!((&set["replicas"], &set["podManagementPolicy"]), (&json!(1), &json!("OrderedReady")));
        assert_eq!(set["updateStrategy"], json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}));
        assert_eq!(set["persistentVolumeClaimRetentionPolicy"], json!({"whenDeleted": "Retain", "whenScaled": "Retain"}));

        let daemons = filled(WorkloadKind::DaemonSet, &written());
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
        assert_eq!((&daemons["updateStrategy"], &daemons["revisionHistoryLimit"]), (&rolling, &json!(10)));

        assert_eq!(filled(WorkloadKind::ReplicaSet, &written())["replicas"], 1);
        let controller = filled(WorkloadKind::ReplicationController, &json!({"template": written()["template"]}));
        assert_eq!((&controller["replicas"], &controller["selector"]), (&json!(1), &json!({"a": "b"})));

        let job = filled(WorkloadKind::Job, &json!({"template": {}}));
        assert_eq!((&job["completions"], &job["backoffLimit"]), (&json!(1), &json!(6)));
        let cron_job = filled(WorkloadKind::CronJob, &json!({"schedule": "@daily", "jobTemplate": {"spec": {"template": {}}}}));
        assert_eq!(
            (&cron_job["concurrencyPolicy"], &cron_job["jobTemplate"]["spec"]["backoffLimit"]),
            (&json!("Allow"), &json!(6))
        );
    }

    #[test]
    fn strategies_without_limits_get_none() {
        let with = |field: &str, strategy: &str| {
            let mut spec = written();
            spec[field] = json!({ "type": strategy });
            spec
        };
        let deployment = filled(WorkloadKind::Deployment, &with("strategy", "Recreate"));
        assert_eq!(deployment["strategy"], json!({"type": "Recreate"}));
        for kind in [WorkloadKind::StatefulSet, WorkloadKind::DaemonSet] {
            let on_delete = filled(kind, &with("updateStrategy", "OnDelete"));
            assert_eq!(on_delete["updateStrategy"], json!({"type": "OnDelete"}));
        }
    }

    #[test]
    fn written_values_are_kept() {
        let mut spec = written();
        spec["replicas"] = json!(0);
        spec["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
        let filled = filled(WorkloadKind::Deployment, &spec);
        assert_eq!((&filled["replicas"], &filled["strategy"]), (&json!(0), &spec["strategy"]));
    }
}
