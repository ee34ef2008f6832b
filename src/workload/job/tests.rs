//! The test table of Jobs (TJ1 to TJ19) and what of the rules it leaves out.

use super::memory::{Attempt, JobMemory, Stage};
use super::run::Run;
use super::verdict::{FailureReason, Verdict};
use super::{JobNow, Step, lost_memory, step};
use crate::moment::Moment;
use crate::observed::{ContainerEnd, ObservedPod, Phase, PodCondition};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};
use std::time::Duration;

/// A Job `dump` of the specification. A template is added where none is written.
pub(super) fn job(mut spec: Value) -> Job {
    if spec.get("template").is_none_or(|template| *template == json!({})) {
        spec["template"] = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "i"}]}});
    }
    serde_json::from_value(json!({"metadata": {"name": "dump", "namespace": "shop"}, "spec": spec})).unwrap()
}

/// The memory of a Job that has not begun.
pub(super) fn memory_of(job: &Job) -> JobMemory {
    JobMemory::new(Run::of(job))
}

pub(super) fn pod(name: &str, phase: Phase) -> ObservedPod {
    ObservedPod {
        name: name.to_owned(),
        phase,
        ready_since: None,
        is_terminating: false,
        restarts: 0,
        ends: Vec::new(),
        ended_at: None,
        conditions: Vec::new(),
        deletion_cost: 0,
    }
}

pub(super) fn end(container: &str, exit_code: i32) -> ContainerEnd {
    let reason = if exit_code == 0 { "Completed" } else { "Error" };
    ContainerEnd { container: container.to_owned(), is_init: false, exit_code, reason: reason.to_owned() }
}

pub(super) fn lost(container: &str) -> ContainerEnd {
    ContainerEnd { container: container.to_owned(), is_init: false, exit_code: 255, reason: "ContainerStatusUnknown".to_owned() }
}

/// A host that runs what a Job wants: a pod that is wanted starts at once, one that is not stops slowly.
pub(super) struct Host {
    pub(super) job: Job,
    pub(super) memory: Option<JobMemory>,
    pub(super) pods: Vec<ObservedPod>,
    pub(super) seconds: u64,
    pub(super) wall: i64,
    pub(super) observed: bool,
    pub(super) may_replace: bool,
    pub(super) events: Vec<&'static str>,
}

impl Host {
    pub(super) fn new(spec: Value) -> Self {
        let (pods, events) = (Vec::new(), Vec::new());
        Self { job: job(spec), memory: None, pods, seconds: 1000, wall: 0, observed: true, may_replace: true, events }
    }

    /// Edits fields of the specification.
    pub(super) fn edit(&mut self, fields: Value) {
        let mut spec = serde_json::to_value(&self.job.spec).unwrap();
        for (key, value) in fields.as_object().unwrap() {
            spec[key] = value.clone();
        }
        self.job.spec = serde_json::from_value(spec).unwrap();
    }

    pub(super) fn moment(&self) -> Moment {
        Moment::after_boot(Duration::from_secs(self.seconds))
    }

    pub(super) fn wait(&mut self, seconds: u32) {
        self.seconds += u64::from(seconds);
        self.wall += i64::from(seconds);
    }

    /// Evaluates, and does not act on it.
    pub(super) fn decide(&self) -> Step {
        let now = JobNow {
            moment: self.moment(),
            wall: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(self.wall),
            observed: self.observed,
            may_replace: self.may_replace,
            canonical: &|template: &PodTemplateSpec| template.clone(),
            is_taken: &|_| false,
        };
        step(&self.job, "uid-1", self.memory.as_ref(), &self.pods, &now)
    }

    /// Evaluates, keeps the memory and starts and stops pods.
    pub(super) fn look(&mut self) -> Step {
        let step = self.decide();
        self.memory = Some(step.memory.clone());
        self.events.extend(step.events.iter().map(|event| event.reason));
        let new = step.pods.keys().filter(|name| !self.pods.iter().any(|pod| pod.name == **name));
        let new: Vec<ObservedPod> = new.map(|name| pod(name, Phase::Running)).collect();
        self.pods.extend(new);
        self.pods.retain(|pod| step.pods.contains_key(&pod.name) || !pod.is_terminal());
        for pod in &mut self.pods {
            pod.is_terminating |= !step.pods.contains_key(&pod.name);
        }
        step
    }

