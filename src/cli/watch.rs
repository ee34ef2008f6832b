//! Following changes of a list.

use super::client::{Client, ClientError, Lines, Target};
use serde::Deserialize;
use serde_json::Value;

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WatchEvent {
    /// Added or modified.
    Changed(Value),
    /// Gone; its last state.
    Deleted(Value),
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

/// A watch under way. The daemon ends a watch after a while; it is then begun again where it ended.
#[derive(Debug)]
pub(super) struct Watch {
    client: Client,
    target: Target,
    version: String,
    lines: Lines,
}

/// Starts a watch after `version`, the version of a list.
pub(super) async fn watch(client: &Client, target: Target, version: &str) -> Result<Watch, ClientError> {
    let lines = open(client, &target, version).await?;
    Ok(Watch { client: client.clone(), target, version: version.to_owned(), lines })
}

async fn open(client: &Client, target: &Target, version: &str) -> Result<Lines, ClientError> {
    let target = target.clone().with_flag("watch", true).with_flag("allowWatchBookmarks", true);
    client.get_lines(target.with("resourceVersion", version)).await
}

impl Watch {
    /// The next change. Never ends but with an error.
    pub(super) async fn next(&mut self) -> Result<WatchEvent, ClientError> {
        loop {
            let Some(Line { kind, object }) = self.lines.next_json().await? else {
                self.lines = open(&self.client, &self.target, &self.version).await?;
                continue;
            };
            if let Some(version) = object["metadata"]["resourceVersion"].as_str() {
                self.version = version.to_owned();
            }
            match kind.as_str() {
                "ADDED" | "MODIFIED" => return Ok(WatchEvent::Changed(object)),
                "DELETED" => return Ok(WatchEvent::Deleted(object)),
                "ERROR" => {
                    let code = object["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
                    let message = object["message"].as_str().unwrap_or("the watch failed").to_owned();
                    return Err(ClientError::Refused { code, message });
                }
                _ => {}
            }
        }
    }
}
