//! Names, labels and annotations.

use super::names::{dns_label, dns_subdomain, label_value, qualified_name, uid};
use crate::annotations::{ALL, DOMAIN};
use crate::containers::text;
use crate::field::{FieldPath, Problems};
use crate::{cdi, devices, nfs};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;

const MAX_NAME: usize = 253;
/// Keys and values of all annotations together.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;
/// Longest name of a file or directory.
const NAME_MAX: usize = 255;
const UUID_LENGTH: usize = 36;
const HINT: &str = "there are devices.podstead.dev/NAME and nfs.podstead.dev/VOLUME, and for claims podstead.dev/reclaim-policy and \
                    podstead.dev/block-device";

/// Annotations by which tools run an object at a time of theirs, and what leaves such objects out.
const HOOKS: &[(&str, &str, &str)] = &[
    ("helm.sh/hook", "Helm", "leave it out if it is not to run now, as `helm template --no-hooks` does"),
    ("argocd.argoproj.io/hook", "Argo CD", "leave it out if it is not to run now"),
];

/// Checks metadata of a pod that has been reduced to what an author may write. `full_name` is the pod's name on this host.
pub(super) fn check(metadata: &ObjectMeta, full_name: &str, path: &FieldPath, problems: &mut Problems) {
    of_object(metadata, path, problems);
    of_hooks(metadata, path, problems);
    problems.optional_text(&path.child("uid"), text(&metadata.uid), uid);
    check_length(metadata, full_name, &path.child("name"), problems);
}

/// Checks name, namespace, labels and annotations of any object.
pub(crate) fn of_object(metadata: &ObjectMeta, path: &FieldPath, problems: &mut Problems) {
    problems.required_text(&path.child("name"), text(&metadata.name), dns_subdomain);
    problems.optional_text(&path.child("namespace"), text(&metadata.namespace), dns_label);
    of_labels(metadata, path, problems);
}

/// Checks labels and annotations of any object.
pub(crate) fn of_labels(metadata: &ObjectMeta, path: &FieldPath, problems: &mut Problems) {
    labels(metadata.labels.as_ref(), &path.child("labels"), problems);
    annotations(metadata.annotations.as_ref(), &path.child("annotations"), problems);
}

/// Warns about hooks: what has pods runs at once here, even a Job that cleans up before a release is deleted.
pub(crate) fn of_hooks(metadata: &ObjectMeta, path: &FieldPath, problems: &mut Problems) {
    for (key, tool, hint) in HOOKS {
        if metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(*key)) {
            let reason = format_args!("hooks of {tool} are not run as such: this object runs like any other");
            problems.ignored(&path.child("annotations").key(key), reason);
            problems.hint(Some((*hint).to_owned()));
        }
    }
}

/// Map of label keys and values, e.g. `metadata.labels`, `nodeSelector`.
pub(super) fn labels(labels: Option<&BTreeMap<String, String>>, path: &FieldPath, problems: &mut Problems) {
    for (key, value) in labels.into_iter().flatten() {
        let path = path.key(key);
        problems.rule(&path, key, qualified_name(key));
        problems.rule(&path, value, label_value(value));
    }
}

fn annotations(annotations: Option<&BTreeMap<String, String>>, path: &FieldPath, problems: &mut Problems) {
    let mut bytes = 0;
    for (key, value) in annotations.into_iter().flatten() {
        bytes += key.len() + value.len();
        // Upper case is allowed in the prefix of annotations only.
        problems.rule(&path.key(key), key, qualified_name(&key.to_lowercase()));
    }
    for key in annotations.into_iter().flatten().map(|(key, _)| key).filter(|key| is_unknown(key)) {
        problems.ignored(&path.key(key), "podstead has no such annotation");
        problems.hint(Some(HINT.to_owned()));
    }
    if let Err(error) = cdi::annotated(annotations) {
        problems.invalid(&path.key(&error.annotation), &error.text, "must be the name of a CDI device, vendor.com/class=name");
    }
    if let Err(error) = devices::requested(annotations) {
        let value = annotations.and_then(|annotations| annotations.get(&error.annotation)).map_or("", String::as_str);
        problems.invalid(&path.key(&error.annotation), value, &error.rule);
    }
    if bytes > MAX_ANNOTATIONS_BYTES {
        problems.too_long(path, MAX_ANNOTATIONS_BYTES, "bytes for the keys and values of all annotations together");
    }
}

/// Reports whether an annotation is in podstead's domain and means nothing to it: one that is misspelt.
fn is_unknown(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    let is_read = key.starts_with(devices::PREFIX) || key.starts_with(nfs::PREFIX);
    let is_known = ALL.contains(&key);
    (domain == DOMAIN || domain.strip_suffix(DOMAIN).is_some_and(|rest| rest.ends_with('.'))) && !is_read && !is_known
}

