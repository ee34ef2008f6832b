//! Information about unhealthy pods besides their status.

use super::explain::{culprit, last_ending};
use super::workload::explain_workloads;
use crate::client::{Client, ClientError};
use crate::pods::{ServedList, collection, pod_target};
use crate::printable::printable;
use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};
use podstead_api::show::PodRow;
use serde_json::Value;
use std::collections::BTreeMap;

/// Logs that are looked into; each is a request.
const MAX_LOGS: usize = 20;
/// Lines from the end of a log: the last ones may be empty.
const LINES: u32 = 4;
/// Of those lines, in bytes.
const MAX_LOG_BYTES: u32 = 4096;
/// Reason of the event about a container that podstead kills, in the kubelet's word.
const KILLING: &str = "Killing";
/// Maximum length of a displayed log line, in characters.
const MAX_LINE: usize = 160;

/// Information from the daemon about unhealthy pods.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The last line that the last run of a container wrote, by the container's ID.
    last_words: BTreeMap<String, String>,
    /// Warnings about pods and workloads, the newest last.
    warnings: Vec<Event>,
    /// Events about containers that podstead killed, the newest last.
    kills: Vec<Event>,
}

impl Evidence {
    /// From events in any order, and the ends of logs by container ID.
    pub(super) fn new(mut events: Vec<Event>, logs: impl IntoIterator<Item = (String, String)>) -> Self {
        events.sort_by_key(|event| event.last_timestamp.as_ref().map(|time| time.0));
        let (kills, warnings) = events.into_iter().partition(|event| event.reason.as_deref() == Some(KILLING));
        let last_words = logs.into_iter().filter_map(|(id, log)| Some((id, last_line(&log)?))).collect();
        Self { last_words, warnings, kills }
    }

    /// The last line of the last run's log.
    pub(super) fn last_words(&self, container: &ContainerStatus) -> Option<&str> {
        self.last_words.get(ended_run(container)?).map(String::as_str)
    }

    /// The newest warning about a pod that satisfies `which`.
    pub(super) fn warning(&self, pod: &Pod, which: impl Fn(&Event) -> bool) -> Option<&Event> {
        let uid = pod.metadata.uid.as_deref();
        self.warnings.iter().rev().find(|event| event.involved_object.uid.as_deref() == uid && which(event))
    }

    /// The newest event about a container of a pod that was killed and satisfies `which`.
    pub(super) fn kill(&self, pod: &Pod, which: impl Fn(&Event) -> bool) -> Option<&Event> {
        let uid = pod.metadata.uid.as_deref();
        self.kills.iter().rev().find(|event| event.involved_object.uid.as_deref() == uid && which(event))
    }

    /// The message of the newest warning about the object with this UID.
    pub(super) fn warning_about(&self, uid: &str) -> Option<String> {
        let about = self.warnings.iter().rev().find(|event| event.involved_object.uid.as_deref() == Some(uid));
        about.and_then(|event| event.message.clone())
    }
}

/// Asks for what helps to understand the pods and the workloads that are not well. What cannot be had is missing: this is to help with
/// another trouble, not to be one.
pub(crate) async fn gather(client: &Client, pods: &[Pod], workloads: &[Value]) -> Evidence {
    let unwell: Vec<&Pod> = pods.iter().filter(|pod| !PodRow::of(pod).is_well()).collect();
    if unwell.is_empty() && explain_workloads(workloads, &Evidence::default()).is_empty() {
        return Evidence::default();
    }
    let mut events = events_with(client, "type=Warning").await.unwrap_or_default();
    events.extend(events_with(client, &format!("reason={KILLING}")).await.unwrap_or_default());
    let mut logs = Vec::new();
    let ended = unwell.into_iter().filter_map(|pod| Some((pod, ended_run(culprit(pod)?)?, culprit(pod)?.name.as_str())));
    for (pod, id, container) in ended.take(MAX_LOGS) {
        if let Ok(log) = end_of_log(client, pod, container).await {
            logs.push((id.to_owned(), log));
        }
    }
    Evidence::new(events, logs)
}

/// The ID of the last run, if it ended badly and there is none now.
fn ended_run(container: &ContainerStatus) -> Option<&str> {
    let ended = last_ending(container).filter(|ended| ended.exit_code != 0)?;
    ended.container_id.as_deref()
}

async fn events_with(client: &Client, selector: &str) -> Result<Vec<Event>, ClientError> {
    let target = collection("events", None).with("fieldSelector", selector);
    let list: ServedList = client.get(target).await?;
    let events: Result<_, _> = list.items.into_iter().map(serde_json::from_value).collect();
    events.map_err(|source| ClientError::NotUnderstood { source })
}

async fn end_of_log(client: &Client, pod: &Pod, container: &str) -> Result<String, ClientError> {
    let target = pod_target(pod, &["log"])
        .with("container", container)
        .with_some("tailLines", Some(LINES))
        .with_some("limitBytes", Some(MAX_LOG_BYTES));
    let mut lines = client.get_lines(target).await?;
    let mut log = String::new();
    while let Some(line) = lines.next_line().await? {
        log.push_str(&String::from_utf8_lossy(&line));
    }
    Ok(log)
}

/// The last line that says something.
fn last_line(log: &str) -> Option<String> {
    let line = log.lines().rev().map(printable).find(|line| !line.trim().is_empty())?;
    let mut characters = line.trim().chars();
    let mut text: String = characters.by_ref().take(MAX_LINE).collect();
    if characters.next().is_some() {
        text.push('…');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_says_something_is_told() {
        assert_eq!(last_line("first\n\u{1b}[31mcannot open\t/db\r\n\n \u{7} \n").as_deref(), Some("[31mcannot open /db"));
        assert_eq!(last_line(" \n\n"), None);
        let long = last_line(&"é".repeat(1000)).unwrap();
        assert_eq!(long.chars().count(), MAX_LINE + 1);
    }
}
