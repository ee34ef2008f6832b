//! From a request and the files as they are to the edit of one file, or to the refusal. **Pure**.

use super::Writable;
use super::answer::modified;
use super::applied::{LAST_APPLIED, Record};
use super::files::{File, Files};
use super::request::{Change, Options, Validation};
use super::target::{Part, Target};
use crate::delete_options::DeleteOptions;
use crate::failure::{ApiFailure, Cause};
use crate::templates;
use podstead_manifest::change::{
    Conflict, Located, Owners, PatchError, applied, carried, conflicts, drop_unknown_fields, patched, released, removed, replaced,
};
use podstead_manifest::{ObjectKey, PatchesByObject, Problem, to_manifest};
use podstead_pod::{NodeName, Severity};
use podstead_store::{Accepted, AcceptedObject, Checked, check};
use podstead_workload::job::CONTROLLER_UID_LABEL;
use serde_json::{Map, Value, json};

/// Largest ConfigMap or Secret, as an API server has it.
const MAX_DATA: usize = 1 << 20;
/// Longest name of a file, without the ending.
const MAX_FILE_NAME: usize = 200;
/// Annotations that this host writes.
const OWN_ANNOTATIONS: [&str; 3] = ["podstead.dev/", "kubernetes.io/config.", "deployment.kubernetes.io/revision"];
/// Annotations of ours that people write.
const WRITTEN_ANNOTATIONS: [&str; 1] = [podstead_pod::claims::RECLAIM_POLICY_ANNOTATION];
/// Metadata that only a server writes.
const OWN_METADATA: [&str; 9] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generateName",
];
/// Fields that kubectl writes though they are empty.
const EMPTY: [&str; 8] =
    ["annotations", "labels", "metadata", "resources", "spec", "strategy", "updateStrategy", "securityContext"];

/// Request with all that its plan depends on.
#[derive(Debug)]
pub(super) struct Intent<'a> {
    pub(super) target: &'a Target,
    pub(super) name: &'a str,
    pub(super) change: Change,
    pub(super) options: &'a Options,
    /// The object as reads show it.
    pub(super) shown: Option<&'a Value>,
    pub(super) record: Option<&'a Record>,
}

/// Kind of the success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Created,
    Changed,
    Deleted,
}

/// Another content for a file; `None` removes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) file: String,
    pub(super) content: Option<Vec<u8>>,
    pub(super) mode: u32,
}

/// The way to carry out a request.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) outcome: Outcome,
    /// `None` where nothing differs.
    pub(super) edit: Option<Edit>,
    /// The object before and after, defaulted; null where there is none.
    pub(super) before: Value,
    pub(super) after: Value,
    /// The same as in the file; null where there is none.
    pub(super) written: (Value, Value),
    pub(super) warnings: Vec<String>,
    /// Record of what was applied, and by whom.
    pub(super) record: Record,
}

/// Plans a request.
pub(super) fn plan(files: &Files, writable: &Writable, node: &NodeName, intent: Intent<'_>) -> Result<Planned, ApiFailure> {
    let key = intent.target.key(intent.name);
    let found = files.find(&key);
    let Intent { target, name, change, options, shown, record } = intent;
    match (change, found) {
        (Change::Create(_), Some((file, _, object))) => {
            let place = format!("{file}:{}", object.position.line);
            let message = format!("{} {name:?} already exists ({place})", target.plural);
            Err(ApiFailure::already_exists(message).about(target.plural, name))
        }
        (Change::Create(body), None) => {
            let mut warnings = Vec::new();
            let body = validated(target, body.value, &body.duplicates, options, &mut warnings)?;
            create(files, writable, node, target, name, body, warnings)
        }
        (Change::Apply(body), None) => {
            refuse_no_manager(options)?;
            let mut warnings = Vec::new();
            let applied = body.value.clone();
            let body = validated(target, body.value, &body.duplicates, options, &mut warnings)?;
            let mut planned = create(files, writable, node, target, name, body, warnings)?;
            planned.record.keep(target.kind, &options.manager, &applied);
            Ok(planned)
        }
        (_, None) => Err(ApiFailure::not_found(target.plural, name)),
        (change, Some((file_name, file, object))) => {
            refuse_unwritable(target, name, file_name, file, object)?;
            let known = Known { file_name, file, object, accepted: accepted(writable, file_name, &file.bytes, &key)? };
            match change {
                Change::Delete(options) => delete(writable, target, name, &known, &options, shown),
                change => update(writable, target, name, &known, change, options, shown, record),
            }
        }
    }
}

