//! Images: list, import, pull with progress, remove.

use super::Backend;
use super::failure::ApiFailure;
use super::kinds::OWN_API_VERSION;
use super::respond::{self, Answer};
use super::show::age_since;
use super::table::Column;
use bytes::Bytes;
use futures_util::stream;
use jiff::Timestamp;
use podstead_runtime::{ImageError, ImageRecord, ImageService, PullProgress};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::{JoinError, JoinHandle};

/// Body of a pull.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PullRequest {
    /// The image reference.
    pub reference: String,
}

/// Body of a removal of unused images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PruneRequest {
    /// Also images that were fetched or used lately.
    #[serde(default)]
    pub all: bool,
    /// Remove nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// Body of a pin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PinRequest {
    /// The image reference.
    pub reference: String,
    /// Keep it, or end that.
    pub pinned: bool,
}

/// Body of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifyRequest {
    /// The image references; none for all images.
    #[serde(default)]
    pub references: Vec<String>,
    /// Fetch again what is damaged.
    #[serde(default)]
    pub repair: bool,
}

/// Body of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImportRequest {
    /// Absolute path of an archive on this host, read by the daemon.
    pub path: PathBuf,
}

/// One line of the answer to a pull; `Done` or `Failed` is the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PullLine {
    /// A layer went on.
    Progress(PullProgress),
    /// The image is present.
    #[serde(rename_all = "camelCase")]
    Done {
        /// Digest of its manifest.
        digest: String,
    },
    /// It could not be made present.
    Failed {
        /// Reason of the failure.
        message: String,
    },
}

/// Answer to an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportAnswer {
    /// References that the archive brought.
    pub references: Vec<String>,
}

/// Columns of images.
pub(super) const COLUMNS: &[Column] = &[
    Column { name: "Image", description: "Reference of the image", ..Column::name() },
    Column::text("Digest", "Digest of the image manifest, shortened"),
    Column::text("Size", "Size of the image layers on disk"),
    Column::text("Unique", "Part of it that no other image has"),
    Column::text("Pinned", "yes if the image is never removed to make room"),
    Column::text("Age", "Time since the image was complete"),
    Column::text("Manifest", "Digest of the image manifest").wide(),
];

impl From<&ImageError> for ApiFailure {
    fn from(error: &ImageError) -> Self {
        let message = podstead_telemetry::error_chain(error).to_string();
        match error {
            ImageError::InvalidName { .. } | ImageError::Import { .. } => Self::bad_request(message),
            ImageError::NeverPull(reference) | ImageError::NotAllowed(reference) => {
                Self { message, ..Self::not_found("images", reference) }
            }
            ImageError::Refused { .. } => Self::forbidden(message),
            ImageError::Needed { .. } => Self::conflict(message),
            ImageError::Pull { .. } | ImageError::Inspect { .. } | ImageError::NoUser { .. } | ImageError::Prune(_) => {
                Self::internal(message)
            }
        }
    }
}

fn object(image: &ImageRecord) -> Value {
    json!({
        "apiVersion": OWN_API_VERSION,
        "kind": "Image",
        "metadata": {"name": image.digest, "creationTimestamp": image.created_at},
        "references": image.references,
        "digest": image.digest,
        "sizeBytes": image.size_bytes,
        "uniqueBytes": image.unique_bytes,
        "contentBytes": image.content_bytes,
        "layers": image.layers,
        "pinned": image.pinned,
    })
}

/// All images as they are shown.
pub(super) async fn shown(backend: &Backend) -> Result<Vec<Value>, ApiFailure> {
    let images = backend.images.list().await.map_err(|error| ApiFailure::from(&error))?;
    Ok(images.iter().map(object).collect())
}

/// All images, with the disk space that they need; `version` is the one that a watch continues from.
pub(super) async fn list(backend: &Backend, version: u64) -> Answer {
    let items = shown(backend).await?;
    let usage = backend.images.usage().await.map_err(|error| ApiFailure::from(&error))?;
    let metadata = json!({"resourceVersion": version.to_string()});
    respond::json(
        &json!({"kind": "ImageList", "apiVersion": OWN_API_VERSION, "metadata": metadata, "items": items, "usage": usage}),
    )
}

