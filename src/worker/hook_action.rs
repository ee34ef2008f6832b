//! Action of a lifecycle hook, its kind and its end.

use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use podstead_pod::{ContainerId, ContainerName};
use podstead_probe::action::Action as Check;
use std::time::Duration;

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

/// A hook that came to its end.
#[derive(Debug)]
pub(super) struct HookEnded {
    pub(super) container: ContainerName,
    pub(super) id: ContainerId,
    pub(super) kind: HookKind,
    /// Reason why it failed.
    pub(super) result: Result<(), String>,
}
