//! Gets the image for a container's next start. Runs beside the pod's turns, since it may take as long as a network takes.

use super::event_subject::subject;
use super::plan::Action;
use super::services::Services;
use podstead_container::ResolvedImage;
use podstead_container::reference::Reference;
use podstead_pod::containers::PullPolicy;
use podstead_pod::{ContainerName, DesiredPod, pull_secrets};
use podstead_runtime::{ImageError, PullSecrets, PullState};
use podstead_status::reason;
use podstead_sys::tick::Tick;
use podstead_telemetry::events::{EventType, Subject};
use podstead_telemetry::trace::Step;
use podstead_telemetry::{error_chain, kubernetes_duration};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Time in which a pull that made its image present returns.
const OWN_ARRIVAL: Duration = Duration::from_secs(1);

/// Between two looks at the progress of a pull; a shorter one is not told.
const LOOK: Duration = Duration::from_secs(5);
/// Between two reports of progress: each is a new status of the pod.
const REPORT: Duration = Duration::from_secs(60);

/// The last report of a pull's progress.
#[derive(Debug, Default)]
struct Told(Option<(tokio::time::Instant, u64, bool)>);

impl Told {
    /// The progress in words, if it is to be reported: at another tenth, and when the pull begins or ends to wait, but once a minute at most.
    fn news(&mut self, pull: &PullState, now: tokio::time::Instant) -> Option<String> {
        let words = pull.summary()?;
        let (tenth, waits) = (pull.percent().unwrap_or_default() / 10, pull.waiting().is_some());
        let is_news = self.0.is_none_or(|(at, known, waited)| now - at >= REPORT && (known, waited) != (tenth, waits));
        is_news.then(|| {
            self.0 = Some((now, tenth, waits));
            words
        })
    }
}

/// Origin of an image that was not present.
enum Found {
    /// The registry.
    Pulled(ResolvedImage),
    /// An import, a preloaded archive or the pull of another pod.
    Arrived(ResolvedImage),
}

/// An image that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    services: Arc<Services>,
    desired: Arc<DesiredPod>,
    subject: Subject,
    user: ImageUser,
    reference: String,
    policy: PullPolicy,
    is_ahead: IsAhead,
}

/// True as long as the image is for an update of what runs. Closed when nobody wants it any more.
pub(super) type IsAhead = watch::Receiver<bool>;

/// The container or volume that waits for an image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ImageUser {
    /// A container.
    Container(ContainerName),
    /// A volume.
    Volume(String),
}

/// News of a fetch.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) user: ImageUser,
    pub(super) reference: String,
    pub(super) news: FetchNews,
}

/// Result of a fetch.
#[derive(Debug)]
pub(super) enum FetchNews {
    /// It goes on; its progress in words.
    Progress(String),
    /// It is over.
    Ended(Result<ResolvedImage, ImageError>),
}

impl Fetch {
    /// The fetch for an [`Action::EnsureImage`] or [`Action::EnsureVolumeImage`]; `None` for another action. `is_ahead` tells of its user.
    pub(super) fn asked_by(
        action: &Action,
        services: &Arc<Services>,
        desired: &Arc<DesiredPod>,
        is_ahead: impl FnOnce(&ImageUser) -> IsAhead,
    ) -> Option<Self> {
        let (user, container, reference, policy) = if let Action::EnsureImage { container, reference, policy } = action {
            (ImageUser::Container(container.clone()), Some(container), reference, policy)
        } else if let Action::EnsureVolumeImage { volume, reference, policy } = action {
            (ImageUser::Volume(volume.clone()), None, reference, policy)
        } else {
            return None;
        };
        Some(Self {
            services: Arc::clone(services),
            desired: Arc::clone(desired),
            subject: subject(desired, container),
            is_ahead: is_ahead(&user),
            user,
            reference: reference.clone(),
            policy: *policy,
        })
    }

    /// Fetches the image, records events, and requests a turn of the pod. The result is there before that turn can begin: a turn that finds
    /// nothing would be the last one. Without a result when nobody wants it any more: a pull that waits for a window ends then, too.
    pub(super) async fn run(self, results: mpsc::UnboundedSender<Box<Fetched>>) {
        let result = {
            let (mut get, mut unwanted) = (pin!(self.get()), pin!(self.unwanted()));
            let mut told = Told::default();
            loop {
                // Cancel-safe: the fetch goes on in the next turn of the loop.
                tokio::select! {
                    result = &mut get => break result,
                    () = &mut unwanted => return,
                    () = tokio::time::sleep(LOOK) => self.tell_progress(&mut told, &results),
                }
            }
        };
        if let Err(error) = &result {
            self.tell_failure(error);
        }
        let uid = self.desired.uid.clone();
        // Without a worker and a sync loop nothing goes on.
        results.send(Box::new(Fetched { user: self.user, reference: self.reference, news: FetchNews::Ended(result) })).ok();
        self.services.pokes.send(uid).ok();
    }

