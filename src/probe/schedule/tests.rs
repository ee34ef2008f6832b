//! Tests of the times of probes.

use super::pods::{ProbedPod, ProbedRun, Schedule};
use super::state::Answer;
use crate::action::PodAddress;
use crate::health::ProbeResult;
use crate::spec::{ProbeKind, ProbeSpec, probes};
use jiff::Timestamp;
use podstead_pod::{ContainerId, PodFullName, PodUid};
use podstead_sys_async::clock::{Moment, Now};
use podstead_telemetry::events::Subject;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(super) const START: u64 = 1000;

pub(super) fn at(secs: u64) -> Now {
    let wall = Timestamp::UNIX_EPOCH + Duration::from_secs(secs);
    Now { moment: Moment::from_beginning(Duration::from_secs(secs)), wall }
}

pub(super) fn uid() -> PodUid {
    PodUid::new("uid")
}

pub(super) fn specs(yaml: &str) -> Vec<Arc<ProbeSpec>> {
    probes(&serde_yaml::from_str(&format!("{{name: a, {yaml}}}")).unwrap())
}

pub(super) fn run(started: u64, yaml: &str) -> ProbedRun {
    let full_name = PodFullName { namespace: "default".to_owned(), name: "a".to_owned() };
    ProbedRun {
        subject: Subject::Pod { uid: uid(), full_name, field_path: None },
        started_at: at(started).moment,
        is_ending: false,
        probes: Some(specs(yaml)),
        was_started: false,
        was_ready: false,
    }
}

pub(super) fn pod(run: &ProbedRun) -> ProbedPod {
    let runs = BTreeMap::from([(ContainerId::new("1"), run.clone())]);
    ProbedPod { address: PodAddress::OfPod("127.0.0.1".parse().unwrap()), runs }
}

fn declare(schedule: &mut Schedule, pod: &ProbedPod, now: u64) {
    schedule.declare(&uid(), pod, at(now).moment, &mut |period| period / 2);
}

fn due(schedule: &Schedule) -> Option<u64> {
    // Rounded up: then it is due for sure.
    schedule.next_due().map(|due| u64::try_from(due.since(Moment::default()).as_nanos().div_ceil(1_000_000_000)).unwrap())
}

/// Runs the next check, which takes `took`, with this answer.
fn answer(schedule: &mut Schedule, took: u64, answer: &Answer) -> ProbeKind {
    let now = due(schedule).unwrap();
    let check = schedule.take_due(at(now).moment).unwrap();
    assert_eq!(schedule.take_due(at(now).moment).map(|check| check.spec.kind), None);
    schedule.answered(check.probe, answer, at(now + took));
    check.spec.kind
}

fn failure() -> Answer {
    Answer::Failure("no".to_owned())
}

#[test]
fn d15_initial_delay_counts_from_the_containers_start_and_periods_from_check_to_check() {
    let mut schedule = Schedule::new(at(START).moment);
    let probe = "readinessProbe: {tcpSocket: {port: 1}, initialDelaySeconds: 5, periodSeconds: 10}";
    declare(&mut schedule, &pod(&run(START + 1, probe)), START + 2);
    assert_eq!(due(&schedule), Some(START + 6));
    answer(&mut schedule, 3, &failure());
    assert_eq!(due(&schedule), Some(START + 16));
    // A check that takes longer than a period leaves periods out.
    answer(&mut schedule, 25, &failure());
    assert_eq!(due(&schedule), Some(START + 46));
}

#[test]
fn d15_only_runs_of_an_earlier_daemon_are_asked_after_a_random_part_of_the_period() {
    let mut schedule = Schedule::new(at(START).moment);
    let probe = "livenessProbe: {tcpSocket: {port: 1}, periodSeconds: 20}";
    declare(&mut schedule, &pod(&run(START - 100, probe)), START + 1);
    assert_eq!(due(&schedule), Some(START + 11));
    schedule.forget(&uid());
    assert_eq!(due(&schedule), None);
    declare(&mut schedule, &pod(&run(START + 1, probe)), START + 1);
    assert_eq!(due(&schedule), Some(START + 1));
}