/// The rows of an image as it is shown: one for each reference, and one for an image that has none.
pub(super) fn rows(object: &Value, now: Timestamp) -> Vec<Vec<Value>> {
    let references: Vec<&str> = object["references"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match references[..] {
        [] | [_] => vec![cells(object, now)],
        [..] => references.into_iter().map(|reference| row(reference, object, now)).collect(),
    }
}

/// The cells of an image by its first reference.
pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    row(object["references"][0].as_str().unwrap_or("<none>"), object, now)
}

fn row(name: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let digest = object["digest"].as_str().unwrap_or_default();
    let size = |field: &str| json!(super::show::human_size(object[field].as_u64().unwrap_or_default()));
    let created_at = object["metadata"]["creationTimestamp"].as_str().and_then(|time| time.parse().ok());
    vec![
        json!(name),
        json!(super::show::short_digest(digest)),
        size("sizeBytes"),
        size("uniqueBytes"),
        json!(if object["pinned"] == true { "yes" } else { "no" }),
        json!(age_since(created_at, now)),
        json!(digest),
    ]
}

/// Imports an archive.
pub(super) async fn import(backend: &Backend, request: ImportRequest) -> Answer {
    if !request.path.is_absolute() {
        return Err(ApiFailure::bad_request(format!("path {} must be absolute", request.path.display())));
    }
    match backend.images.import(request.path).await {
        Ok(references) => respond::json(&ImportAnswer { references }),
        Err(error) => Err(ApiFailure::from(&error)),
    }
}

/// Removes unused images, or tells which.
pub(super) async fn prune(backend: &Backend, request: PruneRequest) -> Answer {
    let report = backend.images.prune(request.all, request.dry_run).await.map_err(|error| ApiFailure::from(&error))?;
    respond::json(&report)
}

/// Verifies images, and repairs what is damaged if that is asked for.
pub(super) async fn verify(backend: &Backend, request: VerifyRequest) -> Answer {
    let report = backend.images.verify(&request.references, request.repair).await.map_err(|error| ApiFailure::from(&error))?;
    respond::json(&report)
}

/// Keeps an image, or ends that.
pub(super) async fn pin(backend: &Backend, request: PinRequest) -> Answer {
    backend.images.pin(&request.reference, request.pinned).await.map_err(|error| ApiFailure::from(&error))?;
    respond::json(&json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}))
}

/// Removes a reference.
pub(super) async fn remove(backend: &Backend, reference: Option<&str>, force: bool) -> Answer {
    let reference = reference.ok_or_else(|| ApiFailure::bad_request("the parameter reference is missing: ?reference=..."))?;
    match backend.images.remove(reference, force).await {
        Ok(()) => respond::json(&json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})),
        Err(error) => Err(ApiFailure::from(&error)),
    }
}

/// Pulls an image; the answer is one [`PullLine`] after the other. A client that goes away does not stop the pull.
pub(super) fn pull(backend: &Backend, request: PullRequest) -> Answer {
    let progress = backend.images.progress();
    let images: Arc<dyn ImageService> = Arc::clone(&backend.images);
    let reference = request.reference.clone();
    let pull = tokio::spawn(async move {
        match images.pull_by_hand(&reference).await {
            Ok(image) => PullLine::Done { digest: image.digest },
            Err(error) => PullLine::Failed { message: podstead_telemetry::error_chain(&error).to_string() },
        }
    });
    let state = Some(Pull { reference: request.reference, progress, pull });
    respond::json_stream(stream::unfold(state, |state| async move {
        let mut pull = state?;
        let line = pull.next_line().await;
        let piece = Bytes::from(format!("{}\n", serde_json::to_string(&line).unwrap_or_default()));
        Some((piece, matches!(line, PullLine::Progress(_)).then_some(pull)))
    }))
}

struct Pull {
    reference: String,
    progress: broadcast::Receiver<PullProgress>,
    pull: JoinHandle<PullLine>,
}

impl Pull {
    async fn next_line(&mut self) -> PullLine {
        loop {
            // Cancel-safe: a received line is returned at once, and the join handle keeps its result.
            tokio::select! {
                // Progress first, so that nothing follows the result.
                biased;
                progress = self.progress.recv() => match progress {
                    Ok(progress) if progress.reference == self.reference => return PullLine::Progress(progress),
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return last_line((&mut self.pull).await),
                },
                result = &mut self.pull => return last_line(result),
            }
        }
    }
}

fn last_line(result: Result<PullLine, JoinError>) -> PullLine {
    result.unwrap_or_else(|error| PullLine::Failed { message: format!("the pull was interrupted: {error}") })
}
