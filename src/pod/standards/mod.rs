//! The Pod Security Standards of Kubernetes: the rules for pods at the levels `baseline` and `restricted`, by version. **Pure**.
//!
//! The rules are those of <https://kubernetes.io/docs/concepts/security/pod-security-standards/>; which of them count in which version, and
//! which control of `restricted` takes the place of one of `baseline`, is as in `k8s.io/pod-security-admission` ([`table`]). A pod is judged as
//! the API server judges it: fields that podstead refuses for other reasons (ephemeral containers, SELinux, Windows) are judged all the same.

mod findings;
mod host;
mod level;
mod privileges;
mod profiles;
mod subject;
mod sysctls;
mod table;
mod users;
mod volumes;

#[cfg(test)]
mod tests;

pub use level::{Level, Version};

use super::Pod;
use findings::Findings;
use subject::Subject;
use table::CONTROLS;

/// A field that breaks a control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The control's name in Kubernetes.
    pub control: &'static str,
    /// The field as Kubernetes writes it; one that is missing is named where it should be.
    pub field: String,
    /// The rule, with the offending value.
    pub message: String,
    /// The remedy.
    pub fix: String,
}

/// Reports every field of the pod that the level refuses in that version; none for a pod that the level admits.
pub fn violations(pod: &Pod, level: Level, version: Version) -> Vec<Violation> {
    let subject = Subject::new(pod, version);
    let counts = |since: u32, of: Level| of <= level && version.includes(since);
    let is_replaced =
        |name: &str| CONTROLS.iter().any(|control| control.replaces == Some(name) && counts(control.since, control.level));
    let mut violations = Vec::new();
    for control in CONTROLS.iter().filter(|control| counts(control.since, control.level) && !is_replaced(control.name)) {
        let mut findings = Findings::default();
        (control.check)(&subject, &mut findings);
        let named = |(field, message, fix)| Violation { control: control.name, field, message, fix };
        violations.extend(findings.0.into_iter().map(named));
    }
    violations
}
