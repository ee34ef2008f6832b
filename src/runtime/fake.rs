//! A runtime in memory, for tests: stateful, with scripted failures, and strict about how it is used.
//!
//! It breaks the test when two operations on one pod overlap, when a container is started twice at once, or in a sandbox that is not there.

use super::*;
use jiff::Timestamp;
use podstead_container::{ContainerState, PodLifecycleEventKind, SandboxState};
use podstead_pod::ContainerName;
use podstead_sys_async::clock::Clock;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An operation that can be made to fail.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FakeOperation {
    /// [`Runtime::observe`].
    Observe,
    /// [`Runtime::create_sandbox`].
    CreateSandbox,
    /// [`Runtime::start_container`] of this container, before its program is executed.
    CreateContainer(ContainerName),
    /// [`Runtime::start_container`] of this container: its program cannot be executed.
    ExecuteContainer(ContainerName),
    /// [`Runtime::resize_container`] of this container.
    ResizeContainer(ContainerName),
    /// [`Runtime::stop_sandbox`].
    StopSandbox,
    /// [`Runtime::remove_pod`].
    RemovePod,
}

/// Reaction of containers to a stop signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSignal {
    /// They end at once.
    End,
    /// They go on until they are killed, or told to end by the test.
    Ignore,
}

#[derive(Debug, Default)]
struct FakePod {
    sandbox: Option<SandboxStatus>,
    containers: Vec<ContainerStatus>,
    specs: BTreeMap<ContainerId, ContainerSpec>,
    given: BTreeMap<ContainerId, Box<ContainerResources>>,
    plugged: BTreeMap<ContainerId, Vec<GivenDevice>>,
}

#[derive(Debug)]
struct State {
    pods: BTreeMap<PodUid, FakePod>,
    failures: BTreeMap<FakeOperation, VecDeque<String>>,
    on_signal: OnSignal,
    burstable_shares: Option<u64>,
    calls: Vec<String>,
    events: mpsc::UnboundedSender<PodLifecycleEvent>,
}

impl State {
    /// Without a daemon no event is received.
    fn send(&self, uid: &PodUid, kind: PodLifecycleEventKind) {
        self.events.send(PodLifecycleEvent { uid: uid.clone(), kind }).ok();
    }
}

/// The runtime in memory.
#[derive(Debug)]
pub struct FakeRuntime {
    clock: Clock,
    state: Mutex<State>,
    receiver: Mutex<Option<mpsc::UnboundedReceiver<PodLifecycleEvent>>>,
}

impl FakeRuntime {
    /// Nothing runs yet.
    pub fn new(clock: Clock) -> Self {
        let (events, receiver) = mpsc::unbounded_channel();
        let state = State {
            pods: BTreeMap::new(),
            failures: BTreeMap::new(),
            on_signal: OnSignal::End,
            calls: Vec::new(),
            burstable_shares: None,
            events,
        };
        Self { clock, state: Mutex::new(state), receiver: Mutex::new(Some(receiver)) }
    }

    /// The next call of `operation` fails with `reason`; may be called several times.
    pub fn fail(&self, operation: FakeOperation, reason: &str) {
        self.state().failures.entry(operation).or_default().push_back(reason.to_owned());
    }

    /// Sets the reaction of containers to a stop signal.
    pub fn on_signal(&self, on_signal: OnSignal) {
        self.state().on_signal = on_signal;
    }