/// An object that is there.
struct Known<'a> {
    file_name: &'a str,
    file: &'a File,
    object: &'a Located,
    accepted: Option<Accepted>,
}

/// Refuses files whose text is not ours to change.
fn refuse_unwritable(target: &Target, name: &str, file_name: &str, file: &File, object: &Located) -> Result<(), ApiFailure> {
    let reason = if file.is_link {
        "which is a symbolic link: change the file that it leads to"
    } else if object.is_sealed {
        "which SOPS has encrypted: change it with sops"
    } else {
        return Ok(());
    };
    let line = object.position.line;
    let message = format!("{} {name:?} is in {file_name}:{line}, {reason}", target.kind.to_lowercase());
    Err(ApiFailure::method_not_allowed(message).about(target.plural, name))
}

/// The object as the source accepts it from these bytes; `None` where it is refused.
fn accepted(writable: &Writable, file: &str, bytes: &[u8], key: &ObjectKey) -> Result<Option<Accepted>, ApiFailure> {
    let Checked { accepted, patches, .. } = check(file, bytes, &writable.check, &PatchesByObject::new());
    if !patches.is_empty() {
        let message = format!("{file} has patches: objects that patches change cannot be written");
        return Err(ApiFailure::method_not_allowed(message));
    }
    Ok(accepted.into_iter().find(|accepted| *accepted.key == *key))
}

fn create(
    files: &Files,
    writable: &Writable,
    node: &NodeName,
    target: &Target,
    name: &str,
    body: Value,
    mut warnings: Vec<String>,
) -> Result<Planned, ApiFailure> {
    let key = target.key(name);
    refuse_names(target, name)?;
    if target.kind == "Pod" && name.ends_with(&format!("-{}", node.as_str())) {
        let message = format!("ends in the name of this host ({node}), as names of pods of other sources do");
        return Err(ApiFailure::invalid(target.kind, name, vec![cause("FieldValueInvalid", "metadata.name", &message)]));
    }
    let (mut object, applied) = cleaned(body);
    place_in(&mut object, target, writable, None);
    let content = to_manifest(&object).into_bytes();
    let file = new_file_name(files, target, &key, writable);
    let (accepted, more) = judged(writable, target, name, &file, &content, &[])?;
    warnings.extend(more);
    let mode = if target.kind == "Secret" { 0o600 } else { 0o644 };
    let after = value_of(&accepted, target);
    let edit = Some(Edit { file, content: Some(content), mode });
    let record = Record::default().with_applied(target.kind, applied.as_deref());
    Ok(Planned { outcome: Outcome::Created, edit, before: Value::Null, after, written: (Value::Null, object), warnings, record })
}