    pub(super) fn pod(&mut self, name: &str) -> &mut ObservedPod {
        self.pods.iter_mut().find(|pod| pod.name == name).unwrap_or_else(|| panic!("no pod {name}"))
    }

    /// Ends a pod with the exit code of its container `a`.
    pub(super) fn end(&mut self, name: &str, exit_code: i32) {
        let now = self.moment();
        let pod = self.pod(name);
        pod.phase = if exit_code == 0 { Phase::Succeeded } else { Phase::Failed };
        pod.ends = vec![end("a", exit_code)];
        pod.ended_at = Some(now);
    }

    /// Ends pods one after the other, each in an evaluation of its own after all pauses.
    pub(super) fn end_each(&mut self, exit_code: i32, count: usize) {
        for _ in 0..count {
            let name = self.active()[0].clone();
            self.end(&name, exit_code);
            self.look();
            self.wait(600);
            self.look();
        }
    }

    /// Lets pods go that are being stopped.
    pub(super) fn settle(&mut self) {
        self.pods.retain(|pod| !pod.is_terminating);
    }

    /// Names of pods that run and are not being stopped.
    pub(super) fn active(&self) -> Vec<String> {
        self.pods.iter().filter(|pod| pod.is_active()).map(|pod| pod.name.clone()).collect()
    }

    /// The host loses power: running containers of pods that never restart are lost, and only the memory on disk is left.
    pub(super) fn power_cut(&mut self) {
        self.reload();
        self.memory.as_mut().unwrap().boot = Default::default();
        self.seconds = 5;
        for pod in &mut self.pods {
            pod.ready_since = None;
            pod.ended_at = None;
            pod.is_terminating = false;
            if !pod.is_terminal() {
                pod.phase = Phase::Failed;
                pod.ends.push(lost("a"));
            }
        }
    }

    /// The daemon starts again and reads its files.
    pub(super) fn reload(&mut self) {
        let Some(memory) = &self.memory else { return };
        let (disk, run) = (serde_json::to_string(memory).unwrap(), serde_json::to_string(&memory.boot).unwrap());
        let mut memory: JobMemory = serde_json::from_str(&disk).unwrap();
        memory.boot = serde_json::from_str(&run).unwrap();
        self.memory = Some(memory);
    }
}

/// Active, succeeded and failed pods in the status.
fn counts(step: &Step) -> (i32, i32, i32) {
    let status = &step.status;
    (status.active.unwrap_or(0), status.succeeded.unwrap_or(0), status.failed.unwrap_or(0))
}

/// Types and reasons of the conditions that are true.
fn conditions(step: &Step) -> Vec<String> {
    let conditions = step.status.conditions.iter().flatten();
    let holds = conditions.filter(|condition| condition.status == "True");
    holds.map(|condition| format!("{} {}", condition.type_, condition.reason.clone().unwrap_or_default())).collect()
}

/// Names of the wanted pods whose end is not counted.
fn wanted(step: &Step) -> Vec<String> {
    step.memory.active.keys().map(|attempt| format!("dump-{attempt}")).collect()
}

/// TJ1.
#[test]
fn job_keeps_parallelism_active() {
    let mut host = Host::new(json!({"completions": 5, "parallelism": 2}));
    assert_eq!(wanted(&host.look()), ["dump-0", "dump-1"]);
    host.end("dump-0", 0);
    assert_eq!(wanted(&host.look()), ["dump-1", "dump-2"]);
    let mut host = Host::new(json!({"completions": 5, "parallelism": 3}));
    host.look();
    host.pod("dump-0").phase = Phase::Pending;
    host.edit(json!({"parallelism": 2}));
    let step = host.look();
    assert_eq!((wanted(&step), counts(&step)), (vec!["dump-1".to_owned(), "dump-2".to_owned()], (2, 0, 0)));
    assert_eq!((step.leaving.into_iter().collect::<Vec<_>>(), step.status.terminating), (vec!["dump-0".to_owned()], Some(1)));
}