    async fn unwanted(&self) {
        // An error is the end of the other side, which is waited for.
        self.is_ahead.clone().wait_for(|_| false).await.map(drop).ok();
    }

    /// Sends the progress of the pull, if there is news, and requests a turn of the pod.
    fn tell_progress(&self, told: &mut Told, results: &mpsc::UnboundedSender<Box<Fetched>>) {
        let Ok(reference) = self.reference.parse::<Reference>().map(|reference| reference.to_string()) else { return };
        let pulls = self.services.images.pulls();
        let Some(pull) = pulls.iter().find(|pull| pull.reference == reference) else { return };
        if let Some(words) = told.news(pull, tokio::time::Instant::now()) {
            let news = FetchNews::Progress(words);
            // Without a worker and a sync loop nothing goes on.
            results.send(Box::new(Fetched { user: self.user.clone(), reference: self.reference.clone(), news })).ok();
            self.services.pokes.send(self.desired.uid.clone()).ok();
        }
    }

    async fn get(&self) -> Result<ResolvedImage, ImageError> {
        let images = &self.services.images;
        let (objects, source) = (self.services.objects.get(), &self.desired.source);
        let (secrets, missing) = pull_secrets::find(&self.desired.pod, objects.seen_by(source));
        let of_host = objects.sharing().uses_registry_credentials(source);
        let secrets = PullSecrets::new(&secrets).with_host_credentials(of_host);
        let asked = Tick::now();
        if self.policy != PullPolicy::Always {
            match images.ensure(&self.reference, PullPolicy::Never, &secrets).await {
                // Of a refused one, its registry may have signatures that are not kept here.
                Err(ImageError::NeverPull(_) | ImageError::NotAllowed(_) | ImageError::Refused { .. })
                    if self.policy == PullPolicy::IfNotPresent => {}
                Ok(image) => {
                    self.trace(Step::ImageCheck, asked);
                    self.tell_present();
                    return Ok(image);
                }
                Err(error) => return Err(error),
            }
        }
        if !missing.is_empty() {
            let why: Vec<String> = missing.iter().map(ToString::to_string).collect();
            let message = format!(
                "Unable to retrieve some image pull secrets ({}); attempting to pull the image may not succeed.",
                why.join("; ")
            );
            self.tell(EventType::Warning, "FailedToRetrieveImagePullSecret", &message);
        }
        self.tell(EventType::Normal, "Pulling", &format!("Pulling image \"{}\"", self.reference));
        let begun = tokio::time::Instant::now();
        let pulled = self.pull_or_arrival(&secrets).await;
        self.trace(Step::ImagePull, asked);
        let image = match pulled? {
            Found::Pulled(image) => image,
            Found::Arrived(image) => {
                self.tell_present();
                return Ok(image);
            }
        };
        // Nothing but a place in the line of the registry's client is waited for, and that is counted.
        let took = kubernetes_duration(begun.elapsed());
        let size = self.size_of(&image).await;
        let message = format!("Successfully pulled image \"{}\" in {took} ({took} including waiting).{size}", self.reference);
        self.tell(EventType::Normal, "Pulled", &message);
        Ok(image)
    }

    /// Pulls the image; while that takes, one that arrives in another way, such as an import, is as good, unless the registry has to be asked.
    async fn pull_or_arrival(&self, secrets: &PullSecrets) -> Result<Found, ImageError> {
        let images = &self.services.images;
        let (mut arrivals, mut is_ahead) = (images.arrivals(), self.is_ahead.clone());
        arrivals.mark_unchanged();
        let mut is_update = *is_ahead.borrow_and_update();
        let mut pull = match is_update {
            true => images.ensure_update(&self.reference, self.policy, secrets),
            false => images.ensure(&self.reference, self.policy, secrets),
        };
        loop {
            // All are kept for the next turn of the loop.
            tokio::select! {
                biased;
                pulled = &mut pull => return pulled.map(Found::Pulled),
                Ok(()) = arrivals.changed(), if self.policy != PullPolicy::Always => {}
                Ok(_) = is_ahead.wait_for(|is_ahead| !is_ahead), if is_update => {
                    // What ran has ended: nothing is left to wait for.
                    is_update = false;
                    pull = images.ensure(&self.reference, self.policy, secrets);
                    continue;
                }
            }
            if let Ok(arrived) = images.ensure(&self.reference, PullPolicy::Never, secrets).await {
                // It may be the pull itself that has just made it present.
                return match tokio::time::timeout(OWN_ARRIVAL, &mut pull).await {
                    Ok(Ok(image)) => Ok(Found::Pulled(image)),
                    Ok(Err(_)) | Err(_) => Ok(Found::Arrived(arrived)),
                };
            }
        }
    }

