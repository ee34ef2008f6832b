//! The loop of one directory source: wait, look, report what changed.

use super::hints::{Hint, Hints, Wake};
use super::layered::{self, Caches};
use super::listing::{Pass, STAMP_RESOLUTION};
use super::scope::{Scope, any_moved};
use super::watch::Watch;
use super::{DirectoryError, DirectoryOptions};
use jiff::Timestamp;
use podstead_artifact::wake::{Asked, Looks, ReadTimes};
use podstead_artifact::{Artifact, Place, SourceReport};
use podstead_pod::{Revision, SourceId};
use podstead_sys::tick::Tick;
use podstead_telemetry::error_chain;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Share of the time that passes may take, as one in so many: a storm of events in a large directory must not load the host.
const REST_PER_PASS: u32 = 4;

/// No rest is longer, however large the directory.
const MAX_REST: Duration = Duration::from_secs(1);

/// Factor by which a lasting storm of events may extend the delay of a pass.
const STORM_GROWTH: u32 = 16;

/// Longest time for which passes that may have missed files are not reported.
const INCOMPLETE: Duration = Duration::from_secs(1);

/// Looks at the path from one attempt to get inotify to the next.
const LOOKS_WHILE_BLIND: u32 = 10;

/// The receiver of reports is gone.
struct Unwanted;

/// Follows one path in a thread of its own.
pub(super) struct Follower {
    scope: Scope,
    options: DirectoryOptions,
    hints: Arc<Hints>,
    caches: Caches,
    reporter: Reporter,
}

impl Follower {
    pub(super) fn new(
        id: SourceId,
        path: PathBuf,
        options: DirectoryOptions,
        hints: Arc<Hints>,
        reports: mpsc::Sender<(SourceId, SourceReport)>,
        looks: Looks,
    ) -> Self {
        let reporter = Reporter { id, reports, looks, noticed: None, delivered: None, failure: None, degraded: None };
        let scope = Scope { root: path, layers: Arc::clone(&options.layers) };
        Self { scope, options, hints, caches: Caches::new(), reporter }
    }

    /// Runs until [`Hints::stop`], or until the receiver of reports is dropped.
    pub(super) fn run(mut self) {
        let mut watch = Watch::set(&self.scope, &self.scope.spots_or_root(), &self.hints);
        let mut timing = Timing::new(&self.options);
        let mut asked = Asked::default();
        loop {
            let began = Instant::now();
            asked.join(self.hints.take_asked());
            self.reporter.noticed = self.reporter.noticed.or_else(|| self.hints.noticed());
            let (rearm, mut witness) = self.hints.begin_pass(began);
            // Before the pass: what changes after it was read is then told by an event.
            let blind_for_long = watch.blind.is_some() && watch.set_at.elapsed() > self.options.look * LOOKS_WHILE_BLIND;
            let spots = self.scope.spots();
            let moved = spots.as_ref().map_or_else(|_| any_moved(&watch.spots), |spots| *spots != watch.spots);
            if rearm || blind_for_long || moved {
                watch.reset(&self.scope, &self.scope.spots_or_root(), &self.hints);
            }
            witness.watching = watch.blind.is_none();
            let result = spots.and_then(|spots| layered::pass(&self.scope, &spots, &self.options, &mut self.caches, &witness));
            timing.took(began.elapsed());
            if result.as_ref().is_ok_and(|pass| pass.moved || watch.root() != Some(pass.identity)) {
                self.hints.add(Hint::Moved, Instant::now());
            }
            let overtaken = self.hints.overtaken() && timing.may_wait(began, timing.storm);
            let incomplete = result.as_ref().is_ok_and(|pass| pass.incomplete) && timing.may_wait(began, INCOMPLETE);
            let next = timing.next_pass(&self.options, result.as_ref().ok(), watch.blind.is_some());
            if !overtaken && !incomplete {
                timing.reported();
                // What leaves one layer may be on its way into another one: then every file that is written is waited for.
                if let (Ok(pass), Some(cache), true) =
                    (&result, self.caches.get_mut(Path::new("")), self.scope.layers.is_empty() && !watch.whole())
                {
                    cache.note_reported(&pass.artifact);
                }
                let reported = self.reporter.report(result, watch.blind.as_deref(), began);
                if reported.and_then(|()| self.reporter.answer(std::mem::take(&mut asked))).is_err() {
                    return;
                }
            }
            let Some(wake) = self.wait(&watch, &timing, began + next) else { return };
            timing.woke(wake, &self.options);
        }
    }

    /// Waits until a pass is due; `None` when the source was stopped.
    fn wait(&self, watch: &Watch, timing: &Timing, next: Instant) -> Option<Wake> {
        loop {
            let look = Instant::now() + self.options.look;
            match self.hints.wait(&self.options, timing.storm, timing.not_before, look.min(next)) {
                Wake::Stop => return None,
                wake @ (Wake::Calm | Wake::Storm) => return Some(wake),
                Wake::Timer if self.reporter.reports.is_closed() => return None,
                // What no event tells: a mount, an unmount, a path that leads elsewhere.
                Wake::Timer if Instant::now() >= next || any_moved(&watch.spots) => return Some(Wake::Timer),
                Wake::Timer => {}
            }
        }
    }
}

