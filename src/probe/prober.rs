//! The task that makes all checks: it waits for the next one, makes it beside itself, and tells workers what changed.

use super::check::{self, Checked};
use super::health::PodHealth;
use super::schedule::{Answer, Check, ProbeId, ProbedPod, Schedule};
use podstead_pod::PodUid;
use podstead_runtime::Runtime;
use podstead_sys::random::any_number;
use podstead_sys_async::clock::Clock;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Commands that run in containers at once, over all pods: each costs a process or two. More than a host has processors, since most of
/// them wait.
const EXECS: usize = 32;

/// A check that is made later than this says something about the host.
const LATE: Duration = Duration::from_secs(1);

/// The prober as workers use it. Never blocks.
pub trait Probes: Send + Sync + std::fmt::Debug + 'static {
    /// The pod's running containers and their probes are these.
    fn declare(&self, uid: &PodUid, pod: ProbedPod);

    /// Nothing of the pod is left.
    fn forget(&self, uid: &PodUid);

    /// Results of the pod's probes. Empty where nothing is probed.
    fn health(&self, uid: &PodUid) -> Arc<PodHealth>;
}

/// The near end of a [`Prober`].
#[derive(Clone, Debug)]
pub struct ProberHandle {
    /// Unbounded: each is sent by a worker's turn when something changed, and the prober never waits for anything else.
    requests: mpsc::UnboundedSender<Request>,
    health: SharedHealth,
}

#[derive(Debug)]
enum Request {
    Declare(PodUid, ProbedPod),
    Forget(PodUid),
}

#[derive(Clone, Debug, Default)]
struct SharedHealth(Arc<Mutex<HashMap<PodUid, Arc<PodHealth>>>>);

impl SharedHealth {
    fn lock(&self) -> MutexGuard<'_, HashMap<PodUid, Arc<PodHealth>>> {
        // A panic while it was held leaves a whole map: each change is one insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, uid: &PodUid, health: PodHealth) {
        let mut all = self.lock();
        if health.is_empty() {
            all.remove(uid);
        } else {
            all.insert(uid.clone(), Arc::new(health));
        }
    }
}

impl Probes for ProberHandle {
    fn declare(&self, uid: &PodUid, pod: ProbedPod) {
        // The prober ends with the daemon only.
        self.requests.send(Request::Declare(uid.clone(), pod)).ok();
    }

    fn forget(&self, uid: &PodUid) {
        self.requests.send(Request::Forget(uid.clone())).ok();
    }

    fn health(&self, uid: &PodUid) -> Arc<PodHealth> {
        self.health.lock().get(uid).cloned().unwrap_or_default()
    }
}

/// Makes all checks of all pods.
#[derive(Debug)]
pub struct Prober {
    schedule: Schedule,
    requests: mpsc::UnboundedReceiver<Request>,
    health: SharedHealth,
    checks: JoinSet<(ProbeId, Subject, Arc<super::ProbeSpec>, Checked)>,
    execs: Arc<Semaphore>,
    runtime: Arc<dyn Runtime>,
    events: Arc<dyn EventRecorder>,
    clock: Clock,
    /// Pods whose probes say something new.
    pokes: mpsc::UnboundedSender<PodUid>,
    random: fn() -> u32,
}

impl Prober {
    /// A prober, and what workers need of it. `pokes` is told of each pod of which something changed that its worker acts on or shows.
    pub fn new(
        runtime: Arc<dyn Runtime>,
        events: Arc<dyn EventRecorder>,
        clock: Clock,
        pokes: mpsc::UnboundedSender<PodUid>,
    ) -> (Self, ProberHandle) {
        let (request, requests) = mpsc::unbounded_channel();
        let health = SharedHealth::default();
        let prober = Self {
            schedule: Schedule::new(clock.now().moment),
            requests,
            health: health.clone(),
            checks: JoinSet::new(),
            execs: Arc::new(Semaphore::new(EXECS)),
            runtime,
            events,
            clock,
            pokes,
            random: any_number,
        };
        (prober, ProberHandle { requests: request, health })
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) -> Infallible {
        loop {
            self.turn().await;
        }
    }

    /// Waits for one thing to happen and acts on it.
    async fn turn(&mut self) {
        let next = self.schedule.next_due().map(|due| self.clock.instant(due));
        let timer = async {
            match next {
                Some(instant) => tokio::time::sleep_until(instant).await,
                None => std::future::pending().await,
            }
        };
        // Every arm is cancel-safe: `recv`, `join_next` and the timer take nothing out before they win.
        tokio::select! {
            Some(request) = self.requests.recv() => self.take(request),
            Some(joined) = self.checks.join_next() => match joined {
                Ok((probe, subject, spec, checked)) => self.answered(probe, &subject, &spec, checked),
                // A check that panicked leaves its probe under way for ever: the daemon restarts, which is a recovery.
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => {}
            },
            () = timer => self.begin(),
        }
    }

    fn take(&mut self, request: Request) {
        match request {
            Request::Declare(uid, pod) => {
                let random = self.random;
                let mut jitter = |period: Duration| period.mul_f64(f64::from(random()) / (f64::from(u32::MAX) + 1.0));
                self.schedule.declare(&uid, &pod, self.clock.now().moment, &mut jitter);
                self.health.set(&uid, self.schedule.health(&uid));
            }
            Request::Forget(uid) => {
                self.schedule.forget(&uid);
                self.health.set(&uid, PodHealth::new());
            }
        }
    }

    fn begin(&mut self) {
        let now = self.clock.now().moment;
        while let Some(due) = self.schedule.take_due(now) {
            let Check { probe, uid, container, subject, spec, address, late } = due;
            if late > LATE {
                tracing::warn!(pod_uid = %uid, probe = %spec.kind, late_ms = late.as_millis(), "probe started late: the host is overloaded");
            }
            let (runtime, execs) = (Arc::clone(&self.runtime), Arc::clone(&self.execs));
            let checked = check::Subject { uid, container, address };
            self.checks.spawn(async move {
                let answer = check::check(&runtime, &execs, &checked, &spec).await;
                (probe, subject, spec, answer)
            });
        }
    }

    fn answered(&mut self, probe: ProbeId, subject: &Subject, spec: &super::ProbeSpec, checked: Checked) {
        let kind = spec.kind;
        let Checked { answer, warning } = checked;
        if !self.schedule.has(probe) {
            // The run ended meanwhile: what its probe said is of no interest.
            return;
        }
        if let Some(warning) = warning {
            self.events.record(subject, EventType::Warning, "ProbeWarning", &format!("{kind} probe warning: {warning}"));
        }
        match &answer {
            Answer::Success => {}
            Answer::Failure(why) => {
                self.events.record(subject, EventType::Warning, "Unhealthy", &format!("{kind} probe failed: {why}"));
            }
            Answer::Error(why) => {
                let message = format!("{kind} probe errored and resulted in unknown state: {why}");
                self.events.record(subject, EventType::Warning, "Unhealthy", &message);
            }
        }
        if let Some(uid) = self.schedule.answered(probe, &answer, self.clock.now()) {
            self.health.set(&uid, self.schedule.health(&uid));
            // The sync loop ends with the daemon only.
            self.pokes.send(uid).ok();
        }
    }
}