/// TJ2.
#[test]
fn job_removes_pods_beyond_remaining_completions() {
    let mut host = Host::new(json!({"completions": 5, "parallelism": 5}));
    host.look();
    host.end("dump-0", 0);
    host.end("dump-1", 0);
    host.edit(json!({"completions": 5, "parallelism": 3}));
    assert_eq!(wanted(&host.look()).len(), 3);
    host.settle();
    host.end("dump-2", 0);
    assert_eq!(counts(&host.look()), (2, 3, 0));
}

/// TJ3.
#[test]
fn work_queue_completes_after_last_pod() {
    let mut host = Host::new(json!({"parallelism": 2}));
    host.look();
    host.end("dump-0", 0);
    let step = host.look();
    assert_eq!((counts(&step), conditions(&step)), ((1, 1, 0), vec![]));
    host.end("dump-1", 1);
    let step = host.look();
    assert_eq!(counts(&step), (0, 1, 1));
    assert_eq!(conditions(&step), ["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]);
    assert!(step.status.completion_time.is_some());
    assert_eq!(host.events, ["Completed"]);
}

/// TJ4.
#[test]
fn failures_beyond_backoff_limit_fail_job() {
    let mut host = Host::new(json!({"completions": 2, "parallelism": 2}));
    host.look();
    host.end_each(1, 6);
    let step = host.look();
    assert_eq!((counts(&step), conditions(&step)), ((2, 0, 6), vec![]));
    host.end(&host.active()[0].clone(), 1);
    let step = host.look();
    assert_eq!(conditions(&step), ["FailureTarget BackoffLimitExceeded"]);
    assert_eq!((counts(&step), step.status.terminating), ((0, 0, 8), Some(1)), "pods that a failure removes count");
    assert_eq!(host.events, Vec::<&str>::new());
    host.settle();
    let step = host.look();
    assert_eq!(conditions(&step), ["FailureTarget BackoffLimitExceeded", "Failed BackoffLimitExceeded"]);
    assert_eq!((host.events.clone(), step.status.completion_time), (vec!["BackoffLimitExceeded"], None));
}

/// TJ5.
#[test]
fn restarts_count_against_backoff_limit() {
    let template = json!({"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "a"}]}});
    for (limit, restarts, fails) in [(1, 0, false), (1, 1, true), (0, 0, false), (0, 1, true), (3, 2, false), (3, 3, true)] {
        let mut host = Host::new(json!({"template": template, "backoffLimit": limit}));
        host.look();
        host.pod("dump-0").restarts = restarts;
        let failed = conditions(&host.look()).contains(&"FailureTarget BackoffLimitExceeded".to_owned());
        assert_eq!(failed, fails, "limit {limit}, {restarts} restarts");
    }
}

/// TJ6.
#[test]
fn replacement_waits_for_pause() {
    let mut host = Host::new(json!({}));
    host.look();
    for (attempt, pause) in [(0, 10), (1, 20), (2, 40)] {
        host.end(&format!("dump-{attempt}"), 1);
        let step = host.look();
        assert_eq!((counts(&step).0, step.wake), (0, Some(host.moment() + Duration::from_secs(pause))));
        host.wait(u32::try_from(pause).unwrap() - 1);
        assert_eq!(counts(&host.look()).0, 0);
        host.wait(1);
        assert_eq!(counts(&host.look()).0, 1);
    }
}

/// W54.
#[test]
fn pause_begins_anew_after_boot() {
    let mut host = Host::new(json!({}));
    host.look();
    host.end_each(1, 2);
    host.end("dump-2", 1);
    host.look();
    host.wait(39);
    host.power_cut();
    let step = host.look();
    assert_eq!((counts(&step), step.wake), ((0, 0, 3), Some(host.moment() + Duration::from_secs(40))));
}

/// TJ7.
#[test]
fn replacement_policy_decides_on_stopping_pods() {
    for (policy, expected) in [("Failed", (vec![], 0)), ("TerminatingOrFailed", (vec!["dump-1".to_owned()], 1))] {
        let mut host = Host::new(json!({"podReplacementPolicy": policy}));
        host.look();
        host.pod("dump-0").is_terminating = true;
        host.look();
        host.wait(10);
        let step = host.look();
        let active: Vec<String> = wanted(&step).into_iter().filter(|name| name != "dump-0").collect();
        assert_eq!((active, counts(&step).2), expected, "{policy}");
        assert_eq!(step.status.terminating, Some(1));
        host.end("dump-0", 1);
        host.look();
        host.wait(10);
        assert_eq!(counts(&host.look()), (1, 0, 1), "{policy}");
    }
}

/// TJ8.
#[test]
fn power_cut_is_no_failure() {
    let mut host = Host::new(json!({"backoffLimit": 0}));
    host.look();
    for attempt in 1..=7 {
        host.power_cut();
        let step = host.look();
        assert_eq!((wanted(&step), counts(&step)), (vec![format!("dump-{attempt}")], (1, 0, 0)));
    }
    host.power_cut();
    host.pod("dump-7").ends.insert(0, end("b", 1));
    assert_eq!(counts(&host.look()).2, 1, "a container had failed before");
}

/// TJ9.
#[test]
fn indexed_job_completes_with_all_indexes() {
    let mut host = Host::new(json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3}));
    assert_eq!(wanted(&host.look()), ["dump-0-0", "dump-1-0", "dump-2-0"]);
    host.end("dump-0-0", 1);
    host.end("dump-1-0", 0);
    host.look();
    host.wait(10);
    assert_eq!(wanted(&host.look()), ["dump-0-1", "dump-2-0"]);
    host.end("dump-0-1", 0);
    host.end("dump-2-0", 0);
    let step = host.look();
    assert_eq!((counts(&step), step.status.completed_indexes.as_deref()), ((0, 3, 1), Some("0-2")));
    assert!(conditions(&step).contains(&"Complete CompletionsReached".to_owned()));
}

/// TJ10.
#[test]
fn lowest_pending_indexes_begin() {
    let mut host = Host::new(json!({"completionMode": "Indexed", "completions": 20, "parallelism": 8}));
    let mut memory = host.decide().memory;
    memory.completed_indexes = "2,4,5,7-9".parse().unwrap();
    memory.active.retain(|attempt, _| [0, 3].contains(&attempt.index.unwrap()));
    memory.indexes.retain(|index, _| [0, 3].contains(index));
    host.memory = Some(memory);
    let new: Vec<u32> = host.look().memory.active.keys().filter_map(|attempt| attempt.index).collect();
    assert_eq!(new, [0, 1, 3, 6, 10, 11, 12, 13]);
}

/// TJ11.
#[test]
fn nothing_is_made_while_indexes_leave() {
    let mut host = Host::new(json!({"completionMode": "Indexed", "completions": 8, "parallelism": 8}));
    host.look();
    let mut memory = host.memory.clone().unwrap();
    memory.active.retain(|attempt, _| [5, 7].contains(&attempt.index.unwrap()));
    host.memory = Some(memory);
    host.pods.retain(|pod| ["dump-5-0", "dump-7-0"].contains(&pod.name.as_str()));
    host.edit(json!({"completions": 5, "parallelism": 5}));
    let step = host.look();
    assert_eq!((wanted(&step), step.status.terminating), (vec![], Some(2)));
    assert_eq!(wanted(&host.look()), ["dump-0-1", "dump-1-1", "dump-2-1", "dump-3-1", "dump-4-1"]);
}

/// TJ12.
#[test]
fn index_beyond_its_limit_fails() {
    let spec = json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 1});
    let fail_twice = |host: &mut Host| {
        host.look();
        host.end("dump-0-0", 1);
        host.look();
        host.wait(10);
        let again = host.look().pods.remove("dump-0-1").unwrap();
        assert_eq!(again.metadata.annotations.unwrap()["batch.kubernetes.io/job-index-failure-count"], "1");
        host.end("dump-0-1", 1);
        host.look()
    };
    let mut host = Host::new(spec.clone());
    let step = fail_twice(&mut host);
    assert_eq!((counts(&step), step.status.failed_indexes.as_deref()), ((1, 0, 2), Some("0")));
    host.end("dump-1-0", 0);
    assert_eq!(conditions(&host.look()), ["FailureTarget FailedIndexes", "Failed FailedIndexes"]);
    let mut host = Host::new(spec);
    host.edit(json!({"maxFailedIndexes": 0}));
    assert_eq!(conditions(&fail_twice(&mut host)), ["FailureTarget MaxFailedIndexesExceeded"]);
}

