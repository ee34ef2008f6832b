//! Times of accepted revisions, for the traces of pods that follow from them.

use podstead_artifact::Wakers;
use podstead_pod::{Revision, SourceId};
use podstead_sys::tick::Tick;
use podstead_telemetry::Traces;
use podstead_telemetry::trace::RevisionTimes;

/// The records of the times at which sources read a revision, and the times of accepted ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    pub(super) sources: Wakers,
    pub(super) traces: Traces,
}

impl Times {
    /// Records a revision that is durable now.
    pub(super) fn accepted(&self, source: &SourceId, revision: &Revision, taken: Tick, checked: Tick) {
        let reading = self.sources.get(source.as_str()).and_then(|waker| waker.reading(revision));
        let read = reading.map(|reading| (reading.began, reading.ended));
        let noticed = reading.and_then(|reading| reading.noticed);
        self.traces.revision(source, revision, RevisionTimes { noticed, read, taken, checked, accepted: Tick::now() });
    }

    /// Forgets when revisions were read so far: what is accepted from now on waits for no reading, but was held back by an operator.
    pub(super) fn held_back(&self, source: &SourceId) {
        if let Some(waker) = self.sources.get(source.as_str()) {
            waker.forget_readings();
        }
    }

    /// Forgets a source.
    pub(super) fn forget(&self, source: &SourceId) {
        self.traces.forget_source(source);
    }
}