    /// Traces a step that began at `from` and ends now.
    fn trace(&self, step: Step, from: Tick) {
        self.services.traces.add(&self.desired.uid, step, Some(&self.reference), from, Tick::now());
    }

    fn tell_present(&self) {
        let message = format!("Container image \"{}\" already present on machine and can be accessed by the pod", self.reference);
        self.tell(EventType::Normal, "Pulled", &message);
    }

    /// ` Image size: 1024 bytes.`, of the layers on disk.
    async fn size_of(&self, image: &ResolvedImage) -> String {
        let images = self.services.images.list().await.unwrap_or_default();
        let record = images.iter().find(|record| record.digest == image.digest);
        record.map(|record| format!(" Image size: {} bytes.", record.size_bytes)).unwrap_or_default()
    }

    fn tell_failure(&self, error: &ImageError) {
        let reference = &self.reference;
        let (event, message) = match error {
            ImageError::InvalidName { reason, .. } => {
                ("InspectFailed", format!("Failed to apply default image tag \"{reference}\": {reason}"))
            }
            ImageError::NeverPull(_) | ImageError::NotAllowed(_) => ("ErrImageNeverPull", image_message(error)),
            ImageError::Inspect { reason, .. } => ("InspectFailed", format!("Failed to inspect image \"{reference}\": {reason}")),
            ImageError::Refused { reason, .. } => {
                ("Failed", format!("Failed to pull image \"{reference}\": {}: {reason}", reason::SIGNATURE_VALIDATION_FAILED))
            }
            ImageError::Pull { reason, .. } => ("Failed", format!("Failed to pull image \"{reference}\": {reason}")),
            ImageError::Import { .. } | ImageError::NoUser { .. } | ImageError::Needed { .. } | ImageError::Prune(_) => {
                ("Failed", format!("Failed to pull image \"{reference}\": {}", error_chain(error)))
            }
        };
        self.tell(EventType::Warning, event, &message);
    }

    fn tell(&self, kind: EventType, reason: &str, message: &str) {
        self.services.events.record(&self.subject, kind, reason, message);
    }
}

/// The message of a container that waits because of an image error, in the kubelet's words where it has some.
pub(super) fn image_message(error: &ImageError) -> String {
    match error {
        ImageError::NeverPull(reference) => format!("Container image \"{reference}\" is not present with pull policy of Never"),
        ImageError::InvalidName { .. }
        | ImageError::NotAllowed(_)
        | ImageError::Pull { .. }
        | ImageError::Refused { .. }
        | ImageError::Import { .. }
        | ImageError::Inspect { .. }
        | ImageError::NoUser { .. }
        | ImageError::Needed { .. }
        | ImageError::Prune(_) => error_chain(error).to_string(),
    }
}

/// The waiting reason of an image error (kubelet rule D8).
pub(super) const fn image_reason(error: &ImageError) -> &'static str {
    match error {
        ImageError::InvalidName { .. } => reason::INVALID_IMAGE_NAME,
        ImageError::NeverPull(_) | ImageError::NotAllowed(_) => reason::ERR_IMAGE_NEVER_PULL,
        ImageError::Pull { .. } => reason::ERR_IMAGE_PULL,
        ImageError::Refused { .. } => reason::SIGNATURE_VALIDATION_FAILED,
        ImageError::Inspect { .. } | ImageError::Import { .. } | ImageError::Needed { .. } | ImageError::Prune(_) => {
            reason::IMAGE_INSPECT_ERROR
        }
        ImageError::NoUser { .. } => reason::CREATE_CONTAINER_CONFIG_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_runtime::{PullPhase, PulledLayer};

    #[tokio::test(start_paused = true)]
    async fn progress_is_told_once_a_minute() {
        let begun = tokio::time::Instant::now();
        let mut told = Told::default();
        let mut news = |seconds: u64, present_bytes, waiting: Option<&str>| {
            let layer =
                PulledLayer { size_bytes: 100, present_bytes, waiting: waiting.map(str::to_owned), ..PulledLayer::default() };
            let pull = PullState {
                number: 1,
                reference: "r.lan/app:1".into(),
                began_at: jiff::Timestamp::UNIX_EPOCH,
                phase: PullPhase::Downloading,
                layers: vec![layer],
                hold: None,
            };
            told.news(&pull, begun + Duration::from_secs(seconds))
        };
        assert_eq!(news(5, 11, None).unwrap(), "11% of 100B");
        assert_eq!(news(10, 55, None), None, "within a minute");
        assert_eq!(news(66, 19, None), None, "the same tenth");
        assert_eq!(news(70, 20, None).unwrap(), "20% of 100B");
        assert_eq!(news(131, 20, Some("no route")).unwrap(), "20% of 100B, waiting: no route");
    }
}
