//! The status page: one read-only page for a browser, from what the API serves anyway. Without scripts and without anything from elsewhere.

mod document;
mod escape;

use super::Backend;
use super::collection::Collection;
use super::event_api::EventApi;
use super::events::Events;
use super::own;
use super::own::SourceObject;
use super::respond::{self, Answer};
use super::show::PodRow;
use document::{EventLine, Facts, PodLine, Revision, SourceLine};
use k8s_openapi::api::core::v1::Pod;
use podstead_pod::SourceId;
use serde_json::Value;

/// Revisions of each source that are shown.
const REVISIONS: usize = 5;

/// `GET .../page`.
pub(super) async fn page(backend: &Backend) -> Answer {
    let now = (backend.now)();
    let mut sources = Vec::new();
    for value in own::sources(backend) {
        let Ok(source) = serde_json::from_value::<SourceObject>(value) else { continue };
        let history = backend.source_control.history(&SourceId::new(source.metadata.name.as_str())).await;
        let revisions = history.map(|history| history.revisions).unwrap_or_default();
        let revisions = revisions.into_iter().take(REVISIONS).map(|entry| Revision::of(&entry)).collect();
        sources.push(SourceLine { source, revisions });
    }
    let facts = Facts {
        node: backend.node.to_string(),
        now,
        config_error: backend.config.borrow().error.clone(),
        sources,
        pods: pods(backend),
        events: events(backend),
    };
    respond::page(document::render(&facts), document::POLICY.as_str())
}

fn pods(backend: &Backend) -> Vec<PodLine> {
    let (_, published) = backend.published.pods().list();
    let mut lines: Vec<PodLine> = published
        .iter()
        .map(|published| {
            let pod = published.object();
            let row = PodRow::of(&pod);
            PodLine {
                namespace: published.desired.full_name.namespace.clone(),
                name: published.desired.full_name.name.clone(),
                source: published.desired.source.to_string(),
                created_at: published.created_at,
                reason: if row.is_well() { String::new() } else { reason(&pod) },
                row,
            }
        })
        .collect();
    // What needs a look first.
    lines.sort_by_cached_key(|line| (line.row.is_well(), line.namespace.clone(), line.name.clone()));
    lines
}

/// Messages of a pod that is not well.
fn reason(pod: &Pod) -> String {
    let Some(status) = &pod.status else { return String::new() };
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let messages = containers.filter_map(|container| {
        let state = container.state.as_ref()?;
        let waiting = state.waiting.as_ref().and_then(|waiting| waiting.message.clone());
        let message = waiting.or_else(|| state.terminated.as_ref().and_then(|terminated| terminated.message.clone()))?;
        Some(format!("{}: {message}", container.name))
    });
    status.message.clone().into_iter().chain(messages).collect::<Vec<_>>().join("; ")
}

fn events(backend: &Backend) -> Vec<EventLine> {
    let events = Events::new(backend, EventApi::Core);
    let (_, items) = events.journal().list();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines: Vec<EventLine> = items
        .iter()
        .filter_map(|item| {
            let event: Value = serde_json::from_slice(&events.json(item)).ok()?;
            let object = &event["involvedObject"];
            Some(EventLine {
                seen_at: event["lastTimestamp"].as_str().and_then(|time| time.parse().ok()),
                is_warning: event["type"] == "Warning",
                reason: text(&event["reason"]),
                object: format!("{} {}", text(&object["kind"]), text(&object["name"])),
                message: text(&event["message"]),
            })
        })
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.seen_at));
    lines
}
