//! Admission of workloads: everything that is wrong with one, and what is accepted of it.
//!
//! The object stays as written. Defaults are applied to check it and are not kept, so that a later version of podstead with other defaults
//! sees no edit.

#[cfg(test)]
mod tests;

use super::CheckContext;
use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, PodTemplateSpec, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use podstead_pod::objects::admit_claim;
use podstead_pod::{
    AdmitContext, DEFAULT_NAMESPACE, FieldProblem, Severity, code, judge_labels, judge_template, judge_workload,
    remove_stamped_annotations,
};
use podstead_workload::exclusive::{self, Exclusive};
use podstead_workload::host_fit::{self, Host, Misfit};
use podstead_workload::object::Workload;
use podstead_workload::problem::{Code, Problem};
use podstead_workload::{template, validate};
use std::collections::HashSet;

/// Letters of a hash in the names of pods (W10).
const HASH: &str = "bbbbbbbbbb";
/// Digits of a run of a CronJob in the names of its pods (W75).
const RUN: &str = "29384720";

/// Checks a workload; `None` when a problem is an error. What a server writes is left out, and so are annotations that podstead sets.
pub(super) fn admit(mut workload: Workload, context: &CheckContext) -> (Option<Workload>, Vec<FieldProblem>) {
    let mut problems = judge_workload(workload.kind().as_str(), &workload.to_json(), workload.metadata());
    problems.extend(validate::workload(&workload.clone().with_defaults(), jiff::tz::db()).into_iter().map(refused));
    problems.extend(of_template(&workload, &context.admit));
    problems.extend(of_job_template(&workload));
    problems.extend(of_claims(&workload));
    problems.extend(exclusive_pods(&workload));
    problems.extend(shared_claims(&workload));
    problems.extend(context.host.iter().flat_map(|host| other_host(&workload, host)));
    let is_refused = problems.iter().any(|problem| problem.severity == Severity::Error);
    keep_own(&mut workload);
    ((!is_refused).then_some(workload), problems)
}

/// Keeps what an author may say about the object.
fn keep_own(workload: &mut Workload) {
    workload.remove_status();
    let metadata = workload.metadata_mut();
    let ObjectMeta { name, namespace, labels, annotations, .. } = std::mem::take(metadata);
    *metadata = ObjectMeta { name, namespace, labels, annotations, ..ObjectMeta::default() };
    if let Some(metadata) = workload.template_mut().and_then(|template| template.metadata.as_mut()) {
        remove_stamped_annotations(metadata);
    }
}

/// A refusal in the form that problems of Pods have.
pub(super) fn refused(Problem { code: class, field, message, hint }: Problem) -> FieldProblem {
    let code = match class {
        Code::Required => code::REQUIRED,
        Code::Invalid => code::INVALID,
        Code::NotOneOf => code::NOT_ONE_OF,
        Code::Forbidden => code::FORBIDDEN,
        Code::TooLong => code::TOO_LONG,
    };
    FieldProblem { severity: Severity::Error, code: code.to_owned(), field, message, hint }
}

fn suspicious(field: impl Into<String>, message: String, hint: &str) -> FieldProblem {
    let (severity, code) = (Severity::Warning, code::SUSPICIOUS.to_owned());
    FieldProblem { severity, code, field: field.into(), message, hint: Some(hint.to_owned()) }
}

/// Problems of the template, judged as the Pods that are made of it (W3).
fn of_template(workload: &Workload, context: &AdmitContext) -> Vec<FieldProblem> {
    let Some(written) = workload.template() else {
        let field = workload.kind().template_path();
        return vec![refused(Problem {
            code: Code::Required,
            field: field.to_owned(),
            message: "is required".to_owned(),
            hint: None,
        })];
    };
    let namespace = workload.metadata().namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or(DEFAULT_NAMESPACE);
    let made = Made::of(written, workload);
    let problems = judge_template(&made.template, &longest_pod_name(workload), namespace, context);
    // Those of the name and the namespace, which are the workload's, are reported there.
    let is_of_template = |problem: &FieldProblem| {
        problem.severity == Severity::Warning || !["metadata.name", "metadata.namespace"].contains(&problem.field.as_str())
    };
    let mut problems: Vec<FieldProblem> = problems.into_iter().filter(is_of_template).collect();
    for problem in &mut problems {
        problem.field = made.field_in(workload, &problem.field);
    }
    problems
}

/// A template as the pods have it: with the subdomain and the claims of a StatefulSet (W35, W41).
struct Made {
    template: PodTemplateSpec,
    /// Number of volumes that are written in the template; those of claims follow.
    written_volumes: usize,
    /// Indexes of the claim templates whose volumes were added, in the order of these.
    added: Vec<usize>,
    has_service: bool,
}

