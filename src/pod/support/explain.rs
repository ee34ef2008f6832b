//! Sentences about the support of fields, for `kubectl explain`. **Pure**.

use super::entry::Support;
use super::tables::Tables;
use super::workload;

/// The places of pod templates in the kinds that have one.
const TEMPLATES: [&str; 2] = ["spec.template.", "spec.jobTemplate.spec.template."];

/// The support of a field of a Pod or a workload, as a sentence. `field` has `[]` for items, such as `spec.containers[].image`. `None` where there
/// is nothing to say: the field has the effect that it has in Kubernetes, or the kind has no table.
pub fn field_note(kind: &str, field: &str) -> Option<String> {
    let support = if kind == "Pod" {
        (Tables::POD.support)(field)
    } else {
        let section = workload::SECTIONS.iter().find(|section| section.kind == kind)?;
        match TEMPLATES.iter().find_map(|template| field.strip_prefix(template)) {
            Some(below) => (Tables::TEMPLATE.support)(below),
            None => (workload::tables(section.kind).support)(&format!("{kind}.{field}")),
        }
    };
    let sentence = match support? {
        Support::Honoured("") => return None,
        Support::Honoured(note) | Support::Partly { note, .. } => format!("On this host: {note}."),
        Support::Ignored { reason, .. } => format!("Has no effect on this host: {reason}."),
        Support::Refused { reason, instead: "", .. } => format!("Refused on this host: {reason}."),
        Support::Refused { reason, instead, .. } => format!("Refused on this host: {reason}; {instead}."),
    };
    // For a terminal, and not for a page.
    Some(sentence.replace('`', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_say_what_a_field_does() {
        let note = |kind, field| field_note(kind, field).unwrap_or_default();
        assert_eq!(note("Pod", "spec.nodeName"), "On this host: only this host's name.");
        assert!(note("Pod", "spec.nodeSelector").starts_with("Has no effect on this host: "));
        assert_eq!(note("Deployment", "spec.template.spec.nodeName"), "On this host: no pod is made on a host with another name.");
        assert!(note("CronJob", "spec.jobTemplate.spec.template.metadata.name").contains("named after their workload"));
        assert!(note("CronJob", "spec.timeZone").contains("UTC"));
        assert!(note("Pod", "spec.volumes[].iscsi").starts_with("Refused on this host: not supported; "));
        assert_eq!(field_note("Pod", "spec.containers"), None);
        assert_eq!(field_note("ConfigMap", "data"), None);
    }
}
