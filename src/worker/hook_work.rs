//! The worker's part in hooks: starts the planned ones, cancels those no longer wanted, applies the results of finished ones.

use super::execute::subject;
use super::hook::{HookKind, HookRun};
use super::hook_mark::{self, Mark};
use super::memory::{PodMemory, PostStart};
use super::plan::Action;
use super::pod_worker::PodWorker;
use super::services::Services;
use podstead_container::{ContainerState, ObservedPod, SandboxStatus};
use podstead_pod::{ContainerId, ContainerName};
use podstead_probe::action::PodAddress;
use podstead_sys::layout::Paths;
use podstead_telemetry::events::EventType;
use std::sync::Arc;

impl PodWorker {
    /// Begins or gives up hooks, as `action` wants it.
    pub(super) fn tend_hook(&mut self, services: &Arc<Services>, sandbox: Option<&SandboxStatus>, action: &Action) {
        match action {
            Action::RunPostStart { container, id } => self.begin_hook(services, sandbox, container, id, HookKind::PostStart),
            Action::RunPreStop { container, id, .. } => self.begin_hook(services, sandbox, container, id, HookKind::PreStop),
            Action::StopContainer { container, id, .. } => {
                if self.hooks.give_up(id) == Some(HookKind::PreStop) {
                    let message = "PreStopHook did not complete within the grace period";
                    self.tell_of_hook(services, container, "FailedPreStopHook", message);
                }
            }
            Action::KillContainer { id, .. } => {
                self.hooks.give_up(id);
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
            | Action::ForgetPod => {}
        }
    }

    fn begin_hook(
        &mut self,
        services: &Arc<Services>,
        sandbox: Option<&SandboxStatus>,
        container: &ContainerName,
        id: &ContainerId,
        kind: HookKind,
    ) {
        let definition = self.definition.container(container);
        let hook = definition.and_then(|definition| match kind {
            HookKind::PostStart => definition.post_start.clone(),
            HookKind::PreStop => definition.pre_stop.clone(),
        });
        let netns = sandbox.and_then(|sandbox| sandbox.netns.as_deref());
        let address = if self.definition.sandbox.namespaces.host_network {
            PodAddress::new(&services.host_addresses.get(services.clock.now().moment), None)
        } else {
            PodAddress::new(&self.memory.pod_ips, netns)
        };
        self.hooks.begin(HookRun {
            services: Arc::clone(services),
            uid: self.definition.desired.uid.clone(),
            container: container.clone(),
            id: id.clone(),
            kind,
            hook,
            address,
        });
    }

    /// Takes in the hooks that came to their end.
    pub(super) fn take_in_hooks(&mut self, services: &Arc<Services>) {
        for ended in self.hooks.take_ended() {
            if let Err(why) = &ended.result {
                match ended.kind {
                    HookKind::PostStart => {
                        let message = format!("PostStartHook failed: {why}");
                        self.tell_of_hook(services, &ended.container, "FailedPostStartHook", &message);
                    }
                    HookKind::PreStop => {
                        self.tell_of_hook(services, &ended.container, "FailedPreStopHook", &format!("PreStopHook failed: {why}"));
                    }
                }
            }
            self.memory.hook_ended(&ended);
        }
    }

    fn tell_of_hook(&self, services: &Arc<Services>, container: &ContainerName, reason: &str, message: &str) {
        let subject = subject(&self.definition.desired, Some(container));
        services.events.record(&subject, EventType::Warning, reason, message);
    }
}

impl PodMemory {
    /// Takes over what an earlier daemon kept of the hooks of containers that still run.
    pub(super) fn adopt_hooks(&mut self, paths: &Paths, observed: &ObservedPod) {
        let runs = |id: &ContainerId| {
            observed.containers.iter().any(|run| run.id == *id && matches!(run.state, ContainerState::Running { .. }))
        };
        for mark in hook_mark::read(paths, &observed.uid) {
            match mark {
                Mark::OwesPostStart(id) if runs(&id) => {
                    self.post_starts.insert(id, PostStart::Owed);
                }
                Mark::PreStopDone(id) if runs(&id) => {
                    self.pre_stops_done.insert(id);
                }
                Mark::OwesPostStart(_) | Mark::PreStopDone(_) => {}
            }
        }
    }
}