/// Refuses names that are none: the name of the file is made of them.
fn refuse_names(target: &Target, name: &str) -> Result<(), ApiFailure> {
    let is_name = |text: &str, longest: usize| {
        let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        bytes.len() <= longest
            && bytes.first().is_some_and(is_edge)
            && bytes.last().is_some_and(is_edge)
            && bytes.iter().all(|byte| is_edge(byte) || matches!(byte, b'-' | b'.'))
    };
    let rule = "must consist of lower-case letters, digits, '-' and '.', and begin and end with a letter or digit";
    let longest = if target.is_global() { 63 } else { 253 };
    for (field, text, longest) in [("metadata.name", name, longest), ("metadata.namespace", target.namespace.as_str(), 63)] {
        if !is_name(text, longest) {
            return Err(ApiFailure::invalid(target.kind, name, vec![cause("FieldValueInvalid", field, rule)]));
        }
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "each is a part of one request")]
fn update(
    writable: &Writable,
    target: &Target,
    name: &str,
    known: &Known<'_>,
    change: Change,
    options: &Options,
    shown: Option<&Value>,
    record: Option<&Record>,
) -> Result<Planned, ApiFailure> {
    let Known { file_name, file, object, accepted } = known;
    let before = before(target, known, shown);
    let keeps_applied = matches!(change, Change::Replace(_));
    let is_patch = !keeps_applied;
    let mut kept = record.cloned().unwrap_or_default();
    if let Change::Apply(body) = &change {
        refuse_no_manager(options)?;
        settle_owners(&mut kept, target, options, file_name, &object.value, &body.value)?;
    }
    let (new, duplicates) = changed(target, name, change, &before, record, options)?;
    check_versions(target, name, &new, shown)?;
    let mut warnings = Vec::new();
    let mut new = validated(target, new, &duplicates, options, &mut warnings)?;
    if target.kind == "Secret" {
        settle_secret(name, &before, &mut new, record, is_patch)?;
    }
    let (mut new, applied) = cleaned(new);
    let (mut old, _) = cleaned(before.clone());
    place_in(&mut new, target, writable, Some(name));
    place_in(&mut old, target, writable, Some(name));
    let identity =
        |object: &Value| json!([object["apiVersion"], object["kind"], object["metadata"]["name"], object["metadata"]["namespace"]]);
    if identity(&new) != identity(&old) {
        return Err(ApiFailure::bad_request("kind, version, name and namespace of an object cannot be changed"));
    }
    let is_as_before = applied == kept.last_applied;
    if !is_as_before && (applied.is_some() || !(keeps_applied || target.part == Part::Scale)) {
        kept = kept.with_applied(target.kind, applied.as_deref());
    }
    let record = kept;
    let mut wanted = carried(&object.value, &old, &new);
    if target.kind == "Secret" {
        drop_stale_texts(&mut wanted, &old, &new);
    }
    if wanted == object.value {
        let after = before.clone();
        let written = (Value::Null, Value::Null);
        return Ok(Planned { outcome: Outcome::Changed, edit: None, before, after, written, warnings, record });
    }
    let gone = || ApiFailure::conflict(format!("{file_name} has changed in this moment: try again"));
    let text = replaced(&file.bytes, object, &wanted, &writable.check.limits).ok_or_else(gone)?;
    if text.comments_lost {
        warnings.push(format!("the style of {file_name} did not allow to change it in place: comments of this document are lost"));
    }
    let known_problems = check(file_name, &file.bytes, &writable.check, &PatchesByObject::new()).problems;
    let (accepted_now, more) = judged(writable, target, name, file_name, &text.bytes, &known_problems)?;
    warnings.extend(more);
    if let Some(accepted) = accepted
        && accepted.object.is_immutable()
        && !accepted_now.object.has_data_of(&accepted.object)
    {
        let cause = cause("FieldValueForbidden", "data", "field is immutable when `immutable` is set");
        return Err(ApiFailure::invalid(target.kind, name, vec![cause]));
    }
    let after = value_of(&accepted_now, target);
    let edit = Some(Edit { file: (*file_name).to_owned(), content: Some(text.bytes), mode: file.mode });
    let written = (object.value.clone(), wanted);
    Ok(Planned { outcome: Outcome::Changed, edit, before: old, after, written, warnings, record })
}

/// The object before a change: as accepted where that is all that reads show, else as shown.
fn before(target: &Target, known: &Known<'_>, shown: Option<&Value>) -> Value {
    let is_defaulted = matches!(target.kind, "Pod" | "ConfigMap" | "Secret" | "PersistentVolumeClaim");
    let mut before = match (&known.accepted, shown) {
        (Some(accepted), None) => value_of(accepted, target),
        (Some(accepted), Some(_)) if is_defaulted => value_of(accepted, target),
        (_, Some(shown)) if !is_defaulted => shown.clone(),
        (_, _) => known.object.value.clone(),
    };
    // A JSON patch may replace them though they are empty.
    for field in ["annotations", "labels"] {
        if !before["metadata"][field].is_object() {
            before["metadata"][field] = json!({});
        }
    }
    if target.part == Part::Scale && !before["spec"].is_object() {
        before["spec"] = json!({});
    }
    before
}

