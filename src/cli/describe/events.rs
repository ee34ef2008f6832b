//! The events of an object, below its description.

use crate::client::{Client, ClientError};
use crate::get::{seen_column, type_cell};
use crate::pods::{ServedList, collection};
use crate::table::{Cell, Table};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use std::io::{self, Write};

/// The object that events are about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Involved<'a> {
    /// Such as `Pod`.
    pub(super) kind: &'a str,
    /// The namespace.
    pub(super) namespace: &'a str,
    /// The name.
    pub(super) name: &'a str,
    /// The identity.
    pub(super) uid: &'a str,
}

/// Its events, the newest last.
pub(super) async fn events_of(client: &Client, involved: Involved<'_>) -> Result<Vec<Event>, ClientError> {
    let Involved { kind, namespace, name, uid } = involved;
    let fields = format!("involvedObject.kind={kind},involvedObject.name={name},involvedObject.uid={uid}");
    selected(client, Some(namespace), &fields).await
}

/// Events of what is in no namespace, the newest last.
pub(super) async fn events_about(client: &Client, kind: &str, name: &str) -> Result<Vec<Event>, ClientError> {
    selected(client, None, &format!("involvedObject.kind={kind},involvedObject.name={name}")).await
}

async fn selected(client: &Client, namespace: Option<&str>, fields: &str) -> Result<Vec<Event>, ClientError> {
    let list: ServedList = client.get(collection("events", namespace).with("fieldSelector", fields)).await?;
    let typed: Result<Vec<Event>, _> = list.items.into_iter().map(serde_json::from_value).collect();
    let mut events = typed.map_err(|source| ClientError::NotUnderstood { source })?;
    events.sort_by_key(|event| event.last_timestamp.as_ref().map(|time| time.0));
    Ok(events)
}

/// Writes them as a table.
pub(super) fn write_events(out: &mut impl Write, events: &[Event], now: Timestamp, color: bool) -> io::Result<()> {
    if events.is_empty() {
        return writeln!(out, "Events:              <none>");
    }
    writeln!(out, "Events:")?;
    let rows: Vec<Vec<Cell>> = events
        .iter()
        .map(|event| {
            vec![
                format!("  {}", seen_column(event, now)).into(),
                type_cell(event),
                event.reason.as_deref().unwrap_or_default().into(),
                event.message.as_deref().unwrap_or_default().into(),
            ]
        })
        .collect();
    Table::new(vec!["  AGE", "TYPE", "REASON", "MESSAGE"], color).write(out, &rows)
}
