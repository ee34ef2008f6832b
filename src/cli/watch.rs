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

/// A watch under way.
#[derive(Debug)]
pub(super) struct Watch(Lines);

/// Begins after `version`, which a list told.
pub(super) async fn watch(client: &Client, target: Target, version: &str) -> Result<Watch, ClientError> {
    let target = target.with_flag("watch", true).with("resourceVersion", version);
    Ok(Watch(client.get_lines(target).await?))
}

impl Watch {
    /// The next change; `None` when the watch is over. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Option<WatchEvent>, ClientError> {
        while let Some(Line { kind, object }) = self.0.next_json().await? {
            match kind.as_str() {
                "ADDED" | "MODIFIED" => return Ok(Some(WatchEvent::Changed(object))),
                "DELETED" => return Ok(Some(WatchEvent::Deleted(object))),
                "ERROR" => {
                    let code = object["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
                    let message = object["message"].as_str().unwrap_or("the watch failed").to_owned();
                    return Err(ClientError::Refused { code, message });
                }
                _ => {}
            }
        }
        Ok(None)
    }
}