    /// The calls since the last time, one line each.
    pub fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state().calls)
    }

    /// CPU shares of the Burstable pods, once they were set.
    pub fn burstable_shares(&self) -> Option<u64> {
        self.state().burstable_shares
    }

    /// UIDs of pods of which anything is left.
    pub fn pods(&self) -> Vec<PodUid> {
        self.state().pods.keys().cloned().collect()
    }

    /// The present state of a pod.
    pub fn observed(&self, uid: &PodUid) -> Option<ObservedPod> {
        self.state().pods.get(uid).map(|pod| observed(uid, pod))
    }

    /// The spec that a run was started with.
    pub fn spec(&self, uid: &PodUid, id: &ContainerId) -> Option<ContainerSpec> {
        self.state().pods.get(uid)?.specs.get(id).cloned()
    }

    /// Ends the running container of that name by itself. False if it does not run.
    pub fn exit(&self, uid: &PodUid, name: &str, exit_code: i32) -> bool {
        let mut state = self.state();
        let running = |container: &&ContainerStatus| container.name.as_str() == name && is_running(container);
        let id = state.pods.get(uid).and_then(|pod| pod.containers.iter().find(running).map(|container| container.id.clone()));
        match id {
            Some(id) => self.end(&mut state, uid, &id, exit_code, None),
            None => false,
        }
    }

    /// Kills the pod's shim. False if none lives.
    pub fn lose_sandbox(&self, uid: &PodUid) -> bool {
        let found_at = self.clock.now().wall;
        let mut state = self.state();
        let Some(pod) = state.pods.get_mut(uid) else { return false };
        let is_lost = lose(pod, found_at);
        if is_lost {
            state.send(uid, PodLifecycleEventKind::SandboxLost);
        }
        is_lost
    }

    /// Everything that lives ends, as when the host reboots; only records are left. There are no events: the daemon is gone too.
    pub fn reboot(&self) {
        let found_at = self.clock.now().wall;
        for pod in self.state().pods.values_mut() {
            lose(pod, found_at);
        }
    }

    /// Simulates a restart of the daemon: events can be taken again.
    pub fn restart_daemon(&self) {
        let (events, receiver) = mpsc::unbounded_channel();
        self.state().events = events;
        *self.receiver.lock().unwrap_or_else(PoisonError::into_inner) = Some(receiver);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call, and lets other tasks run so that overlapping calls would show.
    async fn call(&self, line: String, operation: Option<FakeOperation>) -> Result<(), String> {
        {
            let mut state = self.state();
            state.calls.push(line);
            if let Some(reason) = operation.and_then(|operation| state.failures.get_mut(&operation)?.pop_front()) {
                return Err(reason);
            }
        }
        tokio::task::yield_now().await;
        Ok(())
    }

    fn end(&self, state: &mut State, uid: &PodUid, id: &ContainerId, exit_code: i32, signal: Option<i32>) -> bool {
        let finished_at = self.clock.now().wall;
        let container = state.pods.get_mut(uid).and_then(|pod| pod.containers.iter_mut().find(|container| container.id == *id));
        let Some(container) = container else { return false };
        let ContainerState::Running { started_at, .. } = container.state else { return false };
        container.state = ContainerState::Exited {
            started_at: Some(started_at),
            finished_at,
            exit_code,
            signal,
            oom_killed: false,
            error: None,
            message: None,
        };
        let kind = PodLifecycleEventKind::ContainerDied(id.clone());
        state.send(uid, kind);
        true
    }
}

fn is_running(container: &ContainerStatus) -> bool {
    matches!(container.state, ContainerState::Running { .. })
}

fn lose(pod: &mut FakePod, found_at: Timestamp) -> bool {
    let Some(sandbox) = pod.sandbox.as_mut().filter(|sandbox| sandbox.state == SandboxState::Ready) else { return false };
    sandbox.state = SandboxState::Lost;
    sandbox.shim_pid = None;
    for container in &mut pod.containers {
        if let ContainerState::Running { started_at, .. } = container.state {
            container.state = ContainerState::Unknown { started_at: Some(started_at), found_at };
        }
    }
    true
}

fn observed(uid: &PodUid, pod: &FakePod) -> ObservedPod {
    let (sandbox, containers, given) = (pod.sandbox.clone(), pod.containers.clone(), pod.given.clone());
    ObservedPod { uid: uid.clone(), sandbox, containers, given, plugged: pod.plugged.clone() }
}

fn failed(operation: &str, reason: String) -> RuntimeError {
    RuntimeError::failed(operation, reason)
}

#[async_trait]
impl Runtime for FakeRuntime {
    async fn recover(&self) -> Result<Vec<ObservedPod>, RuntimeError> {
        Ok(self.state().pods.iter().map(|(uid, pod)| observed(uid, pod)).collect())
    }

