//! State of one source.

use super::IntakeSource;
use super::attempt::{Emptiness, Outcome, Shelf, attempt};
use super::times::Times;
use super::told::Told;
use crate::history::Hold;
use crate::last_good::{LastGood, Record, Stamp, State};
use crate::revisions::refused;
use crate::undelta::KeptFiles;
use crate::{Accepted, CheckContext, PruneError, Set, SourceStatus, SourceStatusSink, UndeltaStore, relocate};
use jiff::Timestamp;
use podstead_artifact::wake::Verdict;
use podstead_artifact::{Artifact, SourceReport, Surroundings};
use podstead_manifest::sops::Opening;
use podstead_manifest::{Problem, SOPS as CLOSED};
use podstead_pod::{Revision, Severity, SourceId};
use podstead_sys::layout::Paths;
use podstead_sys::tick::Tick;
use podstead_sys::write_ahead::WriteAheadLog;
use podstead_telemetry::events::EventRecorder;
use podstead_telemetry::{counted, error_chain};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Time to the next attempt at a record that could not be written.
const RETRY: Duration = Duration::from_secs(10);

/// Relation between the reports of a source and the set in force.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    /// The last report is in force, or there was none yet. Entered by an accepted artifact.
    InForce,
    /// The source cannot be read, or has nothing for this host. Entered by a failure, left by an artifact or a recovery.
    Failing(String),
    /// The source is empty, but may not be meant to be. Left by another artifact, by a failure or by [`SourceState::prune`].
    Held,
    /// The last report could not be written to disk. Retried at the given time.
    NotWritten(String, Instant),
}

/// The state of one source.
///
/// One type because a report moves all of it together: what is in force, what is on disk and what is shown.
#[derive(Debug)]
pub(super) struct SourceState {
    source: IntakeSource,
    check: Arc<CheckContext>,
    pub(super) shelf: Shelf,
    status: Arc<dyn SourceStatusSink>,
    pub(super) times: Times,
    pub(super) told: Told,
    pub(super) store: Arc<UndeltaStore>,
    pub(super) in_force: Option<Stamp>,
    /// The source stays at what is in force.
    pub(super) hold: Option<Hold>,
    /// Revision that was last passed to the mux, and the time.
    applied: Option<(Revision, Timestamp)>,
    /// Number of pods in force, without those of workloads.
    pods: usize,
    /// Number of Deployments and other workloads in force.
    workloads: usize,
    /// Last artifact of the source.
    latest: Option<Arc<Artifact>>,
    fetched_at: Option<Timestamp>,
    standing: Standing,
    problems: Vec<Problem>,
    degraded: Option<String>,
}

impl SourceState {
    pub(super) fn new(
        source: IntakeSource,
        paths: &Paths,
        check: Arc<CheckContext>,
        status: Arc<dyn SourceStatusSink>,
        events: Arc<dyn EventRecorder>,
        times: Times,
    ) -> Self {
        Self {
            times,
            shelf: Shelf { last_good: LastGood::new(paths, source.id.clone()), history_limit: source.history_limit },
            told: Told::new(source.id.clone(), events),
            source,
            check,
            status,
            store: Arc::default(),
            in_force: None,
            hold: None,
            applied: None,
            pods: 0,
            workloads: 0,
            latest: None,
            fetched_at: None,
            standing: Standing::InForce,
            problems: Vec::new(),
            degraded: None,
        }
    }

    /// Records the times of revisions there from now on.
    pub(super) fn time(&mut self, times: Times) {
        self.times = times;
    }

    /// Makes what is accepted durable by way of this log.
    pub(super) fn log_to(&mut self, write_ahead: WriteAheadLog) {
        self.shelf.last_good.log_to(write_ahead);
    }

    pub(super) fn id(&self) -> &SourceId {
        &self.source.id
    }

    /// Reports whether its files are checked like those of `source`: with the same layers, variables and permissions.
    pub(super) fn judges_as(&self, source: &IntakeSource) -> bool {
        let IntakeSource { id: _, kind: _, location: _, history_limit: _, allow, requirements, substitute, layers, keeps_names } =
            &self.source;
        *allow == source.allow
            && *requirements == source.requirements
            && *substitute == source.substitute
            && *layers == source.layers
            && *keeps_names == source.keeps_names
    }

    /// Updates the description of the source.
    pub(super) fn describe(&mut self, source: IntakeSource) {
        if self.source != source {
            self.shelf.history_limit = source.history_limit;
            self.source = source;
            self.publish();
        }
    }

