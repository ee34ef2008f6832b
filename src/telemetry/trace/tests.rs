//! Traces: what begins, ends and bounds them.

use super::*;
use proptest::prelude::*;

fn uid() -> PodUid {
    PodUid::new("u")
}

fn at(millis: u64) -> Tick {
    Tick::from_nanos(millis * 1_000_000)
}

fn begin(traces: &Traces, cause: Cause, revision: &str, millis: u64) {
    let (source, revision) = (SourceId::new("s"), Revision(revision.into()));
    traces.begin(&uid(), Beginning { cause, source: &source, revision: &revision, at: at(millis) });
}

fn steps(trace: &Trace) -> Vec<(Step, u64, u64)> {
    trace.spans.iter().map(|span| (span.step, span.start_micros / 1000, span.micros / 1000)).collect()
}

fn times(millis: u64) -> RevisionTimes {
    RevisionTimes {
        noticed: Some(at(millis)),
        read: Some((at(millis + 5), at(millis + 6))),
        taken: at(millis + 7),
        checked: at(millis + 8),
        accepted: at(millis + 10),
    }
}

#[test]
fn start_begins_with_first_sign_of_its_revision() {
    let traces = Traces::default();
    traces.revision(&SourceId::new("s"), &Revision("1".into()), times(1000));
    traces.revision(&SourceId::new("s"), &Revision("2".into()), times(1100));
    begin(&traces, Cause::Start, "1", 1111);
    traces.add(&uid(), Step::Plan, None, at(1111), at(1112));
    let all = traces.of(&uid());
    let expected = [
        (Step::Notice, 0, 5),
        (Step::Read, 5, 1),
        (Step::AwaitIntake, 6, 1),
        (Step::Check, 7, 1),
        (Step::Accept, 8, 2),
        (Step::Merge, 10, 101),
        (Step::Plan, 111, 1),
    ];
    assert_eq!(steps(&all[0]), expected);
    assert_eq!((all[0].micros, all[0].is_complete), (112_000, false));
}

#[test]
fn pod_that_comes_long_after_its_revision_begins_with_its_order() {
    let traces = Traces::default();
    traces.revision(&SourceId::new("s"), &Revision("1".into()), times(0));
    begin(&traces, Cause::Start, "1", 60_000);
    assert_eq!(traces.of(&uid())[0].spans, []);
    traces.revision(&SourceId::new("s"), &Revision("2".into()), times(70_000));
    begin(&traces, Cause::Change, "1", 70_020);
    assert_eq!(traces.of(&uid())[0].spans.len(), 6, "a ConfigMap of another revision changed it");
}

#[test]
fn one_trace_of_each_cause_is_kept() {
    let traces = Traces::default();
    traces.add(&uid(), Step::Plan, None, at(0), at(1));
    assert_eq!(traces.of(&uid()), [], "no trace has begun");
    for (cause, millis) in [(Cause::Start, 1), (Cause::Restart, 2), (Cause::Change, 3), (Cause::Restart, 4)] {
        begin(&traces, cause, "", millis);
    }
    let causes: Vec<Cause> = traces.of(&uid()).iter().map(|trace| trace.cause).collect();
    assert_eq!(causes, [Cause::Restart, Cause::Change, Cause::Start]);
    assert!(traces.is_open(&uid()) && traces.of(&uid())[1].is_complete);
    traces.complete(&uid());
    traces.add(&uid(), Step::Plan, None, at(5), at(6));
    traces.add(&uid(), Step::FirstOutput, Some("old"), at(3), at(8));
    traces.add(&uid(), Step::FirstOutput, Some("web"), at(5), at(9));
    assert_eq!(steps(&traces.of(&uid())[0]), [(Step::FirstOutput, 1, 4)]);
    traces.forget(&uid());
    assert_eq!(traces.of(&uid()), []);
}

#[test]
fn memory_is_bounded() {
    let traces = Traces::default();
    begin(&traces, Cause::Start, "", 0);
    for number in 0..10_000 {
        traces.add(&uid(), Step::Plan, Some(&"x".repeat(1000)), at(number), at(number + 1));
        traces.revision(&SourceId::new("s"), &Revision(number.to_string()), times(number));
    }
    let trace = &traces.of(&uid())[0];
    assert_eq!((trace.spans.len(), trace.omitted_spans), (MAX_SPANS, 10_000 - MAX_SPANS as u32));
    assert_eq!(trace.spans[0].about.as_ref().unwrap().len(), MAX_ABOUT);
    assert_eq!(traces.lock().revisions.values().map(VecDeque::len).sum::<usize>(), MAX_REVISIONS);
}

#[test]
fn each_moment_counts_for_the_innermost_work() {
    let span = |step, start_micros, micros| Span { step, about: None, start_micros, micros };
    let spans =
        [span(Step::Sandbox, 0, 100), span(Step::ShimStart, 20, 50), span(Step::ImagePull, 0, 200), span(Step::Container, 230, 70)];
    let of: Vec<_> = shares(&spans, 300).into_iter().map(|share| (share.step, share.micros)).collect();
    let expected = [
        (Some(Step::ImagePull), 100),
        (Some(Step::Container), 70),
        (Some(Step::Sandbox), 50),
        (Some(Step::ShimStart), 50),
        (None, 30),
    ];
    assert_eq!(of, expected);
}

proptest! {
    #[test]
    fn shares_add_up(spans in prop::collection::vec((0_usize..8, 0_u64..1000, 0_u64..1000), 0..30)) {
        const STEPS: [Step; 8] = [
            Step::Notice, Step::Plan, Step::Sandbox, Step::ShimStart, Step::ImagePull, Step::Container, Step::StartRecord, Step::Wait,
        ];
        let traces = Traces::default();
        begin(&traces, Cause::Start, "", 0);
        for (step, from, length) in spans {
            traces.add(&uid(), STEPS[step], None, Tick::from_nanos(from * 500), Tick::from_nanos((from + length) * 500));
        }
        let trace = &traces.of(&uid())[0];
        prop_assert_eq!(trace.shares.iter().map(|share| share.micros).sum::<u64>(), trace.micros);
        prop_assert!(trace.spans.iter().all(|span| span.end_micros() <= trace.micros));
        prop_assert!(trace.spans.is_sorted_by_key(|span| span.start_micros));
    }
}
