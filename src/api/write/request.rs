//! A request as what it asks for. **Pure**.

use super::target::{Part, Target};
use crate::delete_options::DeleteOptions;
use crate::failure::ApiFailure;
use crate::request::{Query, is_protobuf};
use hyper::Method;
use podstead_manifest::change::{Body, LIMITS, PatchError, PatchForm, patched, read_body, read_protobuf_body};
use podstead_sys::random::any_number;
use serde_json::{Value, json};

/// Treatment of fields that no schema has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validation {
    Strict,
    Warn,
    Ignore,
}

/// Parameters of a request.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// `create`, `update`, `patch` or `delete`.
    pub(super) verb: &'static str,
    pub(super) dry_run: bool,
    pub(super) validation: Validation,
    /// The program that asks, for history and log.
    pub(super) manager: String,
    /// Takes fields over from other managers.
    pub(super) force: bool,
}

impl Options {
    pub(super) fn read(method: &Method, query: &Query, agent: &str, content_type: &str, body: &[u8]) -> Result<Self, ApiFailure> {
        let verb = match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::DELETE => "delete",
            _ => "patch",
        };
        let mut dry_run = query.all("dryRun");
        if *method == Method::DELETE {
            dry_run.extend(DeleteOptions::read(content_type, body)?.dry_run);
        }
        dry_run.retain(|value| !value.is_empty());
        if let Some(other) = dry_run.iter().find(|value| *value != "All") {
            return Err(ApiFailure::bad_request(format!("invalid value {other:?} for dryRun: expected All")));
        }
        let validation = match query.get("fieldValidation") {
            None | Some("" | "Strict") => Validation::Strict,
            Some("Warn") => Validation::Warn,
            Some("Ignore") => Validation::Ignore,
            Some(other) => {
                let message = format!("invalid value {other:?} for fieldValidation: expected Strict, Warn or Ignore");
                return Err(ApiFailure::bad_request(message));
            }
        };
        let program = agent.split('/').next().unwrap_or_default();
        let manager = query.get("fieldManager").filter(|manager| !manager.is_empty()).unwrap_or(program);
        let manager: String = manager.chars().filter(|character| !character.is_control()).take(128).collect();
        Ok(Self { verb, dry_run: !dry_run.is_empty(), validation, manager, force: query.flag("force")? })
    }
}

/// The change that a request asks for.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// A new object.
    Create(Body),
    /// The whole object.
    Replace(Body),
    /// A patch.
    Patch(PatchForm, Value),
    /// Fields that a manager wants to have a value.
    Apply(Body),
    /// Deletion.
    Delete(DeleteOptions),
}

impl Change {
    pub(super) fn read(method: &Method, content_type: &str, body: &[u8], target: &Target) -> Result<Self, ApiFailure> {
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let unsupported = |expected: &str| {
            ApiFailure::unsupported_media_type(format!("the content type {kind:?} is not supported here: expected {expected}"))
        };
        let read = || read_body(body, &LIMITS).map_err(unread);
        match *method {
            Method::DELETE => Ok(Self::Delete(DeleteOptions::read(content_type, body)?)),
            Method::PATCH => {
                let form = match kind.as_str() {
                    "application/json-patch+json" => PatchForm::Json,
                    "application/merge-patch+json" => PatchForm::Merge,
                    "application/strategic-merge-patch+json" => PatchForm::Strategic,
                    "application/apply-patch+yaml" => {
                        let body = read()?;
                        check_type(&body.value, target)?;
                        return Ok(Self::Apply(body));
                    }
                    _ => {
                        let forms = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json or application/apply-patch+yaml";
                        return Err(unsupported(forms));
                    }
                };
                Ok(Self::Patch(form, read()?.value))
            }
            _ => {
                let mut body = match kind.as_str() {
                    "application/json" | "application/yaml" | "" => read()?,
                    _ if is_protobuf(&kind) => {
                        let kind = if target.part == Part::Scale { "Scale" } else { target.kind };
                        read_protobuf_body(kind, body).map_err(unread)?
                    }
                    _ => return Err(unsupported("application/json, application/yaml or application/vnd.kubernetes.protobuf")),
                };
                fill_type(&mut body.value, target);
                check_type(&body.value, target)?;
                if *method == Method::PUT {
                    return Ok(Self::Replace(body));
                }
                generate_name(&mut body.value);
                Ok(Self::Create(body))
            }
        }
    }

