//! PersistentVolumeClaims: those that a source has, and those whose data are still on this host though no source has them any more.
//! Clients can read and prune them. Pruning is one of podstead's own resources, so that no client deletes data by accident.

use super::Backend;
use super::failure::ApiFailure;
use super::key::SOURCE_ANNOTATION;
use super::objects::stable_uid;
use super::request::Query;
use super::respond::{self, Answer};
use super::route::PodPath;
use super::show::age_since;
use super::table::Column;
use jiff::Timestamp;
pub use podstead_pod::annotations::{USED_BY as USED_BY_ANNOTATION, USED_BYTES as USED_BYTES_ANNOTATION};
use podstead_pod::claims::{ClaimName, ClaimOwner, ClaimTerms, RECLAIM_POLICY_ANNOTATION, Tenure};
use podstead_pod::objects::{Held, Object, ObjectKind, ObjectName, Objects};
use podstead_pod::{DEFAULT_NAMESPACE, PodUid, SourceId};
use podstead_telemetry::error_chain;
use podstead_volume::PruneClaimError;
use podstead_volume::claims::PersistentVolume;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PLURAL: &str = "persistentvolumeclaims";
/// Parameter with which lists, watches and reads show also data whose claim is in no source. Without it they are no objects, as in a cluster:
/// clients wait for the end of what they delete.
pub const RELEASED_PARAMETER: &str = "released";
/// Phases of data whose claim is in no source.
const WITHOUT_CLAIM: [&str; 2] = ["Released", "Unknown"];

/// Columns of claims.
pub(super) const COLUMNS: &[Column] = &[
    Column::name(),
    Column::text(
        "Status",
        "Bound: the data directory exists. Released: the data directory exists, but the claim is in no source any more",
    ),
    Column::text("Capacity", "Requested size"),
    Column::text("Access Modes", "Access modes of the claim"),
    Column::text("Reclaim Policy", "Whether the data is kept or deleted when the claim is removed"),
    Column::text("Used By", "Pods that use the claim"),
    Column::text("Age", "Time since the data directory was created"),
    Column::text("Source", "Source that the object comes from").wide(),
];

/// A claim, its data, or both.
#[derive(Debug, Default)]
struct Known<'a> {
    held: Option<&'a Held>,
    volume: Option<PersistentVolume>,
    bytes: Option<u64>,
    /// The data are those of another source, which keeps them from this claim.
    is_of_another: bool,
}

impl Known<'_> {
    /// A claim with a directory is bound. A directory without a claim is released, if all sources are synced.
    fn phase(&self, is_complete: bool) -> &'static str {
        match (self.held, &self.volume) {
            (Some(_), Some(_)) if !self.is_of_another => "Bound",
            (Some(_), Some(_)) | (Some(_) | None, None) => "Pending",
            (None, Some(_)) if is_complete => "Released",
            (None, Some(_)) => "Unknown",
        }
    }

    fn created_at(&self) -> Option<Timestamp> {
        Some(self.volume.as_ref()?.record.as_ref()?.created_at)
    }

    fn terms(&self) -> ClaimTerms {
        match self.held.map(|held| &held.object) {
            Some(Object::PersistentVolumeClaim(claim)) => ClaimTerms::of(claim),
            // The view keeps kinds apart.
            Some(Object::ConfigMap(_) | Object::Secret(_) | Object::Network(_)) | None => {
                let record = self.volume.as_ref().and_then(|volume| volume.record.as_ref());
                record.map(|record| record.terms.clone()).unwrap_or_default()
            }
        }
    }
}

/// All that are known, of one namespace or of all.
async fn known<'a>(
    backend: &Backend,
    objects: &'a Objects,
    is_asked_for: impl Fn(&ClaimName) -> bool,
) -> Result<BTreeMap<ClaimName, Known<'a>>, ApiFailure> {
    let mut known: BTreeMap<ClaimName, Known<'_>> = BTreeMap::new();
    for (ObjectName { kind, namespace, name }, held) in objects.iter() {
        if *kind == ObjectKind::PersistentVolumeClaim {
            let claim = ClaimName { namespace: namespace.to_string(), name: name.to_string() };
            known.entry(claim).or_default().held = Some(held);
        }
    }
    let volumes = backend.claims.claims().await.map_err(|error| ApiFailure::internal(error_chain(&error).to_string()))?;
    for volume in volumes {
        let entry = known.entry(volume.claim.clone()).or_default();
        let recorded = volume.record.as_ref().and_then(|record| record.owner.as_ref());
        entry.is_of_another = entry.held.is_some_and(|held| {
            let owner = ClaimOwner { source: held.source.clone(), restricted: objects.sharing().is_restricted(&held.source) };
            owner.tenure(recorded) == Tenure::None
        });
        entry.volume = Some(volume);
    }
    known.retain(|claim, _| is_asked_for(claim));
    Ok(known)
}

