//! The pods of a Job's attempts: names, labels, annotations, hostname and environment (W6, W66).

use super::memory::{Attempt, FailuresBefore, JobMemory};
use super::spec::Spec;
use crate::observed::ObservedPod;
use crate::template::{self, Owner};
use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodSpec};
use std::collections::BTreeMap;

/// Label with the UID of the Job that a pod belongs to.
pub const CONTROLLER_UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
/// The completion index of a pod, as label and as annotation.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Failures of the index before a pod that counted.
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// Failures of the index before a pod that were ignored.
const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
/// The variable that holds the completion index.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// The name of an attempt's pod.
pub(super) fn name(job: &str, attempt: Attempt) -> String {
    template::name(job, &attempt.to_string())
}

/// The wanted pods by name. They are made of the template that the run began with, so that another spelling of it changes no pod.
pub(super) fn wanted(spec: &Spec, memory: &JobMemory, uid: &str) -> BTreeMap<String, Pod> {
    let pods = memory.wanted().map(|(attempt, before)| (name(&spec.name, attempt), pod(spec, memory, uid, attempt, before)));
    pods.collect()
}

fn pod(spec: &Spec, memory: &JobMemory, uid: &str, attempt: Attempt, before: FailuresBefore) -> Pod {
    let owner = Owner { api_version: "batch/v1", kind: "Job", name: &spec.name, uid };
    let labels = [
        (CONTROLLER_UID_LABEL, uid),
        ("batch.kubernetes.io/job-name", spec.name.as_str()),
        ("controller-uid", uid),
        ("job-name", spec.name.as_str()),
    ];
    let name = name(&spec.name, attempt);
    let mut pod = template::pod(&memory.run.template, &name, spec.namespace.as_deref(), &labels, &owner);
    if let Some(index) = attempt.index {
        add_index(&mut pod, spec, index, before);
    }
    pod
}

fn add_index(pod: &mut Pod, spec: &Spec, index: u32, before: FailuresBefore) {
    pod.metadata.labels.get_or_insert_default().insert(INDEX.to_owned(), index.to_string());
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(INDEX.to_owned(), index.to_string());
    if spec.per_index.is_some() {
        annotations.insert(FAILURES.to_owned(), before.counted.to_string());
    }
    if spec.per_index.is_some() && before.ignored > 0 {
        annotations.insert(IGNORED_FAILURES.to_owned(), before.ignored.to_string());
    }
    let PodSpec { hostname, containers, init_containers, .. } = pod.spec.get_or_insert_default();
    *hostname = Some(format!("{}-{index}", spec.name));
    init_containers.iter_mut().flatten().chain(containers).for_each(add_index_variable);
}

/// Adds the variable unless the template has one of the name. It is read from the label, as upstream has it.
fn add_index_variable(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|variable| variable.name == INDEX_VARIABLE) {
        return;
    }
    let field_ref = ObjectFieldSelector { api_version: None, field_path: format!("metadata.labels['{INDEX}']") };
    variables.push(EnvVar {
        name: INDEX_VARIABLE.to_owned(),
        value: None,
        value_from: Some(EnvVarSource { field_ref: Some(field_ref), ..EnvVarSource::default() }),
    });
}

/// The pods of a Job that exist.
pub(super) struct PodsByName<'a> {
    pub(super) job: &'a str,
    pub(super) pods: BTreeMap<&'a str, &'a ObservedPod>,
}

impl<'a> PodsByName<'a> {
    pub(super) fn new(job: &'a str, pods: &'a [ObservedPod]) -> Self {
        Self { job, pods: pods.iter().map(|pod| (pod.name.as_str(), pod)).collect() }
    }

    /// The pod of an attempt.
    pub(super) fn of(&self, attempt: Attempt) -> Option<&'a ObservedPod> {
        self.pods.get(name(self.job, attempt).as_str()).copied()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.pods.contains_key(name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.pods.keys().copied()
    }

    /// Pods that have not ended.
    pub(super) fn alive(&self) -> impl Iterator<Item = &'a ObservedPod> {
        self.pods.values().copied().filter(|pod| !pod.is_terminal())
    }
}