    async fn create_sandbox(&self, spec: &SandboxSpec) -> Result<SandboxStatus, RuntimeError> {
        let created_at = self.clock.now().wall;
        self.call(format!("create_sandbox {}", spec.attempt), Some(FakeOperation::CreateSandbox))
            .await
            .map_err(|reason| failed("create sandbox", reason))?;
        let mut state = self.state();
        let pod = state.pods.entry(spec.uid.clone()).or_default();
        match &pod.sandbox {
            Some(sandbox) if sandbox.state == SandboxState::Ready && sandbox.spec.attempt == spec.attempt => {
                return Ok(sandbox.clone());
            }
            Some(sandbox) => assert_eq!(sandbox.state, SandboxState::Stopped, "a sandbox is made while another one is there"),
            None => {}
        }
        let netns = (!spec.namespaces.host_network).then(|| PathBuf::from(format!("/fake/{}/ns/net", spec.uid)));
        let sandbox = SandboxStatus {
            spec: spec.clone(),
            state: SandboxState::Ready,
            created_at,
            shim_pid: Some(1000 + spec.attempt),
            netns,
        };
        pod.sandbox = Some(sandbox.clone());
        Ok(sandbox)
    }

    async fn update_sandbox(&self, spec: &SandboxSpec) -> Result<SandboxStatus, RuntimeError> {
        self.call("update_sandbox".to_owned(), None).await.map_err(|reason| failed("update sandbox", reason))?;
        let mut state = self.state();
        let sandbox = state.pods.get_mut(&spec.uid).and_then(|pod| pod.sandbox.as_mut());
        let sandbox = sandbox.ok_or_else(|| RuntimeError::NotFound(format!("sandbox of pod {}", spec.uid)))?;
        sandbox.spec.resources = spec.resources.clone();
        Ok(sandbox.clone())
    }

    async fn resize_container(&self, uid: &PodUid, id: &ContainerId, resources: &ContainerResources) -> Result<(), RuntimeError> {
        let name = name_of(&self.state(), uid, id)?;
        self.call(format!("resize_container {name}"), Some(FakeOperation::ResizeContainer(name.clone())))
            .await
            .map_err(|reason| failed("resize container", reason))?;
        if let Some(pod) = self.state().pods.get_mut(uid) {
            pod.given.insert(id.clone(), Box::new(resources.clone()));
        }
        Ok(())
    }

    async fn plug_devices(&self, uid: &PodUid, id: &ContainerId, devices: &[GivenDevice]) -> Result<(), RuntimeError> {
        let name = name_of(&self.state(), uid, id)?;
        self.call(format!("plug_devices {name}"), None).await.map_err(|reason| failed("plug devices", reason))?;
        if let Some(pod) = self.state().pods.get_mut(uid) {
            pod.plugged.insert(id.clone(), devices.to_vec());
        }
        Ok(())
    }

    async fn stop_sandbox(&self, uid: &PodUid) -> Result<(), RuntimeError> {
        self.call("stop_sandbox".to_owned(), Some(FakeOperation::StopSandbox))
            .await
            .map_err(|reason| failed("stop sandbox", reason))?;
        let mut state = self.state();
        let ids: Vec<ContainerId> =
            state.pods.get(uid).iter().flat_map(|pod| &pod.containers).filter(|c| is_running(c)).map(|c| c.id.clone()).collect();
        for id in ids {
            self.end(&mut state, uid, &id, 137, Some(9));
        }
        if let Some(sandbox) = state.pods.get_mut(uid).and_then(|pod| pod.sandbox.as_mut()) {
            sandbox.state = SandboxState::Stopped;
            sandbox.shim_pid = None;
        }
        Ok(())
    }

    async fn observe(&self, uid: &PodUid) -> Result<Option<ObservedPod>, RuntimeError> {
        let failure = self.state().failures.get_mut(&FakeOperation::Observe).and_then(VecDeque::pop_front);
        match failure {
            Some(reason) => Err(failed("observe", reason)),
            None => Ok(self.observed(uid)),
        }
    }

