//! Traces: the steps of the last start, the last change and the last restart of each pod, and the time that each took.
//!
//! In memory only, and bounded: a daemon that adopts a pod has no trace of it. Whatever does a step adds its span by [`Traces::add`]; what the sources and
//! the intake did for all pods of a revision is kept by revision and copied into the traces that follow from it.

mod share;
mod step;
#[cfg(test)]
mod tests;

pub use share::{Share, shares};
pub use step::Step;

use jiff::{SignedDuration, Timestamp};
use podstead_pod::{PodUid, Revision, SourceId};
use podstead_sys::tick::Tick;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Spans of one trace; a start of a pod with two containers has about forty.
pub const MAX_SPANS: usize = 128;
/// Revisions whose times are kept, of each source.
const MAX_REVISIONS: usize = 4;
/// A pod that comes later than this after its revision does not come because of it: a run of a CronJob, a pod of a rollout.
const OF_REVISION: Duration = Duration::from_secs(10);
/// The longest text that names what a span is about.
const MAX_ABOUT: usize = 120;

/// Reason for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Cause {
    /// The pod came.
    Start,
    /// Its definition changed, or a ConfigMap or Secret that it uses.
    Change,
    /// A container or the sandbox ended, and is started again.
    Restart,
}

/// A step of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// The step.
    pub step: Step,
    /// The container, image or reason that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Box<str>>,
    /// Its beginning, in microseconds after that of the trace.
    pub start_micros: u64,
    /// Its duration in microseconds.
    pub micros: u64,
}

impl Span {
    /// Its end, in microseconds after the beginning of the trace.
    pub const fn end_micros(&self) -> u64 {
        self.start_micros.saturating_add(self.micros)
    }
}

/// Trace of one start or change of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// The reason for it.
    pub cause: Cause,
    /// The beginning by the wall clock.
    pub began_at: Timestamp,
    /// All of it is done. The first output may come later.
    pub is_complete: bool,
    /// From the beginning to the end of the last span, in microseconds.
    pub micros: u64,
    /// The spans in the order of their beginnings.
    pub spans: Vec<Span>,
    /// Spans that found no room.
    pub omitted_spans: u32,
    /// The time by the innermost step at each moment; together they are [`Self::micros`].
    pub shares: Vec<Share>,
}

/// Times of a revision, from the first sign of it to the mux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RevisionTimes {
    /// First sign of the change; `None` for a source that polls.
    pub noticed: Option<Tick>,
    /// The source was read from here to there.
    pub read: Option<(Tick, Tick)>,
    /// The intake began with it.
    pub taken: Tick,
    /// Its files were checked.
    pub checked: Tick,
    /// The set was durable.
    pub accepted: Tick,
}

/// Beginning of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a> {
    /// The reason.
    pub cause: Cause,
    /// The source of the pod.
    pub source: &'a SourceId,
    /// The revision that the pod is of.
    pub revision: &'a Revision,
    /// The order for the pod came.
    pub at: Tick,
}

/// A trace that grows.
#[derive(Debug)]
struct Kept {
    cause: Cause,
    began: Tick,
    began_at: Timestamp,
    is_complete: bool,
    spans: Vec<Span>,
    omitted: u32,
}

#[derive(Debug, Default)]
struct State {
    /// The traces of a pod, the newest last; at most one of each cause.
    pods: HashMap<PodUid, Vec<Kept>>,
    revisions: BTreeMap<SourceId, VecDeque<(Revision, RevisionTimes)>>,
}

/// The traces of all pods. All clones are one.
#[derive(Clone, Debug, Default)]
pub struct Traces(Arc<Mutex<State>>);

impl Traces {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Each statement leaves it consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the times of an accepted revision for the pods that follow from it.
    pub fn revision(&self, source: &SourceId, revision: &Revision, times: RevisionTimes) {
        let mut state = self.lock();
        let kept = state.revisions.entry(source.clone()).or_default();
        if kept.len() >= MAX_REVISIONS {
            kept.pop_front();
        }
        kept.push_back((revision.clone(), times));
    }

    /// Forgets the revisions of a source that is not configured any more.
    pub fn forget_source(&self, source: &SourceId) {
        self.lock().revisions.remove(source);
    }

