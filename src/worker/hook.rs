//! Lifecycle hooks, run right after a container's start and before its stop signal (kubelet rules D8 and D12).
//!
//! [`Hook`] is the action of a definition; [`Hooks`] are the hooks of one pod that are under way, beside the pod's turns: the end of one asks
//! for another turn. A hook that is given up is ended: its process in the container is killed, its connection closed.

use super::definition::PodDefinition;
use super::event_subject::subject;
pub use super::hook_action::Hook;
pub(super) use super::hook_action::{HookEnded, HookKind};
use super::plan::Action;
use super::saved::{HookMark, set_hook_mark};
use super::services::Services;
use super::state::{PodState, Runs};
use podstead_container::SandboxStatus;
use podstead_pod::{ContainerId, ContainerName, PodUid};
use podstead_probe::action::http::Asker;
use podstead_probe::action::{Action as Check, PodAddress, exec, http};
use podstead_telemetry::error_chain;
use podstead_telemetry::events::EventType;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// A hook that is to run.
#[derive(Debug)]
struct HookRun {
    services: Arc<Services>,
    uid: PodUid,
    container: ContainerName,
    id: ContainerId,
    kind: HookKind,
    /// `None` when an edit took it away: then it is done.
    hook: Option<Hook>,
    /// Target of `httpGet`.
    address: PodAddress,
}

impl HookRun {
    /// Does it, keeps on disk that it is done, and asks for a turn of the pod.
    async fn run(self, results: mpsc::UnboundedSender<Box<HookEnded>>) {
        let result = self.act().await;
        let Self { services, uid, container, id, kind, .. } = self;
        let mark = match (kind, &result) {
            (HookKind::PostStart, Ok(())) => Some(None),
            // A failed one is done again by a daemon that finds its container alive.
            (HookKind::PostStart, Err(_)) => None,
            (HookKind::PreStop, _) => Some(Some(HookMark::PreStopDone(id.clone()))),
        };
        if let Some(mark) = mark {
            set_hook_mark(&services.paths, &uid, &container, mark).await;
        }
        // Without a worker and a sync loop nothing goes on.
        results.send(Box::new(HookEnded { container, id, kind, result })).ok();
        services.pokes.send(uid).ok();
    }

    async fn act(&self) -> Result<(), String> {
        let Some(hook) = &self.hook else { return Ok(()) };
        match hook {
            Hook::Sleep(pause) => {
                tokio::time::sleep(*pause).await;
                Ok(())
            }
            Hook::Unusable(why) => Err(why.clone()),
            Hook::Check(Check::Exec(arguments)) => {
                let answer = exec::run(&self.services.runtime, &self.uid, &self.id, arguments).await;
                let answer = answer.map_err(|error| error_chain(&error).to_string())?;
                match (answer.exit_code, answer.output.trim()) {
                    (0, _) => Ok(()),
                    (code, "") => Err(format!("command exited with {code}")),
                    (code, output) => Err(format!("command exited with {code}: {output}")),
                }
            }
            // Any answer will do, as for the kubelet.
            Hook::Check(Check::Http(request)) => http::get(&self.address, request, Asker::Hook).await.map(drop),
            Hook::Check(Check::Tcp(_) | Check::Grpc(_)) => Err("hooks support only exec, httpGet and sleep".to_owned()),
        }
    }
}

/// Running hooks of one pod; all are cancelled when the worker is dropped.
#[derive(Debug)]
pub(super) struct Hooks {
    tasks: JoinSet<()>,
    running: BTreeMap<ContainerId, (HookKind, AbortHandle)>,
    /// Unbounded: at most one per container is under way. In boxes: a channel keeps room for 32 values.
    results: (mpsc::UnboundedSender<Box<HookEnded>>, mpsc::UnboundedReceiver<Box<HookEnded>>),
}

