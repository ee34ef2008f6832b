//! One entry of `containerStatuses`.

use super::input::{Resize, StatusInput, Waiting};
use super::reason;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState as ApiState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    ContainerUser, LinuxContainerUser, ResourceRequirements, VolumeMount, VolumeMountStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use podstead_container::{ContainerState, ContainerStatus as Observed};
use podstead_pod::ContainerName;
use podstead_pod::containers::{self, ContainerKind};
use podstead_pod::resources::DeclaredAmounts;
use podstead_pod::signal::signal_name;
use std::collections::BTreeMap;

/// Exit code of a container whose end nobody saw; as containerd has it.
pub const UNKNOWN_EXIT_CODE: i32 = 255;
const SIGKILL: i32 = 9;
const SCHEME: &str = "podstead://";

/// The status of one container.
pub(super) fn container_status(input: &StatusInput<'_>, kind: ContainerKind, container: &Container) -> ContainerStatus {
    let name = ContainerName::new(&container.name);
    let mut runs: Vec<&Observed> =
        input.observed.iter().flat_map(|pod| &pod.containers).filter(|run| run.name == name && run.kind == kind).collect();
    runs.sort_by_key(|run| run.attempt);
    let latest = runs.pop();
    let before = runs.pop();

    // The kubelet's word for all that has not started in a pod with init containers, these included: kubectl counts `Init:0/2` by it.
    let has_init = containers::init(&input.desired.pod).next().is_some();
    let in_words = |waiting: &Waiting| match waiting.reason {
        reason::CONTAINER_CREATING if has_init => Waiting { reason: reason::POD_INITIALIZING, message: waiting.message.clone() },
        _ => waiting.clone(),
    };
    let waiting = || in_words(&Waiting { reason: reason::CONTAINER_CREATING, message: String::new() });
    let is_surpassed = |run: &Observed| input.surpassed.contains(&run.id);
    let between = latest.filter(|run| input.shall_run && is_surpassed(run));
    let between = between.map(|_| Waiting { reason: reason::RESTARTING_ALL_CONTAINERS, message: String::new() });
    let particular = input.waiting.get(&name).map(in_words).or(between);
    // The last of an earlier round was killed for the next one, if it did not end before.
    let was_killed = |run: &Observed| is_surpassed(run) && latest.is_none_or(|latest| latest.id == run.id || !is_surpassed(latest));
    let terminated_state = |run: &Observed| terminated_state(run, was_killed(run));
    let (state, last_state) = match latest {
        None => (waiting_state(particular.unwrap_or_else(waiting)), None),
        Some(run) => match &run.state {
            ContainerState::Running { started_at, .. } => {
                let starting = input.starting.get(&name).map(|starting| waiting_state(in_words(starting)));
                (starting.unwrap_or_else(|| running_state(*started_at)), before.map(&terminated_state))
            }
            ContainerState::Created => (waiting_state(particular.unwrap_or_else(waiting)), before.map(&terminated_state)),
            ContainerState::Exited { .. } | ContainerState::Unknown { .. } => match particular {
                Some(particular) => (waiting_state(particular), Some(terminated_state(run))),
                None => (terminated_state(run), before.map(&terminated_state)),
            },
        },
    };

    let is_running = state.running.is_some();
    let wanted = DeclaredAmounts::of(container);
    let given = latest.filter(|_| is_running).and_then(|run| Some(input.observed?.given.get(&run.id)?.declared.clone()));
    let allocated = match (input.resize, &given) {
        (Some(Resize::Infeasible(_)), Some(given)) => &given.requests,
        (Some(Resize::Infeasible(_) | Resize::InProgress(_)) | None, _) => &wanted.requests,
    };
    let exit_code = state.terminated.as_ref().map(|terminated| terminated.exit_code);
    let unready = input.unready.get(&name);
    let started = is_running && unready.is_none_or(|unready| unready.is_started);
    let ready = match kind {
        // An init container is ready when it has done its work.
        ContainerKind::Init => exit_code == Some(0),
        ContainerKind::Sidecar | ContainerKind::Main => is_running && unready.is_none(),
    };
    ContainerStatus {
        name: container.name.clone(),
        image: latest.map(|run| run.image_ref.clone()).or_else(|| container.image.clone()).unwrap_or_default(),
        image_id: latest.map(|run| run.image_id.clone()).unwrap_or_default(),
        container_id: latest.map(container_id),
        restart_count: latest.map_or(0, |run| i32::try_from(run.attempt).unwrap_or(i32::MAX)),
        ready,
        started: Some(started),
        state: Some(state),
        last_state: Some(last_state.unwrap_or_default()),
        user: latest.and_then(container_user),
        volume_mounts: volume_mounts(container),
        stop_signal: latest.and_then(|run| signal_name(run.stop_signal)),
        resources: resources(given.as_ref().unwrap_or(&wanted)),
        allocated_resources: quantities(allocated),
        ..ContainerStatus::default()
    }
}