    /// Removes the source, which is no longer configured.
    pub(super) fn dismiss(self) {
        self.times.forget(self.id());
        self.told.good("SourceRemoved", &format!("source removed from the configuration: stopping {}", self.running()));
        self.status.withdraw_source(&self.source.id);
    }

    /// Time of the next attempt to write the record.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        match &self.standing {
            Standing::NotWritten(_, at) => Some(*at),
            Standing::InForce | Standing::Failing(_) | Standing::Held => None,
        }
    }

    /// Reads the last good set; `None` if there is none.
    pub(super) async fn restore(&mut self) -> Option<Set> {
        let last_good = self.shelf.last_good.clone();
        let loaded = tokio::task::spawn_blocking(move || last_good.load().map_err(|error| (error, last_good.set_aside()))).await;
        let set = match loaded {
            Ok(Ok(State { hold, in_force })) => {
                if let Some(hold) = &hold {
                    tracing::info!(source = %self.id(), since = %hold.since, command = hold.command, "source is held");
                }
                self.hold = hold;
                in_force.map(|Record { stamp, files }| {
                    let (store, set) = self.restored(files, &stamp);
                    self.store = Arc::new(store);
                    self.count(&set);
                    tracing::info!(source = %self.id(), revision = %stamp.revision, pods = self.pods, "restored the last good set");
                    self.in_force = Some(stamp);
                    self.tell_problems(&set);
                    set
                })
            }
            Ok(Err((error, aside))) => {
                let fate = match aside {
                    Ok(path) => format!("moved it aside to {}", path.display()),
                    Err(error) => format!("moving it aside failed: {error}"),
                };
                let text = format!("cannot read the last good set: {}; {fate}; waiting for the next revision", error_chain(&error));
                self.told.trouble("LastGoodUnreadable", &text);
                None
            }
            Err(panic) => {
                self.told.trouble("LastGoodUnreadable", &format!("cannot read the last good set: {panic}"));
                None
            }
        };
        self.publish();
        set
    }

    /// Processes a report; returns the set to pass on.
    pub(super) async fn take(&mut self, report: SourceReport) -> Option<Set> {
        let set = match report {
            SourceReport::Artifact(artifact) => {
                self.latest = Some(Arc::new(artifact));
                self.fetched_at = Some(Timestamp::now());
                self.accept_latest().await
            }
            SourceReport::Failed(text) => {
                self.standing = Standing::Failing(text);
                self.tell_standing("SourceFailed");
                None
            }
            // What is in force may have been pruned while the source was failing, or never have been written.
            SourceReport::Recovered => self.accept_latest().await,
            SourceReport::Degraded(degraded) => {
                match &degraded {
                    Some(text) => self.told.trouble("SourceDegraded", text),
                    None => self.told.good("SourceRecovered", "changes are detected immediately again"),
                }
                self.degraded = degraded;
                None
            }
            SourceReport::Inquiry(inquiry) => {
                inquiry.answer(self.verdict());
                return None;
            }
        };
        self.publish();
        set
    }

    /// Result of all reports so far.
    fn verdict(&self) -> Verdict {
        Verdict {
            in_force: self.in_force.as_ref().map(|in_force| in_force.revision.clone()),
            pods: self.pods,
            error: self.standing_text().or_else(|| {
                let Hold { kind: _, since, command } = self.hold.as_ref()?;
                let since = since.strftime("%Y-%m-%dT%H:%M:%SZ");
                Some(format!("held since {since} by {command:?}; run podstead resume to accept new revisions"))
            }),
            refused: refused(&self.problems).len(),
        }
    }

    /// Retries to write the record.
    pub(super) async fn try_again(&mut self) -> Option<Set> {
        let set = self.accept_latest().await;
        self.publish();
        set
    }

    /// Records that the mux has the set in force.
    pub(super) fn handed_on(&mut self, revision: Revision) {
        self.applied = Some((revision, Timestamp::now()));
        self.publish();
    }

    /// Accepts the source as empty if that is in doubt; returns the number of pods that this removes.
    pub(super) async fn prune(&mut self) -> (Option<Set>, Result<usize, PruneError>) {
        if self.hold.is_some() {
            return (None, Err(PruneError::Held(self.id().clone())));
        }
        let artifact = match (&self.standing, &self.latest) {
            (Standing::Held, Some(latest)) => latest.clone(),
            (Standing::Failing(_) | Standing::Held, _) => Arc::new(Artifact {
                revision: Revision("pruned".to_owned()),
                place: None,
                commit: None,
                files: BTreeMap::new(),
                beside: BTreeMap::new(),
                around: Surroundings::default(),
            }),
            (Standing::InForce | Standing::NotWritten(..), _) => return (None, Err(PruneError::NothingHeld(self.id().clone()))),
        };
        let (pods, standing) = (self.pods, self.standing.clone());
        let set = self.accept(artifact, Emptiness::Meant).await;
        let answer = match std::mem::replace(&mut self.standing, standing) {
            Standing::NotWritten(reason, _) => Err(PruneError::NotWritten { id: self.id().clone(), reason }),
            Standing::InForce | Standing::Held | Standing::Failing(_) => Ok(pods),
        };
        // An emptiness that is believed is in force; a place that cannot be read is as unreadable as it was.
        if answer.is_ok() && self.standing == Standing::Held {
            self.standing = Standing::InForce;
        }
        self.publish();
        (set, answer)
    }

    pub(super) async fn accept_latest(&mut self) -> Option<Set> {
        if self.hold.is_some() {
            // It can be read; whether what it says can be used is asked when it is resumed.
            if self.standing != Standing::InForce {
                self.told.good("SourceRecovered", "source can be read again");
                self.standing = Standing::InForce;
            }
            return None;
        }
        match self.latest.clone() {
            Some(latest) => self.accept(latest, Emptiness::OfTheSamePlace).await,
            None => None,
        }
    }

    /// Checks documents again, with other keys, that could not be decrypted.
    pub(super) async fn open_with(&mut self, opening: Arc<Opening>) -> Option<Set> {
        self.check = Arc::new(CheckContext { opening, ..CheckContext::clone(&self.check) });
        let store = self.store.without_judgements(|problem| problem.code == CLOSED)?;
        self.store = Arc::new(store);
        match self.standing {
            Standing::InForce => {
                let set = self.accept_latest().await;
                self.publish();
                set
            }
            // What it says next is judged anew.
            Standing::Failing(_) | Standing::Held | Standing::NotWritten(..) => None,
        }
    }

    /// Accepts the artifact that was read while the source was held. A source that fails meanwhile keeps failing.
    pub(super) async fn accept_what_was_held_back(&mut self) -> Option<Set> {
        let standing = std::mem::replace(&mut self.standing, Standing::InForce);
        let set = self.accept_latest().await;
        if let (Standing::Failing(_), Standing::InForce) = (&standing, &self.standing) {
            self.standing = standing;
        }
        set
    }

    /// Attempts to put an artifact in force.
    async fn accept(&mut self, artifact: Arc<Artifact>, emptiness: Emptiness) -> Option<Set> {
        let (id, store, in_force) = (self.id().clone(), self.store.clone(), self.in_force.clone());
        let (check, shelf, content) = (self.check.clone(), self.shelf.clone(), artifact.clone());
        let taken = Tick::now();
        // Judging many files takes a while, and so does the disk.
        let outcome =
            tokio::task::spawn_blocking(move || attempt(&id, &store, in_force.as_ref(), &content, emptiness, &check, &shelf));
        let reason = match outcome.await {
            Ok(Outcome::Accepted { store, set, stamp, checked }) => {
                self.times.accepted(self.id(), &artifact.revision, taken, checked);
                match emptiness {
                    Emptiness::OfTheSamePlace if self.standing != Standing::InForce => {
                        self.told.good("SourceRecovered", "source can be read again")
                    }
                    Emptiness::OfTheSamePlace => {}
                    Emptiness::Meant => self.told.good("SourcePruned", &format!("source pruned: stopping {}", self.running())),
                }
                self.put_in_force(store, *stamp, &set);
                return Some(*set);
            }
            Ok(Outcome::Held) => {
                self.standing = Standing::Held;
                self.tell_standing("SourceHeld");
                return None;
            }
            Ok(Outcome::NotForThisHost(error)) => {
                self.standing = Standing::Failing(format!("revision {}: {error}", artifact.revision));
                self.tell_standing("SourceFailed");
                return None;
            }
            Ok(Outcome::NotWritten(error)) => error_chain(&error).to_string(),
            Err(panic) => panic.to_string(),
        };
        let told_already = matches!(&self.standing, Standing::NotWritten(before, _) if *before == reason);
        self.standing = Standing::NotWritten(reason, Instant::now() + RETRY);
        if !told_already {
            self.tell_standing("LastGoodNotWritten");
        }
        None
    }

    pub(super) fn put_in_force(&mut self, store: UndeltaStore, stamp: Stamp, set: &Set) {
        self.standing = Standing::InForce;
        tracing::info!(source = %self.id(), revision = %stamp.revision, pods = set.pods.len(), problems = set.problems.len(), "revision accepted");
        self.store = Arc::new(store);
        self.in_force = Some(stamp);
        self.count(set);
        self.tell_problems(set);
    }

    fn count(&mut self, set: &Set) {
        (self.pods, self.workloads) = (set.pods.len(), set.workloads.len());
    }

    /// The pods and workloads of the set in force, for messages.
    fn running(&self) -> String {
        let of_workloads = |of: &str| format!("{of} of {}", counted(self.workloads, "workload"));
        match (self.pods, self.workloads) {
            (pods, 0) => counted(pods, "pod"),
            (0, _) => of_workloads("the pods"),
            (pods, _) => format!("{} and {}", counted(pods, "pod"), of_workloads("those")),
        }
    }

    fn tell_problems(&mut self, set: &Set) {
        self.problems = set.problems.clone();
        self.told.problems(&set.problems, |key| {
            set.pods.contains_key(key) || set.config_maps.contains_key(key) || set.secrets.contains_key(key)
        });
    }

    /// The accepted set without objects that the configuration does not allow any more: whoever changed it wants that. An object that
    /// only rules of a newer podstead refuse is reported and stays.
    pub(super) fn restored(&self, files: KeptFiles, stamp: &Stamp) -> (UndeltaStore, Set) {
        let all = UndeltaStore::restore(relocate(files, self.check.allow.as_deref()));
        let problems: Vec<Problem> = all.accepted().flat_map(|accepted| self.check.violations(accepted)).collect();
        let (store, _) = all.without(&|accepted: &Accepted| self.check.revokes(accepted, stamp.policy.as_ref()));
        let mut set = store.set(self.id(), &stamp.revision);
        set.problems.extend(problems);
        (store, set)
    }

    fn tell_standing(&self, reason: &str) {
        if let Some(text) = self.standing_text() {
            self.told.trouble(reason, &text);
        }
    }

    /// Describes the failure, its effect and the remedy.
    fn standing_text(&self) -> Option<String> {
        let location = &self.source.location;
        let revision = self.in_force.as_ref().map_or("", |in_force| in_force.revision.0.as_str());
        let keep = if (self.pods, self.workloads) == (1, 0) { "keeps" } else { "keep" };
        let unchanged = format!("Nothing changed; {} {keep} running", self.running());
        match &self.standing {
            Standing::InForce => None,
            Standing::Failing(text) if self.store.is_empty() => Some(text.clone()),
            Standing::Failing(text) => Some(format!("{text}. {unchanged} (revision {revision})")),
            Standing::Held => Some(format!(
                "{location} is not the directory that revision {revision} was read from, and has no usable manifest (a mount may be \
                 missing). {unchanged} (revision {revision})"
            )),
            Standing::NotWritten(text, _) => Some(format!(
                "the new revision was not accepted, because it could not be written to disk: {text}. {unchanged}. podstead retries every {} s",
                RETRY.as_secs()
            )),
        }
    }

    pub(super) fn publish(&self) {
        let degraded = self.degraded.iter().map(|text| Problem {
            severity: Severity::Warning,
            code: "degraded-source".to_owned(),
            file: self.source.location.clone(),
            position: None,
            field: String::new(),
            message: text.clone(),
            hint: None,
            object: None,
        });
        self.status.publish_source(SourceStatus {
            id: self.source.id.clone(),
            kind: self.source.kind.clone(),
            location: self.source.location.clone(),
            fetched: self.latest.as_ref().map(|artifact| artifact.revision.clone()),
            fetched_at: self.fetched_at,
            accepted: self.in_force.as_ref().map(|in_force| in_force.revision.clone()),
            accepted_at: self.in_force.as_ref().map(|in_force| in_force.accepted_at),
            applied: self.applied.as_ref().map(|(revision, _)| revision.clone()),
            applied_at: self.applied.as_ref().map(|(_, at)| *at),
            hold: self.hold.clone(),
            pods: self.pods,
            last_error: self.standing_text(),
            problems: degraded.chain(self.problems.iter().cloned()).collect(),
        });
    }
}