impl Hooks {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { tasks: JoinSet::new(), running: BTreeMap::new(), results: mpsc::unbounded_channel() }
    }

    /// Begins one. Another one of the same container is given up.
    fn begin(&mut self, run: HookRun) {
        let (id, kind) = (run.id.clone(), run.kind);
        self.give_up(&id);
        let handle = self.tasks.spawn(run.run(self.results.0.clone()));
        self.running.insert(id, (kind, handle));
    }

    /// Ends the hook of a container. Which one it was, if one was under way.
    fn give_up(&mut self, id: &ContainerId) -> Option<HookKind> {
        let (kind, handle) = self.running.remove(id)?;
        handle.abort();
        Some(kind)
    }

    /// Takes the hooks that finished since the last call, except cancelled ones.
    fn take_ended(&mut self) -> Vec<HookEnded> {
        while let Some(joined) = self.tasks.try_join_next() {
            if let Err(error) = joined
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        let mut ended = Vec::new();
        while let Ok(end) = self.results.1.try_recv() {
            if self.running.get(&end.id).is_some_and(|(kind, _)| *kind == end.kind) {
                self.running.remove(&end.id);
                ended.push(*end);
            }
        }
        ended
    }

    /// Begins or cancels hooks, as `action` wants it.
    pub(super) fn follow(
        &mut self,
        services: &Arc<Services>,
        definition: &PodDefinition,
        state: &PodState,
        sandbox: Option<&SandboxStatus>,
        action: &Action,
    ) {
        let (container, id, kind) = match action {
            Action::RunPostStart { container, id } => (container, id, HookKind::PostStart),
            Action::RunPreStop { container, id, .. } => (container, id, HookKind::PreStop),
            Action::StopContainer { container, id, .. } => {
                if self.give_up(id) == Some(HookKind::PreStop) {
                    let message = "PreStopHook did not complete within the grace period";
                    record_failure(services, definition, container, "FailedPreStopHook", message);
                }
                return;
            }
            Action::KillContainer { id, .. } => {
                self.give_up(id);
                return;
            }
            Action::WriteRecord
            | Action::EnsureImage { .. }
            | Action::EnsureVolumeImage { .. }
            | Action::PrepareVolumes
            | Action::StopSandbox
            | Action::CreateSandbox { .. }
            | Action::ResizeSandbox(_)
            | Action::ResizeContainer { .. }
            | Action::SetUpNetwork
            | Action::RemoveContainer { .. }
            | Action::StartContainer { .. }
            | Action::Finish(_)
            | Action::TrimVolumes
            | Action::MeasureStorage
            | Action::Recreate
            | Action::RemoveVolumes
            | Action::ForgetPod => return,
        };
        let hook = definition.container(container).and_then(|definition| match kind {
            HookKind::PostStart => definition.post_start.clone(),
            HookKind::PreStop => definition.pre_stop.clone(),
        });
        let netns = sandbox.and_then(|sandbox| sandbox.netns.as_deref());
        let address = if definition.sandbox.namespaces.host_network {
            PodAddress::new(&services.host_addresses.get(services.clock.now().moment), None)
        } else {
            PodAddress::new(&state.network.ips, netns)
        };
        let (services, uid) = (Arc::clone(services), definition.desired.uid.clone());
        self.begin(HookRun { services, uid, container: container.clone(), id: id.clone(), kind, hook, address });
    }

    /// Applies the results of finished hooks to the runs.
    pub(super) fn apply_ended(&mut self, services: &Services, definition: &PodDefinition, runs: &mut Runs) {
        for ended in self.take_ended() {
            if let Err(why) = &ended.result {
                let (reason, message) = match ended.kind {
                    HookKind::PostStart => ("FailedPostStartHook", format!("PostStartHook failed: {why}")),
                    HookKind::PreStop => ("FailedPreStopHook", format!("PreStopHook failed: {why}")),
                };
                record_failure(services, definition, &ended.container, reason, &message);
            }
            runs.hook_ended(&ended);
        }
    }
}

fn record_failure(services: &Services, definition: &PodDefinition, container: &ContainerName, reason: &str, message: &str) {
    let subject = subject(&definition.desired, Some(container));
    services.events.record(&subject, EventType::Warning, reason, message);
}
