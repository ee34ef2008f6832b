//! Support of Pod fields: one table ([`table`]), one walk that checks a Pod against the table, and the page of the documentation that is
//! generated from it.
//!
//! Every field of the Kubernetes API has an entry, or lies below one that refuses or ignores all that is below it; a test holds the
//! table against the schema. So nothing in a manifest is silently without effect.

mod entry;
mod explain;
mod judge;
#[cfg(test)]
mod page_test;
#[cfg(test)]
mod schema_test;
#[cfg(test)]
mod shown;
mod table;
mod tables;
mod template;
mod workload;

pub use explain::field_note;
pub use judge::is_safe_sysctl;

use super::field::{FieldPath, Problems};
use super::{AdmitContext, Pod};
use entry::{Case, OWN_NAME, Section, Support, join};
use serde_json::{Map, Value};

use tables::Tables;

/// Every field that has an effect, with `[]` for any list item: for tests that classify fields.
#[cfg(any(test, feature = "testing"))]
pub fn fields_with_effect() -> impl Iterator<Item = &'static str> {
    table::TABLE.iter().filter_map(|(field, support)| match support {
        Support::Honoured(_) | Support::Partly { .. } => Some(field.as_str()),
        Support::Ignored { .. } | Support::Refused { .. } => None,
    })
}

/// Every field of workloads that has an effect, with its kind before it, e.g. `Deployment.spec.replicas`: for tests that classify fields.
#[cfg(any(test, feature = "testing"))]
pub fn workload_fields_with_effect() -> Vec<String> {
    let fields =
        workload::SECTIONS.iter().flat_map(|section| section.fields.iter().copied().flatten().map(|row| (section.kind, row)));
    let with_effect = fields.filter(|(_, (_, support))| matches!(support, Support::Honoured(_) | Support::Partly { .. }));
    with_effect.map(|(kind, (field, _))| join(kind, field)).collect()
}

/// Reports every field that is set and not honoured. The Pod is as written: a default is not the author's request.
pub(super) fn judge(pod: &Pod, context: &AdmitContext, problems: &mut Problems) {
    // A Pod that came from JSON goes back to JSON.
    let Ok(Value::Object(members)) = serde_json::to_value(pod) else { return };
    Walk { tables: Tables::POD, context: Some(context), name: &Value::Null }.object(&members, problems);
    older_service_account(pod, problems);
}

/// As [`judge`], for the template of a workload's pods.
pub(super) fn judge_template(template: &Pod, context: &AdmitContext, problems: &mut Problems) {
    let Ok(Value::Object(members)) = serde_json::to_value(template) else { return };
    Walk { tables: Tables::TEMPLATE, context: Some(context), name: &Value::Null }.object(&members, problems);
    older_service_account(template, problems);
}

/// Reports `serviceAccount` where `serviceAccountName` is not there to be reported: one warning is enough for both.
fn older_service_account(pod: &Pod, problems: &mut Problems) {
    let Some(spec) = &pod.spec else { return };
    let name = spec.service_account.as_deref().filter(|name| !matches!(*name, "" | "default"));
    if name.is_some() && spec.service_account_name.as_deref().is_none_or(str::is_empty) {
        problems.ignored(&FieldPath::root("spec").child("serviceAccount"), judge::NO_SERVICE_ACCOUNTS);
    }
}

/// Reports every field of a workload that is set and not honoured, those of its templates excepted.
pub(super) fn judge_workload(kind: &'static str, object: &Value, problems: &mut Problems) {
    let Value::Object(members) = object else { return };
    Walk { tables: workload::tables(kind), context: None, name: &object["metadata"]["name"] }.object(members, problems);
}

struct Walk<'a> {
    tables: Tables,
    /// `None` where no field is honoured for some values only.
    context: Option<&'a AdmitContext>,
    /// The name of the object; null where no field repeats it.
    name: &'a Value,
}