impl Made {
    fn of(written: &PodTemplateSpec, workload: &Workload) -> Self {
        let mut made = Self { template: written.clone(), written_volumes: 0, added: Vec::new(), has_service: false };
        let (Workload::StatefulSet(set), Some(spec)) = (workload, &mut made.template.spec) else { return made };
        let service = set.spec.as_ref().and_then(|spec| spec.service_name.clone()).filter(|name| !name.is_empty());
        if service.is_some() {
            made.has_service = true;
            spec.subdomain = service;
        }
        let set_name = set.metadata.name.as_deref().unwrap_or_default();
        let volumes = spec.volumes.get_or_insert_default();
        let mut present: HashSet<String> = volumes.iter().map(|volume| volume.name.clone()).collect();
        made.written_volumes = volumes.len();
        for (index, claim) in workload.claim_templates().iter().enumerate() {
            let name = claim.metadata.name.clone().unwrap_or_default();
            if name.is_empty() || !present.insert(name.clone()) {
                continue;
            }
            let claim_name = format!("{name}-{set_name}-0");
            let source = PersistentVolumeClaimVolumeSource { claim_name, read_only: None };
            volumes.push(Volume { name, persistent_volume_claim: Some(source), ..Volume::default() });
            made.added.push(index);
        }
        made
    }

    /// The field of the workload that a field of the Pod is written in.
    fn field_in(&self, workload: &Workload, field: &str) -> String {
        if self.has_service && field == "spec.subdomain" {
            return "spec.serviceName".to_owned();
        }
        let volume = field.strip_prefix("spec.volumes[").and_then(|rest| rest.split_once(']'));
        let index = volume.and_then(|(index, _)| index.parse::<usize>().ok());
        match index.and_then(|index| self.added.get(index.checked_sub(self.written_volumes)?)) {
            Some(claim) => format!("spec.volumeClaimTemplates[{claim}].metadata.name"),
            None => format!("{}.{field}", workload.kind().template_path()),
        }
    }
}

/// The longest name of one of its pods (W7).
fn longest_pod_name(workload: &Workload) -> String {
    let owner = workload.metadata().name.as_deref().unwrap_or_default();
    let last = |number: Option<i32>| number.unwrap_or(1).saturating_sub(1).max(0);
    let replicas = workload.replicas().map(|(_, number)| number);
    let parts = match workload {
        Workload::Deployment(_) => format!("{HASH}-{}", last(replicas)),
        Workload::ReplicaSet(_) | Workload::ReplicationController(_) => last(replicas).to_string(),
        Workload::StatefulSet(object) => {
            let start = object.spec.as_ref().and_then(|spec| spec.ordinals.as_ref()?.start).unwrap_or(0).max(0);
            start.saturating_add(last(replicas)).to_string()
        }
        Workload::DaemonSet(_) => HASH.to_owned(),
        Workload::Job(object) => format!("{}-0", last(object.spec.as_ref().and_then(|spec| spec.completions))),
        Workload::CronJob(_) => format!("{RUN}-0"),
    };
    template::name(owner, &parts)
}

/// Problems of the labels and annotations that a CronJob gives its Jobs.
fn of_job_template(workload: &Workload) -> Vec<FieldProblem> {
    let Workload::CronJob(cron_job) = workload else { return Vec::new() };
    let Some(metadata) = cron_job.spec.as_ref().and_then(|spec| spec.job_template.metadata.as_ref()) else { return Vec::new() };
    let mut problems = judge_labels(metadata);
    for problem in &mut problems {
        problem.field = format!("spec.jobTemplate.{}", problem.field);
    }
    problems
}

/// Problems of the templates of claims, judged as claims.
fn of_claims(workload: &Workload) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    for (index, claim) in workload.claim_templates().iter().enumerate() {
        for problem in admit_claim(claim.clone()).1 {
            // A missing name is reported by the rules for StatefulSets.
            if problem.field != "metadata.name" || problem.code != code::REQUIRED {
                problems.push(FieldProblem { field: format!("spec.volumeClaimTemplates[{index}].{}", problem.field), ..problem });
            }
        }
    }
    problems
}

/// A host port can be had by one pod only, however many are wanted (W82). Claims are other objects, and maybe in other files.
fn exclusive_pods(workload: &Workload) -> Option<FieldProblem> {
    let (field, replicas) = workload.replicas().filter(|(_, replicas)| *replicas > 1)?;
    let Exclusive::HostPort(port) = exclusive::of(workload.template()?, &|_| false)? else { return None };
    let message = format!("only 1 of {replicas} pods will run: host port {port} can be had by one pod only");
    Some(suspicious(field, message, "write 1, or remove the host port"))
}

/// No pods are made on a host that the template excludes (W85).
fn other_host(workload: &Workload, host: &Host) -> Vec<FieldProblem> {
    let Some(spec) = workload.template().and_then(|template| template.spec.as_ref()) else { return Vec::new() };
    let told = |Misfit { field, reason }| {
        let message = format!("no pod is made on this host, {:?}, {reason}", host.name);
        suspicious(
            format!("{}.{field}", workload.kind().template_path()),
            message,
            "write the label under labels in podstead's configuration if that is not meant",
        )
    };
    host_fit::misfits(spec, host).into_iter().map(told).collect()
}

/// A rolling update has pods of both templates for a while, and each claim mounted in both (W83).
fn shared_claims(workload: &Workload) -> Option<FieldProblem> {
    let Workload::Deployment(deployment) = workload else { return None };
    let spec = deployment.spec.as_ref()?;
    if spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate") {
        return None;
    }
    if exclusive::of(&spec.template, &|_| false).is_some() {
        return None;
    }
    let claims = spec.template.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let mut claims = claims.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let claim = claims.find(|claim| claim.read_only != Some(true))?;
    let message =
        format!("during an update, the pods before and after it have the claim {:?} mounted at the same time", claim.claim_name);
    Some(suspicious("spec.strategy", message, "write strategy.type: Recreate unless the program allows that"))
}
