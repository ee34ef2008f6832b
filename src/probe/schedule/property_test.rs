//! Properties for any declarations and answers: a probe has one check at a time, keeps its period, and no check is made out of turn.

use super::pods::{ProbeId, ProbedRun, Schedule};
use super::state::Answer;
use super::tests::{START, at, pod, run, uid};
use crate::health::ProbeResult;
use crate::spec::ProbeKind;
use podstead_pod::ContainerId;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Answer(u8),
    Declare { probes: u8, is_ending: bool, is_outdated: bool },
    Gone,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..15u64).prop_map(Step::Wait),
        8 => (0..4u8).prop_map(Step::Answer),
        1 => (0..8u8, any::<bool>(), any::<bool>())
            .prop_map(|(probes, is_ending, is_outdated)| Step::Declare { probes, is_ending, is_outdated }),
        1 => Just(Step::Gone),
    ]
}

fn declared(probes: u8) -> ProbedRun {
    let all = [
        "startupProbe: {tcpSocket: {port: 1}, periodSeconds: 3}",
        "readinessProbe: {tcpSocket: {port: 2}}",
        "livenessProbe: {tcpSocket: {port: 3}}",
    ];
    let some: Vec<&str> = all.iter().enumerate().filter(|(at, _)| probes & (1 << at) != 0).map(|(_, probe)| *probe).collect();
    run(START, &format!("tty: false{}{}", if some.is_empty() { "" } else { ", " }, some.join(", ")))
}

proptest! {
    #[test]
    fn checks_are_made_one_at_a_time_in_their_turn(steps in prop::collection::vec(step(), 1..60)) {
        let mut schedule = Schedule::new(at(START).moment);
        let (mut now, mut is_ending, mut present) = (START, false, false);
        let mut under_way: Vec<(ProbeId, ProbeKind)> = Vec::new();
        let mut last: HashMap<ProbeId, u64> = HashMap::new();
        for step in steps {
            match step {
                Step::Wait(seconds) => now += seconds,
                Step::Answer(which) => {
                    if !under_way.is_empty() {
                        let (probe, _) = under_way.swap_remove(usize::from(which) % under_way.len());
                        let answer = if which % 2 == 0 { Answer::Success } else { Answer::Failure("no".to_owned()) };
                        let before = schedule.health(&uid());
                        let news = schedule.answered(probe, &answer, at(now));
                        let result = |health: &BTreeMap<ContainerId, crate::RunHealth>| -> Vec<ProbeResult> {
                            health.values().flat_map(|run| run.values().map(|probe| probe.result)).collect()
                        };
                        // Every change of an effective result is reported.
                        if result(&before) != result(&schedule.health(&uid())) {
                            prop_assert_eq!(news, Some(uid()));
                        }
                    }
                }
                Step::Declare { probes, is_ending: ends, is_outdated } => {
                    let mut run = declared(probes);
                    if is_outdated {
                        run.probes = None;
                    }
                    is_ending |= ends;
                    run.is_ending = is_ending;
                    present = true;
                    schedule.declare(&uid(), &pod(&run), at(now).moment, &mut |_| unreachable!());
                }
                Step::Gone => {
                    present = false;
                    schedule.forget(&uid());
                }
            }
            under_way.retain(|(probe, _)| schedule.has(*probe));
            while let Some(check) = schedule.take_due(at(now).moment) {
                prop_assert!(present);
                prop_assert!(under_way.iter().all(|(probe, _)| *probe != check.probe), "one check at a time");
                let health = schedule.health(&uid()).remove(&check.container).unwrap();
                let is_started = health.get(&ProbeKind::Startup).is_none_or(|startup| startup.result == ProbeResult::Success);
                match check.spec.kind {
                    ProbeKind::Startup => prop_assert!(!is_started && !is_ending),
                    ProbeKind::Readiness => prop_assert!(is_started),
                    ProbeKind::Liveness => {
                        prop_assert!(is_started && !is_ending);
                        prop_assert_ne!(health[&ProbeKind::Liveness].result, ProbeResult::Failure);
                    }
                }
                // Never two checks of a probe in less than a second, which a lost period would be.
                prop_assert!(last.insert(check.probe, now).is_none_or(|before| before < now));
                under_way.push((check.probe, check.spec.kind));
            }
            let waiting = schedule.next_due().is_some();
            prop_assert!(!waiting || schedule.count() > under_way.len(), "what is under way is not due");
        }
        schedule.forget(&uid());
        prop_assert_eq!((schedule.count(), schedule.next_due()), (0, None));
    }
}
