//! Requirements of a source for its pods: a level of the Pod Security Standards, and those of `require`.

use super::containers_of;
use k8s_openapi::api::core::v1::PodSpec;
use podstead_pod::resources::effective_limit;
use podstead_pod::standards::{Level, violations};
use podstead_pod::{FieldProblem, Pod, Severity};
use podstead_settings::Requirements;

/// Word for [`FieldProblem::code`] of the Pod Security Standards.
const POD_SECURITY: &str = "pod-security";
/// The same for `require`.
const REQUIRED: &str = "required-by-source";

/// Returns the requirements that a pod, defaulted or as written, does not meet.
pub(crate) fn of_pod(pod: &Pod, requirements: &Requirements) -> Vec<FieldProblem> {
    let mut found = of_level(pod, requirements);
    let Some(spec) = &pod.spec else { return found };
    if requirements.user_namespace() && spec.host_users != Some(false) {
        let message = "pods of this source must have a user namespace".to_owned();
        found.push(required("spec.hostUsers", message, "set it to false", "userNamespace"));
    }
    of_images(pod, spec, requirements, &mut found);
    for (field, container) in containers_of(pod) {
        for name in requirements.limits().iter().filter(|name| effective_limit(pod, container, name).is_none()) {
            let message = format!("containers of this source must have a limit of {name}");
            found.push(required(&format!("{field}.resources.limits[{name}]"), message, "set it", "limits"));
        }
        let context = container.security_context.as_ref();
        let is_read_only = context.and_then(|context| context.read_only_root_filesystem) == Some(true);
        if requirements.read_only_root_filesystem() && !is_read_only {
            let field = format!("{field}.securityContext.readOnlyRootFilesystem");
            let message = "containers of this source must have a read-only root filesystem".to_owned();
            found.push(required(
                &field,
                message,
                "set it to true and mount an emptyDir where the container writes",
                "readOnlyRootFilesystem",
            ));
        }
    }
    found
}

fn of_level(pod: &Pod, requirements: &Requirements) -> Vec<FieldProblem> {
    let (level, version) = (requirements.level(), requirements.version());
    if level == Level::Privileged {
        return Vec::new();
    }
    let problem = |violation: podstead_pod::standards::Violation| FieldProblem {
        severity: Severity::Error,
        code: POD_SECURITY.to_owned(),
        field: violation.field,
        message: format!("podSecurity {level} ({version}): {}", violation.message),
        hint: Some(violation.fix),
    };
    violations(pod, level, version).into_iter().map(problem).collect()
}

/// Images of containers and of volumes.
fn of_images(pod: &Pod, spec: &PodSpec, requirements: &Requirements, found: &mut Vec<FieldProblem>) {
    let of_containers = containers_of(pod)
        .into_iter()
        .filter_map(|(field, container)| Some((format!("{field}.image"), container.image.as_deref()?)));
    let of_volumes = spec.volumes.iter().flatten().enumerate().filter_map(|(index, volume)| {
        let reference = volume.image.as_ref()?.reference.as_deref()?;
        Some((format!("spec.volumes[{index}].image.reference"), reference))
    });
    for (field, image) in of_containers.chain(of_volumes) {
        if requirements.lacks_digest(image) {
            let message = format!("images of this source must be referenced by digest, but {image:?} is not");
            found.push(required(&field, message, "write name@sha256:...", "imageDigest"));
        }
        if !requirements.image(image) {
            let message = format!("{image:?} is not one of the images that pods of this source must use");
            found.push(required(&field, message, "use one of them", "images"));
        }
    }
}

