//! The task around the plan.

use crate::handle::{ExpandHandle, Request, RunNowError};
use crate::images::{ClaimData, TemplateImages, Warmed, Warming};
use crate::memory::{KindMemory, Memories, Memory};
use crate::memory_file::{self, Change, Damaged};
use crate::observations::{Clocks, Observations};
use crate::plan::{Conflict, EventOf, Expander, Expansion, KnownPod, Now};
use crate::shown::WorkloadSink;
use jiff::Timestamp;
use podstead_manifest::ObjectKey;
use podstead_pod::sharing::Sharing;
use podstead_pod::{AdmitContext, PodUid};
use podstead_store::Set;
use podstead_sys::layout::Paths;
use podstead_sys::time_sync;
use podstead_sys_async::wall_timer::{WallEvent, WallTimer};
use podstead_telemetry::error_chain;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use podstead_workload::cron;
use podstead_workload::event::{EventType as WorkloadEventType, WorkloadEvent};
use podstead_workload::host_fit::Host;
use podstead_workload::moment::Moment;
use podstead_workload::object::{Workload, WorkloadKind};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Pause after a write that failed: the disk may be full for long.
const WRITE_PAUSE: Duration = Duration::from_secs(5);
/// The kernel does not report that a clock was synchronised without a step: it is asked, for as long as that is waited for (W78).
const SYNC_PERIOD: Duration = Duration::from_secs(10);

/// Connections of the task.
#[derive(Clone, Debug)]
pub struct ExpandLinks {
    /// The layout on disk, for the memory.
    pub paths: Paths,
    /// Settings for the admission of pods.
    pub admit: AdmitContext,
    /// Observations of pods.
    pub observations: Arc<Observations>,
    /// The clocks that observations have.
    pub clocks: Clocks,
    /// The data of claims.
    pub claims: Arc<dyn ClaimData>,
    /// The image store.
    pub images: Arc<dyn TemplateImages>,
    /// Readers of workloads.
    pub sink: Arc<dyn WorkloadSink>,
    /// Readers of events.
    pub events: Arc<dyn EventRecorder>,
}

/// The task before it runs.
#[derive(Debug)]
pub struct ExpandTask {
    expander: Expander,
    links: ExpandLinks,
    requests: mpsc::Receiver<Request>,
    warming: Warming,
    warmed: mpsc::UnboundedReceiver<Warmed>,
    timer: WallTimer,
    wake: Option<Moment>,
    reported: BTreeSet<Conflict>,
    /// Failures of pulls that an event told, by workload.
    failed_pulls: BTreeMap<ObjectKey, String>,
    uids: BTreeMap<ObjectKey, String>,
    /// Answers that are given when what they say is recorded.
    answers: Vec<Answer>,
}

/// Answer to a request of an operator.
#[derive(Debug)]
enum Answer {
    /// A run of a CronJob.
    Started(oneshot::Sender<Result<String, RunNowError>>, Result<String, RunNowError>),
    /// A pod that is made anew, or that goes.
    OfPod(oneshot::Sender<bool>, bool),
}

impl Answer {
    /// Gives it. Nobody may be waiting any more.
    fn give(self) {
        match self {
            Self::Started(answer, started) => drop(answer.send(started)),
            Self::OfPod(answer, is_changed) => drop(answer.send(is_changed)),
        }
    }
}

impl ExpandTask {
    /// The task and the handle to it. Memory is read from disk; `known` are the pods of workloads of which records exist.
    pub fn new(sources: Sharing, host: Host, known: Vec<KnownPod>, links: ExpandLinks) -> io::Result<(Self, ExpandHandle)> {
        let memories = memory_file::read(&links.paths, Damaged::SetAside).unwrap_or_else(|error| {
            tracing::error!(error = %error_chain(&error), "cannot read the memory of workloads");
            Memories::default()
        });
        let (handle, requests) = ExpandHandle::channel();
        let (results, warmed) = mpsc::unbounded_channel();
        let expander = Expander::new(sources, host, links.admit.clone(), memories, known);
        let task = Self {
            expander,
            warming: Warming::new(Arc::clone(&links.images), results),
            links,
            requests,
            warmed,
            timer: WallTimer::new()?,
            wake: None,
            reported: BTreeSet::new(),
            failed_pulls: BTreeMap::new(),
            uids: BTreeMap::new(),
            answers: Vec::new(),
        };
        Ok((task, handle))
    }