/// W62.
#[test]
fn indexes_pause_on_their_own() {
    let mut host = Host::new(json!({"completionMode": "Indexed", "completions": 3, "parallelism": 2, "backoffLimitPerIndex": 5}));
    host.look();
    host.end("dump-0-0", 1);
    host.end("dump-1-0", 0);
    let step = host.look();
    assert_eq!((wanted(&step), step.wake), (vec!["dump-2-0".to_owned()], Some(host.moment() + Duration::from_secs(10))));
}

fn policy() -> Value {
    json!({"backoffLimit": 0, "podFailurePolicy": {"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"containerName": "a", "operator": "In", "values": [3]}},
        {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [3]}},
    ]}})
}

/// TJ13.
#[test]
fn failure_policy_takes_first_rule() {
    let mut host = Host::new(policy());
    host.look();
    host.end("dump-0", 3);
    let step = host.look();
    assert_eq!(conditions(&step), ["FailureTarget PodFailurePolicy", "Failed PodFailurePolicy"]);
    let message = step.events[0].message.as_str();
    assert_eq!(message, "Container a for pod shop/dump-0 failed with exit code 3 matching FailJob rule at index 1");

    let mut host = Host::new(policy());
    host.look();
    host.pod("dump-0").ends = vec![end("a", 3)];
    assert_eq!(conditions(&host.look()), Vec::<String>::new(), "a running pod matches nothing");

    host.end("dump-0", 1);
    host.pod("dump-0").conditions = vec![PodCondition { kind: "DisruptionTarget".to_owned(), status: "True".to_owned() }];
    let step = host.look();
    assert_eq!((counts(&step), conditions(&step)), ((0, 0, 0), vec![]));
    assert_eq!(step.wake, Some(host.moment() + Duration::from_secs(10)), "what is ignored pauses");
}