    /// Begins a trace, which replaces the last one with this cause.
    pub fn begin(&self, uid: &PodUid, beginning: Beginning<'_>) {
        let (now, wall) = (Tick::now(), Timestamp::now());
        let Beginning { cause, source, revision, at } = beginning;
        let mut state = self.lock();
        let times = match cause {
            Cause::Start | Cause::Change => state.revisions.get(source).and_then(|kept| cause_of(kept, revision, at)),
            Cause::Restart => None,
        };
        let spans = times.map(|times| times.spans(at)).unwrap_or_default();
        let began = spans.first().map_or(at, |(_, from, _)| (*from).min(at));
        let ago = SignedDuration::try_from(now.since(began)).unwrap_or_default();
        let mut kept = Kept {
            cause,
            began,
            began_at: wall.saturating_sub(ago).unwrap_or(wall),
            is_complete: false,
            spans: Vec::new(),
            omitted: 0,
        };
        for (step, from, to) in spans {
            kept.add(step, None, from, to);
        }
        let traces = state.pods.entry(uid.clone()).or_default();
        traces.retain(|trace| trace.cause != cause);
        if let Some(last) = traces.last_mut() {
            // What is superseded gets no more spans.
            last.is_complete = true;
        }
        traces.push(kept);
    }

    /// Adds a span to the newest trace of a pod, unless there is none or that is complete.
    pub fn add(&self, uid: &PodUid, step: Step, about: Option<&str>, from: Tick, to: Tick) {
        let mut state = self.lock();
        let Some(trace) = state.pods.get_mut(uid).and_then(|traces| traces.last_mut()) else { return };
        // A program may say something long after all of it runs, and after another trace began.
        if !trace.is_complete || step == Step::FirstOutput && from >= trace.began {
            trace.add(step, about, from, to);
        }
    }

    /// Reports whether the newest trace of a pod is not complete.
    pub fn is_open(&self, uid: &PodUid) -> bool {
        self.lock().pods.get(uid).and_then(|traces| traces.last()).is_some_and(|trace| !trace.is_complete)
    }

    /// Ends the newest trace of a pod.
    pub fn complete(&self, uid: &PodUid) {
        if let Some(trace) = self.lock().pods.get_mut(uid).and_then(|traces| traces.last_mut()) {
            trace.is_complete = true;
            trace.spans.shrink_to_fit();
        }
    }

    /// Forgets a pod that is gone.
    pub fn forget(&self, uid: &PodUid) {
        self.lock().pods.remove(uid);
    }

    /// The traces of a pod, the newest first.
    pub fn of(&self, uid: &PodUid) -> Vec<Trace> {
        let state = self.lock();
        state.pods.get(uid).into_iter().flatten().rev().map(Kept::shown).collect()
    }
}

/// The times of the revision that brought an order which came at `at`. Without one of that name, an object that the pod uses may have changed.
fn cause_of(kept: &VecDeque<(Revision, RevisionTimes)>, revision: &Revision, at: Tick) -> Option<RevisionTimes> {
    let is_cause = |times: &RevisionTimes| times.accepted <= at && at.since(times.accepted) < OF_REVISION;
    let mut recent = kept.iter().rev().filter(|(_, times)| is_cause(times));
    let named = recent.clone().find(|(name, _)| name == revision);
    named.or_else(|| recent.next()).map(|(_, times)| *times)
}

impl RevisionTimes {
    /// The steps up to the order for a pod.
    fn spans(self, order: Tick) -> Vec<(Step, Tick, Tick)> {
        let Self { noticed, read, taken, checked, accepted } = self;
        let mut spans = Vec::new();
        if let (Some(noticed), Some((from, _))) = (noticed, read) {
            spans.push((Step::Notice, noticed.min(from), from));
        }
        if let Some((from, to)) = read {
            spans.extend([(Step::Read, from, to), (Step::AwaitIntake, to, taken.max(to))]);
        }
        spans.extend([(Step::Check, taken, checked), (Step::Accept, checked, accepted), (Step::Merge, accepted, order)]);
        spans
    }
}

impl Kept {
    fn add(&mut self, step: Step, about: Option<&str>, from: Tick, to: Tick) {
        if self.spans.len() >= MAX_SPANS {
            self.omitted = self.omitted.saturating_add(1);
            return;
        }
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let start_micros = micros(from.since(self.began));
        // Both ends are rounded alike, so that spans which follow each other do not overlap.
        let micros = micros(to.since(self.began)).saturating_sub(start_micros);
        let about = about.map(|about| about.chars().take(MAX_ABOUT).collect::<String>().into_boxed_str());
        self.spans.push(Span { step, about, start_micros, micros });
    }

    fn shown(&self) -> Trace {
        let Self { cause, began: _, began_at, is_complete, spans, omitted } = self;
        let mut spans = spans.clone();
        // A step comes before its parts.
        spans.sort_by_key(|span| (span.start_micros, u64::MAX - span.micros, span.step));
        let micros = spans.iter().map(Span::end_micros).max().unwrap_or(0);
        Trace {
            cause: *cause,
            began_at: *began_at,
            is_complete: *is_complete,
            micros,
            shares: shares(&spans, micros),
            spans,
            omitted_spans: *omitted,
        }
    }
}
