//! The worker of one pod: turns, one after the other, each from looking to showing.
//!
//! A turn never waits for what may take long (a pull, a container that stops): that goes on in the background and asks for another turn.

use super::definition::{DefinitionContext, PodDefinition, has_same_content};
use super::execute::Executor;
use super::fetch::{Fetch, FetchNews, Fetched, ImageUser, image_message, image_reason};
use super::halt::Given;
use super::hook::Hooks;
use super::measure::{Measured, Measurement};
use super::phase::{Cause, WorkPhase};
use super::plan::{Action, Ahead, PlanInput, PodActions, compute_pod_actions, is_stopped};
use super::plugged::DeviceWork;
use super::publish::{Published, Saved};
use super::queue::Work;
use super::record::PodRecord;
use super::saved;
use super::services::Services;
use super::state::{ActiveTimes, CleanupStage, ImageWork, Outcome, PodState, Step, VolumeWork};
use super::timing::{Timing, step_of};
use futures_util::future::join_all;
use podstead_container::ObservedPod;
use podstead_pod::containers::PullPolicy;
use podstead_pod::objects::references;
use podstead_pod::{ContainerName, DesiredPod, pull_secrets};
use podstead_runtime::PullSecrets;
use podstead_status::{Waiting, reason};
use podstead_sys::tick::Tick;
use podstead_sys_async::clock::Moment;
use podstead_telemetry::error_chain;
use podstead_telemetry::events::EventType;
use podstead_telemetry::trace;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// More rounds than any pod needs; a plan that never becomes empty must not spin.
const MAX_ROUNDS: usize = 1000;
/// After such a plan, and when the runtime does not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// End of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// Another turn is due then, if nothing happens before.
    Wait(Option<Moment>),
    /// Nothing of the pod is left.
    Gone,
}

/// The worker of one pod. Its turns are here; orders of an operator are in [`super::halt`], and [`super::publish`] is the side that others see.
///
/// One type because one task owns it; orders and what others see have files of their own.
#[derive(Debug)]
pub(super) struct PodWorker {
    pub(super) definition: PodDefinition,
    pub(super) record: PodRecord,
    pub(super) phase: WorkPhase,
    pub(super) state: PodState,
    /// Work beside the turns.
    background: Background,
    /// Hooks under way.
    hooks: Hooks,
    pub(super) waiting: BTreeMap<ContainerName, Waiting>,
    /// Containers whose start is not done.
    pub(super) starting: BTreeMap<ContainerName, Waiting>,
    pub(super) published: Published,
    pub(super) saved: Saved,
    /// Devices that may be unplugged.
    pub(super) devices: DeviceWork,
    pub(super) timing: Timing,
}

/// Returns true if the image of this user is for an update of what runs.
fn is_ahead(user: &ImageUser, ahead: &Ahead) -> bool {
    match user {
        ImageUser::Container(name) => ahead.containers.contains(name),
        ImageUser::Volume(_) => ahead.volumes,
    }
}

/// Images being fetched, and storage being measured; aborted when the worker goes.
#[derive(Debug)]
struct Background {
    tasks: JoinSet<()>,
    /// Fetched images. Unbounded: at most one per container and definition is under way, with a report a minute. In boxes, like the next: a channel
    /// keeps room for 32 values.
    fetched: (mpsc::UnboundedSender<Box<Fetched>>, mpsc::UnboundedReceiver<Box<Fetched>>),
    /// Results of measuring. Unbounded: at most one is under way.
    measured: (mpsc::UnboundedSender<Box<Measured>>, mpsc::UnboundedReceiver<Box<Measured>>),
    /// Users of images being fetched, each with whether the image is for an update of what runs.
    ahead: BTreeMap<ImageUser, watch::Sender<bool>>,
    /// Count of image arrivals at the last lookup of missing images.
    arrivals: u64,
    /// Count of occasions to ask again for images at that time.
    retries: u64,
}

impl Background {
    fn new() -> Self {
        Self {
            tasks: JoinSet::new(),
            fetched: mpsc::unbounded_channel(),
            measured: mpsc::unbounded_channel(),
            ahead: BTreeMap::new(),
            arrivals: 0,
            retries: 0,
        }
    }