/// TJ14.
#[test]
fn rule_names_its_container() {
    let mut host = Host::new(policy());
    host.edit(json!({"backoffLimit": 1}));
    host.look();
    host.end("dump-0", 3);
    host.pod("dump-0").ends = vec![end("b", 3)];
    let step = host.look();
    assert_eq!((counts(&step), conditions(&step)), ((0, 0, 1), vec![]));
}

/// W53.
#[test]
fn power_cut_is_disruption_for_policy() {
    let mut host = Host::new(policy());
    host.look();
    host.power_cut();
    let step = host.look();
    assert_eq!((counts(&step), step.wake), ((0, 0, 0), Some(host.moment() + Duration::from_secs(10))), "ignored by the rule");
    let count = json!({"rules": [{"action": "Count", "onPodConditions": [{"type": "DisruptionTarget"}]}]});
    let mut host = Host::new(json!({"podFailurePolicy": count}));
    host.look();
    host.power_cut();
    assert_eq!(counts(&host.look()).2, 1);
}

/// TJ15.
#[test]
fn success_policy_removes_other_pods() {
    let mut host = Host::new(json!({"completionMode": "Indexed", "completions": 4, "parallelism": 4, "successPolicy": {"rules": [
        {"succeededIndexes": "1-3", "succeededCount": 1},
    ]}}));
    host.look();
    host.end("dump-0-0", 0);
    assert_eq!(counts(&host.look()), (3, 1, 0));
    host.end("dump-2-0", 0);
    let step = host.look();
    assert_eq!((conditions(&step), counts(&step)), (vec!["SuccessCriteriaMet SuccessPolicy".to_owned()], (0, 2, 0)));
    host.settle();
    let step = host.look();
    assert_eq!(step.status.conditions.unwrap().last().unwrap().message.as_deref(), Some("Matched rules at index 0"));
    assert_eq!(step.status.completed_indexes.as_deref(), Some("0,2"));
}