    fn clocks(&self) -> cron::Clocks {
        cron::Clocks {
            wall: Timestamp::now(),
            moment: self.links.clocks.moment(),
            boot_id: self.links.clocks.boot_id().to_owned(),
            synchronised: time_sync::is_synchronised(),
            built: cron::BUILT,
            wait_for_sync: cron::WAIT_FOR_SYNC,
        }
    }

    /// Time for which to sleep.
    fn pause(&self) -> Option<Duration> {
        let until = self.wake.map(|wake| self.links.clocks.until(wake));
        until.into_iter().chain(self.waits_for_sync().then_some(SYNC_PERIOD)).min()
    }

    fn waits_for_sync(&self) -> bool {
        self.expander.has_cron_jobs()
            && self.links.clocks.moment() < Moment::after_boot(cron::WAIT_FOR_SYNC)
            && time_sync::is_synchronised() != Some(true)
    }

    /// Lets workloads look again whose time has come.
    fn wake(&mut self, clock_changed: bool) {
        self.expander.wake(self.links.clocks.moment(), Timestamp::now(), clock_changed);
    }

    fn observe(&mut self) {
        for (uid, sight) in self.links.observations.take() {
            self.expander.observe(uid, sight);
        }
    }

    fn warmed(&mut self, warmed: Warmed) {
        match warmed {
            Warmed::Present(key, images) => {
                self.stop_warming(&key);
                self.expander.images_arrived(&key, images);
            }
            Warmed::Failed(key, reason) => {
                if self.failed_pulls.get(&key) != Some(&reason) {
                    let message = format!("Pods are replaced when all images of the new ones are present: {reason}");
                    let uid = self.uids.get(&key).cloned().unwrap_or_default();
                    let event = WorkloadEvent::warning("WaitingForImages", message);
                    self.record(&EventOf { key: key.clone(), uid, event });
                    self.failed_pulls.insert(key, reason);
                }
            }
        }
    }

    fn stop_warming(&mut self, key: &ObjectKey) {
        self.warming.stop(key);
        self.failed_pulls.remove(key);
    }

    fn answer(&mut self, request: Request) {
        match request {
            Request::Configure(sharing, done) => {
                self.expander.configure(sharing);
                // Nobody may be waiting any more.
                done.send(()).ok();
            }
            Request::Host(host) => self.expander.set_host(host),
            Request::ReplacePod { owner, pod, answer } => {
                let is_replaced = self.expander.replace_pod(&owner, &pod);
                self.answers.push(Answer::OfPod(answer, is_replaced));
            }
            Request::ForgetEndedPod { owner, pod, answer } => {
                let is_forgotten = self.expander.forget_ended_pod(&owner, &pod);
                self.answers.push(Answer::OfPod(answer, is_forgotten));
            }
            Request::RunNow { namespace, name, answer } => {
                let started = self.run_now(namespace, name);
                self.answers.push(Answer::Started(answer, started));
            }
        }
    }

    fn run_now(&mut self, namespace: String, name: String) -> Result<String, RunNowError> {
        let key = ObjectKey { kind: WorkloadKind::CronJob.as_str().into(), namespace: namespace.into(), name: name.into() };
        let not_found = || RunNowError::NotFound(key.name.to_string());
        let (workload, memory) = self.expander.cron_job(&key).ok_or_else(not_found)?;
        let Workload::CronJob(object) = workload else { return Err(not_found()) };
        let Some(Memory { kind: KindMemory::CronJob { identity, cron }, .. }) = memory else { return Err(not_found()) };
        let (cron, job) = cron::run_now(object, Some(cron), Timestamp::now(), &fresh_uid).map_err(RunNowError::Exists)?;
        let memory = KindMemory::CronJob { identity: identity.clone(), cron };
        self.expander.start_run(&key, memory);
        Ok(job)
    }