impl Walk<'_> {
    fn object(&self, members: &Map<String, Value>, problems: &mut Problems) {
        for (name, value) in members {
            // Kind and version say what the object is, not what it wants.
            if name != "apiVersion" && name != "kind" {
                self.field(value, &join(self.tables.root, name), &FieldPath::root(name), problems);
            }
        }
    }

    fn field(&self, value: &Value, pattern: &str, path: &FieldPath, problems: &mut Problems) {
        if is_unset(value) {
            return;
        }
        match (self.tables.support)(pattern) {
            Some(Support::Honoured(_)) => self.below(value, pattern, path, problems),
            Some(Support::Partly { judge, .. }) => {
                if let Some(context) = self.context {
                    judge(&Case { value, path, context }, problems);
                }
                self.below(value, pattern, path, problems);
            }
            Some(Support::Ignored { reason, silent }) => {
                let repeats_name = silent.contains(&OWN_NAME) && value == self.name;
                if !repeats_name && !silent.contains(&value.to_string().as_str()) {
                    problems.ignored(path, reason);
                }
            }
            Some(Support::Refused { silent, .. }) if silent.contains(&value.to_string().as_str()) => {}
            Some(Support::Refused { reason, instead, .. }) => {
                problems.unsupported(path, reason, Some(*instead).filter(|instead| !instead.is_empty()));
            }
            None => problems.unsupported(path, "this version of podstead does not know the field", None),
        }
    }

    fn below(&self, value: &Value, pattern: &str, path: &FieldPath, problems: &mut Problems) {
        match value {
            Value::Array(items) => {
                let pattern = format!("{pattern}[]");
                for (index, item) in items.iter().enumerate() {
                    self.below(item, &pattern, &path.index(index), problems);
                }
            }
            Value::Object(members) if (self.tables.has_fields)(pattern) => {
                for (name, value) in members {
                    self.field(value, &format!("{pattern}.{name}"), &path.child(name), problems);
                }
            }
            // Text, number, or a map whose keys are the author's.
            Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Returns true if Kubernetes could not distinguish the value from an absent one. `{}` and `false` may be values.
fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeName, Severity};

    /// `error|warning field: message` of a pod with these fields.
    fn problems_of(metadata: &str, spec: &str) -> Vec<String> {
        let pod: Pod = serde_yaml::from_str(&format!("{{metadata: {{name: a, {metadata}}}, spec: {{{spec}}}}}")).unwrap();
        let mut problems = Problems::default();
        judge(&pod, &AdmitContext::new(NodeName::new("edge")), &mut problems);
        let severity = |severity| match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        problems.into_vec().into_iter().map(|p| format!("{} {}: {}", severity(p.severity), p.field, p.message)).collect()
    }

    #[track_caller]
    fn check(spec: &str, expected: &[&str]) {
        assert_eq!(problems_of("", &format!("containers: [{{name: a, image: x}}], {spec}")), expected, "{spec}");
    }

    #[track_caller]
    fn check_container(fields: &str, rest: &str, expected: &[&str]) {
        let spec = format!("containers: [{{name: a, image: x, {fields}}}], {rest}");
        assert_eq!(problems_of("", &spec), expected, "{spec}");
    }

    #[test]
    fn a_plain_pod_has_nothing_to_report() {
        check("", &[]);
        check("restartPolicy: Never, hostNetwork: true, volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Mi}}]", &[]);
    }

    #[test]
    fn what_is_not_honoured_is_reported_at_its_place() {
        check_container(
            "resources: {claims: [{name: c}]}, env: [{name: A}, {name: B, valueFrom: {secretKeyRef: {name: s, key: k}}}]",
            "nodeSelector: {a: b}, volumes: [{name: v, iscsi: {targetPortal: a, iqn: b, lun: 0}}]",
            &[
                "error spec.containers[0].resources.claims: dynamic resource allocation needs a cluster",
                "warning spec.nodeSelector: has no effect: podstead does not schedule: the pod runs on the host that has its manifest",
                "error spec.volumes[0].iscsi: not supported",
            ],
        );
    }

    #[test]
    fn empty_values_ask_for_nothing() {
        // Charts of Bitnami have it in every container.
        check_container("securityContext: {seLinuxOptions: {}}", "securityContext: {seLinuxOptions: {}}", &[]);
        check("volumes: [{name: v, iscsi: {}}]", &["error spec.volumes[0].iscsi: not supported"]);
        check(
            "securityContext: {seLinuxOptions: {level: a}}",
            &["error spec.securityContext.seLinuxOptions: SELinux is not supported"],
        );
        check("imagePullSecrets: [], runtimeClassName: '', ephemeralContainers: [], tolerations: []", &[]);
    }

    #[test]
    fn metadata_that_a_server_writes_is_dropped_with_a_warning() {
        assert_eq!(
            problems_of(
                "uid: u, resourceVersion: '5', generateName: a-, labels: {a: b}, annotations: {kubernetes.io/config.mirror: x, mine: y}",
                "containers: []"
            ),
            [
                "warning metadata.annotations[kubernetes.io/config.mirror]: has no effect: podstead sets this annotation itself",
                "warning metadata.generateName: has no effect: a static pod uses the name in its manifest",
                "warning metadata.resourceVersion: has no effect: set by an API server",
            ]
        );
    }

    #[test]
    fn values_that_change_nothing_are_not_reported() {
        check(
            "schedulerName: default-scheduler, enableServiceLinks: true, automountServiceAccountToken: false, serviceAccountName: default,
             hostUsers: true, nodeName: edge, priority: 0, os: {name: linux}, priorityClassName: system-node-critical,
             tolerations: [{operator: Exists, effect: NoExecute}]",
            &[],
        );
        check("tolerations: [{operator: Exists}]", &[]);
    }

    #[test]
    fn values_that_cannot_be_honoured_are_reported() {
        for (spec, expected) in [
            ("nodeName: other", "warning spec.nodeName: has no effect: the pod runs on the host that has its manifest, \"edge\""),
            (
                "serviceAccountName: bot",
                "warning spec.serviceAccountName: has no effect: podstead has no service accounts: no token is mounted",
            ),
            (
                "serviceAccount: bot",
                "warning spec.serviceAccount: has no effect: podstead has no service accounts: no token is mounted",
            ),
            (
                "serviceAccountName: bot, serviceAccount: bot",
                "warning spec.serviceAccountName: has no effect: podstead has no service accounts: no token is mounted",
            ),
            ("os: {name: windows}", "error spec.os.name: this host runs Linux"),
            (
                "priorityClassName: high",
                "warning spec.priorityClassName: has no effect: podstead supports only system-node-critical",
            ),
            (
                "automountServiceAccountToken: true",
                "warning spec.automountServiceAccountToken: has no effect: no API server issues tokens",
            ),
            (
                "schedulerName: mine",
                "warning spec.schedulerName: has no effect: podstead does not schedule: the pod runs on the host that has its manifest",
            ),
            (
                "tolerations: [{operator: Exists, effect: NoExecute}, {key: a, operator: Exists}]",
                "warning spec.tolerations: has no effect: the host has no taints, and a static pod tolerates all NoExecute taints",
            ),
            (
                "securityContext: {sysctls: [{name: kernel/shm_rmid_forced, value: '1'}, {name: kernel.msgmax, value: '1'}]}",
                "error spec.securityContext.sysctls[1].name: \"kernel.msgmax\" is not one of Kubernetes' safe sysctls",
            ),
            (
                "securityContext: {sysctls: [{name: kernel.pid_max, value: '1'}]}",
                "error spec.securityContext.sysctls[0].name: \"kernel.pid_max\" applies to the whole host, not to a pod",
            ),
        ] {
            check(spec, &[expected]);
        }
    }

    #[test]
    fn resources_are_cpu_memory_huge_pages_and_disk() {
        check_container(
            "resources: {requests: {cpu: 1}, limits: {memory: 1Mi, hugepages-2Mi: 2Mi, ephemeral-storage: 1Gi, example.org/gpu: 1}}",
            "",
            &["error spec.containers[0].resources.limits[example.org/gpu]: device plugins are not supported"],
        );
    }

    #[test]
    fn annotations_of_old_that_meant_security_are_not_passed_over() {
        assert_eq!(
            problems_of("annotations: {container.seccomp.security.alpha.kubernetes.io/a: unconfined}", "containers: []"),
            [
                "error metadata.annotations[container.seccomp.security.alpha.kubernetes.io/a]: Kubernetes stopped reading this annotation with 1.27"
            ]
        );
    }

    #[test]
    fn all_containers_may_have_a_policy_and_rules_of_their_own() {
        let rule = "restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]";
        check(&format!("initContainers: [{{name: b, image: x, restartPolicy: Always, {rule}}}]"), &[]);
        check_container(&format!("restartPolicy: Never, {rule}"), "", &[]);
    }

    #[test]
    fn no_problem_of_an_unsupported_field_is_without_a_way_out_where_there_is_one() {
        let pod: Pod =
            serde_yaml::from_str("{metadata: {name: a}, spec: {containers: [{name: a, resources: {claims: [{name: c}]}}]}}")
                .unwrap();
        let mut problems = Problems::default();
        judge(&pod, &AdmitContext::new(NodeName::new("edge")), &mut problems);
        assert_eq!(problems.into_vec()[0].hint.as_deref(), Some("request the device with a CDI annotation on the pod"));
    }
}
