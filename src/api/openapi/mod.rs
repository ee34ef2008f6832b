//! OpenAPI documents for kubectl: `explain`, and the query parameters that a server understands, without which older ones refuse to apply.
//! Made from the table of fields and the words for them when somebody asks; nothing is kept. [`document`] and [`gnostic`] are **pure**.

mod beside;
mod document;
mod gnostic;
mod words;

use super::failure::ApiFailure;
use super::respond::{self, Answer};
use document::{DOCUMENTED_GROUPS, version_2, version_3};
use hyper::{HeaderMap, header};
use serde_json::{Map, json};

/// The form in which kubectl asks for version 2, with `@` for the second dot, and reads no other.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// `/openapi/v2`.
pub(super) fn second(headers: &HeaderMap) -> Answer {
    let document = version_2();
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    if accepted
        .flat_map(|value| value.split(','))
        .any(|form| form.trim().starts_with("application/com.github.proto-openapi.spec.v2"))
    {
        return respond::bytes(PROTOBUF, gnostic::encode(&document));
    }
    respond::json(&document)
}

/// `/openapi/v3`: the documents that there are. The address of each changes with its content, because kubectl keeps them.
pub(super) fn index() -> Answer {
    let mut paths = Map::new();
    for group in DOCUMENTED_GROUPS {
        let path = group.path();
        let content = version_3(group).to_string();
        let digest = hex::encode(&ring::digest::digest(&ring::digest::SHA256, content.as_bytes()).as_ref()[..16]);
        paths.insert(path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={digest}")}));
    }
    respond::json(&json!({"paths": paths}))
}

/// `/openapi/v3/api/v1` and so on.
pub(super) fn third(path: &str) -> Answer {
    let group = DOCUMENTED_GROUPS.iter().find(|group| group.path() == path);
    let group = group.ok_or_else(|| ApiFailure::no_such_path(&format!("/openapi/v3/{path}")))?;
    respond::json(&version_3(group))
}
