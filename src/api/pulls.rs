//! Pulls under way.

use super::Backend;
use super::kinds::OWN_API_VERSION;
use super::show::{age_since, human_duration, human_size};
use super::table::Column;
use jiff::Timestamp;
use podstead_runtime::PullState;
use serde_json::{Value, json};

/// Columns of pulls.
pub(super) const COLUMNS: &[Column] = &[
    Column::name().wide(),
    Column::text("Image", "Image that is pulled"),
    Column::text("Phase", "Stage of the pull"),
    Column::text("Done", "Part of the bytes that are here"),
    Column::text("Size", "Size of the layers to be fetched"),
    Column::text("Rate", "Bytes per second"),
    Column::text("Left", "Time until all bytes are here, at this rate"),
    Column::text("From", "Hosts that deliver layers"),
    Column::text("Age", "Time since the pull began"),
    Column::text("Waiting", "Reason why nothing comes"),
];

/// All pulls as they are shown.
pub(super) fn shown(backend: &Backend) -> Vec<Value> {
    backend.images.pulls().iter().map(object).collect()
}

fn object(pull: &PullState) -> Value {
    let mut object = json!({
        "apiVersion": OWN_API_VERSION,
        "kind": "Pull",
        "metadata": {"name": format!("pull-{}", pull.number), "creationTimestamp": pull.began_at},
        "sizeBytes": pull.size(),
        "presentBytes": pull.present(),
        "bytesPerSecond": pull.rate(),
        "secondsLeft": pull.left().map(|left| left.as_secs()),
        "hosts": pull.hosts(),
        "waiting": pull.waiting(),
    });
    if let (Some(object), Value::Object(state)) = (object.as_object_mut(), json!(pull)) {
        object.extend(state);
        object.retain(|_, value| !value.is_null());
    }
    object
}

/// The cells of a pull as it is shown.
pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let none = || "<none>".to_owned();
    let Ok(pull) = serde_json::from_value::<PullState>(object.clone()) else { return vec![json!(none()); COLUMNS.len()] };
    let text = |text: Option<String>| json!(text.filter(|text| !text.is_empty()).unwrap_or_else(none));
    let seconds = |seconds: u64| human_duration(i64::try_from(seconds).unwrap_or(i64::MAX));
    vec![
        json!(format!("pull-{}", pull.number)),
        json!(pull.reference),
        json!(pull.phase.as_str()),
        text(pull.percent().map(|percent| format!("{percent}%"))),
        text((pull.size() > 0).then(|| human_size(pull.size()))),
        text((pull.rate() > 0).then(|| format!("{}/s", human_size(pull.rate())))),
        text(pull.left().map(|left| seconds(left.as_secs()))),
        text(Some(pull.hosts().join(","))),
        json!(age_since(Some(pull.began_at), now)),
        text(pull.waiting().map(std::borrow::Cow::into_owned)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_runtime::{PullPhase, PulledLayer};

    fn pull(layers: Vec<PulledLayer>) -> PullState {
        let reference = "r.lan/app:1".to_owned();
        PullState { number: 7, reference, began_at: Timestamp::UNIX_EPOCH, phase: PullPhase::Downloading, layers, hold: None }
    }

    fn row(pull: &PullState) -> Vec<String> {
        let now = "1970-01-01T00:01:00Z".parse().unwrap();
        cells(&object(pull), now).iter().map(|cell| cell.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn row_has_what_is_known() {
        let layer = PulledLayer {
            size_bytes: 100 << 20,
            present_bytes: 41 << 20,
            bytes_per_second: Some(1 << 20),
            host: Some("mirror.lan".into()),
            ..PulledLayer::default()
        };
        let expected =
            ["pull-7", "r.lan/app:1", "Downloading", "41%", "100.0MiB", "1.0MiB/s", "59s", "mirror.lan", "60s", "<none>"];
        assert_eq!(row(&pull(vec![layer.clone()])), expected);
        let waiting = PulledLayer { host: None, waiting: Some("no route".into()), ..layer };
        let expected = ["pull-7", "r.lan/app:1", "Downloading", "41%", "100.0MiB", "<none>", "<none>", "<none>", "60s", "no route"];
        assert_eq!(row(&pull(vec![waiting])), expected);
        assert_eq!(row(&pull(Vec::new()))[3..8], ["<none>"; 5]);
    }

    #[test]
    fn object_is_the_state_with_its_sums() {
        let state = pull(Vec::new());
        let object = object(&state);
        assert_eq!((&object["kind"], &object["metadata"]["name"]), (&json!("Pull"), &json!("pull-7")));
        assert!(object.get("waiting").is_none() && object.get("secondsLeft").is_none());
        assert_eq!(serde_json::from_value::<PullState>(object).unwrap(), state);
    }
}