/// The object that the request wants.
fn changed(
    target: &Target,
    name: &str,
    change: Change,
    before: &Value,
    record: Option<&Record>,
    options: &Options,
) -> Result<(Value, Vec<String>), ApiFailure> {
    let scaled = |scale: &Value| {
        let replicas = &scale["spec"]["replicas"];
        let mut object = before.clone();
        object["spec"]["replicas"] = if replicas.is_null() { json!(0) } else { replicas.clone() };
        object["metadata"]["resourceVersion"] = scale["metadata"]["resourceVersion"].clone();
        object
    };
    match (change, target.part) {
        (Change::Replace(body), Part::Whole) => Ok((body.value, body.duplicates)),
        (Change::Replace(body), Part::Scale) => Ok((scaled(&body.value), body.duplicates)),
        (Change::Patch(form, patch), part) => {
            let mut base = match part {
                Part::Whole => before.clone(),
                Part::Scale => {
                    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": name}, "spec": {"replicas": before["spec"]["replicas"]}})
                }
            };
            if let (Some(text), Part::Whole) = (record.and_then(|record| record.last_applied.as_ref()), part) {
                base["metadata"]["annotations"][LAST_APPLIED] = json!(text);
            }
            let kind = if part == Part::Whole { target.kind } else { "Scale" };
            let patched = patched(kind, &base, &patch, form).map_err(|error| match error {
                PatchError::Malformed(message) => ApiFailure::bad_request(format!("invalid patch: {message}")),
                PatchError::Unfit(message) => {
                    ApiFailure::invalid(target.kind, name, vec![cause("FieldValueInvalid", "patch", &message)])
                }
            })?;
            Ok((if part == Part::Whole { patched } else { scaled(&patched) }, Vec::new()))
        }
        (Change::Apply(body), Part::Whole) => {
            let mut base = before.clone();
            if let Some(text) = record.and_then(|record| record.last_applied.as_ref()) {
                base["metadata"]["annotations"][LAST_APPLIED] = json!(text);
            }
            let mut others = record.map(|record| record.managers.clone()).unwrap_or_default();
            let own = others.remove(&options.manager);
            let owners = Owners { own: own.as_ref(), others: &others };
            let applied = applied(target.kind, &base, &body.value, owners);
            let applied = applied.map_err(|error| ApiFailure::bad_request(format!("invalid body: {error}")))?;
            Ok((applied, body.duplicates))
        }
        (Change::Apply(_), Part::Scale) => Err(ApiFailure::bad_request("apply is for whole objects: use a merge patch for scale")),
        (Change::Create(_) | Change::Delete(_), _) => Err(ApiFailure::internal("a change of an object is a PUT or a PATCH")),
    }
}

/// Server-side apply needs the name of who applies.
fn refuse_no_manager(options: &Options) -> Result<(), ApiFailure> {
    if options.manager.is_empty() {
        return Err(ApiFailure::bad_request("fieldManager is required for apply patch"));
    }
    Ok(())
}

/// Refuses fields that others own, or takes them over; then the manager owns what it applies.
fn settle_owners(
    record: &mut Record,
    target: &Target,
    options: &Options,
    file: &str,
    written: &Value,
    body: &Value,
) -> Result<(), ApiFailure> {
    let own = record.managers.remove(&options.manager);
    let found = conflicts(written, body, Owners { own: own.as_ref(), others: &record.managers });
    if !options.force && !found.is_empty() {
        let told =
            |conflict: &Conflict| format!("conflict with {:?}", conflict.owner.clone().unwrap_or_else(|| format!("file {file}")));
        let causes = found.iter().map(|conflict| cause("FieldManagerConflict", &conflict.field, &told(conflict))).collect();
        let all: Vec<String> = found.iter().map(|conflict| format!("{}: {}", told(conflict), conflict.field)).collect();
        let number = found.len();
        let plural = if number == 1 { "" } else { "s" };
        let failure = ApiFailure::conflict(format!("Apply failed with {number} conflict{plural}: {}", all.join(", ")));
        return Err(ApiFailure { causes, ..failure });
    }
    for other in record.managers.values_mut() {
        *other = released(std::mem::take(other), body);
    }
    record.keep(target.kind, &options.manager, body);
    Ok(())
}