/// Schedule of the passes.
#[derive(Debug)]
struct Timing {
    /// The longest time that events may put a pass off, at present.
    storm: Duration,
    /// The earliest time for a pass.
    not_before: Instant,
    /// Time since which passes were not reported because they were overtaken or incomplete.
    unreported: Option<Instant>,
    /// Time to the next attempt at a file that is being changed.
    retry: Duration,
}

impl Timing {
    fn new(options: &DirectoryOptions) -> Self {
        Self { storm: options.storm, not_before: Instant::now(), unreported: None, retry: options.settle }
    }

    fn took(&mut self, duration: Duration) {
        self.not_before = Instant::now() + (duration * REST_PER_PASS).min(MAX_REST);
    }

    /// Reports whether this pass may stay unreported: unreported passes began less than `at_most` ago.
    fn may_wait(&mut self, began: Instant, at_most: Duration) -> bool {
        self.unreported.get_or_insert(began).elapsed() < at_most
    }

    fn reported(&mut self) {
        self.unreported = None;
    }

    fn woke(&mut self, wake: Wake, options: &DirectoryOptions) {
        self.storm = match wake {
            Wake::Storm => (self.storm * 2).min(options.storm * STORM_GROWTH),
            Wake::Calm | Wake::Timer | Wake::Stop => options.storm,
        };
    }

    /// Time from the beginning of the last pass to the next one, if no event comes.
    fn next_pass(&mut self, options: &DirectoryOptions, pass: Option<&Pass>, blind: bool) -> Duration {
        // A single file is looked at as often as a directory's identity: a symlink may lead anywhere, and it costs no more.
        let single = pass.is_some_and(|pass| pass.artifact.place.is_none());
        let mut next = if blind || single || pass.is_none() { options.look } else { options.relist };
        if pass.is_some_and(|pass| pass.unstable) {
            next = next.min(self.retry);
            self.retry = (self.retry * 2).min(options.look);
        } else {
            self.retry = options.settle;
        }
        if pass.is_some_and(|pass| pass.inconclusive) {
            next = next.min(STAMP_RESOLUTION + options.settle);
        }
        next
    }
}

/// Reports changes only.
struct Reporter {
    id: SourceId,
    reports: mpsc::Sender<(SourceId, SourceReport)>,
    looks: Looks,
    /// The first event since the last pass that was reported.
    noticed: Option<Instant>,
    delivered: Option<(Revision, Option<Place>)>,
    failure: Option<String>,
    degraded: Option<String>,
}

impl Reporter {
    /// `began` is the beginning of the pass.
    fn report(&mut self, result: Result<Pass, DirectoryError>, blind: Option<&str>, began: Instant) -> Result<(), Unwanted> {
        let noticed = self.noticed.take();
        match result {
            Ok(pass) => {
                self.looks.record_contact(Timestamp::now());
                let delivered = (pass.artifact.revision.clone(), pass.artifact.place.clone());
                tracing::trace!(source = %self.id, revision = %delivered.0, read = pass.read, "pass");
                let failed = self.failure.take().is_some();
                if self.delivered.as_ref() != Some(&delivered) {
                    let times = ReadTimes { noticed: noticed.map(Tick::of), began: Tick::of(began), ended: Tick::now() };
                    self.looks.record_reading(&delivered.0, times);
                    self.delivered = Some(delivered);
                    let artifact = Artifact { commit: self.looks.take_change(), ..pass.artifact };
                    self.send(SourceReport::Artifact(artifact))?;
                } else if failed {
                    self.send(SourceReport::Recovered)?;
                }
            }
            Err(error) => {
                let text = error_chain(&error).to_string();
                if self.failure.as_ref() != Some(&text) {
                    self.failure = Some(text.clone());
                    self.send(SourceReport::Failed(text))?;
                }
            }
        }
        if self.degraded.as_deref() != blind {
            self.degraded = blind.map(str::to_owned);
            let text = blind.map(|reason| {
                format!("inotify is not available: {reason}; polling for changes instead (raise fs.inotify.max_user_watches or max_user_instances)")
            });
            self.send(SourceReport::Degraded(text))?;
        }
        Ok(())
    }

    /// Sends the inquiries that wait for the reported pass.
    fn answer(&self, asked: Asked) -> Result<(), Unwanted> {
        asked.into_reports().try_for_each(|report| self.send(report))
    }

    fn send(&self, report: SourceReport) -> Result<(), Unwanted> {
        self.reports.blocking_send((self.id.clone(), report)).map_err(|_| Unwanted)
    }
}
