//! ControllerRevisions: the earlier templates of StatefulSets and DaemonSets, read-only.

use super::key::SOURCE_ANNOTATION;
use super::published::Published;
use super::show::age_since;
use super::table::Column;
use super::templates;
use bytes::Bytes;
use jiff::Timestamp;
use podstead_expand::ShownWorkload;
use serde_json::{Value, json};

/// Columns of ControllerRevisions.
pub(super) const COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Controller", "StatefulSet or DaemonSet that it is a revision of"),
    Column::text("Revision", "Number of the revision"),
    Column::text("Age", "Time since it was made"),
];

/// One of them as it is served. As text: a tree of values would need several times the memory.
#[derive(Clone, Debug)]
pub(super) struct PublishedRevision(Bytes);

impl PublishedRevision {
    pub(super) fn new(shown: &ShownWorkload) -> Self {
        let mut object = shown.object.clone();
        templates::fill_in(&mut object);
        object["metadata"]["annotations"][SOURCE_ANNOTATION] = json!(shown.source.as_str());
        Self(Bytes::from(object.to_string()))
    }

    fn object(&self) -> Value {
        serde_json::from_slice(&self.0).unwrap_or_default()
    }
}

/// All of them.
pub(super) fn shown(published: &Published) -> Vec<Value> {
    published.controller_revisions().iter().map(PublishedRevision::object).collect()
}

/// The cells of one.
pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let owner = &object["metadata"]["ownerReferences"][0];
    let word = |field: &str| owner[field].as_str().unwrap_or_default();
    let created_at = object["metadata"]["creationTimestamp"].as_str().and_then(|time| time.parse().ok());
    vec![
        object["metadata"]["name"].clone(),
        json!(format!("{}.apps/{}", word("kind").to_lowercase(), word("name"))),
        object["revision"].clone(),
        json!(age_since(created_at, now)),
    ]
}