    /// Tells fetches of the plan. One that was begun for an earlier definition ends when another begins for its user, or its user is gone.
    fn tell_ahead(&mut self, definition: &PodDefinition, ahead: &Ahead) {
        self.ahead.retain(|user, told| {
            told.send_if_modified(|told| std::mem::replace(told, is_ahead(user, ahead)) != *told);
            match user {
                ImageUser::Container(name) => definition.container(name).is_some(),
                ImageUser::Volume(name) => definition.volume_images.iter().any(|image| image.volume == *name),
            }
        });
    }

    /// Forgets the tasks that ended, so that the set does not grow.
    fn reap(&mut self) {
        while let Some(joined) = self.tasks.try_join_next() {
            if let Err(error) = joined
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }
}

impl PodWorker {
    /// A pod that was never seen before.
    pub(super) fn new(desired: Arc<DesiredPod>, services: &Arc<Services>) -> Self {
        let now = services.clock.now();
        let record = PodRecord::new((*desired).clone(), now.wall);
        let active = ActiveTimes { started_at: Some(now.wall), since: Some(now.moment), record_at: None };
        let state = PodState { active, ..PodState::default() };
        Self { timing: Timing::of_new(), ..Self::with(define(desired, services), record, WorkPhase::Sync, state) }
    }

    /// A pod that an earlier daemon recorded. What is observed of it tells the rest.
    pub(super) fn recovered(record: PodRecord, observed: Option<&ObservedPod>, services: &Arc<Services>) -> Self {
        let now = services.clock.now();
        let definition = define(Arc::new(record.desired.clone()), services);
        let mut phase = WorkPhase::Sync;
        if let Some(result) = &record.result {
            phase.finish(result.clone(), definition.grace, now.moment);
        }
        if record.is_removed {
            phase.remove(definition.grace, now.moment);
        }
        let since = Some(now.moment_of(record.started_at));
        let mut state = PodState {
            record: Step::Done,
            active: ActiveTimes { started_at: Some(record.started_at), since, record_at: None },
            // An earlier daemon may have died in the middle of an edit.
            volumes: VolumeWork { has_surplus: true, ..VolumeWork::default() },
            ..PodState::default()
        };
        if let Some(counted) = &record.active {
            state.active.inherit(counted, now.moment, &services.clock.boot_time());
        }
        let uid = definition.desired.uid.clone();
        if let Some(observed) = observed {
            state.adopt(observed, &services.crash_loop(), now);
            saved::inherit_hook_marks(&mut state.runs, &services.paths, observed);
            if let Some(halt) = &record.halt {
                state.excuse_halted(observed, halt);
            }
            state.runs.inherit_health(observed, saved::read_health(&services.paths, &uid, observed, now));
        }
        let mut worker = Self::with(definition, record, phase, state);
        worker.recover_halt(services);
        worker.saved.conditions = saved::read_conditions(&services.paths, &uid);
        worker
    }

    /// The definition that it works at.
    pub(super) fn desired(&self) -> &Arc<DesiredPod> {
        &self.definition.desired
    }

    fn with(definition: PodDefinition, record: PodRecord, phase: WorkPhase, state: PodState) -> Self {
        Self {
            definition,
            record,
            phase,
            state,
            background: Background::new(),
            hooks: Hooks::new(),
            waiting: BTreeMap::new(),
            starting: BTreeMap::new(),
            published: Published::default(),
            saved: Saved::default(),
            devices: DeviceWork::default(),
            timing: Timing::default(),
        }
    }

