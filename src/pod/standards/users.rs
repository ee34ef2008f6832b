//! Controls about the user of a container.

use super::Findings;
use super::subject::Subject;

/// `runAsNonRoot: true` for every container, its own or the pod's; an explicit `false` is refused at either place.
pub(super) fn non_root(subject: &Subject<'_>, findings: &mut Findings) {
    const RULE: &str = "a container must not run as root";
    const FIX: &str = "set it to true here or for the pod";
    if subject.has_users_of_its_own() {
        return;
    }
    for (context, _) in
        subject.in_contexts(|context| context.run_as_non_root, |context| context.run_as_non_root).into_iter().filter(|(_, is)| !is)
    {
        findings.push(format!("{context}.runAsNonRoot"), RULE, "set it to true");
    }
    // A pod's false is reported once.
    if subject.context.is_some_and(|context| context.run_as_non_root.is_some()) {
        return;
    }
    for place in &subject.containers {
        if place.context.is_none_or(|context| context.run_as_non_root.is_none()) {
            findings.push(format!("{}.runAsNonRoot", place.context_field()), RULE, FIX);
        }
    }
}

/// Since v1.23: no context names the user 0.
pub(super) fn not_zero(subject: &Subject<'_>, findings: &mut Findings) {
    if subject.has_users_of_its_own() {
        return;
    }
    let contexts = subject.in_contexts(|context| context.run_as_user, |context| context.run_as_user);
    for (context, _) in contexts.into_iter().filter(|(_, user)| *user == 0) {
        findings.push(format!("{context}.runAsUser"), "the user must not be 0", "set another user or leave it out");
    }
}
