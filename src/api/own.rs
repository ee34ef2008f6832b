//! podstead's own resources: the daemon and its sources, as objects of `podstead.dev/v1alpha1`.

use super::Backend;
use super::failure::ApiFailure;
use super::kinds::OWN_API_VERSION;
use super::published::PublishedPod;
use super::respond::{self, Answer};
use super::show::age_since;
use super::table::Column;
use jiff::Timestamp;
use podstead_artifact::wake::LookTimes;
use podstead_expand::owner;
use podstead_manifest::Problem;
use podstead_pod::{Severity, SourceId};
use podstead_settings::{ConfigStanding, HookStanding};
use podstead_status::UpstreamStatus;
use podstead_store::history::Hold;
use podstead_store::{PruneError, SourceStatus};
use podstead_telemetry::counted;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The daemon, as served at `/apis/podstead.dev/v1alpha1/daemon`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonObject {
    /// Its version.
    pub version: String,
    /// Name of this host.
    pub node_name: String,
    /// Start time.
    pub started_at: Timestamp,
    /// Its process id.
    pub pid: u32,
    /// Its directories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<DaemonPaths>,
    /// Sources that have not delivered anything since it started, not even from disk.
    pub waiting_for_sources: Vec<String>,
    /// Time of the last change of its sources.
    #[serde(default)]
    pub configured_at: Option<Timestamp>,
    /// Error of the current configuration file, if it is not in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_error: Option<String>,
    /// Fields of the configuration file that count at its next start only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_restart_for: Vec<String>,
    /// Deliveries of the hooks of `notify`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookStanding>,
    /// Status of the connection to the cluster, if one is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamStatus>,
}

/// Directories of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonPaths {
    /// Records, images, volumes.
    pub state: PathBuf,
    /// Sockets and secrets.
    pub run: PathBuf,
    /// Logs of pods.
    pub logs: PathBuf,
}

/// A source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceObject {
    /// `podstead.dev/v1alpha1`.
    pub api_version: String,
    /// `Source`.
    pub kind: String,
    /// Its name.
    pub metadata: SourceMetadata,
    /// Configuration of the source.
    pub spec: SourceSpec,
    /// Status of the source.
    pub status: SourceObjectStatus,
}

/// `metadata` of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceMetadata {
    /// The configured name.
    pub name: String,
}

/// `spec` of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSpec {
    /// `directory` and so on.
    pub kind: String,
    /// Path or URL, without credentials.
    pub location: String,
}

/// `status` of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceObjectStatus {
    /// Revision last read from the place.
    pub fetched_revision: Option<String>,
    /// Time of the last fetch with changed content.
    pub fetched_at: Option<Timestamp>,
    /// Time of the last successful fetch, with or without changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_contact_at: Option<Timestamp>,
    /// Revision whose set is durable and handed on.
    pub accepted_revision: Option<String>,
    /// Time at which it was written to disk.
    #[serde(default)]
    pub accepted_at: Option<Timestamp>,
    /// Revision that was last given to the workers of its pods.
    #[serde(default)]
    pub applied_revision: Option<String>,
    /// Time at which it was applied.
    #[serde(default)]
    pub applied_at: Option<Timestamp>,
    /// The source stays at the accepted revision until it is resumed.
    #[serde(default)]
    pub hold: Option<Hold>,
    /// Time of the next poll; `None` for a source that is watched, or being fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_look_at: Option<Timestamp>,
    /// Pods in that set, and those that its workloads have now.
    pub pods: usize,
    /// Error of the last fetch.
    pub last_error: Option<String>,
    /// Problems in the fetched revision.
    pub problems: Vec<Problem>,
}