    async fn start_container(&self, spec: &ContainerSpec) -> Result<ContainerStatus, StartError> {
        let created_at = self.clock.now().wall;
        self.call(
            format!("start_container {} {}", spec.name, spec.attempt),
            Some(FakeOperation::CreateContainer(spec.name.clone())),
        )
        .await
        .map_err(StartError::Create)?;
        let mut state = self.state();
        let execute_error =
            state.failures.get_mut(&FakeOperation::ExecuteContainer(spec.name.clone())).and_then(VecDeque::pop_front);
        let pod = state.pods.get_mut(&spec.pod).ok_or_else(|| RuntimeError::NotFound(format!("sandbox of pod {}", spec.pod)))?;
        let sandbox = pod.sandbox.as_ref().filter(|sandbox| sandbox.state == SandboxState::Ready);
        let sandbox = sandbox.ok_or_else(|| RuntimeError::NotFound(format!("sandbox of pod {}", spec.pod)))?;
        assert_eq!(sandbox.spec.attempt, spec.sandbox_attempt, "a container is started for another sandbox");
        assert!(!pod.containers.iter().any(|c| c.name == spec.name && is_running(c)), "container {} runs twice", spec.name);
        assert!(!pod.containers.iter().any(|c| c.name == spec.name && c.attempt == spec.attempt), "attempt {} twice", spec.attempt);
        let state_after = match &execute_error {
            None => ContainerState::Running { pid: 4242, started_at: created_at },
            Some(error) => ContainerState::Exited {
                started_at: None,
                finished_at: created_at,
                exit_code: 128,
                signal: None,
                oom_killed: false,
                error: Some(error.clone()),
                message: None,
            },
        };
        let container = ContainerStatus::of(spec, created_at, state_after);
        pod.containers.push(container.clone());
        pod.specs.insert(spec.id.clone(), spec.clone());
        let given = ContainerResources { declared: spec.declared.clone(), cgroup: spec.resources.clone() };
        pod.given.insert(spec.id.clone(), Box::new(given));
        if let Some(plugged) = &spec.devices.plugged {
            pod.plugged.insert(spec.id.clone(), plugged.clone());
        }
        match execute_error {
            Some(error) => Err(StartError::Execute(error)),
            None => {
                let kind = PodLifecycleEventKind::ContainerStarted(spec.id.clone());
                state.send(&spec.pod, kind);
                Ok(container)
            }
        }
    }

    async fn signal_container(&self, uid: &PodUid, id: &ContainerId, signal: i32) -> Result<(), RuntimeError> {
        let mut state = self.state();
        let name = name_of(&state, uid, id)?;
        state.calls.push(format!("signal_container {name} {signal}"));
        if state.on_signal == OnSignal::End {
            self.end(&mut state, uid, id, 128 + signal, Some(signal));
        }
        Ok(())
    }

    async fn kill_container(&self, uid: &PodUid, id: &ContainerId) -> Result<(), RuntimeError> {
        let mut state = self.state();
        let name = name_of(&state, uid, id)?;
        state.calls.push(format!("kill_container {name}"));
        self.end(&mut state, uid, id, 137, Some(9));
        Ok(())
    }

    async fn remove_container(&self, uid: &PodUid, id: &ContainerId) -> Result<(), RuntimeError> {
        let mut state = self.state();
        let name = name_of(&state, uid, id)?;
        state.calls.push(format!("remove_container {name}"));
        if let Some(pod) = state.pods.get_mut(uid) {
            assert!(!pod.containers.iter().any(|c| c.id == *id && is_running(c)), "container {name} is removed while it runs");
            pod.containers.retain(|container| container.id != *id);
            pod.specs.remove(id);
            pod.given.remove(id);
            pod.plugged.remove(id);
        }
        Ok(())
    }

    async fn remove_pod(&self, uid: &PodUid) -> Result<(), RuntimeError> {
        self.call("remove_pod".to_owned(), Some(FakeOperation::RemovePod)).await.map_err(|reason| failed("remove pod", reason))?;
        let removed = self.state().pods.remove(uid);
        let is_ready = removed.and_then(|pod| pod.sandbox).is_some_and(|sandbox| sandbox.state == SandboxState::Ready);
        assert!(!is_ready, "a pod is forgotten while its sandbox lives");
        Ok(())
    }

    fn weigh_burstable(&self, cpu_shares: u64) -> Result<(), RuntimeError> {
        self.state().burstable_shares = Some(cpu_shares);
        Ok(())
    }

    async fn exec(&self, _: &PodUid, id: &ContainerId, _: &ExecSpec) -> Result<ExecSession, RuntimeError> {
        Err(RuntimeError::NotFound(format!("container {id}")))
    }

    async fn attach(&self, _: &PodUid, id: &ContainerId) -> Result<ExecSession, RuntimeError> {
        Err(RuntimeError::NotFound(format!("container {id}")))
    }

    fn take_events(&self) -> Option<mpsc::UnboundedReceiver<PodLifecycleEvent>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn name_of(state: &State, uid: &PodUid, id: &ContainerId) -> Result<ContainerName, RuntimeError> {
    let container = state.pods.get(uid).and_then(|pod| pod.containers.iter().find(|container| container.id == *id));
    container.map(|container| container.name.clone()).ok_or_else(|| RuntimeError::NotFound(format!("container {id}")))
}
