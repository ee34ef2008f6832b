//! Parts of a Job that make a run another one (W61). **Pure**.

use super::spec::Spec;
use super::{JobNow, defaults};
use k8s_openapi::api::batch::v1::{Job, PodFailurePolicy, SuccessPolicy};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde::{Deserialize, Serialize};

/// The annotation by which a Job that is not edited otherwise runs again.
pub const RUN_ANNOTATION: &str = "podstead.dev/run";

/// The parts of a Job that upstream does not let anybody edit, as written. They are kept and compared after defaulting instead of by a
/// hash: a podstead with another default, or another spelling of a quantity, must not run a Job twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The pod template. Pods of the run are made of it.
    pub template: PodTemplateSpec,
    /// `completions` with their default. An indexed Job may change them together with its parallelism.
    #[serde(default)]
    pub completions: Option<i32>,
    /// `completions` as written. Their default depends on whether `parallelism` is written, and an edit of `parallelism` is no other run.
    #[serde(default)]
    pub written_completions: Option<i32>,
    /// The rest.
    pub fixed: Fixed,
}

/// Parts of a run that are compared as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fixed {
    /// `completionMode`.
    pub completion_mode: Option<String>,
    /// `podFailurePolicy`.
    pub pod_failure_policy: Option<PodFailurePolicy>,
    /// `successPolicy`.
    pub success_policy: Option<SuccessPolicy>,
    /// `backoffLimitPerIndex`.
    pub backoff_limit_per_index: Option<i32>,
    /// The annotation [`RUN_ANNOTATION`].
    pub annotation: Option<String>,
}

impl Run {
    /// The run that a Job asks for.
    pub(super) fn of(job: &Job) -> Self {
        let mut spec = job.spec.clone().unwrap_or_default();
        let written_completions = spec.completions;
        defaults::fill_in_spec(&mut spec);
        let annotations = job.metadata.annotations.as_ref();
        Self {
            template: spec.template,
            completions: spec.completions,
            written_completions,
            fixed: Fixed {
                completion_mode: spec.completion_mode,
                pod_failure_policy: spec.pod_failure_policy,
                success_policy: spec.success_policy,
                backoff_limit_per_index: spec.backoff_limit_per_index,
                annotation: annotations.and_then(|all| all.get(RUN_ANNOTATION)).cloned(),
            },
        }
    }

    /// True when `wanted` continues this run.
    pub(super) fn continues_as(&self, wanted: &Self, spec: &Spec, now: &JobNow<'_>) -> bool {
        let Self { template, completions, written_completions, fixed } = self;
        let same_template = *template == wanted.template || (now.canonical)(template) == (now.canonical)(&wanted.template);
        let resized = spec.indexes().is_some_and(|indexes| indexes == spec.parallelism);
        let same_completions = *completions == wanted.completions || *written_completions == wanted.written_completions;
        same_template && *fixed == wanted.fixed && (same_completions || resized)
    }
}
