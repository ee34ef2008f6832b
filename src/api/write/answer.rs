//! Answers to writes: objects as reads show them.

use super::applied::LAST_APPLIED;
use super::plan::{Outcome, Planned, cleaned};
use super::target::{Part, Target};
use crate::Backend;
use crate::claims::RELEASED_PARAMETER;
use crate::failure::ApiFailure;
use crate::key::{ORIGIN_ANNOTATION, REVISION_ANNOTATION, SOURCE_ANNOTATION};
use crate::own::short_revision;
use crate::read::read;
use crate::request::Query;
use crate::respond::{self, Answer};
use crate::route::Route;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::header::{HeaderValue, WARNING};
use podstead_manifest::change::carried;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// Longest wait for reads to show what the source has accepted.
const SHOWN: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);

/// The object as a GET shows it; `None` where there is none.
pub(super) async fn shown(backend: &Backend, target: &Target, name: &str) -> Option<Value> {
    let shown = fetch(backend, target.read_route(name), &Query::default()).await?;
    // Any namespace is shown, also one that no source has an object of.
    let is_object = !target.is_global() || shown["metadata"]["annotations"][SOURCE_ANNOTATION].is_string();
    is_object.then_some(shown)
}

/// The same, also of a claim of which only the data are left.
pub(super) async fn shown_also_released(backend: &Backend, target: &Target, name: &str) -> Option<Value> {
    fetch(backend, target.read_route(name), &Query::of(&[(RELEASED_PARAMETER, "true")])).await
}

async fn fetch(backend: &Backend, route: Route, query: &Query) -> Option<Value> {
    // Boxed: a read never leads here again, which the compiler cannot know.
    let answer = Box::pin(read(backend, route, "", query, None)).await.ok()?;
    let body = answer.into_body().collect().await.ok()?.to_bytes();
    serde_json::from_slice(&body).ok()
}

/// Source, revision and place of an object, as messages have it.
pub(super) fn place(shown: &Value) -> Option<String> {
    let annotation = |name: &str| shown["metadata"]["annotations"][name].as_str();
    let source = annotation(SOURCE_ANNOTATION)?;
    Some(match (annotation(REVISION_ANNOTATION), annotation(ORIGIN_ANNOTATION)) {
        (Some(revision), Some(origin)) => {
            format!("source {source} (revision {}, {origin})", short_revision(revision))
        }
        (_, _) => format!("source {source}"),
    })
}

/// The answer of a dry run.
pub(super) fn planned(planned: &Planned, target: &Target, name: &str, shown: Option<&Value>) -> Answer {
    if planned.outcome == Outcome::Deleted {
        return deleted(target, name, shown);
    }
    let object = match shown {
        // With status, versions and all else that the change leaves as it is.
        Some(shown) => carried(shown, &as_written(&planned.before), &as_written(&planned.after)),
        None => planned.after.clone(),
    };
    respond_with(planned, with_record(without_secrets(object, target), planned))
}

/// The answer when the source has accepted the change.
pub(super) async fn written(backend: &Backend, planned: &Planned, target: &Target, name: &str) -> Answer {
    let deadline = Instant::now() + SHOWN;
    let mut object = None;
    loop {
        let found = shown(backend, target, name).await;
        let is_new = found.as_ref().is_some_and(|found| shows(found, planned, target));
        object = found.or(object);
        if is_new || planned.edit.is_none() || Instant::now() > deadline {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    if target.part == Part::Scale
        && let Some(scale) = fetch(backend, target.route.clone(), &Query::default()).await
    {
        return respond_with(planned, scale);
    }
    let object = object.unwrap_or_else(|| planned.after.clone());
    respond_with(planned, with_record(without_secrets(object, target), planned))
}

/// Reports whether an object as read shows the change.
fn shows(found: &Value, planned: &Planned, target: &Target) -> bool {
    let (before, after) = &planned.written;
    // Data of Secrets is not shown.
    let content: &[&str] = if target.kind == "Secret" { &[] } else { &["spec", "data", "binaryData"] };
    let shows_content =
        content.iter().all(|part| has(&found[*part], &planned.after[*part]) && lacks(&found[*part], &before[*part], &after[*part]));
    let (found, before, after) = (&found["metadata"], &before["metadata"], &after["metadata"]);
    shows_content
        && ["labels", "annotations"]
            .iter()
            .all(|part| has(&found[*part], &after[*part]) && lacks(&found[*part], &before[*part], &after[*part]))
}

/// Reports whether what is read has all that is wanted. It may have more, such as defaults.
fn has(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (_, Value::Null) => true,
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| has(found.get(key).unwrap_or(&Value::Null), value))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() >= wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| has(found, wanted))
        }
        (Value::Null, Value::Object(wanted)) => wanted.is_empty(),
        (Value::Null, Value::Array(wanted)) => wanted.is_empty(),
        (found, wanted) => found == wanted,
    }
}