/// Compares the versions that a request names with those of the object.
fn check_versions(target: &Target, name: &str, new: &Value, shown: Option<&Value>) -> Result<(), ApiFailure> {
    let Some(shown) = shown else { return Ok(()) };
    let differs = |field: &str| {
        let (asked, known) = (new["metadata"][field].as_str(), shown["metadata"][field].as_str());
        asked.filter(|asked| !asked.is_empty()).zip(known).is_some_and(|(asked, known)| asked != known)
    };
    if differs("resourceVersion") || differs("uid") { Err(modified(target, name)) } else { Ok(()) }
}

/// The keys of a Secret that a client cannot see: those that it applied before and does not apply any more go.
fn settle_secret(name: &str, before: &Value, new: &mut Value, record: Option<&Record>, is_patch: bool) -> Result<(), ApiFailure> {
    let has_data = |object: &Value| ["data", "stringData"].iter().any(|part| object.get(*part).is_some_and(|data| !data.is_null()));
    if !is_patch && has_data(before) && !has_data(new) {
        let cause = cause("FieldValueRequired", "data", "the API does not show it: give the data, or use patch");
        return Err(ApiFailure::invalid("Secret", name, vec![cause]));
    }
    let applied = new["metadata"]["annotations"][LAST_APPLIED].as_str();
    // As kept: the patch is not one of kubectl apply.
    let applied = applied.filter(|text| record.is_none_or(|record| record.last_applied.as_deref() != Some(text)));
    let applied = applied.map(|text| Record::default().with_applied("Secret", Some(text)));
    if let (Some(applied), Some(record)) = (applied, record) {
        for key in record.keys.difference(&applied.keys) {
            for part in ["data", "stringData"] {
                if let Some(data) = new[part].as_object_mut() {
                    data.remove(key);
                }
            }
        }
    }
    for part in ["data", "stringData"] {
        if new[part].is_null() {
            new.as_object_mut().map(|object| object.remove(part));
        }
    }
    Ok(())
}

/// Removes texts from `stringData` of a file whose keys the request removed from `data`, or gave another value there.
fn drop_stale_texts(wanted: &mut Value, old: &Value, new: &Value) {
    let Some(texts) = wanted.get_mut("stringData").and_then(Value::as_object_mut) else { return };
    let value = |object: &Value, part: &str, key: &str| object.get(part).and_then(|data| data.get(key)).cloned();
    texts.retain(|key, _| {
        let is_same = value(new, "data", key).is_some() && value(new, "data", key) == value(old, "data", key);
        value(new, "stringData", key).is_some() || is_same
    });
    if texts.is_empty()
        && let Some(wanted) = wanted.as_object_mut()
    {
        wanted.remove("stringData");
    }
}

fn delete(
    writable: &Writable,
    target: &Target,
    name: &str,
    known: &Known<'_>,
    options: &DeleteOptions,
    shown: Option<&Value>,
) -> Result<Planned, ApiFailure> {
    let asked = json!({"metadata": {"uid": options.uid, "resourceVersion": options.resource_version}});
    check_versions(target, name, &asked, shown)?;
    let Known { file_name, file, object, accepted } = known;
    let gone = || ApiFailure::conflict(format!("{file_name} has changed in this moment: try again"));
    let content = removed(&file.bytes, object, &writable.check.limits).ok_or_else(gone)?;
    let edit = Some(Edit { file: (*file_name).to_owned(), content, mode: file.mode });
    let before = accepted.as_ref().map(|accepted| value_of(accepted, target)).unwrap_or_default();
    let (after, written) = (Value::Null, (Value::Null, Value::Null));
    Ok(Planned { outcome: Outcome::Deleted, edit, before, after, written, warnings: Vec::new(), record: Record::default() })
}

