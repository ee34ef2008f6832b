//! Properties of Jobs under random hosts (W99).

use super::memory::Stage;
use super::tests::{Host, end};
use super::verdict::Verdict;
use crate::observed::Phase;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Something that happens on a host.
#[derive(Clone, Debug)]
enum Happening {
    /// One of the running pods ends with the exit code.
    End(usize, i32),
    /// One of the running pods is being stopped by somebody else.
    Stop(usize),
    /// Pods that are being stopped are gone, or have ended if they are wanted.
    Settle,
    /// Time passes.
    Wait(u32),
    /// The daemon starts again.
    Reload,
    /// The daemon decides and writes its memory, and the host loses power before pods are sent.
    Crash,
    /// The host loses power.
    PowerCut,
    /// The Job is evaluated before its pods were observed.
    LookBlind,
    /// The Job is edited.
    Suspend(bool),
    /// The Job is edited.
    Parallelism(i32),
    /// The Job, if it is indexed, gets so many indexes, which may run at once.
    Resize(i32),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (any::<usize>(), prop_oneof![3 => Just(0), 3 => Just(1), 1 => Just(3), 1 => Just(4)]).prop_map(|(nth, code)| Happening::End(nth, code)),
        1 => any::<usize>().prop_map(Happening::Stop),
        2 => Just(Happening::Settle),
        3 => (0_u32..700).prop_map(Happening::Wait),
        1 => Just(Happening::Reload),
        1 => Just(Happening::Crash),
        1 => Just(Happening::PowerCut),
        1 => Just(Happening::LookBlind),
        1 => any::<bool>().prop_map(Happening::Suspend),
        1 => (0..4).prop_map(Happening::Parallelism),
        1 => (0..6).prop_map(Happening::Resize),
    ]
}

fn spec() -> impl Strategy<Value = Value> {
    let completions = prop_oneof![Just(json!({})), (0..6_i32).prop_map(|count| json!({"completions": count}))];
    let indexed = (0..6_i32, proptest::option::of(0..3_i32)).prop_map(|(count, limit)| {
        let mut spec = json!({"completions": count, "completionMode": "Indexed"});
        if let Some(limit) = limit {
            spec["backoffLimitPerIndex"] = limit.into();
        }
        spec
    });
    let policy = json!({"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [4]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}},
    ]});
    (prop_oneof![completions, indexed], 0..4_i32, 0..5_i32, any::<bool>(), any::<bool>(), proptest::option::of(0..2000_i32))
        .prop_map(move |(mut spec, parallelism, limit, has_policy, failed_alone, deadline)| {
            spec["parallelism"] = parallelism.into();
            spec["backoffLimit"] = limit.into();
            spec["podReplacementPolicy"] = if has_policy || failed_alone { "Failed" } else { "TerminatingOrFailed" }.into();
            if has_policy {
                spec["podFailurePolicy"] = policy.clone();
            }
            if let Some(deadline) = deadline {
                spec["activeDeadlineSeconds"] = deadline.into();
            }
            spec
        })
}

/// A host and a second account of what ended on it.
struct Audit {
    host: Host,
    /// Pods that were wanted at the last decision.
    wanted: BTreeSet<String>,
    /// Pods that ever ran.
    started: BTreeSet<String>,
    /// Pods that ended while they were wanted; true if they count as failed, false if not, none if they succeeded.
    ended: BTreeMap<String, Option<bool>>,
}

impl Audit {
    fn new(spec: Value) -> Self {
        let host = Host::new(spec);
        Self { host, wanted: BTreeSet::new(), started: BTreeSet::new(), ended: BTreeMap::new() }
    }

    fn has_verdict(&self) -> bool {
        self.host.memory.as_ref().is_some_and(|memory| matches!(memory.stage, Stage::Ending { .. } | Stage::Ended { .. }))
    }

    fn is_indexed(&self) -> bool {
        self.host.job.spec.as_ref().unwrap().completion_mode.as_deref() == Some("Indexed")
    }

    /// True unless the pod's index is none that the Job has now.
    fn is_in_range(&self, name: &str) -> bool {
        let index: i32 = name.split('-').nth(1).unwrap().parse().unwrap();
        !self.is_indexed() || index < self.host.job.spec.as_ref().unwrap().completions.unwrap()
    }

    /// Writes down what is over before it is decided on.
    fn write_down(&mut self) {
        if self.has_verdict() || !self.host.observed {
            return;
        }
        let replaces_stopping =
            self.host.job.spec.as_ref().unwrap().pod_replacement_policy.as_deref() == Some("TerminatingOrFailed");
        let has_policy = self.host.job.spec.as_ref().unwrap().pod_failure_policy.is_some();
        for pod in self.host.pods.iter().filter(|pod| self.wanted.contains(&pod.name)) {
            let is_ignored = !self.is_in_range(&pod.name)
                || pod.ends.iter().any(|end| end.reason == "ContainerStatusUnknown" || (has_policy && end.exit_code == 3));
            let outcome = match pod.phase {
                Phase::Succeeded | Phase::Failed if !self.is_in_range(&pod.name) => Some(false),
                Phase::Succeeded => None,
                Phase::Failed => Some(!is_ignored),
                Phase::Pending | Phase::Running if pod.is_terminating && replaces_stopping => Some(!is_ignored),
                Phase::Pending | Phase::Running => continue,
            };
            self.ended.entry(pod.name.clone()).or_insert(outcome);
        }
    }