#[test]
fn d15_success_of_startup_lets_the_others_begin_at_once_but_not_before_their_delay() {
    let mut schedule = Schedule::new(at(START).moment);
    let probes = "startupProbe: {tcpSocket: {port: 1}, periodSeconds: 3}, readinessProbe: {tcpSocket: {port: 2}}, \
                  livenessProbe: {tcpSocket: {port: 3}, initialDelaySeconds: 60}";
    declare(&mut schedule, &pod(&run(START, probes)), START);
    assert_eq!(answer(&mut schedule, 0, &failure()), ProbeKind::Startup);
    assert_eq!(due(&schedule), Some(START + 3));
    assert_eq!(answer(&mut schedule, 1, &Answer::Success), ProbeKind::Startup);
    assert_eq!(due(&schedule), Some(START + 4));
    assert_eq!(answer(&mut schedule, 0, &Answer::Success), ProbeKind::Readiness);
    // The pause after its first success gives it a place of its own; from there it is asked in each period.
    let mut expected = due(&schedule).unwrap();
    assert!((START + 5..=START + 14).contains(&expected), "{expected}");
    while expected < START + 60 {
        assert_eq!(due(&schedule), Some(expected));
        assert_eq!(answer(&mut schedule, 0, &Answer::Success), ProbeKind::Readiness);
        expected += 10;
    }
    assert_eq!(due(&schedule), Some(START + 60));
    let then: Vec<_> = std::iter::from_fn(|| schedule.take_due(at(START + 60).moment)).map(|check| check.spec.kind).collect();
    assert!(then.contains(&ProbeKind::Liveness), "{then:?}");
}

#[test]
fn d15_a_container_that_ran_before_the_daemon_keeps_what_it_was_until_it_is_asked() {
    let mut schedule = Schedule::new(at(START).moment);
    let probes = "startupProbe: {tcpSocket: {port: 1}}, readinessProbe: {tcpSocket: {port: 2}, failureThreshold: 1}";
    let known = ProbedRun { was_started: true, was_ready: true, ..run(START - 50, probes) };
    declare(&mut schedule, &pod(&known), START);
    let result = |schedule: &Schedule, kind| schedule.health(&uid())[&ContainerId::new("1")][&kind].result;
    assert_eq!(result(&schedule, ProbeKind::Startup), ProbeResult::Success);
    assert_eq!(result(&schedule, ProbeKind::Readiness), ProbeResult::Success);
    // The startup probe is not asked again.
    assert_eq!(answer(&mut schedule, 0, &failure()), ProbeKind::Readiness);
    assert_eq!(result(&schedule, ProbeKind::Readiness), ProbeResult::Failure);
}

#[test]
fn an_edit_changes_the_probes_of_a_run_in_place() {
    let mut schedule = Schedule::new(at(START).moment);
    let before = run(START, "readinessProbe: {tcpSocket: {port: 1}}, livenessProbe: {tcpSocket: {port: 1}}");
    declare(&mut schedule, &pod(&before), START);
    answer_all(&mut schedule, START);
    assert_eq!(schedule.count(), 2);
    // Liveness goes, startup comes: a run that has started is not asked whether it has.
    let after = run(START, "readinessProbe: {tcpSocket: {port: 2}, failureThreshold: 1}, startupProbe: {tcpSocket: {port: 3}}");
    declare(&mut schedule, &pod(&after), START + 1);
    assert_eq!(schedule.count(), 2);
    let health = schedule.health(&uid()).remove(&ContainerId::new("1")).unwrap();
    assert_eq!(health[&ProbeKind::Startup].result, ProbeResult::Success);
    assert_eq!(health[&ProbeKind::Readiness].result, ProbeResult::Success);
    let check = schedule.take_due(at(START + 10).moment).unwrap();
    assert_eq!(check.spec.action, after.probes.unwrap()[1].action);
    assert_eq!(schedule.answered(check.probe, &failure(), at(START + 10)), Some(uid()));
}