/// Drops or refuses fields that no schema has, and refuses what only a cluster can do.
fn validated(
    target: &Target,
    mut object: Value,
    duplicates: &[String],
    options: &Options,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiFailure> {
    if !object.get("metadata").is_some_and(Value::is_object) {
        return Err(ApiFailure::bad_request("metadata of the object is not an object"));
    }
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    if target.kind == "Job"
        && is_of_cron_job(&object["metadata"])
        && let Some(metadata) = object["metadata"].as_object_mut()
        && metadata.remove("ownerReferences").is_some()
    {
        warnings.push("the Job has a manifest of its own: it stays when its CronJob goes".to_owned());
    }
    let unknown = drop_unknown_fields(target.kind, &mut object);
    let unknown = unknown.iter().map(|field| format!("unknown field {field:?}"));
    let found: Vec<String> = unknown.chain(duplicates.iter().map(|field| format!("duplicate field {field:?}"))).collect();
    match options.validation {
        Validation::Strict if !found.is_empty() => {
            let version = target.api_version.rsplit('/').next().unwrap_or_default();
            let kind = target.kind;
            return Err(ApiFailure::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
                found.join(", ")
            )));
        }
        Validation::Warn => warnings.extend(found),
        Validation::Strict | Validation::Ignore => {}
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    for (field, message) in [
        ("finalizers", "nothing on this host ends a finalizer"),
        ("ownerReferences", "objects in manifests have no owners: they go when their manifests go"),
    ] {
        if object["metadata"][field].as_array().is_some_and(|list| !list.is_empty()) {
            let cause = cause("FieldValueForbidden", &format!("metadata.{field}"), message);
            return Err(ApiFailure::invalid(target.kind, name, vec![cause]));
        }
    }
    let size: usize = ["data", "binaryData", "stringData"]
        .iter()
        .filter_map(|part| object[*part].as_object())
        .flat_map(Map::values)
        .filter_map(Value::as_str)
        .map(str::len)
        .sum();
    // base64 has four letters for three bytes.
    let size = if target.kind == "Secret" { size / 4 * 3 } else { size };
    if size > MAX_DATA {
        let cause = cause("FieldValueTooLong", "data", &format!("may not be more than {MAX_DATA} bytes"));
        return Err(ApiFailure::invalid(target.kind, name, vec![cause]));
    }
    Ok(object)
}

/// The object without what only a server writes, and the configuration that was applied last.
pub(super) fn cleaned(mut object: Value) -> (Value, Option<String>) {
    let mut applied = None;
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| !OWN_METADATA.contains(&field.as_str()));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            applied = annotations.remove(LAST_APPLIED).and_then(|text| text.as_str().map(str::to_owned));
            let is_own =
                |name: &str| OWN_ANNOTATIONS.iter().any(|own| name.starts_with(own)) && !WRITTEN_ANNOTATIONS.contains(&name);
            annotations.retain(|name, _| !is_own(name));
        }
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        drop_generated_selector(spec);
    }
    drop_empty(&mut object);
    (object, applied)
}

/// Returns true if a CronJob owns it, and nobody else: a Job that `kubectl create job --from` or k9s makes.
fn is_of_cron_job(metadata: &Value) -> bool {
    let owners = metadata["ownerReferences"].as_array();
    owners.is_some_and(|owners| !owners.is_empty() && owners.iter().all(|owner| owner["kind"] == "CronJob"))
}

/// Drops the selector that a Job is shown with.
fn drop_generated_selector(spec: &mut Map<String, Value>) {
    let labels = spec.get("selector").and_then(|selector| selector["matchLabels"].as_object());
    let is_generated = labels.is_some_and(|labels| labels.len() == 1 && labels.contains_key(CONTROLLER_UID_LABEL));
    if is_generated && spec.get("manualSelector") != Some(&Value::Bool(true)) {
        spec.remove("selector");
    }
}

/// Drops nulls, and the empty fields that kubectl adds.
fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_empty);
            // Time of creation of a template.
            map.retain(|key, value| {
                !(value.is_null() || EMPTY.contains(&key.as_str()) && value.as_object().is_some_and(Map::is_empty))
            });
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Makes objects comparable that are written with and without a namespace; one that is in no namespace is left as it is.
fn place_in(object: &mut Value, target: &Target, writable: &Writable, name: Option<&str>) {
    let metadata = &mut object["metadata"];
    if target.is_global() {
        return;
    }
    let is_written = metadata["namespace"].as_str().is_some_and(|namespace| !namespace.is_empty());
    if !is_written && (name.is_some() || target.namespace != writable.check.namespace()) {
        metadata["namespace"] = json!(target.namespace);
    } else if !is_written && let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("namespace");
    }
    if let Some(name) = name
        && metadata["name"].is_null()
    {
        metadata["name"] = json!(name);
    }
}

