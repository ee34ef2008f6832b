//! The cgroups of the containers of a pod.

use super::explain::complain;
use podstead_container::cgroup::{CgroupError, Cgroups};
use podstead_container::protocol::ShimConfig;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The host's cgroups, and what is still to be done in them.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Found when first needed.
    found: Option<Cgroups>,
    /// Groups of dead containers that were still busy.
    to_remove: Vec<PathBuf>,
}

impl Groups {
    fn find(&mut self, config: &ShimConfig) -> Option<&Cgroups> {
        if self.found.is_none() {
            match config.cgroups() {
                Ok(found) => self.found = Some(found),
                Err(error) => complain("detect cgroups", &error),
            }
        }
        self.found.as_ref()
    }

    /// Returns true if the kernel killed a process of the group because its memory was used up.
    pub(super) fn had_oom_kill(&mut self, config: &ShimConfig, path: &Path) -> bool {
        match self.find(config).map(|cgroups| cgroups.oom_kills(path)) {
            Some(Ok(count)) => count > 0,
            Some(Err(error)) => {
                complain("count OOM kills", &error);
                false
            }
            None => false,
        }
    }

    /// Kills everything in a group. Their ends are noticed one by one, so nothing is waited for.
    pub(super) fn kill(&mut self, config: &ShimConfig, path: &Path) {
        match self.find(config).map(|cgroups| cgroups.kill(path, Duration::ZERO)) {
            None | Some(Ok(()) | Err(CgroupError::NotEmpty { .. })) => {}
            Some(Err(error)) => complain("kill cgroup", &error),
        }
    }

    /// Removes a group, or notes that it is to be removed when its last process has left the kernel.
    pub(super) fn remove(&mut self, config: &ShimConfig, path: PathBuf) {
        let removed = self.find(config).is_none_or(|cgroups| cgroups.remove(&path, Duration::ZERO).is_ok());
        if !removed {
            self.to_remove.push(path);
        }
    }

    /// Tries again to remove what was busy.
    pub(super) fn retry(&mut self, config: &ShimConfig) {
        for path in std::mem::take(&mut self.to_remove) {
            self.remove(config, path);
        }
    }

    /// Returns true if a group is still to be removed.
    pub(super) fn are_busy(&self) -> bool {
        !self.to_remove.is_empty()
    }
}
