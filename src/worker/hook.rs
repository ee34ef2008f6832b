//! Lifecycle hooks, run right after a container's start and before its stop signal (kubelet rules D8 and D12).
//!
//! [`Hook`] is what a definition says; [`Hooks`] are the hooks of one pod that are under way, beside the pod's turns: the end of one asks
//! for another turn. A hook that is given up is ended: its process in the container is killed, its connection closed.

use super::hook_mark::{self, Mark};
use super::services::Services;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use podstead_pod::{ContainerId, ContainerName, PodUid};
use podstead_probe::action::http::Asker;
use podstead_probe::action::{Action as Check, PodAddress, exec, http};
use podstead_telemetry::error_chain;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Action of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook {
    /// `exec` or `httpGet`.
    Check(Check),
    /// `sleep`.
    Sleep(Duration),
    /// It cannot be done, and so it fails.
    Unusable(String),
}

impl Hook {
    /// The hook that `handler` of `container` describes.
    pub fn of(handler: &LifecycleHandler, container: &Container) -> Self {
        // A TCP connection is refused before: Kubernetes has never made it.
        let LifecycleHandler { exec, http_get, sleep, tcp_socket: _ } = handler;
        let check = match (exec, http_get, sleep) {
            // As written: the kubelet expands the commands of probes, not those of hooks.
            (Some(exec), _, _) => Ok(Check::Exec(exec.command.clone().unwrap_or_default())),
            (None, Some(http), _) => Check::http(http, container).map_err(|error| error.to_string()),
            (None, None, Some(sleep)) => return Hook::Sleep(Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or(0))),
            (None, None, None) => Err("the hook sets none of exec, httpGet and sleep".to_owned()),
        };
        check.map_or_else(Hook::Unusable, Hook::Check)
    }
}

/// Kind of a container's hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookKind {
    PostStart,
    PreStop,
}

/// A hook that is to run.
#[derive(Debug)]
pub(super) struct HookRun {
    pub(super) services: Arc<Services>,
    pub(super) uid: PodUid,
    pub(super) container: ContainerName,
    pub(super) id: ContainerId,
    pub(super) kind: HookKind,
    /// `None` when an edit took it away: then it is done.
    pub(super) hook: Option<Hook>,
    /// Target of `httpGet`.
    pub(super) address: PodAddress,
}

/// A hook that came to its end.
#[derive(Debug)]
pub(super) struct HookEnded {
    pub(super) container: ContainerName,
    pub(super) id: ContainerId,
    pub(super) kind: HookKind,
    /// Reason why it failed.
    pub(super) result: Result<(), String>,
}

impl HookRun {
    /// Does it, keeps on disk that it is done, and asks for a turn of the pod.
    async fn run(self, results: mpsc::UnboundedSender<HookEnded>) {
        let result = self.act().await;
        let Self { services, uid, container, id, kind, .. } = self;
        let mark = match (kind, &result) {
            (HookKind::PostStart, Ok(())) => Some(None),
            // A failed one is done again by a daemon that finds its container alive.
            (HookKind::PostStart, Err(_)) => None,
            (HookKind::PreStop, _) => Some(Some(Mark::PreStopDone(id.clone()))),
        };
        if let Some(mark) = mark {
            hook_mark::set(&services.paths, &uid, &container, mark).await;
        }
        // Without a worker and a sync loop nothing goes on.
        results.send(HookEnded { container, id, kind, result }).ok();
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
    /// Unbounded: at most one per container is under way.
    results: (mpsc::UnboundedSender<HookEnded>, mpsc::UnboundedReceiver<HookEnded>),
}

impl Hooks {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { tasks: JoinSet::new(), running: BTreeMap::new(), results: mpsc::unbounded_channel() }
    }

    /// Begins one. Another one of the same container is given up.
    pub(super) fn begin(&mut self, run: HookRun) {
        let (id, kind) = (run.id.clone(), run.kind);
        self.give_up(&id);
        let handle = self.tasks.spawn(run.run(self.results.0.clone()));
        self.running.insert(id, (kind, handle));
    }

    /// Ends the hook of a container. Which one it was, if one was under way.
    pub(super) fn give_up(&mut self, id: &ContainerId) -> Option<HookKind> {
        let (kind, handle) = self.running.remove(id)?;
        handle.abort();
        Some(kind)
    }

    /// Takes the hooks that finished since the last call, except cancelled ones.
    pub(super) fn take_ended(&mut self) -> Vec<HookEnded> {
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
                ended.push(end);
            }
        }
        ended
    }
}