/// TJ16.
#[test]
fn suspension_stops_pods_and_deadline() {
    let mut host = Host::new(json!({"completions": 2, "parallelism": 2, "activeDeadlineSeconds": 100}));
    let step = host.look();
    assert_eq!((counts(&step).0, step.wake), (2, Some(host.moment() + Duration::from_secs(60))));
    let first_start = step.status.start_time;
    host.edit(json!({"suspend": true}));
    let step = host.look();
    assert_eq!((counts(&step), conditions(&step)), ((0, 0, 0), vec!["Suspended JobSuspended".to_owned()]));
    assert_eq!(step.status.start_time, None);
    host.wait(500);
    host.settle();
    assert_eq!(conditions(&host.look()), ["Suspended JobSuspended"]);
    host.edit(json!({"suspend": false}));
    let step = host.look();
    assert_eq!((wanted(&step), conditions(&step)), (vec!["dump-2".to_owned(), "dump-3".to_owned()], vec![]));
    assert!(step.status.start_time > first_start);
    assert_eq!(host.events, ["Suspended", "Resumed"]);
    host.wait(99);
    assert_eq!(conditions(&host.look()), Vec::<String>::new());
    host.wait(1);
    let step = host.look();
    assert_eq!((conditions(&step), counts(&step)), (vec!["FailureTarget DeadlineExceeded".to_owned()], (0, 0, 2)));
}

/// W56.
#[test]
fn deadline_stands_still_while_host_is_off() {
    let mut host = Host::new(json!({"activeDeadlineSeconds": 300}));
    host.look();
    host.wait(60);
    let step = host.look();
    assert_eq!(step.memory.stage, Stage::Running { active: Duration::from_secs(60) });
    host.wait(50);
    assert_eq!(host.look().memory.stage, step.memory.stage, "the disk is not written for each second");
    host.power_cut();
    host.wall += 100_000;
    host.look();
    host.wait(239);
    assert_eq!(conditions(&host.look()), Vec::<String>::new());
    host.wait(1);
    assert_eq!(conditions(&host.look()), ["FailureTarget DeadlineExceeded"]);
}

/// TJ17.
#[test]
fn ttl_takes_pods_and_keeps_outcome() {
    let mut host = Host::new(json!({"ttlSecondsAfterFinished": 15}));
    host.look();
    host.end("dump-0", 0);
    host.look();
    host.wait(10);
    let step = host.look();
    assert_eq!((step.pods.len(), step.wake), (1, Some(host.moment() + Duration::from_secs(5))));
    host.wait(5);
    let step = host.look();
    assert!(step.pods.is_empty() && step.leaving.contains("dump-0"));
    host.edit(json!({"ttlSecondsAfterFinished": 0}));
    host.power_cut();
    let step = host.look();
    assert_eq!((step.pods.len(), counts(&step), step.wake), (0, (0, 1, 0), None));

    let mut host = Host::new(json!({"ttlSecondsAfterFinished": 0}));
    host.look();
    host.end("dump-0", 0);
    assert!(host.look().pods.is_empty());
    let step = host.look();
    assert_eq!((step.pods.len(), counts(&step)), (0, (0, 1, 0)), "it ran");
}

/// TJ18.
#[test]
fn edited_template_is_another_run() {
    let other = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "j"}]}});
    let mut host = Host::new(json!({"completions": 3}));
    host.look();
    host.end("dump-0", 0);
    host.look();
    host.edit(json!({"parallelism": 2}));
    assert_eq!((wanted(&host.look()), host.memory.clone().unwrap().succeeded), (vec!["dump-1".to_owned(), "dump-2".to_owned()], 1));
    host.edit(json!({"template": other}));
    let step = host.look();
    assert_eq!((step.pods.len(), step.status.terminating, counts(&step)), (0, Some(2), (0, 0, 0)));
    assert_eq!(host.look().pods.len(), 0, "old pods are not gone");
    host.settle();
    let step = host.look();
    assert_eq!(wanted(&step), ["dump-0", "dump-1"]);
    assert_eq!(step.pods["dump-0"].spec.as_ref().unwrap().containers[0].image.as_deref(), Some("j"));
    host.end_each(0, 3);
    assert_eq!(conditions(&host.look()).len(), 2);
    host.job.metadata.annotations = Some([("podstead.dev/run".to_owned(), "2".to_owned())].into());
    host.look();
    host.settle();
    assert_eq!(wanted(&host.look()), ["dump-0", "dump-1"], "the annotation alone runs it again");
}

/// W61, W99 (6).
#[test]
fn number_of_unobserved_attempt_is_skipped() {
    for (spec, next) in [(json!({}), "dump-1"), (json!({"completionMode": "Indexed", "completions": 1}), "dump-0-1")] {
        let mut host = Host::new(spec);
        host.memory = Some(host.decide().memory);
        host.job.metadata.annotations = Some([("podstead.dev/run".to_owned(), "2".to_owned())].into());
        assert_eq!(wanted(&host.look()), [next]);
    }
}