/// The name with the node's suffix must be a name, too, and the pod's log directory must be one that can be made.
fn check_length(metadata: &ObjectMeta, full_name: &str, path: &FieldPath, problems: &mut Problems) {
    let (name, namespace, uid) = (text(&metadata.name), text(&metadata.namespace), text(&metadata.uid));
    if name.is_empty() || dns_subdomain(name).is_err() {
        return;
    }
    let full = full_name.len();
    // `<namespace>_<name>_<uid>`
    let rest = namespace.len() + 2 + uid.len().max(UUID_LENGTH);
    let limit = MAX_NAME.min(NAME_MAX.saturating_sub(rest));
    if full > limit {
        let suffix = full.saturating_sub(name.len());
        problems.too_long(path, limit.saturating_sub(suffix), "bytes, so that node name, namespace and UID fit into one file name");
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::problems_of;

    #[track_caller]
    fn check(metadata: &str, expected: &[&str]) {
        assert_eq!(
            problems_of(&format!("{{metadata: {{{metadata}}}, spec: {{containers: [{{name: a, image: x}}]}}}}")),
            expected,
            "{metadata}"
        );
    }

    const SUBDOMAIN: &str = "must be 1 to 253 lower-case letters, digits, '-' or '.', each part between dots starting and ending with a letter or digit";
    const LABEL: &str = "must be 1 to 63 lower-case letters, digits or '-', starting and ending with a letter or digit";

    #[test]
    fn names_are_checked() {
        check("name: web.a-1, namespace: shop", &[]);
        check("", &["metadata.name: is required"]);
        check("name: ''", &["metadata.name: is required"]);
        check("name: Web", &[&format!("metadata.name: invalid value \"Web\": {SUBDOMAIN}")]);
        check("name: web, namespace: a.b", &[&format!("metadata.namespace: invalid value \"a.b\": {LABEL}")]);
    }

    #[test]
    fn hooks_are_told_of() {
        check(
            "name: web, annotations: {helm.sh/hook: test, helm.sh/hook-weight: '1', argocd.argoproj.io/hook: PreSync}",
            &[
                "metadata.annotations[helm.sh/hook]: has no effect: hooks of Helm are not run as such: this object runs like any other",
                "metadata.annotations[argocd.argoproj.io/hook]: has no effect: hooks of Argo CD are not run as such: this object runs like any other",
            ],
        );
    }

    #[test]
    fn a_uid_is_one_that_can_name_directories_and_cgroups() {
        check("name: web, uid: 0f1e2d3c-0000-4000-8000-000000000000", &[]);
        for uid in ["A", "../a", "a.b", "-a"] {
            let message = "must be at most 63 lower-case letters, digits or dashes, as in a UUID";
            check(&format!("name: web, uid: {uid}"), &[&format!("metadata.uid: invalid value \"{uid}\": {message}")]);
        }
    }

    #[test]
    fn a_name_must_leave_room_for_node_namespace_and_uid() {
        // 255 - 36 of the UID - 2 of `_` - 4 of the namespace - 5 of `-edge`.
        check(&format!("name: {}, namespace: shop", "a".repeat(208)), &[]);
        check(
            &format!("name: {}, namespace: shop", "a".repeat(209)),
            &["metadata.name: too long: must be at most 208 bytes, so that node name, namespace and UID fit into one file name"],
        );
    }

    #[test]
    fn labels_and_annotations_are_checked() {
        check("name: a, labels: {app: web, example.org/x: ''}, annotations: {Example.org/X: any text}", &[]);
        check(
            "name: a, labels: {'a b': c, d: 'e f'}",
            &[
                "metadata.labels[a b]: invalid value \"a b\": must be a name of 1 to 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit, optionally behind a DNS subdomain and '/'",
                "metadata.labels[d]: invalid value \"e f\": must be empty or 1 to 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit",
            ],
        );
        check(
            "name: a, annotations: {'-': c}",
            &[
                "metadata.annotations[-]: invalid value \"-\": must be a name of 1 to 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit, optionally behind a DNS subdomain and '/'",
            ],
        );
        check("name: a, annotations: {podstead.dev/source: fleet, other.dev/device: x}", &[]);
        for key in ["podstead.dev/device", "device.podstead.dev/radio"] {
            let told = format!("metadata.annotations[{key}]: has no effect: podstead has no such annotation");
            check(&format!("name: a, annotations: {{{key}: /dev/x}}"), &[&told]);
        }
        check("name: a, annotations: {cdi.k8s.io/x: 'v.org/radio=0,v.org/radio=1'}", &[]);
        check(
            "name: a, annotations: {cdi.k8s.io/x: radio}",
            &[
                "metadata.annotations[cdi.k8s.io/x]: invalid value \"radio\": must be the name of a CDI device, vendor.com/class=name",
            ],
        );
        check("name: a, annotations: {devices.podstead.dev/radio: /dev/serial/by-id/usb-A}", &[]);
        check(
            "name: a, annotations: {devices.podstead.dev/radio: /etc/passwd}",
            &[
                "metadata.annotations[devices.podstead.dev/radio]: invalid value \"/etc/passwd\": path \"/etc/passwd\" must be an absolute path below /dev, without '..'",
            ],
        );
        check(&format!("name: a, annotations: {{b: {}}}", "x".repeat(256 * 1024 - 1)), &[]);
        check(
            &format!("name: a, annotations: {{b: {}}}", "x".repeat(256 * 1024)),
            &["metadata.annotations: too long: must be at most 262144 bytes for the keys and values of all annotations together"],
        );
    }
}