fn required(field: &str, message: String, fix: &str, key: &str) -> FieldProblem {
    FieldProblem {
        severity: Severity::Error,
        code: REQUIRED.to_owned(),
        field: field.to_owned(),
        message,
        hint: Some(format!("{fix}; required by require.{key} of the source in podstead's configuration")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::checked_by;

    const POD: &str = "apiVersion: v1
kind: Pod
metadata:
  name: plain
spec:
  hostPID: true
  initContainers:
  - name: i
    image: registry.lan/i@sha256:0000000000000000000000000000000000000000000000000000000000000000
    resources: {limits: {memory: 1Mi, cpu: '0'}}
    securityContext:
      readOnlyRootFilesystem: true
  containers:
  - name: c
    image: nginx
    securityContext:
      privileged: true
    volumeMounts: [{name: v, mountPath: /v}]
  volumes:
  - name: v
    image:
      reference: registry.lan/v
";

    /// All problems as they are printed.
    fn told(rules: &str, text: &str) -> Vec<String> {
        let checked = checked_by(rules, text);
        assert_eq!(checked.accepted.is_empty(), !checked.problems.is_empty());
        checked.problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn levels_are_reported_with_line_rule_and_fix() {
        assert_eq!(
            told("podSecurity: {level: baseline, version: v1.34}", POD),
            [
                "p.yaml:6:12: error[pod-security]: spec.hostPID: podSecurity baseline (v1.34): host namespaces are not allowed \
                 (set it to false or leave it out)",
                "p.yaml:17:19: error[pod-security]: spec.containers[0].securityContext.privileged: podSecurity baseline (v1.34): \
                 privileged containers are not allowed (set it to false or leave it out)",
            ]
        );
        assert_eq!(told("podSecurity: privileged", POD), [""; 0]);
        let missing = told("podSecurity: restricted", POD);
        let expected = "p.yaml:11:5: error[pod-security]: spec.initContainers[0].securityContext.allowPrivilegeEscalation: podSecurity \
                        restricted (latest): a process must not gain more privileges than its parent (set it to false)";
        assert!(missing.iter().any(|line| line == expected), "{missing:#?}");
    }

    #[test]
    fn each_requirement_is_reported_at_its_field() {
        for (rules, expected) in [
            (
                "userNamespace: true",
                &["p.yaml:5:1: error[required-by-source]: spec.hostUsers: pods of this source must have a user namespace"][..],
            ),
            (
                "limits: [memory, cpu]",
                &[
                    "p.yaml:10:44: error[required-by-source]: spec.initContainers[0].resources.limits[cpu]: containers of this source must have a limit of cpu",
                    "p.yaml:14:5: error[required-by-source]: spec.containers[0].resources.limits[memory]: containers of this source must have a limit of memory",
                    "p.yaml:14:5: error[required-by-source]: spec.containers[0].resources.limits[cpu]: containers of this source must have a limit of cpu",
                ],
            ),
            (
                "imageDigest: true",
                &[
                    "p.yaml:15:12: error[required-by-source]: spec.containers[0].image: images of this source must be referenced by digest, but \"nginx\" is not",
                    "p.yaml:22:18: error[required-by-source]: spec.volumes[0].image.reference: images of this source must be referenced by digest, but \"registry.lan/v\" is not",
                ],
            ),
            (
                "images: [registry.lan/]",
                &[
                    "p.yaml:15:12: error[required-by-source]: spec.containers[0].image: \"nginx\" is not one of the images that pods of this source must use",
                ],
            ),
            (
                "readOnlyRootFilesystem: true",
                &[
                    "p.yaml:16:5: error[required-by-source]: spec.containers[0].securityContext.readOnlyRootFilesystem: containers of this source must have a read-only root filesystem",
                ],
            ),
        ] {
            let found = told(&format!("require: {{{rules}}}"), POD);
            assert_eq!(found.len(), expected.len(), "{found:#?}");
            for (line, expected) in found.iter().zip(expected) {
                let key = rules.split(':').next().unwrap();
                assert!(line.starts_with(&format!("{expected} (")), "{line}\n{expected}");
                assert!(
                    line.ends_with(&format!("; required by require.{key} of the source in podstead's configuration)")),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn a_limit_of_the_pod_is_one_of_its_containers() {
        let with = |resources: &str| {
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{resources: {resources}, containers: [{{name: c, image: x}}]}}\n"
            )
        };
        assert_eq!(told("require: {limits: [memory, cpu]}", &with("{limits: {memory: 1Gi, cpu: 1}}")), [""; 0]);
        assert_eq!(told("require: {limits: [memory, cpu]}", &with("{limits: {memory: 1Gi}}")).len(), 1);
        assert_eq!(told("require: {limits: [ephemeral-storage]}", &with("{limits: {memory: 1Gi}}")).len(), 1);
    }

    #[test]
    fn a_pod_that_is_all_of_it_is_accepted() {
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  hostUsers: false\n  securityContext: {runAsNonRoot: true, \
                    seccompProfile: {type: RuntimeDefault}}\n  containers:\n  - name: c\n    image: registry.lan/a@sha256:\
                    0000000000000000000000000000000000000000000000000000000000000000\n    resources: {limits: {memory: 1Mi, cpu: 1, \
                    ephemeral-storage: 1Mi}}\n    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, \
                    capabilities: {drop: [ALL]}}\n";
        let rules = "podSecurity: restricted, require: {userNamespace: true, limits: [cpu, memory, ephemeral-storage], imageDigest: true, \
                     images: [registry.lan/], readOnlyRootFilesystem: true}";
        assert_eq!(told(rules, text), [""; 0]);
    }
}