fn answer_all(schedule: &mut Schedule, now: u64) {
    while let Some(check) = schedule.take_due(at(now).moment) {
        schedule.answered(check.probe, &Answer::Success, at(now));
    }
}

#[test]
fn a_run_of_an_earlier_definition_keeps_the_probes_of_that() {
    let mut schedule = Schedule::new(at(START).moment);
    let before = run(START, "livenessProbe: {tcpSocket: {port: 1}}");
    declare(&mut schedule, &pod(&before), START);
    declare(&mut schedule, &pod(&ProbedRun { probes: None, ..before.clone() }), START);
    let check = schedule.take_due(at(START).moment).unwrap();
    assert_eq!(Some(&check.spec), before.probes.unwrap().first());
}

#[test]
fn a_run_that_is_gone_is_not_asked_and_its_late_answer_is_for_nobody() {
    let mut schedule = Schedule::new(at(START).moment);
    declare(&mut schedule, &pod(&run(START, "livenessProbe: {tcpSocket: {port: 1}, failureThreshold: 1}")), START);
    let check = schedule.take_due(at(START).moment).unwrap();
    let empty = ProbedPod { runs: BTreeMap::new(), ..pod(&run(START, "stdin: false")) };
    declare(&mut schedule, &empty, START);
    assert_eq!(schedule.answered(check.probe, &failure(), at(START + 1)), None);
    assert_eq!((schedule.count(), due(&schedule), schedule.health(&uid()).len()), (0, None, 0));
}

#[test]
fn d12_a_container_that_is_stopped_is_asked_for_its_readiness_only() {
    let mut schedule = Schedule::new(at(START).moment);
    let both = run(START, "readinessProbe: {tcpSocket: {port: 1}}, livenessProbe: {tcpSocket: {port: 1}}");
    declare(&mut schedule, &pod(&both), START);
    answer_all(&mut schedule, START);
    declare(&mut schedule, &pod(&ProbedRun { is_ending: true, ..both }), START + 1);
    for _ in 0..3 {
        assert_eq!(answer(&mut schedule, 0, &Answer::Success), ProbeKind::Readiness);
    }
}

#[test]
fn probes_of_pods_that_were_started_together_are_soon_asked_one_after_the_other() {
    let mut schedule = Schedule::new(at(START).moment);
    let probe = "livenessProbe: {tcpSocket: {port: 1}, periodSeconds: 10}";
    for number in 0..100 {
        let uid = PodUid::new(format!("uid-{number}"));
        schedule.declare(&uid, &pod(&run(START, probe)), at(START).moment, &mut |_| unreachable!());
    }
    let in_second = |schedule: &mut Schedule, second: u64| {
        let mut count = 0;
        while let Some(check) = schedule.take_due(at(second).moment) {
            schedule.answered(check.probe, &Answer::Success, at(second));
            count += 1;
        }
        count
    };
    assert_eq!(in_second(&mut schedule, START), 100, "the first check is not put off");
    let later: Vec<i32> = (START + 1..=START + 60).map(|second| in_second(&mut schedule, second)).collect();
    assert!(later.iter().all(|checks| *checks < 30), "{later:?}");
    assert!(later[50..].iter().sum::<i32>() >= 99, "each is asked in each period: {later:?}");
}

#[test]
fn a_failure_is_counted_over_whole_periods() {
    let mut schedule = Schedule::new(at(START).moment);
    declare(&mut schedule, &pod(&run(START, "livenessProbe: {tcpSocket: {port: 1}, periodSeconds: 10}")), START);
    answer(&mut schedule, 0, &failure());
    assert_eq!(due(&schedule), Some(START + 10), "what fails from the start on is asked in the kubelet's rhythm");
    answer(&mut schedule, 0, &Answer::Success);
    let first = due(&schedule).unwrap();
    assert!(first > START + 10 && first <= START + 20, "{first}");
    answer(&mut schedule, 0, &failure());
    assert_eq!(due(&schedule), Some(first + 10));
}