    /// Executes the plan of the moment, and publishes the result. `ordered` is the time at which the definition came that the turn begins with.
    pub(super) async fn turn(
        &mut self,
        services: &Arc<Services>,
        work: Work<Arc<DesiredPod>>,
        ordered: Option<Tick>,
        orders: Vec<Given>,
    ) -> TurnEnd {
        let mut began = self.timing.turn(services, &self.definition.desired, &work, ordered);
        self.take_up(services, work).await;
        self.obey(services, orders).await;
        self.look_at_objects(services).await;
        self.look_for_devices(services);
        if services.network.has_news(&self.definition.desired.uid) {
            self.state.network_has_news();
        }
        if self.published.status.is_none() {
            let observed = self.observe(services).await.unwrap_or_else(|_| self.nothing_observed());
            self.recall_addresses(services, &observed).await;
            self.publish(services, &observed).await;
        }
        for _ in 0..MAX_ROUNDS {
            self.take_in_images(services);
            self.hooks.apply_ended(services, &self.definition, &mut self.state.runs);
            while let Ok(measured) = self.background.measured.1.try_recv() {
                let Measured { usage, took } = *measured;
                self.state.storage_measured(usage, took, services.clock.now().moment);
            }
            self.look_for_arrived_images(services).await;
            let observed = match self.observe(services).await {
                Ok(observed) => observed,
                Err(end) => return end,
            };
            if self.phase == WorkPhase::Sync {
                self.count_active_time(services);
            }
            self.look_at_health(services, &observed);
            let plan = self.plan(services, &observed);
            if self.phase == WorkPhase::Sync {
                self.background.tell_ahead(&self.definition, &plan.ahead);
            }
            self.tell_waiting(services, &plan);
            self.waiting.clone_from(&plan.waiting);
            self.starting.clone_from(&plan.starting);
            self.trace(services, trace::Step::Plan, began);
            if self.state.cleanup.stage == CleanupStage::Forgotten {
                services.statuses.withdraw(&self.definition.desired.uid);
                services.probes.forget(&self.definition.desired.uid);
                services.devices.remove(&self.definition.desired.uid);
                services.traces.forget(&self.definition.desired.uid);
                return TurnEnd::Gone;
            }
            if plan.actions.is_empty() {
                let published = Tick::now();
                let devices_due = self.plug_devices(services, &observed).await;
                self.publish(services, &observed).await;
                self.save_health(services).await;
                self.trace(services, trace::Step::Publish, published);
                let (definition, status) = (&self.definition, self.published.status.as_ref());
                self.timing.pause(services, definition, &self.state, status, &plan, &observed);
                return TurnEnd::Wait(plan.wake.into_iter().chain(devices_due).min());
            }
            self.timing.restart(services, &self.record, &plan.actions);
            self.execute(services, &observed, plan.actions, &plan.ahead).await;
            began = Tick::now();
        }
        tracing::error!(pod = %self.definition.desired.full_name, "the pod's plan does not settle, retrying later");
        TurnEnd::Wait(Some(services.clock.now().moment + PAUSE))
    }

    /// Traces a step that began at `from` and ends now.
    fn trace(&self, services: &Services, step: trace::Step, from: Tick) {
        services.traces.add(&self.definition.desired.uid, step, None, from, Tick::now());
    }

    async fn take_up(&mut self, services: &Arc<Services>, work: Work<Arc<DesiredPod>>) {
        match work {
            Work::Look => {}
            Work::Remove => {
                self.phase.remove(self.definition.grace, services.clock.now().moment);
                self.record.is_removed = true;
                self.state.record = Step::Open;
                self.background.tasks.shutdown().await;
            }
            Work::Sync(desired) => {
                if self.record.result.is_some() && !has_same_content(&desired.pod, &self.definition.desired.pod) {
                    services.incarnations.recreate(desired.uid.clone()).await;
                } else if *desired != *self.definition.desired {
                    if !has_same_content(&desired.pod, &self.definition.desired.pod) {
                        self.start_for_edit(services);
                    }
                    self.redefine(services, desired).await;
                }
            }
        }
    }

    async fn redefine(&mut self, services: &Arc<Services>, desired: Arc<DesiredPod>) {
        let definition = define(desired, services);
        self.record.desired = (*definition.desired).clone();
        let observed = self.observe(services).await.unwrap_or_else(|_| self.nothing_observed());
        self.state.redefine(&self.definition, &definition, &observed);
        self.definition = definition;
    }

