//! One case: read from YAML, turned into the input of a plan, and its plan as text.

use k8s_openapi::api::core::v1::{ConfigMap, PodSpec};
use podstead::container::{ContainerState, ContainerStatus, ObservedPod, SandboxState, SandboxStatus};
use podstead::container::{ImageConfig, ResolvedImage};
use podstead::pod::DesiredPod;
use podstead::pod::Revision;
use podstead::pod::env::EnvFacts;
use podstead::pod::objects::{FingerprintKey, Object, ObjectKind, ObjectName, Objects};
use podstead::pod::sharing::Sharing;
use podstead::pod::{ContainerId, ContainerName, NodeName, Pod, PodFullName, PodUid, SourceId};
use podstead::pod::{Origin, Position};
use podstead::probe::ProbeKind;
use podstead::status::PodResult;
use podstead::sys_async::clock::{Moment, Now};
use podstead::worker::backoff::{Backoff, BackoffPolicy, Failure};
use podstead::worker::definition::{DefinitionContext, PodDefinition};
use podstead::worker::phase::WorkPhase;
use podstead::worker::plan::{PlanInput, StopReason, compute_pod_actions};
use podstead::worker::state::health::{Health, RunState};
use podstead::worker::state::{
    ActiveTimes, CrashLoop, ExitCode, ImageWork, NetworkWork, PodState, PostStart, PreStop, RunStage, Step, Stop, Up, VolumeWork,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// A case as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// A sentence.
    pub(crate) name: String,
    /// Name of the row of the kubelet's table that it is modelled on; podstead's own unless given.
    #[expect(dead_code, reason = "for who looks it up")]
    upstream: Option<String>,
    /// The outcome for a real pod: `tests/node/conformance` sees to it.
    pub(crate) world: Option<BTreeMap<String, String>>,
    /// The node test that shows it, if it cannot be provoked there.
    pub(crate) shown_by: Option<String>,
    /// Containers of the real pod that go on when they are asked to end, as those in `stopping` do.
    #[serde(default)]
    #[expect(dead_code, reason = "for the real pod")]
    stubborn: Vec<String>,
    /// The wanted pod.
    pod: PodSpec,
    /// The pod when the observed containers were started; the same unless given.
    was: Option<PodSpec>,
    /// ConfigMaps with their data.
    #[serde(default)]
    config_maps: BTreeMap<String, BTreeMap<String, String>>,
    /// The ConfigMaps when the observed containers were started; the same unless given.
    config_maps_were: Option<BTreeMap<String, BTreeMap<String, String>>>,
    /// Its sandbox, if there is one.
    sandbox: Option<Sandbox>,
    /// Runs of its containers, oldest first.
    #[serde(default)]
    containers: Vec<Run>,
    /// All images are there.
    #[serde(default)]
    has_images: bool,
    /// The sandbox was made, but its network was not set up.
    #[serde(default)]
    lacks_network: bool,
    /// Images that are not as usual: usual is that nobody looked yet.
    #[serde(default)]
    images: BTreeMap<String, Image>,
    /// Seconds of back-off that containers have earned so far.
    #[serde(default)]
    backoff: BTreeMap<String, u64>,
    /// Containers that were signalled, and the seconds that are left to them.
    #[serde(default)]
    stopping: BTreeMap<String, i64>,
    /// Stages of the preStop hooks of containers that are being stopped.
    #[serde(default)]
    pre_stop: BTreeMap<String, Stage>,
    /// Stages of the postStart hooks of containers.
    #[serde(default)]
    post_start: BTreeMap<String, Stage>,
    /// Results of probes of containers that run, or of those that do not any more.
    #[serde(default)]
    probes: BTreeMap<String, Said>,
    /// Preparing volumes failed just now.
    #[serde(default)]
    volumes_failed: bool,
    /// The pod is removed, or is over, since so many seconds.
    #[serde(default)]
    end: Option<End>,
    /// Seconds since the pod was taken up.
    #[serde(default)]
    active: u64,
    /// The steps, one per line.
    plan: String,
    /// Waiting reasons.
    #[serde(default)]
    waiting: BTreeMap<String, String>,
    /// Seconds until the next look.
    wake: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sandbox {
    #[serde(default = "ready")]
    state: SandboxState,
    #[serde(default)]
    attempt: u32,
}

const fn ready() -> SandboxState {
    SandboxState::Ready
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    name: String,
    #[serde(default)]
    attempt: u32,
    /// `running`, `created`, `unknown` or an exit code.
    state: String,
    /// Attempt of its sandbox; that of the present one unless given.
    sandbox: Option<u32>,
    /// Number of restarts of all containers when it was started.
    #[serde(default)]
    round: u32,
    /// Seconds since its end.
    #[serde(default = "an_hour")]
    ago: u64,
}

const fn an_hour() -> u64 {
    3600
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum Said {
    Starting,
    Unready,
    Startup,
    Liveness,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum Image {
    Present,
    Pulling,
    Failed,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum Stage {
    Owed,
    Running,
    Ended,
    Failed,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum End {
    Removed(u64),
    Finished(u64),
}

const NOW: Duration = Duration::from_secs(100_000);

fn moment(seconds_from_now: i64) -> Moment {
    let now = Moment::from_beginning(NOW);
    let distance = Duration::from_secs(seconds_from_now.unsigned_abs());
    if seconds_from_now < 0 { now - distance } else { now + distance }
}

fn definition(spec: &PodSpec, objects: &Objects) -> PodDefinition {
    let mut pod = Pod { spec: Some(spec.clone()), ..Pod::default() };
    pod.metadata.name = Some("pod".into());
    pod.metadata.namespace = Some("default".into());
    let desired = DesiredPod {
        uid: PodUid::new("uid"),
        full_name: PodFullName { name: "pod".into(), namespace: "default".into() },
        source: SourceId::new("manifests"),
        revision: Revision("1".into()),
        origin: Origin { file: "pod.yaml".into(), position: Position { line: 1, column: 1 } },
        pod: Arc::new(pod),
    };
    let context = DefinitionContext {
        pids_limit: None,
        objects: Arc::new(objects.clone()),
        fingerprint_key: FingerprintKey::new([7; 32]),
        facts: EnvFacts {
            node_name: NodeName::new("node"),
            cluster_domain: "cluster.local".into(),
            host_ips: Vec::new(),
            pod_ips: Vec::new(),
            service_variables: Vec::new(),
            allocatable_cpu_milli: 2000,
            allocatable_memory_bytes: 1 << 30,
            allocatable_ephemeral_storage_bytes: 1 << 30,
        },
    };
    PodDefinition::new(Arc::new(desired), &context)
}

/// ConfigMaps of the only source, by name.
fn view(config_maps: &BTreeMap<String, BTreeMap<String, String>>) -> Objects {
    let source = SourceId::new("manifests");
    let mut view = Objects::new(Arc::new(Sharing::from([source.clone()])), |_| true);
    for (name, data) in config_maps {
        let object = ConfigMap { data: Some(data.clone()), ..ConfigMap::default() };
        let name = ObjectName { kind: ObjectKind::ConfigMap, namespace: "default".into(), name: name.into() };
        view.add(&source, name, Object::ConfigMap(Arc::new(object)));
    }
    view
}

impl Scenario {
    /// The plan as it should be.
    pub(crate) fn expected(&self) -> String {
        let mut text = String::new();
        for line in self.plan.lines() {
            writeln!(text, "{}", line.trim()).unwrap();
        }
        for (container, reason) in &self.waiting {
            writeln!(text, "{container} waits: {reason}").unwrap();
        }
        if let Some(wake) = self.wake {
            writeln!(text, "look again in {wake}s").unwrap();
        }
        text
    }

    /// The plan as it is.
    pub(crate) fn found(&self) -> String {
        let objects = view(&self.config_maps);
        let new = definition(&self.pod, &objects);
        let objects_were = self.config_maps_were.as_ref().map_or(objects, view);
        let old = definition(self.was.as_ref().unwrap_or(&self.pod), &objects_were);
        let observed = self.observed(&old);
        let now = Now { moment: moment(0), wall: "2025-06-01T12:00:00Z".parse().unwrap() };
        let state = self.state(&old, &new, &observed, now);
        let mut phase = WorkPhase::Sync;
        match self.end {
            None => {}
            Some(End::Removed(ago)) => phase.remove(new.grace, moment(-i64::try_from(ago).unwrap())),
            Some(End::Finished(ago)) => phase.finish(PodResult::succeeded(), new.grace, moment(-i64::try_from(ago).unwrap())),
        }
        let crash_loop = BackoffPolicy::crash_loop(Duration::from_secs(300));
        let input = PlanInput { definition: &new, observed: &observed, phase: &phase, state: &state, crash_loop: &crash_loop, now };
        let plan = compute_pod_actions(input);
        let mut text = String::new();
        for action in &plan.actions {
            writeln!(text, "{action}").unwrap();
        }
        for (container, waiting) in plan.waiting.iter().chain(&plan.starting) {
            writeln!(text, "{container} waits: {}", waiting.reason).unwrap();
        }
        if let Some(wake) = plan.wake {
            writeln!(text, "look again in {}s", wake.since(moment(0)).as_secs()).unwrap();
        }
        text
    }

    fn observed(&self, old: &PodDefinition) -> ObservedPod {
        let created_at = "2025-06-01T09:00:00Z".parse().unwrap();
        let sandbox = self.sandbox.as_ref().map(|sandbox| {
            let spec = podstead::container::SandboxSpec { attempt: sandbox.attempt, ..old.sandbox.clone() };
            SandboxStatus { spec, state: sandbox.state, created_at, shim_pid: None, netns: None }
        });
        let present = self.sandbox.as_ref().map_or(0, |sandbox| sandbox.attempt);
        let containers = self.containers.iter().map(|run| self.run(old, run, present)).collect();
        let given = self.containers.iter().map(|run| {
            let given = old.container(&ContainerName::new(&run.name)).unwrap().resources.clone();
            (ContainerId::new(format!("{}-{}", run.name, run.attempt)), Box::new(given))
        });
        ObservedPod { uid: PodUid::new("uid"), sandbox, given: given.collect(), plugged: BTreeMap::new(), containers }
    }

    fn run(&self, old: &PodDefinition, run: &Run, present: u32) -> ContainerStatus {
        let name = ContainerName::new(&run.name);
        let definition = old.container(&name).unwrap_or_else(|| panic!("{}: no container {name}", self.name));
        let created_at: jiff::Timestamp = "2025-06-01T09:00:00Z".parse().unwrap();
        let ended: jiff::Timestamp = "2025-06-01T12:00:00Z".parse().unwrap();
        let ended = ended.checked_sub(jiff::SignedDuration::from_secs(i64::try_from(run.ago).unwrap())).unwrap();
        let state = match run.state.as_str() {
            "running" => ContainerState::Running { pid: 1, started_at: created_at },
            "created" => ContainerState::Created,
            "unknown" => ContainerState::Unknown { started_at: None, found_at: ended },
            code => ContainerState::Exited {
                started_at: Some(created_at),
                finished_at: ended,
                exit_code: code.parse().unwrap(),
                signal: None,
                oom_killed: false,
                error: None,
                message: None,
            },
        };
        ContainerStatus {
            id: ContainerId::new(format!("{}-{}", run.name, run.attempt)),
            name,
            kind: definition.kind,
            attempt: run.attempt,
            sandbox_attempt: run.sandbox.unwrap_or(present),
            hash: definition.hash.in_round(run.round),
            image_ref: definition.image.clone(),
            image_id: String::new(),
            user: None,
            stop_signal: 15,
            created_at,
            log_path: "/log".into(),
            state,
        }
    }

    fn state(&self, old: &PodDefinition, new: &PodDefinition, observed: &ObservedPod, now: Now) -> PodState {
        let taken = || if self.sandbox.is_some() { Step::Done } else { Step::Open };
        let mut state = PodState {
            record: taken(),
            volumes: VolumeWork { step: taken(), were_prepared: self.sandbox.is_some(), ..VolumeWork::default() },
            network: NetworkWork { step: if self.lacks_network { Step::Open } else { taken() }, ..NetworkWork::default() },
            active: ActiveTimes { since: Some(moment(-i64::try_from(self.active).unwrap())), ..ActiveTimes::default() },
            ..PodState::default()
        };
        let failure = |reason| Failure::again(None, &BackoffPolicy::image_pull(), reason, "no route", now.moment);
        state.observe(observed, now);
        if self.was.is_some() {
            state.redefine(old, new, observed);
        } else if self.config_maps_were.is_some() {
            state.reassess(old, new, observed);
        }
        for (name, seconds) in &self.backoff {
            let name = ContainerName::new(name);
            let hash = new.container(&name).unwrap().hash.to_string();
            let backoff = Backoff { delay: Duration::from_secs(*seconds), updated: moment(-60) };
            state.container_mut(&name).crash_loop = Some(CrashLoop { hash, backoff });
        }
        let present = || {
            let config = ImageConfig::default();
            ImageWork::Present(Box::new(ResolvedImage {
                digest: String::new(),
                layers: Vec::new(),
                config,
                lease: Default::default(),
            }))
        };
        for container in new.containers.iter().filter(|_| self.has_images) {
            state.container_mut(&container.name).image = present();
        }
        for (name, image) in &self.images {
            state.container_mut(&ContainerName::new(name)).image = match image {
                Image::Present => present(),
                Image::Pulling => ImageWork::Pulling { previous: None, progress: None },
                Image::Failed => ImageWork::Failed(failure("ErrImagePull")),
            };
        }
        for (name, stage) in &self.post_start {
            let id = observed.containers.iter().find(|run| run.name.as_str() == name).unwrap().id.clone();
            let hook = match stage {
                Stage::Owed => PostStart::Owed,
                Stage::Running => PostStart::Running,
                Stage::Failed => PostStart::Failed("no".to_owned()),
                Stage::Ended => panic!("{}: {stage:?}", self.name),
            };
            state.runs.set_post_start(&id, hook);
        }
        for (name, said) in &self.probes {
            let run = observed.containers.iter().rfind(|run| run.name.as_str() == name).unwrap();
            let known = RunState::unprobed(now.moment);
            let known = match said {
                Said::Starting => RunState { is_started: false, is_ready: false, ..known },
                Said::Unready => RunState { is_ready: false, ..known },
                Said::Startup => RunState { is_started: false, is_ready: false, failed: Some(ProbeKind::Startup), ..known },
                Said::Liveness => RunState { failed: Some(ProbeKind::Liveness), ..known },
            };
            state.runs.entry(&run.id).health = Health::Known(known);
        }
        for (name, left) in &self.stopping {
            let is_it = |run: &&ContainerStatus| run.name.as_str() == name && matches!(run.state, ContainerState::Running { .. });
            let id = observed.containers.iter().find(is_it).unwrap().id.clone();
            let run = state.runs.entry(&id);
            if !self.probes.contains_key(name) {
                run.exit_code = ExitCode::Ignored;
            }
            let pre_stop = match self.pre_stop.get(name) {
                None => PreStop::None,
                Some(Stage::Running) => PreStop::Running,
                Some(Stage::Ended) => PreStop::Ended,
                Some(stage @ (Stage::Owed | Stage::Failed)) => panic!("{}: {stage:?}", self.name),
            };
            let deadline = moment(*left);
            // Any but a resize, which a plan goes on to tell as one; no row has such a stop under way.
            let why = StopReason::PodEnds;
            let stop = Stop { deadline, not_before: deadline.min(now.moment), pre_stop, killed: None, why };
            let up = match &run.stage {
                RunStage::Up(up) => up.clone(),
                RunStage::Stopping { .. } | RunStage::Ended(_) => Up::Serving,
            };
            run.stage = RunStage::Stopping { stop, up };
        }
        if self.volumes_failed {
            state.volumes.step = Step::Failed(failure("FailedMount"));
        }
        state
    }
}
