//! A pod as the API shows it.

use serde_json::Value;

/// A pod's JSON with the questions that tests ask of it.
#[derive(Clone, Debug)]
pub(crate) struct PodView(pub(crate) Value);

impl PodView {
    /// `status.phase`.
    pub(crate) fn phase(&self) -> &str {
        self.0["status"]["phase"].as_str().unwrap_or("")
    }

    /// `metadata.uid`.
    pub(crate) fn uid(&self) -> String {
        self.0["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// The status of a container, init containers included; `Null` while there is none.
    pub(crate) fn container(&self, name: &str) -> &Value {
        static NONE: Value = Value::Null;
        ["containerStatuses", "initContainerStatuses"]
            .iter()
            .filter_map(|list| self.0["status"][list].as_array())
            .flatten()
            .find(|status| status["name"] == name)
            .unwrap_or(&NONE)
    }

    /// The container's run identity, without the `podstead://` prefix.
    pub(crate) fn container_id(&self, name: &str) -> String {
        let id = self.container(name)["containerID"].as_str().unwrap_or_default();
        id.strip_prefix("podstead://").unwrap_or_else(|| panic!("container {name} has no id in {}", self.0["status"])).to_owned()
    }

    /// `restartCount` of a container.
    pub(crate) fn restarts(&self, name: &str) -> u64 {
        self.container(name)["restartCount"].as_u64().unwrap_or(0)
    }

    /// True if the container runs.
    pub(crate) fn runs(&self, name: &str) -> bool {
        self.container(name)["state"]["running"].is_object()
    }

    /// Reason of the container's waiting state, or empty.
    pub(crate) fn waiting_reason(&self, name: &str) -> &str {
        self.container(name)["state"]["waiting"]["reason"].as_str().unwrap_or("")
    }
}