/// All claims as they are shown.
pub(super) async fn shown(backend: &Backend, objects: &Objects) -> Result<Vec<Value>, ApiFailure> {
    let known = known(backend, objects, |_| true).await?;
    let shown = Shown::new(backend, objects);
    Ok(known.iter().map(|(claim, known)| shown.object(claim, known)).collect())
}

/// Reports whether the shown object is no claim, but data whose claim is in no source.
pub(super) fn is_released(shown: &Value) -> bool {
    shown["status"]["phase"].as_str().is_some_and(|phase| WITHOUT_CLAIM.contains(&phase))
}

/// The query of a list or watch; without [`RELEASED_PARAMETER`] only claims of sources are selected.
pub(super) fn with_released(query: &Query) -> Result<Query, ApiFailure> {
    if query.flag(RELEASED_PARAMETER)? {
        return Ok(query.clone());
    }
    Ok(WITHOUT_CLAIM.iter().fold(query.clone(), |query, phase| query.requiring(&format!("status.phase!={phase}"))))
}

/// Error for reading data whose claim is in no source, without [`RELEASED_PARAMETER`].
pub(super) fn refuse_released(shown: &Value, query: &Query) -> Result<(), ApiFailure> {
    if query.flag(RELEASED_PARAMETER)? || !is_released(shown) {
        return Ok(());
    }
    let text = |field: &str| shown["metadata"][field].as_str().unwrap_or_default();
    Err(no_claim(text("namespace"), text("name")))
}

/// Error for a claim of which only the data are left.
pub(super) fn no_claim(namespace: &str, name: &str) -> ApiFailure {
    let option = if namespace == DEFAULT_NAMESPACE { String::new() } else { format!(" -n {namespace}") };
    let not_found = ApiFailure::not_found(PLURAL, name);
    let message = format!(
        "{}: it is in no source any more, and its data are kept: podstead volume prune {name}{option} deletes them",
        not_found.message
    );
    ApiFailure { message, ..not_found }
}

/// Claims of one namespace or of all with their size on disk, which needs a walk over the files (`?measure=true`).
pub(super) async fn list_measured(backend: &Backend, namespace: Option<&str>) -> Answer {
    let objects = backend.objects.get();
    let mut known = known(backend, &objects, |claim| namespace.is_none_or(|namespace| namespace == claim.namespace)).await?;
    measure(backend, &mut known).await;
    let shown = Shown::new(backend, &objects);
    let items: Vec<Value> = known.iter().map(|(claim, known)| shown.object(claim, known)).collect();
    let kind = "PersistentVolumeClaimList";
    respond::json(&json!({"kind": kind, "apiVersion": "v1", "metadata": {}, "items": items}))
}

/// One claim with its size on disk.
pub(super) async fn get_measured(backend: &Backend, path: PodPath) -> Answer {
    let objects = backend.objects.get();
    let claim = ClaimName { namespace: path.namespace, name: path.name };
    let mut known = known(backend, &objects, |other| *other == claim).await?;
    measure(backend, &mut known).await;
    let shown = Shown::new(backend, &objects);
    let found = known.get(&claim).ok_or_else(|| ApiFailure::not_found(PLURAL, &claim.name))?;
    respond::json(&shown.object(&claim, found))
}

async fn measure(backend: &Backend, known: &mut BTreeMap<ClaimName, Known<'_>>) {
    let on_disk = known.iter().filter(|(_, known)| known.volume.is_some()).map(|(claim, _)| claim.clone()).collect();
    for (claim, bytes) in backend.claims.measure_claims(on_disk).await {
        known.entry(claim).or_default().bytes = Some(bytes);
    }
}

/// Deletes the data of a claim that no source has and no pod uses.
pub(super) async fn prune(backend: &Backend, path: PodPath) -> Answer {
    let claim = ClaimName { namespace: path.namespace, name: path.name };
    backend.claims.prune_claim(&claim, &backend.objects.get()).await.map_err(|error| {
        let failure = match &error {
            PruneClaimError::NotFound(_) => ApiFailure { message: error.to_string(), ..ApiFailure::not_found(PLURAL, &claim.name) },
            PruneClaimError::Wanted { .. } | PruneClaimError::NotSettled(_) => ApiFailure::conflict(error.to_string()),
            PruneClaimError::InUse { users, .. } => {
                let names = users.iter().map(|uid| name_of(&pod_names(backend), uid)).collect::<Vec<_>>();
                ApiFailure::conflict(format!("{error}: {}", names.join(", ")))
            }
            PruneClaimError::Failed { .. } => ApiFailure::internal(error_chain(&error).to_string()),
        };
        failure.about(PLURAL, &claim.name)
    })?;
    respond::json(&json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}))
}