    /// ConfigMaps or Secrets may have changed since the definition was prepared.
    async fn look_at_objects(&mut self, services: &Arc<Services>) {
        let objects = services.objects.get();
        if Arc::ptr_eq(&self.definition.objects, &objects) {
            return;
        }
        let desired = &self.definition.desired;
        if objects.seen_by(&desired.source).agrees(&self.definition.objects, &references(&desired.pod)) {
            // Not to keep what is gone in memory.
            self.definition.objects = objects;
            return;
        }
        self.timing.change(services, &self.definition.desired);
        let definition = define(Arc::clone(&self.definition.desired), services);
        let observed = self.observe(services).await.unwrap_or_else(|_| self.nothing_observed());
        self.state.reassess(&self.definition, &definition, &observed);
        self.definition = definition;
    }

    fn nothing_observed(&self) -> ObservedPod {
        ObservedPod {
            uid: self.definition.desired.uid.clone(),
            sandbox: None,
            containers: Vec::new(),
            given: BTreeMap::new(),
            plugged: BTreeMap::new(),
        }
    }

    async fn observe(&mut self, services: &Arc<Services>) -> Result<ObservedPod, TurnEnd> {
        let now = services.clock.now();
        match services.runtime.observe(&self.definition.desired.uid).await {
            Ok(observed) => {
                let observed = observed.unwrap_or_else(|| self.nothing_observed());
                self.state.observe(&observed, now);
                Ok(observed)
            }
            Err(error) => {
                let message = format!("error determining status: {}", error_chain(&error));
                self.tell(services, None, EventType::Warning, "FailedSync", &message);
                Err(TurnEnd::Wait(Some(now.moment + PAUSE)))
            }
        }
    }

    fn count_active_time(&mut self, services: &Services) {
        let (deadline, now) = (self.definition.active_deadline, services.clock.now().moment);
        if let Some(counted) = self.state.active.count_due(deadline, now, || services.clock.boot_time()) {
            self.record.active = Some(counted);
            self.state.record = Step::Open;
        }
    }

    fn plan(&mut self, services: &Arc<Services>, observed: &ObservedPod) -> PodActions {
        let (phase, crash_loop) = (self.phase.clone(), services.crash_loop());
        let input = PlanInput {
            definition: &self.definition,
            observed,
            phase: &phase,
            state: &self.state,
            crash_loop: &crash_loop,
            now: services.clock.now(),
        };
        if is_stopped(&input) {
            self.phase.stopped();
        }
        compute_pod_actions(PlanInput { phase: &self.phase, ..input })
    }

    /// Takes the steps one after the other, preparations at once, until one does not go as planned.
    async fn execute(&mut self, services: &Arc<Services>, observed: &ObservedPod, actions: Vec<Action>, ahead: &Ahead) {
        let mut sandbox = observed.sandbox.clone();
        let mut rest = actions.as_slice();
        while !rest.is_empty() {
            let preparations = rest.iter().take_while(|action| action.is_preparation()).count();
            let (wave, later) = rest.split_at(preparations.max(1));
            rest = later;
            for action in wave {
                let told = |user: &ImageUser| {
                    let (told, is_ahead) = watch::channel(is_ahead(user, ahead));
                    self.background.ahead.insert(user.clone(), told);
                    is_ahead
                };
                let Some(fetch) = Fetch::asked_by(action, services, &self.definition.desired, told) else { continue };
                self.background.tasks.spawn(fetch.run(self.background.fetched.0.clone()));
            }
            let asked = |action| Measurement::asked_by(action, services, &self.definition, observed);
            for measurement in wave.iter().filter_map(asked) {
                self.background.tasks.spawn(measurement.run(self.background.measured.0.clone()));
            }
            for action in wave {
                self.hooks.follow(services, &self.definition, &self.state, sandbox.as_ref(), action);
            }
            let executor = Executor {
                services,
                definition: &self.definition,
                state: &self.state,
                sandbox: sandbox.as_ref(),
                record: &self.record,
            };
            let take = async |action: &Action| {
                let began = Tick::now();
                let outcome = executor.take(action).await;
                if let Some((step, about)) = step_of(action) {
                    services.traces.add(&self.definition.desired.uid, step, about, began, Tick::now());
                }
                outcome
            };
            let outcomes = join_all(wave.iter().map(take)).await;
            let mut is_as_planned = true;
            for (action, outcome) in wave.iter().zip(outcomes) {
                is_as_planned &= outcome.is_as_planned();
                if let Outcome::Sandbox(status) = &outcome {
                    sandbox = Some(status.clone());
                }
                self.take_in(services, action, outcome);
            }
            if !is_as_planned {
                return;
            }
        }
    }

