//! ControllerRevisions: the earlier templates of StatefulSets and DaemonSets, read-only.

use super::published::{Published, SOURCE_ANNOTATION};
use super::show::age_since;
use super::table::Column;
use super::templates;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Columns of ControllerRevisions.
pub(super) const COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Controller", "StatefulSet or DaemonSet that it is a revision of"),
    Column::text("Revision", "Number of the revision"),
    Column::text("Age", "Time since it was made"),
];

/// All of them.
pub(super) fn shown(published: &Published) -> Vec<Value> {
    let one = |shown: &podstead_expand::ShownWorkload| {
        let mut object = shown.object.clone();
        templates::fill_in(&mut object);
        object["metadata"]["annotations"][SOURCE_ANNOTATION] = json!(shown.source.as_str());
        object
    };
    published.controller_revisions().iter().map(|shown| one(shown)).collect()
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