impl From<&SourceStatus> for SourceObject {
    fn from(source: &SourceStatus) -> Self {
        Self {
            api_version: OWN_API_VERSION.into(),
            kind: "Source".into(),
            metadata: SourceMetadata { name: source.id.to_string() },
            spec: SourceSpec { kind: source.kind.clone(), location: source.location.clone() },
            status: SourceObjectStatus {
                fetched_revision: source.fetched.as_ref().map(ToString::to_string),
                fetched_at: source.fetched_at,
                accepted_revision: source.accepted.as_ref().map(ToString::to_string),
                accepted_at: source.accepted_at,
                applied_revision: source.applied.as_ref().map(ToString::to_string),
                applied_at: source.applied_at,
                hold: source.hold.clone(),
                last_contact_at: None,
                next_look_at: None,
                pods: source.pods,
                last_error: source.last_error.clone(),
                problems: source.problems.clone(),
            },
        }
    }
}

/// Columns of sources.
pub(super) const SOURCE_COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Kind", "Kind of source: directory, http or git"),
    Column::text("Revision", "Accepted revision"),
    Column::text("Pods", "Pods in the accepted revision, and those of its workloads"),
    Column::text("Rejected", "Rejected objects; their last accepted versions stay in force"),
    Column::text("Contact", "Time since the last successful fetch"),
    Column::text("Changed", "Time since the content last changed"),
    Column::text("Status", "ok, failed if the last fetch failed, suspended or rolled back, or the number of rejected objects"),
    Column::text("Fetched", "Revision of the last fetch").wide(),
    Column::text("Accepted", "Time since the revision was accepted").wide(),
    Column::text("Applied", "Revision that was last given to the pods, and the time since then").wide(),
    Column::text("Location", "Path or URL").wide(),
];

/// The cells of a source as it is shown.
pub(super) fn source_cells(object: Value, now: Timestamp) -> Vec<Value> {
    let Ok(source) = serde_json::from_value::<SourceObject>(object) else { return Vec::new() };
    let status = &source.status;
    let revision = |revision: &Option<String>| short_revision(revision.as_deref().unwrap_or("<none>")).to_owned();
    let refused = refused_objects(&status.problems);
    let word = match (&status.last_error, &status.hold) {
        (Some(_), _) => "failed".to_owned(),
        (None, Some(hold)) => hold.kind.word().to_owned(),
        (None, None) if refused > 0 => format!("{} rejected", counted(refused, "object")),
        (None, None) if status.is_unread() => UNREAD.to_owned(),
        (None, None) => "ok".to_owned(),
    };
    vec![
        json!(source.metadata.name),
        json!(source.spec.kind),
        json!(revision(&status.accepted_revision)),
        json!(status.pods.to_string()),
        json!(refused.to_string()),
        json!(since(status.last_contact_at, now)),
        json!(since(status.fetched_at, now)),
        json!(word),
        json!(revision(&status.fetched_revision)),
        json!(since(status.accepted_at, now)),
        json!(format!("{} ({})", revision(&status.applied_revision), since(status.applied_at, now))),
        json!(source.spec.location),
    ]
}

/// State of a source that [`SourceObjectStatus::is_unread`].
pub const UNREAD: &str = "not read yet";

impl SourceObjectStatus {
    /// Reports whether nothing is known of the source yet: neither now nor by an earlier daemon was anything fetched, and no attempt has failed.
    pub fn is_unread(&self) -> bool {
        self.accepted_revision.is_none() && self.last_contact_at.is_none() && self.last_error.is_none()
    }
}

/// Prefix of a revision, long enough to distinguish revisions.
pub fn short_revision(revision: &str) -> &str {
    let digits = revision.split_once(':').map_or(revision, |(_, digits)| digits);
    digits.get(..12).unwrap_or(digits)
}

/// The number of objects that are refused, however many faults each of them has. A file that could not be read counts as one.
pub fn refused_objects(problems: &[Problem]) -> usize {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    errors.map(|problem| (&problem.file, &problem.object)).collect::<BTreeSet<_>>().len()
}

/// The time since an event, as kubectl shows ages; `never` for an event that did not happen since the daemon started.
pub fn since(at: Option<Timestamp>, now: Timestamp) -> String {
    at.map_or_else(|| "never".to_owned(), |at| age_since(Some(at), now))
}