fn resources(declared: &DeclaredAmounts) -> Option<ResourceRequirements> {
    let DeclaredAmounts { requests, limits } = declared;
    Some(ResourceRequirements { claims: None, requests: quantities(requests), limits: quantities(limits) })
}

fn quantities(amounts: &BTreeMap<String, String>) -> Option<BTreeMap<String, Quantity>> {
    let quantities = amounts.iter().map(|(name, text)| (name.clone(), Quantity(text.clone())));
    (!amounts.is_empty()).then(|| quantities.collect())
}

/// User of the first process; unknown for a run that was never created or that an older shim started.
fn container_user(run: &Observed) -> Option<ContainerUser> {
    let user = run.user.as_ref()?;
    let mut groups: Vec<i64> = vec![user.gid.into()];
    groups.extend(user.additional_gids.iter().map(|gid| i64::from(*gid)).filter(|gid| *gid != i64::from(user.gid)));
    let linux = LinuxContainerUser { uid: user.uid.into(), gid: user.gid.into(), supplemental_groups: Some(groups) };
    Some(ContainerUser { linux: Some(linux) })
}

/// Mount states of volumes. The kernel makes read-only mounts recursively so wherever that was asked for.
fn volume_mounts(container: &Container) -> Option<Vec<VolumeMountStatus>> {
    let status = |mount: &VolumeMount| {
        let is_read_only = mount.read_only == Some(true);
        let is_recursive = matches!(mount.recursive_read_only.as_deref(), Some("Enabled" | "IfPossible"));
        VolumeMountStatus {
            name: mount.name.clone(),
            mount_path: mount.mount_path.clone(),
            read_only: mount.read_only,
            recursive_read_only: is_read_only.then(|| if is_recursive { "Enabled" } else { "Disabled" }.to_owned()),
        }
    };
    container.volume_mounts.as_ref().map(|mounts| mounts.iter().map(status).collect())
}

fn container_id(run: &Observed) -> String {
    format!("{SCHEME}{}", run.id)
}

fn waiting_state(waiting: Waiting) -> ApiState {
    let message = (!waiting.message.is_empty()).then_some(waiting.message);
    ApiState { waiting: Some(ContainerStateWaiting { message, reason: Some(waiting.reason.to_owned()) }), ..ApiState::default() }
}

fn running_state(started_at: Timestamp) -> ApiState {
    ApiState { running: Some(ContainerStateRunning { started_at: Some(Time(started_at)) }), ..ApiState::default() }
}

/// The state of a run that is over; empty for one that is not. `for_restart`: what was killed was killed to restart all containers.
fn terminated_state(run: &Observed, for_restart: bool) -> ApiState {
    let terminated = match &run.state {
        ContainerState::Created | ContainerState::Running { .. } => return ApiState::default(),
        ContainerState::Exited { started_at, finished_at, exit_code, signal, oom_killed, error, message } => {
            let reason = match (error, oom_killed, exit_code) {
                (Some(_), _, _) => reason::START_ERROR,
                (None, true, _) => reason::OOM_KILLED,
                (None, false, 0) => reason::COMPLETED,
                (None, false, _) if for_restart && *signal == Some(SIGKILL) => reason::RESTARTING_ALL_CONTAINERS,
                (None, false, _) => reason::ERROR,
            };
            ContainerStateTerminated {
                container_id: Some(container_id(run)),
                exit_code: *exit_code,
                finished_at: Some(Time(*finished_at)),
                message: error.clone().or_else(|| message.clone()).filter(|text| !text.is_empty()),
                reason: Some(reason.to_owned()),
                // Kubernetes sets the signal only where there is no exit code; shells and tools expect 128 + signal.
                signal: signal.filter(|_| *exit_code == 0),
                started_at: started_at.map(Time),
            }
        }
        ContainerState::Unknown { started_at, found_at } => ContainerStateTerminated {
            container_id: Some(container_id(run)),
            exit_code: UNKNOWN_EXIT_CODE,
            finished_at: Some(Time(*found_at)),
            message: Some("The container was lost with its sandbox; its exit code is unknown".to_owned()),
            reason: Some(reason::CONTAINER_STATUS_UNKNOWN.to_owned()),
            signal: None,
            started_at: started_at.map(Time),
        },
    };
    ApiState { terminated: Some(terminated), ..ApiState::default() }
}