/// Checks a file as the source will; returns the object and the warnings about it.
fn judged(
    writable: &Writable,
    target: &Target,
    name: &str,
    file: &str,
    content: &[u8],
    known: &[Problem],
) -> Result<(Accepted, Vec<String>), ApiFailure> {
    let key = target.key(name);
    let Checked { accepted, problems, .. } = check(file, content, &writable.check, &PatchesByObject::new());
    let told = |problem: &Problem| {
        let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{}{hint}", problem.message)
    };
    let is_about = |problem: &&Problem| problem.object.as_ref().is_none_or(|object| *object == key);
    match accepted.into_iter().find(|accepted| *accepted.key == key) {
        Some(accepted) => {
            let is_new = |problem: &&Problem| {
                !known.iter().any(|known| {
                    (&known.field, &known.message, &known.object) == (&problem.field, &problem.message, &problem.object)
                })
            };
            let warnings = problems.iter().filter(|problem| problem.object.as_ref() == Some(&key)).filter(is_new);
            let warnings = warnings.map(|problem| format!("{}: {}", problem.field, told(problem)));
            Ok((accepted, warnings.collect()))
        }
        None => {
            let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).filter(is_about);
            let mut causes: Vec<Cause> = errors
                .map(|problem| {
                    let reason = if problem.code == "required" { "FieldValueRequired" } else { "FieldValueInvalid" };
                    cause(reason, &problem.field, &told(problem))
                })
                .collect();
            if causes.is_empty() {
                causes.push(cause("FieldValueInvalid", "", "the source does not accept it"));
            }
            Err(ApiFailure::invalid(target.kind, name, causes))
        }
    }
}

fn cause(reason: &'static str, field: &str, message: &str) -> Cause {
    Cause { reason, message: message.to_owned(), field: field.to_owned() }
}

/// The JSON of an accepted object.
fn value_of(accepted: &Accepted, target: &Target) -> Value {
    let value = match &accepted.object {
        AcceptedObject::Pod(pod) => serde_json::to_value(pod),
        AcceptedObject::ConfigMap(object) => serde_json::to_value(object),
        AcceptedObject::Secret(object) => serde_json::to_value(object),
        AcceptedObject::PersistentVolumeClaim(object) => serde_json::to_value(object),
        AcceptedObject::Workload(workload) => Ok(workload.as_ref().clone().with_defaults().to_json()),
        AcceptedObject::Network(object) => object.to_json(),
    };
    let mut value = value.unwrap_or_default();
    if matches!(accepted.object, AcceptedObject::Workload(_)) {
        templates::fill_in(&mut value);
    }
    value["apiVersion"] = json!(target.api_version);
    value["kind"] = json!(target.kind);
    if !target.is_global() {
        value["metadata"]["namespace"] = json!(target.namespace);
    }
    value
}

/// The name of the file for a new object.
fn new_file_name(files: &Files, target: &Target, key: &ObjectKey, writable: &Writable) -> String {
    let kind = target.kind.to_lowercase();
    let prefix = if key.namespace == writable.check.namespace() { String::new() } else { format!("{}_", key.namespace) };
    let mut stem = format!("{prefix}{}.{kind}", key.name);
    if stem.len() > MAX_FILE_NAME {
        // FNV-1a: names that are cut at the same place differ in it.
        let hash =
            stem.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        stem = format!("{prefix}{}-{:08x}.{kind}", &key.name[..100.min(key.name.len())], hash as u32);
    }
    let free = |name: &String| !files.0.contains_key(name);
    let numbered = (2..).map(|number| format!("{stem}-{number}.yaml"));
    std::iter::once(format!("{stem}.yaml")).chain(numbered).find(free).unwrap_or_default()
}