    fn take_in(&mut self, services: &Arc<Services>, action: &Action, outcome: Outcome) {
        tracing::debug!(pod = %self.definition.desired.full_name, %action, ?outcome, "step");
        let (definition, phase) = (&self.definition, &mut self.phase);
        self.state.apply(action, outcome, definition, phase, &services.crash_loop(), services.clock.now());
        if let (Action::Finish(_), Some(Cause::Finished(result))) = (action, self.phase.cause()) {
            self.record.result = Some(result.clone());
        }
    }

    /// Takes in the images that were fetched.
    fn take_in_images(&mut self, services: &Arc<Services>) {
        self.background.reap();
        while let Ok(fetched) = self.background.fetched.1.try_recv() {
            let Fetched { user, reference, news } = *fetched;
            let outcome = match news {
                FetchNews::Progress(words) => {
                    self.take_in_progress(&user, &reference, words);
                    continue;
                }
                FetchNews::Ended(Ok(image)) => Outcome::Image(image),
                FetchNews::Ended(Err(error)) => Outcome::Failed { reason: image_reason(&error), message: image_message(&error) },
            };
            let now = services.clock.now().moment;
            // Another definition may have come in between.
            match user {
                ImageUser::Container(name) if self.definition.container(&name).is_some_and(|of| of.image == reference) => {
                    self.state.image_looked_up(&name, outcome, now);
                }
                ImageUser::Volume(name)
                    if self.definition.volume_images.iter().any(|image| image.volume == name && image.reference == reference) =>
                {
                    self.state.volume_image_looked_up(&name, outcome, now);
                }
                ImageUser::Container(_) | ImageUser::Volume(_) => {}
            }
        }
    }

    /// Takes in the progress of an image that is still wanted.
    fn take_in_progress(&mut self, user: &ImageUser, reference: &str, words: String) {
        match user {
            ImageUser::Container(name) if self.definition.container(name).is_some_and(|of| of.image == reference) => {
                self.state.image_progressed(name, words);
            }
            ImageUser::Volume(name) => self.state.volume_image_progressed(name, words),
            ImageUser::Container(_) => {}
        }
    }

    /// Returns true if a container waits for an image that could not be fetched.
    pub(super) fn misses_image(&self) -> bool {
        self.missing_images().next().is_some()
    }

    /// The users of images that are missing, each with its image.
    fn missing_images(&self) -> impl Iterator<Item = (ImageUser, &str)> {
        let containers = self.definition.containers.iter();
        let missing = containers.filter(|container| matches!(self.state.container(&container.name).image, ImageWork::Failed(_)));
        let containers = missing.map(|container| (ImageUser::Container(container.name.clone()), container.image.as_str()));
        let volumes = self.definition.volume_images.iter();
        let missing = volumes.filter(|image| matches!(self.state.volumes.image(&image.volume), ImageWork::Failed(_)));
        containers.chain(missing.map(|image| (ImageUser::Volume(image.volume.clone()), image.reference.as_str())))
    }

    /// Looks up missing images at once when they became present since: a pause without a reason is skipped.
    async fn look_for_arrived_images(&mut self, services: &Arc<Services>) {
        let arrivals = *services.images.arrivals().borrow();
        if std::mem::replace(&mut self.background.arrivals, arrivals) == arrivals {
            return;
        }
        let retries = *services.images.retries().borrow();
        if std::mem::replace(&mut self.background.retries, retries) != retries {
            self.state.retry_failed_pulls();
            return;
        }
        let mut arrived = Vec::new();
        let (objects, source) = (services.objects.get(), &self.definition.desired.source);
        let (secrets, _) = pull_secrets::find(&self.definition.desired.pod, objects.seen_by(source));
        let of_host = objects.sharing().uses_registry_credentials(source);
        let secrets = PullSecrets::new(&secrets).with_host_credentials(of_host);
        for (user, image) in self.missing_images() {
            if services.images.ensure(image, PullPolicy::Never, &secrets).await.is_ok() {
                arrived.push(user);
            }
        }
        for user in arrived {
            match user {
                ImageUser::Container(name) => self.state.container_mut(&name).image = ImageWork::Open,
                ImageUser::Volume(name) => {
                    self.state.volumes.images.remove(&name);
                }
            }
        }
    }

