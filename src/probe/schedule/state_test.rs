//! The state machine of one probe, after the kubelet's worker tests.

use super::state::{Answer, ProbeState};
use crate::health::ProbeResult;
use crate::spec::{ProbeKind, Timing};
use jiff::Timestamp;
use std::time::Duration;

fn timing(success_threshold: u32, failure_threshold: u32) -> Timing {
    let second = Duration::from_secs(1);
    Timing { initial_delay: Duration::ZERO, period: second, timeout: second, success_threshold, failure_threshold }
}

fn failure() -> Answer {
    Answer::Failure("no".to_owned())
}

fn feed(state: &mut ProbeState, answer: &Answer, timing: &Timing) -> (bool, ProbeResult) {
    let is_news = state.take_in(answer, timing, Timestamp::UNIX_EPOCH);
    (is_news, state.result())
}

#[test]
fn d15_initial_results_are_failure_for_readiness_success_for_liveness_unknown_for_startup() {
    let initial = |kind| ProbeState::new(kind, None).result();
    assert_eq!(initial(ProbeKind::Readiness), ProbeResult::Failure);
    assert_eq!(initial(ProbeKind::Liveness), ProbeResult::Success);
    assert_eq!(initial(ProbeKind::Startup), ProbeResult::Unknown);
}

#[test]
fn d15_failure_threshold() {
    let timing = timing(1, 3);
    let mut state = ProbeState::new(ProbeKind::Readiness, Some(ProbeResult::Success));
    for _ in 0..2 {
        // The first probe should succeed; failures below the threshold change nothing.
        assert_eq!(feed(&mut state, &Answer::Success, &timing), (false, ProbeResult::Success));
        for _ in 0..2 {
            assert_eq!(feed(&mut state, &failure(), &timing), (false, ProbeResult::Success));
        }
    }
    assert_eq!(feed(&mut state, &failure(), &timing), (true, ProbeResult::Failure));
    assert_eq!(feed(&mut state, &failure(), &timing), (false, ProbeResult::Failure));
}

#[test]
fn d15_success_threshold() {
    let timing = timing(3, 1);
    let mut state = ProbeState::new(ProbeKind::Readiness, None);
    // The first failure is shown: it says why the container is not ready.
    assert_eq!(feed(&mut state, &failure(), &timing), (true, ProbeResult::Failure));
    assert_eq!(state.health().failure.as_ref().unwrap().message, "Readiness probe failed: no");
    assert_eq!(feed(&mut state, &failure(), &timing), (false, ProbeResult::Failure));
    assert_eq!(feed(&mut state, &Answer::Success, &timing), (true, ProbeResult::Failure));
    assert_eq!(feed(&mut state, &Answer::Success, &timing), (false, ProbeResult::Failure));
    assert_eq!(feed(&mut state, &Answer::Success, &timing), (true, ProbeResult::Success));
    assert_eq!(state.health().failure, None);
}

#[test]
fn d15_on_hold_on_liveness_or_startup_check_failure() {
    let timing = timing(1, 1);
    let mut state = ProbeState::new(ProbeKind::Liveness, None);
    assert!(state.is_asked(true, false));
    assert_eq!(feed(&mut state, &failure(), &timing), (true, ProbeResult::Failure));
    assert!(!state.is_asked(true, false));
    let mut state = ProbeState::new(ProbeKind::Startup, None);
    assert!(state.is_asked(false, false));
    assert_eq!(feed(&mut state, &failure(), &timing), (true, ProbeResult::Failure));
    assert!(!state.is_asked(false, false));
    // The readiness of a container is asked for as long as it runs.
    let mut state = ProbeState::new(ProbeKind::Readiness, None);
    feed(&mut state, &failure(), &timing);
    assert!(state.is_asked(true, false));
}

#[test]
fn d15_startup_gates_the_others() {
    for kind in [ProbeKind::Readiness, ProbeKind::Liveness] {
        let state = ProbeState::new(kind, None);
        assert!(!state.is_asked(false, false) && state.is_asked(true, false), "{kind}");
    }
    let mut state = ProbeState::new(ProbeKind::Startup, None);
    assert_eq!(feed(&mut state, &Answer::Success, &timing(1, 3)), (true, ProbeResult::Success));
    assert!(!state.is_asked(true, false) && !state.is_asked(false, false));
}

#[test]
fn d12_liveness_and_startup_stop_at_once_when_the_pod_ends_and_readiness_goes_on() {
    assert!(!ProbeState::new(ProbeKind::Liveness, None).is_asked(true, true));
    assert!(!ProbeState::new(ProbeKind::Startup, None).is_asked(false, true));
    assert!(ProbeState::new(ProbeKind::Readiness, None).is_asked(true, true));
}

#[test]
fn d15_a_check_that_could_not_be_made_does_not_count() {
    let timing = timing(1, 2);
    let mut state = ProbeState::new(ProbeKind::Liveness, None);
    feed(&mut state, &failure(), &timing);
    assert_eq!(feed(&mut state, &Answer::Error("?".to_owned()), &timing), (false, ProbeResult::Success));
    assert_eq!(feed(&mut state, &failure(), &timing), (true, ProbeResult::Failure));
}

#[test]
fn an_edit_counts_answers_anew_and_keeps_the_result() {
    let timing = timing(1, 2);
    let mut state = ProbeState::new(ProbeKind::Readiness, Some(ProbeResult::Success));
    feed(&mut state, &failure(), &timing);
    state.redefined();
    assert_eq!(feed(&mut state, &failure(), &timing), (false, ProbeResult::Success));
    assert_eq!(feed(&mut state, &failure(), &timing), (true, ProbeResult::Failure));
}