/// W61, W94.
#[test]
fn other_run_waits_for_all_sources() {
    let mut host = Host::new(json!({}));
    let before = host.look();
    host.edit(json!({"backoffLimitPerIndex": 1}));
    host.may_replace = false;
    let step = host.look();
    assert_eq!((step.pods, step.memory.run), (before.pods, before.memory.run));
}

/// W61.
#[test]
fn indexed_job_grows_with_parallelism() {
    let mut host = Host::new(json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2}));
    host.look();
    host.end("dump-0-0", 0);
    host.look();
    host.edit(json!({"completions": 3, "parallelism": 3}));
    let step = host.look();
    assert_eq!((wanted(&step), counts(&step)), (vec!["dump-1-0".to_owned(), "dump-2-0".to_owned()], (2, 1, 0)));
    host.edit(json!({"completions": 4}));
    assert_eq!(host.look().memory.succeeded, 0, "completions alone are another run");
    assert_eq!(host.memory.clone().unwrap().stage, Stage::Clearing);
}

/// TJ19.
#[test]
fn recorded_end_is_not_counted_again() {
    let mut host = Host::new(json!({"completions": 3}));
    host.look();
    host.end("dump-0", 0);
    host.memory = Some(host.decide().memory);
    host.power_cut();
    host.observed = false;
    let step = host.look();
    assert_eq!((counts(&step), step.pods.len()), ((1, 1, 0), 2), "what the memory wants starts before all is known");
    host.observed = true;
    let step = host.look();
    assert_eq!(counts(&step), (1, 1, 0));
    assert_eq!(wanted(&step), ["dump-1"]);
}

/// W94.
#[test]
fn nothing_is_decided_before_pods_are_observed() {
    let mut host = Host::new(json!({"completions": 2, "activeDeadlineSeconds": 10}));
    host.look();
    host.wait(100);
    host.reload();
    host.observed = false;
    let step = host.decide();
    assert_eq!((step.pods.len(), conditions(&step), Some(step.memory)), (1, vec![], host.memory.clone()));
}

/// W97.
#[test]
fn lost_memory_fails_job() {
    let mut host = Host::new(json!({}));
    host.look();
    host.memory = Some(lost_memory(&host.job, Timestamp::UNIX_EPOCH));
    let step = host.look();
    assert_eq!((step.pods.len(), conditions(&step)), (0, vec!["FailureTarget MemoryLost".to_owned()]));
    host.settle();
    assert_eq!(conditions(&host.look()), ["FailureTarget MemoryLost", "Failed MemoryLost"]);
    assert_eq!(host.events, ["MemoryLost"]);
    assert!(matches!(host.memory.unwrap().ended(), Some(Verdict::Failed { reason: FailureReason::MemoryLost, .. })));
}

/// W60.
#[test]
fn newest_pods_of_outcome_are_kept() {
    let mut host = Host::new(json!({"completions": 30, "parallelism": 1}));
    host.look();
    host.end_each(0, 30);
    let step = host.look();
    let numbers: Vec<u32> = step.memory.kept_succeeded.iter().map(|pod| pod.attempt.number).collect();
    assert_eq!((numbers, step.pods.len(), counts(&step)), ((10..30).collect(), 20, (0, 30, 0)));
}

/// W9.
#[test]
fn taken_number_is_skipped() {
    let host = Host::new(json!({"completions": 2, "parallelism": 2}));
    let now = JobNow {
        moment: host.moment(),
        wall: Timestamp::UNIX_EPOCH,
        observed: true,
        may_replace: true,
        canonical: &|template: &PodTemplateSpec| template.clone(),
        is_taken: &|name| name == "dump-1",
    };
    let step = step(&host.job, "uid-1", None, &[], &now);
    assert_eq!(wanted(&step), ["dump-0", "dump-2"]);
}