    /// Evaluates and checks that it was decided once.
    fn look(&mut self, is_sent: bool) {
        self.write_down();
        let had_verdict = self.has_verdict();
        let first = self.host.decide();
        if let (
            false,
            Stage::Ending { verdict: Verdict::Failed { .. }, .. } | Stage::Ended { verdict: Verdict::Failed { .. }, .. },
        ) = (had_verdict, &first.memory.stage)
        {
            let removed = self.wanted.iter().filter(|name| !self.ended.contains_key(*name)).cloned().collect::<Vec<_>>();
            self.ended.extend(removed.into_iter().map(|name| (name.clone(), Some(self.is_in_range(&name)))).collect::<Vec<_>>());
        }
        self.wanted = first.pods.keys().cloned().collect();
        let before = self.host.memory.replace(first.memory.clone());
        let second = self.host.decide();
        assert_eq!((&second.pods, &second.events, &second.memory), (&first.pods, &vec![], &first.memory), "decided twice");
        self.check_counts(&first.status);
        if !is_sent {
            return;
        }
        self.host.memory = before;
        let existed: BTreeSet<String> = self.host.pods.iter().map(|pod| pod.name.clone()).collect();
        self.host.look();
        for pod in self.host.pods.iter().filter(|pod| !existed.contains(&pod.name)) {
            assert!(self.started.insert(pod.name.clone()), "{} runs twice", pod.name);
        }
    }

    fn check_counts(&self, status: &k8s_openapi::api::batch::v1::JobStatus) {
        let failed = self.ended.values().filter(|outcome| **outcome == Some(true)).count();
        let succeeded = self.ended.iter().filter(|(name, outcome)| outcome.is_none() && self.is_in_range(name)).count();
        let told = (status.succeeded.unwrap_or(0), status.failed.unwrap_or(0));
        assert_eq!(told, (i32::try_from(succeeded).unwrap(), i32::try_from(failed).unwrap()), "{:?}", self.ended);
    }

    fn happen(&mut self, happening: &Happening) {
        match happening {
            Happening::End(nth, code) => self.with_running(*nth, |pod, now| {
                pod.phase = if *code == 0 { Phase::Succeeded } else { Phase::Failed };
                pod.ends = vec![end("a", *code)];
                pod.ended_at = Some(now);
            }),
            Happening::Stop(nth) => self.with_running(*nth, |pod, _| pod.is_terminating = true),
            Happening::Settle => self.settle(),
            Happening::Wait(seconds) => self.host.wait(*seconds),
            Happening::Reload => self.host.reload(),
            Happening::Crash => {
                self.look(false);
                self.power_cut();
            }
            Happening::PowerCut => self.power_cut(),
            Happening::LookBlind => {
                self.host.observed = false;
                self.look(true);
                self.host.observed = true;
            }
            Happening::Suspend(suspend) => self.host.edit(json!({"suspend": suspend})),
            Happening::Parallelism(parallelism) => self.host.edit(json!({"parallelism": parallelism})),
            Happening::Resize(indexes) if self.is_indexed() => {
                self.host.edit(json!({"parallelism": indexes, "completions": indexes}));
                // An edit of the parallelism alone, before this one is seen, would make both another run.
                self.look(true);
            }
            Happening::Resize(_) => {}
        }
    }

    fn with_running(&mut self, nth: usize, change: impl FnOnce(&mut crate::observed::ObservedPod, crate::moment::Moment)) {
        let now = self.host.moment();
        let mut running: Vec<_> = self.host.pods.iter_mut().filter(|pod| pod.is_active()).collect();
        if !running.is_empty() {
            let nth = nth % running.len();
            change(running[nth], now);
        }
    }

    fn settle(&mut self) {
        let wanted = &self.wanted;
        self.host.pods.retain(|pod| !pod.is_terminating || wanted.contains(&pod.name));
        for pod in self.host.pods.iter_mut().filter(|pod| pod.is_terminating && !pod.is_terminal()) {
            pod.phase = Phase::Failed;
            pod.ends = vec![end("a", 137)];
        }
    }

    fn power_cut(&mut self) {
        if self.host.memory.is_some() {
            self.host.power_cut();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// W99 (1), (5), (6): whatever happens, an evaluation is final, every end counts once, and no attempt runs twice.
    #[test]
    fn ends_are_counted_once(spec in spec(), happenings in proptest::collection::vec((happening(), any::<bool>()), 0..60)) {
        let mut audit = Audit::new(spec);
        audit.look(true);
        for (happening, is_looked_at) in &happenings {
            audit.happen(happening);
            if *is_looked_at {
                audit.look(true);
            }
        }
        audit.look(true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A Job whose pods succeed completes, and one whose pods fail fails, however power is cut in between.
    #[test]
    fn job_comes_to_an_end(spec in spec(), fails in any::<bool>(), cuts in proptest::collection::vec(any::<bool>(), 20)) {
        let mut audit = Audit::new(spec);
        audit.host.edit(json!({"parallelism": 2, "activeDeadlineSeconds": null}));
        audit.look(true);
        for is_cut in cuts.into_iter().chain(std::iter::repeat_n(false, 40)) {
            if is_cut {
                audit.power_cut();
            } else {
                audit.happen(&Happening::End(0, i32::from(fails)));
            }
            audit.look(true);
            audit.happen(&Happening::Settle);
            audit.happen(&Happening::Wait(600));
            audit.look(true);
        }
        let stage = audit.host.memory.unwrap().stage;
        prop_assert!(matches!(stage, Stage::Ended { .. }), "{stage:?}");
    }
}