    /// Plans, and acts on it. Returns false when nobody reads SETs any more.
    async fn act(&mut self, out: &mpsc::Sender<Set>) -> bool {
        let clocks = self.clocks();
        let expansion = {
            let is_disposable = |namespace: &str, name: &str| self.links.claims.is_disposable(namespace, name);
            let now = Now { clocks, zones: jiff::tz::db(), fresh_uid: &fresh_uid, is_disposable: &is_disposable };
            self.expander.plan(&now)
        };
        let Expansion { changes, sets, shown, withdrawn, events, conflicts, warm, wake, wake_wall } = expansion;
        write(&self.links.paths, changes).await;
        self.answers.drain(..).for_each(Answer::give);
        for set in sets {
            if out.send(set).await.is_err() {
                return false;
            }
        }
        for key in withdrawn {
            self.uids.remove(&key);
            self.stop_warming(&key);
            self.links.sink.withdraw_workload(&key);
        }
        for shown in shown {
            if let Some(uid) = shown.object["metadata"]["uid"].as_str() {
                self.uids.insert(shown.key.clone(), uid.to_owned());
            }
            self.links.sink.publish_workload(shown);
        }
        events.iter().for_each(|event| self.record(event));
        self.report(conflicts);
        for (key, warm) in warm {
            match warm {
                Some(warm) => self.warming.start(warm),
                None => self.stop_warming(&key),
            }
        }
        self.wake = wake;
        match self.timer.set(wake_wall) {
            Ok(None) => {}
            Ok(Some(_)) => {
                self.wake(true);
                self.wake = Some(self.links.clocks.moment());
            }
            Err(error) => tracing::error!(%error, "cannot set the timer of schedules"),
        }
        true
    }

    fn record(&self, event: &EventOf) {
        let EventOf { key, uid, event: WorkloadEvent { event_type, reason, message } } = event;
        let kind = match event_type {
            WorkloadEventType::Normal => EventType::Normal,
            WorkloadEventType::Warning => EventType::Warning,
        };
        let Some(of) = WorkloadKind::named(&key.kind) else { return };
        let subject = Subject::Workload {
            uid: uid.clone(),
            api_version: of.api_version().into(),
            kind: of.as_str().into(),
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
        };
        self.links.events.record(&subject, kind, reason, message);
    }

    fn report(&mut self, conflicts: Vec<Conflict>) {
        let conflicts: BTreeSet<Conflict> = conflicts.into_iter().collect();
        for conflict in conflicts.difference(&self.reported) {
            tracing::warn!(source = %conflict.loser, "{conflict}");
            let subject = Subject::Source(conflict.loser.clone());
            self.links.events.record(&subject, EventType::Warning, "FailedValidation", &conflict.to_string());
        }
        self.reported = conflicts;
    }
}

fn fresh_uid() -> String {
    PodUid::random().as_str().to_owned()
}

/// Writes until it succeeds: nothing that was decided may take effect before (W91).
async fn write(paths: &Paths, changes: Vec<Change>) {
    if changes.is_empty() {
        return;
    }
    let changes = Arc::new(changes);
    let mut is_reported = false;
    loop {
        let (paths, batch) = (paths.clone(), Arc::clone(&changes));
        let written = tokio::task::spawn_blocking(move || memory_file::write(&paths, &batch)).await;
        match written.map_err(io::Error::other).flatten() {
            Ok(()) => return,
            Err(error) => {
                if !is_reported {
                    tracing::error!(error = %error_chain(&error), "cannot record what was decided on workloads: nothing changes until it can");
                }
                is_reported = true;
                tokio::time::sleep(WRITE_PAUSE).await;
            }
        }
    }
}

/// Runs until `sets` is closed, or `out` is.
///
/// `out` needs room for one: observations are collected while a SET waits there, and one plan is made of all of them.
pub async fn run(mut task: ExpandTask, mut sets: mpsc::Receiver<Set>, out: mpsc::Sender<Set>) {
    loop {
        let waited_for_sync = task.waits_for_sync();
        let pause = task.pause();
        let (observations, claims) = (Arc::clone(&task.links.observations), Arc::clone(&task.links.claims));
        // All arms are cancel-safe: nothing is taken out before it is passed on.
        tokio::select! {
            set = sets.recv() => match set {
                Some(set) => task.expander.apply(set),
                None => return,
            },
            () = observations.changed() => {}
            () = claims.deleted() => task.expander.data_were_deleted(),
            Some(request) = task.requests.recv() => task.answer(request),
            Some(warmed) = task.warmed.recv() => task.warmed(warmed),
            event = task.timer.event() => match event {
                Ok(event) => task.wake(event == WallEvent::ClockSet),
                Err(error) => {
                    tracing::error!(%error, "the timer of schedules failed");
                    tokio::time::sleep(WRITE_PAUSE).await;
                }
            },
            () = tokio::time::sleep(pause.unwrap_or(Duration::MAX)), if pause.is_some() => task.wake(false),
        }
        if waited_for_sync && !task.waits_for_sync() {
            task.wake(true);
        }
        task.observe();
        if !task.act(&out).await {
            return;
        }
    }
}
