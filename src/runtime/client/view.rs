//! View of one pod, in memory.

use super::connection::Connection;
use super::plugged::Plugged;
use jiff::Timestamp;
use podstead_container::{ContainerResources, ContainerState, ContainerStatus, ObservedPod, SandboxStatus};
use podstead_pod::{ContainerId, PodUid};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// One pod.
#[derive(Debug, Default)]
pub(crate) struct PodView {
    pub(super) sandbox: Option<SandboxStatus>,
    /// The pod's cgroup; empty without a sandbox.
    pub(super) cgroup: PathBuf,
    /// Oldest first.
    pub(super) containers: Vec<ContainerStatus>,
    /// The recorded resources of living containers.
    pub(super) given: BTreeMap<ContainerId, Box<ContainerResources>>,
    /// The recorded devices of living containers that may be unplugged.
    pub(super) plugged: BTreeMap<ContainerId, Plugged>,
    /// Containers whose devices are being changed.
    pub(super) plugging: BTreeSet<ContainerId>,
    /// To the living shim.
    pub(super) connection: Option<Connection>,
}

impl PodView {
    pub(super) fn observed(&self, uid: &PodUid) -> ObservedPod {
        ObservedPod {
            uid: uid.clone(),
            sandbox: self.sandbox.clone(),
            containers: self.containers.clone(),
            given: self.given.clone(),
            plugged: self.plugged.iter().map(|(id, plugged)| (id.clone(), plugged.devices.clone())).collect(),
        }
    }

    /// Replaces what is known of a container, or adds it.
    pub(super) fn note(&mut self, status: ContainerStatus) {
        match self.containers.iter_mut().find(|known| known.id == status.id) {
            Some(known) => *known = status,
            None => {
                self.containers.push(status);
                self.containers.sort_by_key(|container| (container.created_at, container.attempt));
            }
        }
    }

    pub(super) fn forget(&mut self, id: &ContainerId) {
        self.containers.retain(|container| container.id != *id);
        self.given.remove(id);
        self.plugged.remove(id);
    }

    /// The containers that live, as far as is known.
    pub(super) fn alive(&self) -> Vec<ContainerId> {
        let alive = |state: &ContainerState| matches!(state, ContainerState::Created | ContainerState::Running { .. });
        self.containers.iter().filter(|container| alive(&container.state)).map(|container| container.id.clone()).collect()
    }

    /// Marks what was alive as gone for unknown reasons, and returns it.
    pub(super) fn lose_containers(&mut self, now: Timestamp) -> Vec<ContainerStatus> {
        let mut lost = Vec::new();
        for container in &mut self.containers {
            if let Some(state) = lost_state(&container.state, now) {
                container.state = state;
                lost.push(container.clone());
            }
        }
        lost
    }
}

/// State of a container after its shim died; `None` if that does not change it.
pub(super) fn lost_state(state: &ContainerState, now: Timestamp) -> Option<ContainerState> {
    match state {
        ContainerState::Created => Some(ContainerState::Unknown { started_at: None, found_at: now }),
        ContainerState::Running { started_at, .. } => {
            Some(ContainerState::Unknown { started_at: Some(*started_at), found_at: now })
        }
        ContainerState::Exited { .. } | ContainerState::Unknown { .. } => None,
    }
}
