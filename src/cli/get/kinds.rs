//! Presentation of each type of objects: its colours, its order, the names that it answers to. **Pure**.

use crate::object_type::ObjectType;
use crate::table::Style;
use podstead_api::SourceObject;
use podstead_api::show::PodRow;
use serde_json::Value;

impl ObjectType {
    /// Reports whether a table needs more of the objects than their metadata.
    pub(super) const fn needs_objects(self) -> bool {
        matches!(self, Self::Event | Self::Source | Self::Image)
    }

    /// Reports whether a watch tells of objects that are gone. Events are only forgotten, and the last state of a pull says nothing of its end.
    pub(super) const fn shows_deletions(self) -> bool {
        !matches!(self, Self::Event | Self::Pull)
    }

    /// Reports whether an object is meant by a name: its own, or for images a reference or at least six digits of the digest.
    pub(super) fn is_called(self, object: &Value, name: &str) -> bool {
        if self != Self::Image {
            return object["metadata"]["name"] == name;
        }
        let digest = object["digest"].as_str().unwrap_or_default();
        let bare = digest.split_once(':').map_or(digest, |(_, digits)| digits);
        let is_reference = object["references"].as_array().into_iter().flatten().any(|reference| reference == name);
        is_reference || name.len() >= 6 && (digest.starts_with(name) || bare.starts_with(name))
    }

    /// The objects as `-o name` prints them.
    pub(super) fn words(self, object: &Value) -> Vec<String> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        match self {
            // Their names are digests, and no command asks for these.
            Self::Image => {
                let references = object["references"].as_array().into_iter().flatten();
                references.filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => vec![format!("{}/{name}", self.qualified_singular())],
        }
    }

    /// Puts objects in the order in which they are shown if the user names none.
    pub(super) fn sort<T>(self, items: &mut [T], object: impl Fn(&T) -> &Value) {
        if self == Self::Event {
            // The newest last, where a terminal shows it.
            items.sort_by_cached_key(|item| {
                object(item)["lastTimestamp"].as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok())
            });
        }
    }

    /// Text below a table, for what is too long for a row.
    pub(super) fn below(self, object: &Value) -> Option<String> {
        if self != Self::Source {
            return None;
        }
        let source: SourceObject = serde_json::from_value(object.clone()).ok()?;
        Some(format!("{}: {}", source.metadata.name, source.status.last_error?))
    }

    /// The colour of a cell. `cell` gives the text below another heading of the same row.
    pub(super) fn style<'a>(self, heading: &str, text: &str, cell: impl Fn(&str) -> &'a str) -> Style {
        match (self, heading) {
            (Self::Pod, "STATUS") => pod_style(text, cell("READY")),
            (Self::Event, "TYPE") if text == "Warning" => Style::Bad,
            (Self::Source, "REJECTED") if text != "0" => Style::Bad,
            (Self::Source, "STATUS") if text == "ok" => Style::Good,
            (Self::Source, "STATUS") if text == "failed" || text.ends_with(" rejected") => Style::Bad,
            (Self::Source, "STATUS") => Style::Pending,
            // No pod refers to the data that uses space.
            (Self::PersistentVolumeClaim, "STATUS") if text == "Released" => Style::Pending,
            _ => Style::Plain,
        }
    }
}

fn pod_style(status: &str, ready: &str) -> Style {
    let (ready, total) = ready.split_once('/').unwrap_or_default();
    let number = |text: &str| text.parse().unwrap_or_default();
    style_of(&PodRow { status: status.to_owned(), ready: number(ready), total: number(total), ..PodRow::default() })
}

/// Green as it should be, yellow on the way, red when something has to be done.
pub(crate) fn style_of(row: &PodRow) -> Style {
    if row.is_well() {
        return Style::Good;
    }
    match row.status.as_str() {
        "Running" | "Pending" | "ContainerCreating" | "PodInitializing" | "Terminating" | "NotReady" => Style::Pending,
        status if status.starts_with("Init:") && status[5..].starts_with(|c: char| c.is_ascii_digit()) => Style::Pending,
        _ => Style::Bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn images_answer_to_references_and_digests() {
        let image = json!({"metadata": {"name": "sha256:0123456789"}, "digest": "sha256:0123456789", "references": ["a:1", "b:1"]});
        for name in ["a:1", "b:1", "sha256:0123", "012345"] {
            assert!(ObjectType::Image.is_called(&image, name), "{name}");
        }
        for name in ["a", "01234", "123456", "sha25"] {
            assert!(!ObjectType::Image.is_called(&image, name), "{name}");
        }
        assert_eq!(ObjectType::Image.words(&image), ["a:1", "b:1"]);
    }

    #[test]
    fn newest_event_is_last() {
        let event = |time: &str| json!({"lastTimestamp": time});
        let mut events = [event("2026-11-29T10:00:00.5Z"), event("2026-11-29T10:00:00Z"), json!({})];
        ObjectType::Event.sort(&mut events, |event| event);
        assert_eq!(events, [json!({}), event("2026-11-29T10:00:00Z"), event("2026-11-29T10:00:00.5Z")]);
    }

    #[test]
    fn colours_tell_what_is_to_be_done() {
        let pod = |status, ready: &'static str| ObjectType::Pod.style("STATUS", status, |_| ready);
        assert_eq!(pod("Running", "1/1"), Style::Good);
        assert_eq!(pod("Running", "1/2"), Style::Pending);
        assert_eq!(pod("Init:0/2", "0/1"), Style::Pending);
        assert_eq!(pod("CrashLoopBackOff", "0/1"), Style::Bad);
        let source = |heading, text| ObjectType::Source.style(heading, text, |_| "");
        assert_eq!([source("STATUS", "ok"), source("STATUS", "suspended")], [Style::Good, Style::Pending]);
        assert_eq!([source("STATUS", "2 objects rejected"), source("REJECTED", "2")], [Style::Bad; 2]);
        assert_eq!(source("REJECTED", "0"), Style::Plain);
    }
}
