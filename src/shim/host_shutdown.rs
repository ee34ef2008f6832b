//! SIGTERM: the host shuts down, and perhaps no daemon is there to stop the pod in its order. The shim stops it as well as it can, so
//! that the host does not wait for it, and every exit is on disk.

use super::event_loop::PodShim;
use super::poller::ContainerKey;
use std::time::{Duration, Instant};

impl PodShim {
    /// Asks all containers to stop; what is left when the longest grace period is over is killed. The loop ends with the last of them.
    pub(super) fn begin_host_shutdown(&mut self, now: Instant) {
        if self.host_shutdown.is_some() {
            return;
        }
        let mut longest = Duration::ZERO;
        for container in self.containers.values() {
            if let Some(handle) = container.process.handle() {
                longest = longest.max(container.grace);
                // One that has just ended is reaped in this turn.
                let _gone = handle.signal(container.status.stop_signal);
            }
        }
        self.host_shutdown = Some(now + longest);
    }

    /// Kills everything in the pod.
    pub(super) fn kill_all(&mut self) {
        let all: Vec<ContainerKey> = self.containers.keys().copied().collect();
        for key in all {
            self.kill(key);
        }
        self.kill_exec_helpers();
        if let Some(init) = &self.shared_pid {
            init.kill();
        }
    }
}
