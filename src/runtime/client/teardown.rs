//! The end of sandboxes, containers and pods. Errors are collected and the work goes on; what is not there is success.

use super::{Inner, PROMPT, blocking, logs, loss, refused};
use crate::{RuntimeError, log_links};
use podstead_container::protocol::Operation;
use podstead_container::record::{Durability, SandboxRecord};
use podstead_container::{ContainerState, PodLifecycleEvent, PodLifecycleEventKind, SandboxState};
use podstead_pod::{ContainerId, PodUid};
use podstead_sys::mounts;
use podstead_sys::remove_tree::remove_tree;
use podstead_telemetry::error_chain;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Time for the shim to see its containers die, and for the kernel to remove processes and groups.
const PATIENCE: Duration = Duration::from_secs(10);

/// Stops a sandbox, whether its shim lives or not.
pub(super) async fn stop_sandbox(inner: &Arc<Inner>, uid: &PodUid) -> Result<(), RuntimeError> {
    // Taken out first: its end is not a loss.
    let connection = inner.pods().get_mut(uid).and_then(|pod| pod.connection.take());
    if let Some(connection) = connection {
        // Recorded exits are worth a moment. Without them, the cgroup is killed.
        match connection.request(Operation::Shutdown, PATIENCE).await {
            Ok(Ok(_)) => {}
            Ok(Err(refusal)) => tracing::warn!(pod_uid = %uid, error = %refusal, "the shim refused to shut down"),
            Err(error) => {
                tracing::warn!(pod_uid = %uid, error = %error_chain(&error), "the shim did not shut down: killing it")
            }
        }
    }
    let (worker, owned) = (Arc::clone(inner), uid.clone());
    blocking("stop sandbox", move || sweep(&worker, &owned)).await?;
    inner.id_ranges.give_back(uid);
    Ok(())
}

/// Removes every trace of a sandbox in the kernel and under the run directory, and records that it is stopped. Blocks.
pub(super) fn sweep(inner: &Inner, uid: &PodUid) -> Result<(), RuntimeError> {
    let mut problems = Vec::new();
    remove_cgroups(inner, uid, &mut problems);
    let run = inner.paths().pod_run(uid);
    match mounts::detach_below(&run) {
        Ok(()) => keep(&mut problems, &format!("remove {}", run.display()), remove_tree(&run)),
        // Never remove what may be a mount of something else.
        Err(error) => keep(&mut problems, &format!("unmount everything below {}", run.display()), Err(error)),
    }
    keep_runtime(&mut problems, record_stopped(inner, uid));
    if problems.is_empty() {
        return Ok(());
    }
    Err(RuntimeError::failed(format!("stop sandbox of pod {uid}"), problems.join("; ")))
}

/// The pod's groups first, then its shim's.
fn remove_cgroups(inner: &Inner, uid: &PodUid, problems: &mut Vec<String>) {
    let groups = match inner.cgroups.list() {
        Ok(groups) => groups,
        Err(error) => return keep_runtime(problems, Err(RuntimeError::failed("list cgroups of pods", error))),
    };
    let shim = inner.cgroups.shim(uid);
    let mut own: Vec<_> = groups.into_iter().filter(|(owner, _)| owner == uid).map(|(_, group)| group).collect();
    own.sort_by_key(|group| *group == shim);
    // A hybrid host keeps containers in their shim's group too: all are killed before any is removed.
    for group in &own {
        let killed = inner.cgroups.kill(group, PATIENCE).map_err(|error| RuntimeError::failed("kill cgroup", error));
        keep_runtime(problems, killed);
    }
    for group in &own {
        let removed = inner.cgroups.remove(group, PATIENCE).map_err(|error| RuntimeError::failed("remove cgroup", error));
        keep_runtime(problems, removed);
    }
}

/// The record says "stopped"; containers that no shim saw die are unknown.
fn record_stopped(inner: &Inner, uid: &PodUid) -> Result<(), RuntimeError> {
    let record = {
        let mut pods = inner.pods();
        let Some(pod) = pods.get_mut(uid) else { return Ok(()) };
        pod.sandbox.as_mut().map(|sandbox| {
            sandbox.state = SandboxState::Stopped;
            sandbox.shim_pid = None;
            SandboxRecord::new(sandbox.clone(), inner.boot_id.clone(), pod.cgroup.clone())
        })
    };
    for id in loss::lose_containers(inner, uid)? {
        inner.tell(PodLifecycleEvent { uid: uid.clone(), kind: PodLifecycleEventKind::ContainerDied(id) });
    }
    match record {
        Some(record) => record
            .write(&inner.paths().sandbox_record(uid), Durability::ProcessDeath)
            .map_err(|error| RuntimeError::failed("record the end of a sandbox", error)),
        None => Ok(()),
    }
}