    fn executor<'a>(&'a self, services: &'a Services) -> Executor<'a> {
        Executor { services, definition: &self.definition, state: &self.state, sandbox: None, record: &self.record }
    }

    pub(super) fn tell(
        &self,
        services: &Arc<Services>,
        container: Option<&ContainerName>,
        kind: EventType,
        reason: &str,
        message: &str,
    ) {
        self.executor(services).tell(container, kind, reason, message);
    }

    /// Returns true if every source that could have an object of this pod has delivered. Before that, at a start of the daemon, an object
    /// that is not there is not missing.
    fn knows_its_objects(&self) -> bool {
        let PodDefinition { desired, objects, .. } = &self.definition;
        let seen = objects.seen_by(&desired.source);
        references(&desired.pod).iter().all(|name| seen.is_settled(name))
    }

    /// Tells of back-offs that begin, and of what is missing.
    fn tell_waiting(&mut self, services: &Arc<Services>, plan: &PodActions) {
        let is_settled = self.knows_its_objects();
        let missing = self.definition.missing_files.clone().filter(|_| is_settled && self.phase == WorkPhase::Sync);
        if let Some(missing) = missing.as_ref().filter(|_| self.published.missing_files != missing) {
            self.tell(services, None, EventType::Warning, "FailedMount", missing);
        }
        self.published.missing_files = missing;
        for (container, waiting) in &plan.waiting {
            if self.waiting.get(container) == Some(waiting) {
                continue;
            }
            match waiting.reason {
                reason::CRASH_LOOP_BACK_OFF => {
                    let DesiredPod { full_name, uid, .. } = &*self.definition.desired;
                    let message = format!("Back-off restarting failed container {container} in pod {full_name}({uid})");
                    self.tell(services, Some(container), EventType::Warning, "BackOff", &message);
                }
                reason::CREATE_CONTAINER_CONFIG_ERROR
                    if is_settled
                        && self.definition.container(container).is_some_and(|definition| definition.missing.is_some()) =>
                {
                    self.tell(services, Some(container), EventType::Warning, "Failed", &format!("Error: {}", waiting.message));
                }
                reason::IMAGE_PULL_BACK_OFF => {
                    // Why it could not be pulled was told when it was tried.
                    let reasons = [": ErrImagePull: ", ": SignatureValidationFailed: "];
                    let ends = reasons.iter().filter_map(|reason| waiting.message.find(reason));
                    let what = ends.min().and_then(|end| waiting.message.get(..end)).unwrap_or(&waiting.message);
                    self.tell(services, Some(container), EventType::Normal, "BackOff", what);
                    self.tell(services, Some(container), EventType::Warning, "Failed", "Error: ImagePullBackOff");
                }
                reason::ERR_IMAGE_PULL
                | reason::SIGNATURE_VALIDATION_FAILED
                | reason::ERR_IMAGE_NEVER_PULL
                | reason::INVALID_IMAGE_NAME
                | reason::IMAGE_INSPECT_ERROR => {
                    self.tell(services, Some(container), EventType::Warning, "Failed", &format!("Error: {}", waiting.reason));
                }
                _ => {}
            }
        }
    }
}

fn define(desired: Arc<DesiredPod>, services: &Services) -> PodDefinition {
    let Services { pids_limit, objects, fingerprint_key, node, .. } = services;
    let (objects, fingerprint_key) = (objects.get(), fingerprint_key.clone());
    let context = DefinitionContext { pids_limit: *pids_limit, objects, fingerprint_key, facts: node.clone() };
    PodDefinition::new(desired, &context)
}