    /// The same for an object that is shown and that no source has: a patch of `bare`, or a replacement, creates it.
    pub(super) fn creating(self, kind: &str, bare: &Value) -> Result<Self, ApiFailure> {
        match self {
            Self::Patch(form, patch) => match patched(kind, bare, &patch, form) {
                Ok(value) => Ok(Self::Create(Body { value, duplicates: Vec::new() })),
                Err(PatchError::Malformed(message) | PatchError::Unfit(message)) => {
                    Err(ApiFailure::bad_request(format!("invalid patch: {message}")))
                }
            },
            Self::Replace(body) => Ok(Self::Create(body)),
            change @ (Self::Create(_) | Self::Apply(_) | Self::Delete(_)) => Ok(change),
        }
    }

    /// The name of the object.
    pub(super) fn name(&self, target: &Target) -> Option<String> {
        match self {
            Self::Create(body) => body.value["metadata"]["name"].as_str().filter(|name| !name.is_empty()).map(str::to_owned),
            Self::Replace(_) | Self::Patch(..) | Self::Apply(_) | Self::Delete(_) => target.name.clone(),
        }
    }
}

fn unread(message: impl std::fmt::Display) -> ApiFailure {
    ApiFailure::bad_request(format!("invalid request body: {message}"))
}

/// Kind and version of a body for the target.
const fn type_of(target: &Target) -> [(&'static str, &'static str); 2] {
    match target.part {
        Part::Whole => [("kind", target.kind), ("apiVersion", target.api_version)],
        Part::Scale => [("kind", "Scale"), ("apiVersion", "autoscaling/v1")],
    }
}

/// Adds kind and version to a body without them: typed clients leave them out, and an API server takes them from the path.
fn fill_type(body: &mut Value, target: &Target) {
    let Some(body) = body.as_object_mut() else { return };
    for (field, value) in type_of(target) {
        if body.get(field).is_none_or(|given| given.is_null() || given == "") {
            body.insert(field.to_owned(), json!(value));
        }
    }
}

/// Checks kind, version and namespace of a body.
fn check_type(body: &Value, target: &Target) -> Result<(), ApiFailure> {
    if !body.is_object() {
        return Err(ApiFailure::bad_request("the request body is not an object"));
    }
    for (field, expected) in type_of(target) {
        if body[field] != expected {
            let message = format!("{field} of the request body is {}, and the path is that of {expected:?}", body[field]);
            return Err(ApiFailure::bad_request(message));
        }
    }
    let namespace = body["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty());
    if namespace.is_some_and(|namespace| namespace != target.namespace) {
        return Err(ApiFailure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if target.name.as_deref().is_some_and(|name| body["metadata"]["name"] != name) {
        return Err(ApiFailure::bad_request("the name of the object does not match the name on the URL"));
    }
    Ok(())
}

/// Gives the object a name where it asks for one.
fn generate_name(body: &mut Value) {
    let Some(metadata) = body["metadata"].as_object_mut() else { return };
    let Some(prefix) = metadata.remove("generateName") else { return };
    let has_name = metadata.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    if let (Some(prefix), false) = (prefix.as_str().filter(|prefix| !prefix.is_empty()), has_name) {
        // No vowels, and nothing that looks like another: as Kubernetes has it.
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut number = any_number();
        let suffix = (0..5).map(|_| {
            let letter = LETTERS[number as usize % LETTERS.len()];
            number /= LETTERS.len() as u32;
            char::from(letter)
        });
        metadata.insert("name".to_owned(), json!(format!("{prefix}{}", suffix.collect::<String>())));
    }
}
