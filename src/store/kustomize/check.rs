//! Validation of the objects of one build.

use super::CODE;
use crate::check::{CheckContext, Checked, check_decoded};
use podstead_manifest::kustomize::Build;
use podstead_manifest::{Decoded, ObjectKey, Patch, PatchesByObject, Problem, Touch};
use podstead_pod::Severity;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Checks built objects; `file` is the name of their virtual file.
pub(super) fn built(file: &str, build: &Build, context: &CheckContext, patches: &PatchesByObject) -> Checked {
    let mut checked = Checked { problems: build.problems.clone(), ..Checked::default() };
    let mut seen = BTreeMap::new();
    for object in &build.objects {
        let mut decoded = object.decode(context.namespace(), &context.limits);
        let keys: Vec<ObjectKey> =
            decoded.objects.iter().map(|object| object.key.clone()).chain(decoded.broken.iter().flatten().cloned()).collect();
        for key in keys {
            match seen.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(object.origin());
                }
                // kustomize knows objects by group and version, too, and tells no namespace from `default`.
                Entry::Occupied(entry) => {
                    let ObjectKey { kind, namespace, name } = entry.key();
                    let message = format!("{kind} {namespace}/{name} is already defined at {}", entry.get());
                    decoded = Decoded::default();
                    checked.problems.push(Problem {
                        severity: Severity::Error,
                        code: "duplicate-object".to_owned(),
                        file: object.origin().file.into(),
                        position: Some(object.origin().position),
                        field: "metadata.name".to_owned(),
                        message,
                        hint: Some("rename or remove one of them".to_owned()),
                        object: Some(entry.key().clone()),
                    });
                }
            }
        }
        add(&mut checked, check_decoded(decoded, context));
    }
    for (key, patches) in patches {
        if seen.contains_key(key) {
            refuse_patches(file, key, patches.iter().map(AsRef::as_ref), &mut checked);
        }
    }
    checked
}

fn add(checked: &mut Checked, part: Checked) {
    let Checked { accepted, problems, broken, patches, broken_patches, removed, touched, ignored } = part;
    checked.accepted.extend(accepted);
    checked.problems.extend(problems);
    checked.broken.extend(broken);
    checked.patches.extend(patches);
    checked.broken_patches.extend(broken_patches);
    checked.removed.extend(removed);
    checked.touched.extend(touched);
    checked.ignored.extend(ignored);
}

/// Refuses an object that patches are for: without them it would not be what is asked for.
fn refuse_patches<'p>(file: &str, key: &ObjectKey, patches: impl Iterator<Item = &'p Patch>, checked: &mut Checked) {
    let ObjectKey { kind, namespace, name } = key;
    for patch in patches {
        let origin = patch.origin().clone();
        checked.problems.push(Problem {
            severity: Severity::Error,
            code: CODE.to_owned(),
            file: origin.file.to_string(),
            position: Some(origin.position),
            field: "target".to_owned(),
            message: format!("a Patch cannot change {kind} {namespace}/{name}, which is built from {file}"),
            hint: Some(format!("write it as an entry of patches in {file}")),
            object: Some(patch.key().clone()),
        });
        checked.touched.push(Touch { patch: origin, object: key.clone() });
    }
    checked.accepted.retain(|accepted| *accepted.key != *key);
    if !checked.broken.contains(&Some(key.clone())) {
        checked.broken.push(Some(key.clone()));
    }
}
