//! The age key of this host: a new key in its file is used at once, also for manifests that could not be decrypted before.
//!
//! In: the configured file, followed as any single file of manifests is. Out: keys to the intake, troubles to the log and to the events.
//! A file that goes away takes no key back: a failure is not an absence. An emptied one does.

use podstead_artifact::{SourceReport, Wishes};
use podstead_config::Config;
use podstead_config::age_keys::{exposure, load};
use podstead_manifest::sops::{Identities, Opening, Unopened};
use podstead_pod::SourceId;
use podstead_source::PodSource as _;
use podstead_source::dir::{DirectoryOptions, DirectorySource};
use podstead_store::intake::IntakeConfigurator;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use podstead_telemetry::{EventLog, error_chain};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Polling interval for changes that inotify does not report, such as a mount over the file.
const LOOK: Duration = Duration::from_secs(60);

/// The keys, and the event log for problems with them.
#[derive(Debug)]
pub(super) struct AgeKeys {
    config: Config,
    events: Arc<EventLog>,
    identities: Identities,
    /// Last reported problems, so that each is reported once.
    told: Vec<String>,
}

impl AgeKeys {
    /// Reads them for the first time.
    pub(super) fn load(config: &Config, events: Arc<EventLog>) -> Self {
        let mut keys = Self { config: config.clone(), events, identities: Identities::default(), told: Vec::new() };
        keys.identities = keys.read().unwrap_or_default();
        keys
    }

    /// Keys for decrypting manifests.
    pub(super) fn opening(&self) -> Arc<Opening> {
        Arc::new(Opening { identities: self.identities.clone(), unopened: Unopened::Refused })
    }

    /// Follows the file for as long as the daemon lives. `None` when none is configured.
    pub(super) fn follow(self, intake: IntakeConfigurator) -> Option<impl Future<Output = &'static str>> {
        let path = self.config.age_key_file.clone()?;
        Some(self.run(path, intake))
    }

    async fn run(mut self, path: PathBuf, intake: IntakeConfigurator) -> &'static str {
        let (sender, mut reports) = mpsc::channel(1);
        let options = DirectoryOptions { look: LOOK, relist: LOOK, ..DirectoryOptions::default() };
        let follower = DirectorySource::new(SourceId::new("age-key"), &path, options);
        let mut following = JoinSet::new();
        following.spawn(Box::new(follower).run(sender, Wishes::none()));
        while let Some((_, report)) = reports.recv().await {
            match report {
                SourceReport::Artifact(_) | SourceReport::Recovered | SourceReport::Failed(_) => {
                    let read = self.read();
                    if let Some(identities) = read.filter(|identities| *identities != self.identities) {
                        tracing::info!(file = %path.display(), recipients = ?identities.recipients(), "age keys reloaded");
                        self.identities = identities;
                        intake.open_with(self.opening()).await;
                    }
                }
                SourceReport::Degraded(_) | SourceReport::Inquiry(_) => {}
            }
        }
        "the age key file watcher"
    }

    /// Reads the keys and reports errors; `None` if some keys cannot be read.
    fn read(&mut self) -> Option<Identities> {
        let (identities, errors) = load(&self.config);
        let errors: Vec<String> = errors.iter().map(|error| error_chain(error.as_ref()).to_string()).collect();
        let is_whole = errors.is_empty();
        let mut troubles = errors;
        troubles.extend(self.config.age_key_file.as_deref().and_then(exposure));
        for text in troubles.iter().filter(|text| !self.told.contains(text)) {
            tracing::warn!("{text}");
            self.events.record(&Subject::Node, EventType::Warning, "AgeKey", text);
        }
        self.told = troubles;
        // At the start, what can be read counts.
        (is_whole || self.identities == Identities::default()).then_some(identities)
    }
}