/// Reports whether what is read lacks all that a change of the file removes. A default may be in its place.
fn lacks(found: &Value, before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), _) => {
            before.iter().all(|(key, value)| lacks(&found[key], value, after.get(key).unwrap_or(&Value::Null)))
        }
        (Value::Array(before), Value::Array(after)) => {
            let is_shorter = || found.as_array().is_none_or(|found| found.len() < before.len());
            let mut pairs = before.iter().zip(after).enumerate();
            (before.len() <= after.len() || is_shorter())
                && pairs.all(|(index, (before, after))| lacks(&found[index], before, after))
        }
        (before, Value::Null) => before.is_null() || found != before,
        (_, _) => true,
    }
}

fn respond_with(planned: &Planned, object: Value) -> Answer {
    let mut response = respond::json(&object)?;
    *response.status_mut() = code(planned.outcome);
    for warning in &planned.warnings {
        let text: String = warning.replace(['"', '\\'], "'").chars().filter(|character| !character.is_control()).collect();
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
    Ok(response)
}

/// The object as people write it. Labels and annotations are there, so that those which this host adds stay.
fn as_written(object: &Value) -> Value {
    let (mut object, _) = cleaned(object.clone());
    for field in ["annotations", "labels"] {
        if !object["metadata"][field].is_object() {
            object["metadata"][field] = json!({});
        }
    }
    object
}

/// The object with what was last applied, as reads show it: kubectl compares answers with reads.
fn with_record(mut object: Value, planned: &Planned) -> Value {
    if let Some(last_applied) = &planned.record.last_applied {
        object["metadata"]["annotations"][LAST_APPLIED] = json!(last_applied);
    }
    object
}

/// No answer has the data of a Secret.
fn without_secrets(mut object: Value, target: &Target) -> Value {
    if target.kind == "Secret"
        && let Some(object) = object.as_object_mut()
    {
        object.remove("data");
        object.remove("stringData");
    }
    object
}

/// Error of a request that names another version of the object.
pub(super) fn modified(target: &Target, name: &str) -> ApiFailure {
    let message = format!(
        "Operation cannot be fulfilled on {} {name:?}: the object has been modified; please apply your changes to the latest version and try again",
        target.plural
    );
    ApiFailure::conflict(message).about(target.plural, name)
}

/// The answer of a deletion. Clients wait until the object is gone, or has another UID than the one told.
pub(super) fn deleted(target: &Target, name: &str, shown: Option<&Value>) -> Answer {
    let (kind, group) = target.plural.split_once('.').unwrap_or((target.plural, ""));
    let mut details = json!({"name": name, "kind": kind, "group": group});
    if let Some(uid) = shown.and_then(|shown| shown["metadata"]["uid"].as_str()) {
        details["uid"] = json!(uid);
    }
    respond::json(&json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}))
}

/// The status code of a success.
pub(super) fn code(outcome: Outcome) -> StatusCode {
    match outcome {
        Outcome::Created => StatusCode::CREATED,
        Outcome::Changed | Outcome::Deleted => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_object_lacks_what_is_added_and_has_what_is_removed() {
        let (none, one, two) = (json!({}), json!({"a": "1"}), json!({"a": "1", "b": "2"}));
        let (short, long) = (json!([1]), json!([1, 2]));
        for (found, wanted, expected) in [
            (&two, &two, true),
            (&two, &one, true),
            (&one, &two, false),
            (&two, &Value::Null, true),
            (&Value::Null, &none, true),
            (&Value::Null, &one, false),
            (&long, &short, true),
            (&short, &long, false),
        ] {
            assert_eq!(has(found, wanted), expected, "{found} {wanted}");
        }
        let other = json!({"a": "1", "b": "0"});
        for (found, before, after, expected) in [
            (&two, &two, &one, false),
            (&one, &two, &one, true),
            (&other, &two, &one, true),
            (&two, &two, &Value::Null, false),
            (&two, &one, &Value::Null, false),
            (&none, &two, &Value::Null, true),
            (&two, &one, &two, true),
            (&long, &long, &short, false),
            (&short, &long, &short, true),
            (&Value::Null, &two, &none, true),
        ] {
            assert_eq!(lacks(found, before, after), expected, "{found} {before} {after}");
        }
        let (before, after) = (json!([{"a": "1", "b": "2"}]), json!([{"a": "1"}]));
        assert!(!lacks(&before, &before, &after) && lacks(&after, &before, &after));
    }
}
