//! SIGTERM: the host shuts down, and perhaps no daemon is there to stop the pod. The shim stops it as the daemon would, as far as it can
//! alone, so that the host does not wait for it, and every exit is on disk.
//!
//! As in the kubelet (rule D12): the `preStop` hooks of all containers begin at once; a main container gets its signal when its hook is
//! over, a sidecar when moreover all main containers and the sidecars after it are gone. Hook, turn and signal share the grace period; there
//! are two seconds at least between signal and SIGKILL. Of hooks, all are done but `httpGet` over HTTPS.

use super::container::Stopping;
use super::event_loop::{PodShim, RETRY};
use super::explain::complain;
use super::poller::{ClientKey, ContainerKey};
use podstead_container::{ExecSpec, ShutdownHook};
use podstead_pod::ContainerId;
use podstead_sys::self_exec::OWN_BINARY;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Between stop signal and SIGKILL, however short the grace period is.
const LEAST_GRACE: Duration = Duration::from_secs(2);

impl PodShim {
    /// Asks all containers to stop; what is left when the longest grace period is over is killed. The loop ends with the last of them.
    pub(super) fn begin_host_shutdown(&mut self, now: Instant) {
        if self.host_shutdown.is_some() {
            return;
        }
        let longest = self.containers.living().map(|container| container.grace).max().unwrap_or_default();
        self.host_shutdown = Some(now + longest);
        let all: Vec<ContainerKey> = self.containers.living().map(|container| container.key).collect();
        all.into_iter().for_each(|key| self.begin_hook(key, now));
        self.go_on_with_host_shutdown(now);
    }

    fn begin_hook(&mut self, key: ContainerKey, now: Instant) {
        let Some(container) = self.containers.get(key) else { return };
        let (id, hook) = (container.id().clone(), container.shutdown.hook.clone());
        let asks = container.shutdown.request.is_some();
        let stopping = match hook {
            None if asks => self.ask(&id),
            None => Stopping::Waiting,
            Some(ShutdownHook::Sleep(seconds)) => Stopping::Sleeping(now + Duration::from_secs(seconds)),
            Some(ShutdownHook::Exec(args)) => {
                // No client has this key: the output of the hook is discarded.
                let nobody = ClientKey(self.new_key());
                match self.launch_exec_helper(nobody, 0, &id, &ExecSpec::program(args)) {
                    Ok(exec) => {
                        if let Some(process) = self.execs.get_mut(&exec) {
                            process.is_hook = true;
                        }
                        Stopping::InHook(exec)
                    }
                    Err(refusal) => {
                        complain("run a preStop hook", &refusal);
                        Stopping::Waiting
                    }
                }
            }
        };
        if let Some(container) = self.containers.get_mut(key) {
            container.stopping = stopping;
        }
    }

    /// Has a process ask. Reaped like every other child.
    fn ask(&self, id: &ContainerId) -> Stopping {
        let mut command = Command::new(OWN_BINARY);
        command.arg("ask").arg(self.config.paths().shim_config(&self.config.spec.uid)).arg(id.as_str());
        command.env_clear().current_dir(Path::new("/")).stdin(Stdio::null()).stdout(Stdio::null());
        match command.spawn() {
            Ok(child) => Stopping::Asking(child.id()),
            Err(error) => {
                complain("run a preStop hook", &error);
                Stopping::Waiting
            }
        }
    }

    /// A child has ended: whether it was one that asked. How it ended is of no matter: a failed hook delays nothing.
    pub(super) fn asker_ended(&mut self, pid: u32) -> bool {
        let asking = self.containers.all_mut().find(|container| container.stopping == Stopping::Asking(pid));
        asking.map(|container| container.stopping = Stopping::Waiting).is_some()
    }

    /// Takes the next steps, if the host shuts down.
    pub(super) fn go_on_with_host_shutdown(&mut self, now: Instant) {
        let Some(deadline) = self.host_shutdown else { return };
        let execs = &self.execs;
        for container in self.containers.all_mut() {
            let is_over = match container.stopping {
                Stopping::Sleeping(until) => until <= now,
                Stopping::InHook(exec) => !execs.contains_key(&exec),
                Stopping::NotYet | Stopping::Asking(_) | Stopping::Waiting | Stopping::Signalled => false,
            };
            if is_over {
                container.stopping = Stopping::Waiting;
            }
        }
        let is_late = deadline <= now;
        let turn: Vec<ContainerKey> = match is_late {
            true => {
                self.containers.living().filter(|container| container.stopping != Stopping::Signalled).map(|it| it.key).collect()
            }
            false => self.containers.with_turn_to_stop(),
        };
        let has_turn = !turn.is_empty();
        for key in turn {
            let Some(container) = self.containers.get_mut(key) else { continue };
            container.stopping = Stopping::Signalled;
            if let Some(handle) = container.process.handle() {
                // One that has just ended is reaped in this turn.
                let _gone = handle.signal(container.status.stop_signal);
            }
        }
        if has_turn {
            self.host_shutdown = Some(deadline.max(now + LEAST_GRACE));
        } else if is_late {
            self.host_shutdown = Some(now + RETRY);
            self.kill_all();
        }
    }

    /// The next deadline, if the host shuts down.
    pub(super) fn next_of_host_shutdown(&self) -> Option<Instant> {
        let deadline = self.host_shutdown?;
        self.containers.next_wake().into_iter().chain([deadline]).min()
    }

    /// Kills everything in the pod.
    pub(super) fn kill_all(&mut self) {
        let all: Vec<ContainerKey> = self.containers.all().map(|container| container.key).collect();
        for key in all {
            self.kill(key);
        }
        // Nothing is to be run in them any more.
        self.helpers.kill_execs();
        if let Some(init) = &self.shared_pid {
            init.kill();
        }
    }
}
