//! All containers of a pod.

use super::container::{Container, Stopping};
use super::poller::ContainerKey;
use podstead_container::ContainerKind;
use podstead_pod::ContainerId;
use std::collections::BTreeMap;
use std::time::Instant;

/// The containers, in the order of their making.
#[derive(Debug, Default)]
pub(super) struct Containers(BTreeMap<ContainerKey, Container>);

impl Containers {
    pub(super) fn insert(&mut self, container: Container) {
        self.0.insert(container.key, container);
    }

    pub(super) fn get(&self, key: ContainerKey) -> Option<&Container> {
        self.0.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: ContainerKey) -> Option<&mut Container> {
        self.0.get_mut(&key)
    }

    pub(super) fn remove(&mut self, key: ContainerKey) -> Option<Container> {
        self.0.remove(&key)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Container> {
        self.0.values()
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Container> {
        self.0.values_mut()
    }

    /// Those that have not exited.
    pub(super) fn living(&self) -> impl Iterator<Item = &Container> {
        self.all().filter(|container| !container.is_gone())
    }

    pub(super) fn by_id(&self, id: &ContainerId) -> Option<&Container> {
        self.all().find(|container| container.id() == id)
    }

    /// The container whose first process has this id.
    pub(super) fn by_pid(&self, pid: u32) -> Option<&Container> {
        self.all().find(|container| container.process.pid() == Some(pid))
    }

    /// The next time at which a record is written again.
    pub(super) fn next_record(&self) -> Option<Instant> {
        self.all().filter_map(|container| container.record_due).min()
    }

    /// Containers whose records are to be written again now.
    pub(super) fn due_records(&self, now: Instant) -> Vec<ContainerKey> {
        let is_due = |container: &&Container| container.record_due.is_some_and(|due| due <= now);
        self.all().filter(is_due).map(|container| container.key).collect()
    }

    /// The next end of a `preStop` hook that sleeps.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        let sleeping = self.living().filter_map(|container| match container.stopping {
            Stopping::Sleeping(until) => Some(until),
            Stopping::NotYet | Stopping::InHook(_) | Stopping::Asking(_) | Stopping::Waiting | Stopping::Signalled => None,
        });
        sleeping.min()
    }

    /// Containers with a finished hook that need not wait for others.
    pub(super) fn with_turn_to_stop(&self) -> Vec<ContainerKey> {
        let is_sidecar = |container: &&Container| container.status.kind == ContainerKind::Sidecar;
        let waiting = |container: &&Container| container.stopping == Stopping::Waiting;
        if self.living().any(|container| !is_sidecar(&container)) {
            return self.living().filter(|it| !is_sidecar(it)).filter(waiting).map(|it| it.key).collect();
        }
        let last = self.living().max_by_key(|container| container.shutdown.position);
        last.filter(waiting).map(|container| container.key).into_iter().collect()
    }
}
