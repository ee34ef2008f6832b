//! Answers to writes: objects as reads show them.

use super::applied::LAST_APPLIED;
use super::plan::{Outcome, Planned, cleaned};
use super::target::{Part, Target};
use crate::Backend;
use crate::failure::ApiFailure;
use crate::own::short_revision;
use crate::published::{ORIGIN_ANNOTATION, REVISION_ANNOTATION, SOURCE_ANNOTATION};
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
    let shown = fetch(backend, target.read_route(name)).await?;
    // Any namespace is shown, also one that no source has an object of.
    let is_object = !target.is_global() || shown["metadata"]["annotations"][SOURCE_ANNOTATION].is_string();
    is_object.then_some(shown)
}

async fn fetch(backend: &Backend, route: Route) -> Option<Value> {
    // Boxed: a read never leads here again, which the compiler cannot know.
    let answer = Box::pin(read(backend, route, "", &Query::default(), None)).await.ok()?;
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
        let is_new = found.as_ref().is_some_and(|found| shows(found, planned));
        object = found.or(object);
        if is_new || planned.edit.is_none() || Instant::now() > deadline {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    if target.part == Part::Scale
        && let Some(scale) = fetch(backend, target.route.clone()).await
    {
        return respond_with(planned, scale);
    }
    let object = object.unwrap_or_else(|| planned.after.clone());
    respond_with(planned, with_record(without_secrets(object, target), planned))
}

/// Reports whether an object as read has the labels, annotations and spec that were written.
fn shows(found: &Value, planned: &Planned) -> bool {
    // Data of Secrets is not shown, and what is defaulted later differs: only what must be there is compared.
    fn has(found: &Value, wanted: &Value) -> bool {
        match (found, wanted) {
            (Value::Object(found), Value::Object(wanted)) => {
                wanted.iter().all(|(key, value)| found.get(key).is_some_and(|found| has(found, value)))
            }
            (Value::Array(found), Value::Array(wanted)) => {
                found.len() >= wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| has(found, wanted))
            }
            (found, wanted) => found == wanted,
        }
    }
    ["spec", "data"]
        .iter()
        .all(|part| found.get(*part).is_none() || has(&found[*part], planned.after.get(*part).unwrap_or(&json!({}))))
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