/// Forgets a dead container: in the shim, then on disk with its log, the record last.
pub(super) async fn remove_container(inner: &Arc<Inner>, uid: &PodUid, id: &ContainerId) -> Result<(), RuntimeError> {
    let (alive, connection, log) = match inner.pods().get(uid) {
        Some(pod) => {
            let living = |state: &ContainerState| matches!(state, ContainerState::Created | ContainerState::Running { .. });
            let known = pod.containers.iter().find(|container| container.id == *id);
            let log = known.map(|gone| {
                let others = pod.containers.iter().filter(|other| other.name == gone.name && other.id != *id);
                (gone.log_path.clone(), others.map(|other| other.attempt).collect::<Vec<u32>>())
            });
            (known.is_some_and(|known| living(&known.state)), pod.connection.clone(), log)
        }
        None => (false, None, None),
    };
    let operation = format!("remove container {id}");
    if alive && connection.is_none() {
        return Err(RuntimeError::failed(operation, "it is still running"));
    }
    if let Some(connection) = connection {
        let removed = connection.request(Operation::Remove { container: id.clone() }, PROMPT).await?;
        removed.map_err(|refusal| refused(&operation, refusal))?;
    }
    let (worker, pod, container) = (Arc::clone(inner), uid.clone(), id.clone());
    blocking("remove container", move || {
        let paths = worker.paths();
        let layer = paths.container_layer(&pod, &container);
        remove_tree(&layer).map_err(|error| RuntimeError::failed(format!("remove {}", layer.display()), error))?;
        // A log that stays is better than a container that stays.
        if let Some((log, others)) = log {
            let unlinked = paths.log_links().map_or(Ok(()), |links| log_links::remove(&links, &log, &container));
            if let Err(error) = unlinked.and_then(|()| logs::remove(&log, &others)) {
                tracing::warn!(pod_uid = %pod, log = %log.display(), %error, "cannot remove the log of a dead container");
            }
        }
        let record = paths.container_record(&pod, &container);
        // Not durably: a run that a power cut brings back is removed again.
        match fs::remove_file(&record) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(RuntimeError::failed(format!("remove {}", record.display()), error)),
        }
    })
    .await?;
    if let Some(pod) = inner.pods().get_mut(uid) {
        pod.forget(id);
    }
    Ok(())
}

/// Forgets a pod: all of its state directory but its volumes.
pub(super) async fn remove_pod(inner: &Arc<Inner>, uid: &PodUid) -> Result<(), RuntimeError> {
    if inner.connection(uid).is_some() {
        let reason = "its sandbox is still running";
        return Err(RuntimeError::failed(format!("remove pod {uid}"), reason));
    }
    let (worker, owned) = (Arc::clone(inner), uid.clone());
    blocking("remove pod", move || {
        let paths = worker.paths();
        let (directory, volumes) = (paths.pod(&owned), paths.volumes(&owned));
        let mut problems = Vec::new();
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).filter(|path| *path != volumes).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(RuntimeError::failed(format!("list {}", directory.display()), error)),
        };
        for path in entries {
            keep(&mut problems, &format!("remove {}", path.display()), remove_any(&path));
        }
        match fs::remove_dir(&directory) {
            // The volumes are still there.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => keep(&mut problems, &format!("remove {}", directory.display()), other),
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(RuntimeError::failed(format!("remove pod {owned}"), problems.join("; ")))
    })
    .await?;
    inner.pods().remove(uid);
    Ok(())
}

fn remove_any(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { remove_tree(path) } else { fs::remove_file(path) }
}

fn keep(problems: &mut Vec<String>, what: &str, result: io::Result<()>) {
    if let Err(error) = result {
        problems.push(format!("{what}: {error}"));
    }
}

fn keep_runtime(problems: &mut Vec<String>, result: Result<(), RuntimeError>) {
    if let Err(error) = result {
        problems.push(error_chain(&error).to_string());
    }
}