/// Names of the pods that are shown.
fn pod_names(backend: &Backend) -> BTreeMap<PodUid, String> {
    let (_, pods) = backend.published.pods().list();
    pods.iter().map(|pod| (pod.desired.uid.clone(), pod.desired.full_name.name.clone())).collect()
}

/// Name of a pod, or its UID if the pod is not listed.
fn name_of(names: &BTreeMap<PodUid, String>, uid: &PodUid) -> String {
    names.get(uid).cloned().unwrap_or_else(|| uid.to_string())
}

/// Context for showing claims.
struct Shown {
    pods: BTreeMap<PodUid, String>,
    is_complete: bool,
}

impl Shown {
    fn new(backend: &Backend, objects: &Objects) -> Self {
        Self { pods: pod_names(backend), is_complete: objects.is_complete() }
    }

    fn users(&self, known: &Known<'_>) -> String {
        let users = known.volume.iter().flat_map(|volume| &volume.users);
        let mut names: Vec<String> = users.map(|uid| name_of(&self.pods, uid)).collect();
        names.sort();
        names.join(",")
    }

    fn object(&self, claim: &ClaimName, known: &Known<'_>) -> Value {
        let ClaimTerms { access_modes, capacity, reclaim_policy, device: _ } = known.terms();
        let mut value = match known.held.map(|held| &held.object) {
            Some(Object::PersistentVolumeClaim(object)) => json!(object),
            Some(Object::ConfigMap(_) | Object::Secret(_) | Object::Network(_)) | None => json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": claim.name},
                "spec": {"accessModes": access_modes, "resources": {"requests": {"storage": capacity}}},
            }),
        };
        let phase = known.phase(self.is_complete);
        value["status"] = match &known.volume {
            Some(_) => json!({"phase": phase, "accessModes": access_modes, "capacity": {"storage": capacity}}),
            None => json!({"phase": phase}),
        };
        let metadata = &mut value["metadata"];
        let ClaimName { namespace, name } = claim.clone();
        let source = known.held.map_or_else(|| SourceId::new(""), |held| held.source.clone());
        metadata["uid"] = json!(stable_uid(
            &source,
            &ObjectName { kind: ObjectKind::PersistentVolumeClaim, namespace: namespace.into(), name: name.into() }
        ));
        metadata["namespace"] = json!(claim.namespace);
        if let Some(created_at) = known.created_at() {
            metadata["creationTimestamp"] = json!(created_at);
        }
        let annotations = &mut metadata["annotations"];
        annotations[RECLAIM_POLICY_ANNOTATION] = json!(reclaim_policy.as_str());
        if let Some(held) = known.held {
            annotations[SOURCE_ANNOTATION] = json!(held.source.as_str());
        }
        let users = self.users(known);
        if !users.is_empty() {
            annotations[USED_BY_ANNOTATION] = json!(users);
        }
        if let Some(bytes) = known.bytes {
            annotations[USED_BYTES_ANNOTATION] = json!(bytes.to_string());
        }
        value
    }
}

/// The cells of a claim as it is shown.
pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let metadata = &object["metadata"];
    let annotation = |name: &str| metadata["annotations"][name].as_str();
    let modes = object["spec"]["accessModes"].as_array().into_iter().flatten();
    let modes: Vec<&str> = modes.filter_map(Value::as_str).map(short_mode).collect();
    let created_at = metadata["creationTimestamp"].as_str().and_then(|time| time.parse().ok());
    vec![
        metadata["name"].clone(),
        object["status"]["phase"].clone(),
        object["spec"]["resources"]["requests"]["storage"].clone(),
        json!(modes.join(",")),
        json!(annotation(RECLAIM_POLICY_ANNOTATION)),
        json!(annotation(USED_BY_ANNOTATION).unwrap_or("<none>")),
        json!(age_since(created_at, now)),
        json!(annotation(SOURCE_ANNOTATION).unwrap_or("<none>")),
    ]
}

/// As kubectl shows access modes.
fn short_mode(mode: &str) -> &str {
    match mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        other => other,
    }
}
