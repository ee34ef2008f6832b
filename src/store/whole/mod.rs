//! Warnings that need all objects of a source, for people who check manifests. **Pure**.
//!
//! A daemon does not give them: another source may have what is missing here, and it tells of pods that wait.

#[cfg(test)]
mod tests;

use crate::Set;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PodSpec, Volume};
use podstead_manifest::{ObjectKey, Problem};
use podstead_pod::{Origin, Severity, code};
use podstead_workload::exclusive::{self, Exclusive};
use podstead_workload::object::Workload;
use std::collections::BTreeSet;

/// Lists workloads that want more pods than can have a claim of the set (W82).
pub fn exclusive_claims(set: &Set) -> Vec<Problem> {
    let told = |(key, found): (&ObjectKey, &crate::SetWorkload)| {
        let (field, replicas) = found.workload.replicas().filter(|(_, replicas)| *replicas > 1)?;
        let mut template = found.workload.template()?.clone();
        let own = own_volumes(&found.workload);
        if let Some(volumes) = template.spec.as_mut().and_then(|spec| spec.volumes.as_mut()) {
            volumes.retain(|volume| !own.contains(volume.name.as_str()));
        }
        let is_exclusive = |name: &str| claim(set, &key.namespace, name).is_some_and(is_for_one_pod);
        // A host port is told of where it is written.
        let Exclusive::Claim(name) = exclusive::of(&template, &is_exclusive)? else { return None };
        let message = format!(
            "only 1 of {replicas} pods will run: claim {name:?} has the access mode ReadWriteOncePod and can be had by one pod only"
        );
        let hint = "write 1, or the access mode ReadWriteOnce in the claim";
        Some(warning(key, &found.origin, field, message, hint))
    };
    set.workloads.iter().filter_map(told).collect()
}

/// Lists pods and workloads with claims that the set does not have.
pub fn missing_claims(set: &Set) -> Vec<Problem> {
    let pods = set.pods.iter().flat_map(|(key, pod)| {
        let missing = pod.pod.spec.iter().flat_map(|spec| missing(set, key, spec, &BTreeSet::new()));
        missing.map(|(field, name)| absent(key, &pod.origin, &field, &name)).collect::<Vec<_>>()
    });
    let workloads = set.workloads.iter().flat_map(|(key, found)| {
        let own = own_volumes(&found.workload);
        let spec = found.workload.template().and_then(|template| template.spec.as_ref());
        let missing = spec.into_iter().flat_map(|spec| missing(set, key, spec, &own));
        let path = found.workload.kind().template_path();
        missing.map(|(field, name)| absent(key, &found.origin, &format!("{path}.{field}"), &name)).collect::<Vec<_>>()
    });
    pods.chain(workloads).collect()
}

/// Names of the volumes that a StatefulSet makes from its templates of claims (W41).
fn own_volumes(workload: &Workload) -> BTreeSet<&str> {
    workload.claim_templates().iter().filter_map(|template| template.metadata.name.as_deref()).collect()
}

fn claim<'a>(set: &'a Set, namespace: &str, name: &str) -> Option<&'a PersistentVolumeClaim> {
    let is_named = |key: &ObjectKey| key.namespace == namespace && key.name == name;
    set.claims.iter().find(|(key, _)| is_named(key)).map(|(_, claim)| &**claim)
}

fn is_for_one_pod(claim: &PersistentVolumeClaim) -> bool {
    let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_ref());
    modes.is_some_and(|modes| modes.iter().any(|mode| mode == "ReadWriteOncePod"))
}

/// Fields with names of claims that neither the set has nor one of its StatefulSets makes.
fn missing(set: &Set, key: &ObjectKey, spec: &PodSpec, own: &BTreeSet<&str>) -> Vec<(String, String)> {
    let name_of = |volume: &Volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.clone());
    let volumes = spec.volumes.iter().flatten().enumerate().filter(|(_, volume)| !own.contains(volume.name.as_str()));
    let named = volumes.filter_map(|(index, volume)| Some((index, name_of(volume)?)));
    let absent = named.filter(|(_, name)| claim(set, &key.namespace, name).is_none() && !is_made(set, &key.namespace, name));
    absent.map(|(index, name)| (format!("spec.volumes[{index}].persistentVolumeClaim.claimName"), name)).collect()
}

/// Reports whether a StatefulSet makes claims of such names: `TEMPLATE-SET-ORDINAL`.
fn is_made(set: &Set, namespace: &str, name: &str) -> bool {
    let of_set = |(key, found): (&ObjectKey, &crate::SetWorkload)| {
        key.namespace == namespace
            && own_volumes(&found.workload).iter().any(|template| {
                let ordinal = name.strip_prefix(&format!("{template}-{}-", key.name));
                ordinal.is_some_and(|ordinal| !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit()))
            })
    };
    set.workloads.iter().any(of_set)
}

fn absent(key: &ObjectKey, origin: &Origin, field: &str, name: &str) -> Problem {
    let message =
        format!("no claim {name:?} is among these manifests; pods wait until there is one in namespace {:?}", key.namespace);
    warning(key, origin, field, message, "write a PersistentVolumeClaim of that name, unless another source has it")
}

fn warning(key: &ObjectKey, origin: &Origin, field: &str, message: String, hint: &str) -> Problem {
    Problem {
        severity: Severity::Warning,
        code: code::SUSPICIOUS.to_owned(),
        file: origin.file.to_string(),
        position: Some(origin.position),
        field: field.to_owned(),
        message,
        hint: Some(hint.to_owned()),
        object: Some(key.clone()),
    }
}