/// W6, W66.
#[test]
fn indexed_pod_knows_its_index() {
    let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"restartPolicy": "Never", "containers": [
        {"name": "a"}, {"name": "b", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "own"}]},
    ], "initContainers": [{"name": "c"}]}});
    let mut host = Host::new(json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": template}));
    let pod = host.look().pods.remove("dump-1-0").unwrap();
    let pod = serde_json::to_value(pod).unwrap();
    let field = json!([{"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef":
        {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}}}]);
    assert_eq!(
        pod["metadata"],
        json!({
            "name": "dump-1-0",
            "namespace": "shop",
            "labels": {
                "app": "x",
                "batch.kubernetes.io/controller-uid": "uid-1",
                "batch.kubernetes.io/job-completion-index": "1",
                "batch.kubernetes.io/job-name": "dump",
                "controller-uid": "uid-1",
                "job-name": "dump",
            },
            "annotations": {"batch.kubernetes.io/job-completion-index": "1"},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "dump", "uid": "uid-1",
                "controller": true, "blockOwnerDeletion": true}],
        })
    );
    assert_eq!(pod["spec"]["hostname"], "dump-1");
    assert_eq!((&pod["spec"]["containers"][0]["env"], &pod["spec"]["initContainers"][0]["env"]), (&field, &field));
    assert_eq!(pod["spec"]["containers"][1]["env"], json!([{"name": "JOB_COMPLETION_INDEX", "value": "own"}]));
}

/// W58.
#[test]
fn suspended_job_waits_for_its_start() {
    let mut host = Host::new(json!({"suspend": true}));
    let step = host.look();
    assert_eq!((conditions(&step), step.status.start_time, step.pods.len()), (vec!["Suspended JobSuspended".to_owned()], None, 0));
}

/// W98.
#[test]
fn attempt_is_read_from_its_text() {
    for attempt in [Attempt { index: None, number: 7 }, Attempt { index: Some(3), number: 0 }] {
        assert_eq!(Attempt::try_from(attempt.to_string()), Ok(attempt));
    }
}

/// W55.
#[test]
fn withdrawn_pod_holds_place_until_it_ended() {
    for (policy, active) in [("Failed", 0), ("TerminatingOrFailed", 1)] {
        let mut host = Host::new(json!({"podReplacementPolicy": policy}));
        host.look();
        host.edit(json!({"parallelism": 0}));
        host.look();
        host.edit(json!({"parallelism": 1}));
        assert_eq!(counts(&host.look()), (active, 0, 0), "{policy}");
        host.settle();
        assert_eq!(counts(&host.look()), (1, 0, 0), "{policy}");
    }
}

#[test]
fn forgotten_pod_stays_counted() {
    let mut host = Host::new(json!({"completions": 2, "parallelism": 1}));
    host.look();
    let forget = |host: &mut Host, pod: &str| host.memory.as_mut().unwrap().forget("dump", pod);
    assert!(!forget(&mut host, "dump-0"), "it has not ended");
    host.end("dump-0", 0);
    host.look();
    assert!(forget(&mut host, "dump-0") && !forget(&mut host, "dump-0"));
    let step = host.look();
    assert_eq!(counts(&step), (1, 1, 0));
    assert_eq!(step.pods.keys().collect::<Vec<_>>(), ["dump-1"]);
}

/// W99 (9).
#[test]
fn spelling_is_no_other_run() {
    let template = |cpu: &str| json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "resources": {"requests": {"cpu": cpu}}}]}});
    let canonical = |template: &PodTemplateSpec| {
        let text = serde_json::to_string(template).unwrap();
        serde_json::from_str(&text.replace("1000m", "1")).unwrap()
    };
    let now = JobNow {
        moment: Moment::default(),
        wall: Timestamp::UNIX_EPOCH,
        observed: true,
        may_replace: true,
        canonical: &canonical,
        is_taken: &|_| false,
    };
    let first = step(&job(json!({"template": template("1000m")})), "uid-1", None, &[], &now);
    let written_out =
        json!({"template": template("1"), "completions": 1, "parallelism": 1, "completionMode": "NonIndexed", "suspend": false});
    let second = step(&job(written_out), "uid-1", Some(&first.memory), &[], &now);
    assert_eq!((second.pods, second.events.len()), (first.pods, 0));
    let third =
        step(&job(json!({"template": template("2")})), "uid-1", Some(&first.memory), &[pod("dump-0", Phase::Running)], &now);
    assert!(third.pods.is_empty());
}
