//! Controls about rights of the processes in a container.

use super::Findings;
use super::subject::Subject;
use crate::containers::list;

/// Capabilities that `baseline` lets a container add. The names have to be spelled so.
const ADDABLE: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The one capability that `restricted` lets a container add.
const ADDABLE_IN_RESTRICTED: [&str; 1] = ["NET_BIND_SERVICE"];

pub(super) fn privileged(subject: &Subject<'_>, findings: &mut Findings) {
    for place in &subject.containers {
        if place.context.and_then(|context| context.privileged) == Some(true) {
            let field = format!("{}.privileged", place.context_field());
            findings.push(field, "privileged containers are not allowed", "set it to false or leave it out");
        }
    }
}

pub(super) fn added_capabilities(subject: &Subject<'_>, findings: &mut Findings) {
    added_beyond(&ADDABLE, subject, findings);
}

/// `ALL` has to be dropped since v1.22; pods for Windows have no capabilities.
pub(super) fn dropped_capabilities(subject: &Subject<'_>, findings: &mut Findings) {
    if subject.is_for_windows() {
        return;
    }
    for place in &subject.containers {
        let capabilities = place.context.and_then(|context| context.capabilities.as_ref());
        if !capabilities.is_some_and(|capabilities| list(&capabilities.drop).iter().any(|name| name == "ALL")) {
            let field = format!("{}.capabilities.drop", place.context_field());
            findings.push(field, "a container must drop all capabilities", "set it to [ALL]");
        }
    }
    added_beyond(&ADDABLE_IN_RESTRICTED, subject, findings);
}

fn added_beyond(addable: &[&str], subject: &Subject<'_>, findings: &mut Findings) {
    for place in &subject.containers {
        let Some(capabilities) = place.context.and_then(|context| context.capabilities.as_ref()) else { continue };
        for (index, name) in list(&capabilities.add).iter().enumerate() {
            if !addable.contains(&name.as_str()) {
                let field = format!("{}.capabilities.add[{index}]", place.context_field());
                let message = format!("a container must not add the capability {name:?}, only {}", addable.join(", "));
                findings.push(field, message, "leave it out");
            }
        }
    }
}

/// Since v1.8; pods for Windows have no such field.
pub(super) fn escalation(subject: &Subject<'_>, findings: &mut Findings) {
    if subject.is_for_windows() {
        return;
    }
    for place in &subject.containers {
        if place.context.and_then(|context| context.allow_privilege_escalation) != Some(false) {
            let field = format!("{}.allowPrivilegeEscalation", place.context_field());
            findings.push(field, "a process must not gain more privileges than its parent", "set it to false");
        }
    }
}

/// In `baseline`; a pod with users of its own may see all of `/proc` since v1.35.
pub(super) fn proc_mount(subject: &Subject<'_>, findings: &mut Findings) {
    if !subject.has_users_of_its_own() {
        masked_proc(subject, findings);
    }
}

/// In `restricted` since v1.35, without that exception.
pub(super) fn masked_proc(subject: &Subject<'_>, findings: &mut Findings) {
    for place in &subject.containers {
        let proc_mount = place.context.and_then(|context| context.proc_mount.as_deref());
        if let Some(value) = proc_mount.filter(|value| *value != "Default") {
            let field = format!("{}.procMount", place.context_field());
            findings.push(field, format!("{value:?} is not allowed: parts of /proc must be masked"), "leave it out");
        }
    }
}
