//! PersistentVolumeClaims, with the size of their data.

use super::server_table::ServedTable;
use crate::client::{Client, ClientError};
use crate::pods::{ServedList, collection};
use podstead_api::show::human_size;
use podstead_api::{USED_BY_ANNOTATION, USED_BYTES_ANNOTATION};
use serde_json::Value;

/// A claim as served.
#[derive(Clone, Debug)]
pub(crate) struct ServedClaim(Value);

impl ServedClaim {
    fn text<'a>(value: &'a Value, absent: &'a str) -> &'a str {
        value.as_str().filter(|text| !text.is_empty()).unwrap_or(absent)
    }

    /// Its namespace.
    pub(crate) fn namespace(&self) -> &str {
        Self::text(&self.0["metadata"]["namespace"], "")
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        Self::text(&self.0["metadata"]["name"], "")
    }

    /// `Bound`, `Released` and so on.
    pub(crate) fn phase(&self) -> &str {
        Self::text(&self.0["status"]["phase"], "")
    }

    /// Names of the pods that use it.
    pub(crate) fn users(&self) -> &str {
        Self::text(&self.0["metadata"]["annotations"][USED_BY_ANNOTATION], "<none>")
    }

    /// True if pods use it.
    pub(crate) fn is_used(&self) -> bool {
        self.0["metadata"]["annotations"][USED_BY_ANNOTATION].is_string()
    }

    /// Size of its data on disk.
    pub(crate) fn used(&self) -> String {
        let bytes = self.0["metadata"]["annotations"][USED_BYTES_ANNOTATION].as_str().and_then(|bytes| bytes.parse().ok());
        bytes.map_or_else(|| "<unknown>".to_owned(), human_size)
    }
}

/// All of a namespace, or of all, measured.
pub(crate) async fn ask(client: &Client, namespace: Option<&str>) -> Result<Vec<ServedClaim>, ClientError> {
    let target = collection("persistentvolumeclaims", namespace).with_flag("measure", true);
    Ok(client.get::<ServedList>(target).await?.items.into_iter().map(ServedClaim).collect())
}

/// Notes in claims the size on disk, which the daemon measures only when it is asked.
pub(super) async fn note_sizes(items: &mut [Value], client: &Client, namespace: Option<&str>) -> anyhow::Result<()> {
    let measured = ask(client, namespace).await?;
    for item in items {
        let claim = ServedClaim(item.take());
        let same = measured.iter().find(|other| other.name() == claim.name() && other.namespace() == claim.namespace());
        let bytes = same.map(|same| same.0["metadata"]["annotations"][USED_BYTES_ANNOTATION].clone());
        *item = claim.0;
        if let Some(bytes @ Value::String(_)) = bytes {
            item["metadata"]["annotations"][USED_BYTES_ANNOTATION] = bytes;
        }
    }
    Ok(())
}

/// Adds a column with the size on disk, which the daemon measures only when it is asked.
pub(super) async fn add_sizes(table: &mut ServedTable, client: &Client, namespace: Option<&str>) -> anyhow::Result<()> {
    let claims = ask(client, namespace).await?;
    table.insert("Used", "Capacity", |row| {
        let claim = claims.iter().find(|claim| claim.name() == row.name() && claim.namespace() == row.namespace());
        claim.map_or_else(|| "<unknown>".to_owned(), ServedClaim::used)
    });
    Ok(())
}