/// A source with the times of its looks.
fn object(backend: &Backend, source: &SourceStatus) -> SourceObject {
    let mut object = SourceObject::from(source);
    let is_of_workload = |pod: &PublishedPod| pod.desired.source == source.id && owner(&pod.desired.pod, "").is_some();
    object.status.pods += backend.published.pods().list().1.iter().filter(|pod| is_of_workload(pod)).count();
    if let Some(waker) = backend.wakers.get(source.id.as_str()) {
        let LookTimes { next, contact } = waker.looks();
        (object.status.next_look_at, object.status.last_contact_at) = (next, contact);
    }
    object
}

/// All sources as they are shown.
pub(super) fn sources(backend: &Backend) -> Vec<Value> {
    backend.published.sources().iter().map(|source| json!(object(backend, source))).collect()
}

/// Result of pruning a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneAnswer {
    /// Pods that its last good set had.
    pub removed_pods: usize,
}

/// `POST .../sources/NAME/prune`.
pub(super) async fn prune(backend: &Backend, name: String) -> Answer {
    let removed = backend.source_control.prune(&SourceId::new(name.as_str())).await.map_err(|error| match error {
        PruneError::UnknownSource(_) => ApiFailure::not_found("sources", &name),
        PruneError::Held(_) | PruneError::NothingHeld(_) => ApiFailure::conflict(error.to_string()).about("sources", &name),
        PruneError::NotWritten { .. } => ApiFailure::internal(error.to_string()).about("sources", &name),
        PruneError::Ended => ApiFailure::unavailable(error.to_string()),
    })?;
    respond::json(&PruneAnswer { removed_pods: removed })
}

/// Sources that have not delivered since the daemon started, not even from disk.
fn waiting_for(backend: &Backend) -> Vec<String> {
    let sources = backend.published.sources();
    let delivered = |id: &str| sources.iter().any(|source| source.id.as_str() == id && source.accepted.is_some());
    backend.config.borrow().sources.iter().map(ToString::to_string).filter(|id| !delivered(id)).collect()
}

/// The daemon.
pub(super) fn daemon(backend: &Backend) -> Answer {
    let ConfigStanding { sources: _, since, error, needs_restart } = backend.config.borrow().clone();
    respond::json(&DaemonObject {
        configured_at: Some(since),
        config_error: error,
        needs_restart_for: needs_restart.into_iter().map(str::to_owned).collect(),
        version: env!("CARGO_PKG_VERSION").into(),
        node_name: backend.node.to_string(),
        started_at: backend.started_at,
        pid: std::process::id(),
        paths: Some(DaemonPaths {
            state: backend.paths.state.clone(),
            run: backend.paths.run.clone(),
            logs: backend.paths.logs.clone(),
        }),
        waiting_for_sources: waiting_for(backend),
        hooks: backend.hooks.borrow().clone(),
        upstream: backend.upstream.as_ref().map(|upstream| upstream.borrow().clone()),
    })
}

/// `/readyz`: ready when every source has delivered once.
pub(super) fn readyz(backend: &Backend) -> Answer {
    let waiting = waiting_for(backend);
    if waiting.is_empty() {
        respond::text("ok")
    } else {
        Err(ApiFailure::unavailable(format!("sources not synced yet: {}", waiting.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_source_is_not_called_well() {
        let word = |status: Value| {
            let mut object = json!({"apiVersion": OWN_API_VERSION, "kind": "Source", "metadata": {"name": "fleet"},
                "spec": {"kind": "git", "location": "/srv/fleet"}, "status": {"pods": 0, "problems": []}});
            object["status"].as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
            let cells = source_cells(object, Timestamp::UNIX_EPOCH);
            let column = SOURCE_COLUMNS.iter().position(|column| column.name == "Status").unwrap();
            cells[column].as_str().unwrap().to_owned()
        };
        assert_eq!(word(json!({})), UNREAD);
        assert_eq!(word(json!({"lastError": "no route"})), "failed");
        assert_eq!(word(json!({"lastContactAt": "2026-01-01T00:00:00Z"})), "ok");
        assert_eq!(word(json!({"acceptedRevision": "0123456789abcdef"})), "ok", "of an earlier daemon");
    }
}
