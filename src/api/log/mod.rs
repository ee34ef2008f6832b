//! Container logs: CRI log files, rotated ones included, as one stream of text; followed until the container has ended.
//!
//! Files are read by blocking tasks, one piece at a time and only when the client takes it; between pieces nothing is held but the
//! open files. Following waits for inotify and for changes of the published pods, never for a timer.

mod backwards;
mod cri;
mod cursor;
mod files;
mod follow;
mod joiner;
mod options;

use super::Backend;
use super::failure::ApiFailure;
use super::published::PublishedPod;
use super::request::Query;
use super::respond::{self, Answer};
use bytes::Bytes;
use cursor::{LogCursor, Step};
use follow::Follower;
use k8s_openapi::api::core::v1::ContainerStatus;
pub use options::LogOptions;
use options::Run;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Annotation of kubectl with the default container.
const DEFAULT_CONTAINER_ANNOTATION: &str = "kubectl.kubernetes.io/default-container";

/// Copies the log of a run whose live file is `path`, without a daemon: what is there now, as the API would answer it.
pub fn copy(path: &Path, options: &LogOptions, out: &mut impl Write) -> io::Result<()> {
    let mut cursor = LogCursor::open(path, options)?;
    loop {
        let (step, piece) = cursor.read(true)?;
        out.write_all(&piece)?;
        match step {
            Step::More => {}
            Step::CaughtUp | Step::Finished => return Ok(()),
        }
    }
}

/// Answers with the log of one run of one container.
pub(super) async fn log(backend: &Backend, pod: &PublishedPod, query: &Query) -> Answer {
    let options = LogOptions::parse(query, (backend.now)())?;
    let container = container_name(pod, query.get("container"))?;
    let run = find_run(backend, pod, &container, options.previous).await?;
    let follower = match options.follow {
        true => Some(Follower::start(backend, pod, &run).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => log_not_found(pod, &container),
            _ => read_failure(&container, &error),
        })?),
        false => None,
    };
    let path = run.path;
    let opened = blocking(move || LogCursor::open(&path, &options)).await;
    let cursor = opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if options.previous => previous_not_found(pod, &container),
        io::ErrorKind::NotFound => log_not_found(pod, &container),
        _ => read_failure(&container, &error),
    })?;
    let state = Some(LogStream { cursor, follower });
    respond::text_stream(futures_util::stream::unfold(state, |state| async move { state?.next_piece().await }))
}

struct LogStream {
    cursor: LogCursor,
    follower: Option<Follower>,
}

impl LogStream {
    /// The next piece of the body with what is left to read; `None` ends the body.
    async fn next_piece(self) -> Option<(Bytes, Option<Self>)> {
        let Self { mut cursor, mut follower } = self;
        loop {
            // Asked before reading: what the container wrote before its end is read after it.
            let ended = match &mut follower {
                Some(follower) => follower.container_ended().await,
                None => true,
            };
            let read = blocking(move || cursor.read(ended).map(|(step, piece)| (cursor, step, piece))).await;
            let (next, step, piece) = match read {
                Ok(read) => read,
                Err(error) => {
                    tracing::warn!(%error, "cannot continue reading a container log");
                    return None;
                }
            };
            cursor = next;
            match step {
                Step::Finished => return (!piece.is_empty()).then_some((piece, None)),
                Step::More | Step::CaughtUp if !piece.is_empty() => return Some((piece, Some(Self { cursor, follower }))),
                Step::More => {}
                Step::CaughtUp => match &mut follower {
                    Some(follower) => follower.wait().await,
                    None => return None,
                },
            }
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// Finds the log of the newest run, or of the one before it.
async fn find_run(backend: &Backend, pod: &PublishedPod, container: &str, previous: bool) -> Result<Run, ApiFailure> {
    let desired = &pod.desired;
    let observed = backend.runtime.observe(&desired.uid).await.map_err(|error| ApiFailure::from(&error))?;
    let newest = observed.into_iter().flat_map(|pod| pod.containers).rfind(|run| run.name.as_str() == container);
    let status = container_status(pod, container);
    let waiting = status.and_then(|status| status.state.as_ref()?.waiting.as_ref());
    let newest_attempt = match (&newest, status) {
        (Some(run), _) => Some(run.attempt),
        // Between the removal of a dead run and the start of the next one, the status alone knows of it.
        (None, Some(status)) if waiting.is_none() || has_ended(status) => u32::try_from(status.restart_count).ok(),
        (None, _) => None,
    };
    let path = |attempt| backend.paths.container_log(&desired.full_name, &desired.uid, container, attempt);
    if previous && newest.is_none() && (waiting.is_some() || status.is_none()) {
        // A dead run is removed before the next one is created, and what is published may not know of it for a moment: its log is there all the while.
        let directory = backend.paths.pod_logs(&desired.full_name, &desired.uid).join(container);
        let newest = blocking(move || Ok(newest_log(&directory))).await.ok().flatten();
        return newest.map(|path| Run { path, id: None }).ok_or_else(|| previous_not_found(pod, container));
    }
    // While a restart is waited for, the newest run is the previous one, as in the kubelet.
    if previous && waiting.is_none() {
        let attempt = newest_attempt.and_then(|attempt| attempt.checked_sub(1));
        return match attempt {
            Some(attempt) => Ok(Run { path: path(attempt), id: None }),
            None => Err(previous_not_found(pod, container)),
        };
    }
    match (newest, newest_attempt) {
        (Some(run), _) => Ok(Run { path: run.log_path, id: Some(run.id) }),
        (None, Some(attempt)) => Ok(Run { path: path(attempt), id: None }),
        (None, None) => {
            let reason = waiting.and_then(|waiting| waiting.reason.as_deref()).unwrap_or("ContainerCreating");
            let name = &desired.full_name.name;
            Err(ApiFailure::bad_request(format!("container {container:?} in pod {name:?} is waiting to start: {reason}")))
        }
    }
}

/// The live file of the newest run that has left a log in the directory of its container.
fn newest_log(directory: &Path) -> Option<PathBuf> {
    let names = std::fs::read_dir(directory).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let newest = names.filter_map(|name| name.strip_suffix(".log")?.parse::<u32>().ok()).max()?;
    Some(directory.join(format!("{newest}.log")))
}

/// Reports whether a container that waits has run.
fn has_ended(status: &ContainerStatus) -> bool {
    status.last_state.as_ref().is_some_and(|state| state.terminated.is_some())
}

fn previous_not_found(pod: &PublishedPod, container: &str) -> ApiFailure {
    let name = &pod.desired.full_name.name;
    ApiFailure::bad_request(format!("previous terminated container {container:?} in pod {name:?} not found"))
}

/// Says why a container has no log: it never started, or its files were removed. An older shim made them with the first line.
fn log_not_found(pod: &PublishedPod, container: &str) -> ApiFailure {
    let name = &pod.desired.full_name.name;
    let state = container_status(pod, container).and_then(|status| status.state.as_ref());
    let waiting = state.and_then(|state| state.waiting.as_ref()).map(|waiting| (&waiting.reason, &waiting.message));
    let ended = state.and_then(|state| state.terminated.as_ref());
    let never_ran = ended.filter(|ended| matches!(ended.reason.as_deref(), Some("StartError" | "ContainerCannotRun")));
    // A container that crashes at its start waits; the cause is in its last state.
    let last = container_status(pod, container).and_then(|status| status.last_state.as_ref()?.terminated.as_ref());
    let cause = last.filter(|ended| ended.reason.as_deref() == Some("StartError")).map(|ended| (&ended.reason, &ended.message));
    let why = match cause.or(waiting).or(never_ran.map(|ended| (&ended.reason, &ended.message))) {
        Some((reason, message)) => {
            let parts = [reason, message].into_iter().flatten().map(String::as_str).filter(|part| !part.is_empty());
            format!("it has not started: {}", parts.collect::<Vec<_>>().join(": "))
        }
        None => "it has written nothing yet, or its log files were removed".to_owned(),
    };
    ApiFailure::bad_request(format!("container {container:?} in pod {name:?} has no log: {why}"))
}

fn read_failure(container: &str, error: &io::Error) -> ApiFailure {
    ApiFailure::internal(format!("read the log of container {container:?}: {error}"))
}

/// The reason why a container waits.
pub(super) fn waiting_reason(pod: &PublishedPod, container: &str) -> Option<String> {
    let waiting = container_status(pod, container)?.state.as_ref()?.waiting.as_ref()?;
    let parts = [&waiting.reason, &waiting.message].into_iter().flatten().map(String::as_str).filter(|part| !part.is_empty());
    Some(parts.collect::<Vec<_>>().join(": ")).filter(|reason| !reason.is_empty())
}

fn container_status<'a>(pod: &'a PublishedPod, name: &str) -> Option<&'a ContainerStatus> {
    let status = &pod.status;
    let all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
    all.into_iter().find(|status| status.name == name)
}

/// The container that a request means: the one named, the pod's default, or its only one.
pub(super) fn container_name(pod: &PublishedPod, named: Option<&str>) -> Result<String, ApiFailure> {
    let pod_name = &pod.desired.full_name.name;
    let object = &pod.desired.pod;
    let spec = object.spec.as_ref();
    let main: Vec<&str> = spec.into_iter().flat_map(|spec| &spec.containers).map(|c| c.name.as_str()).collect();
    let init = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let default = object.metadata.annotations.as_ref().and_then(|annotations| annotations.get(DEFAULT_CONTAINER_ANNOTATION));
    match (named.filter(|name| !name.is_empty()), default, main.as_slice()) {
        (Some(name), _, _) if main.contains(&name) || init.iter().any(|c| c.name == name) => Ok(name.to_owned()),
        (Some(name), _, _) => {
            let all: Vec<&str> = init.iter().map(|container| container.name.as_str()).chain(main.iter().copied()).collect();
            let all = all.join(" ");
            Err(ApiFailure::bad_request(format!("container {name} is not valid for pod {pod_name}, choose one of: [{all}]")))
        }
        (None, Some(default), _) if main.contains(&default.as_str()) => Ok(default.clone()),
        (None, _, [only]) => Ok((*only).to_owned()),
        (None, _, several) => Err(ApiFailure::bad_request(format!(
            "a container name must be specified for pod {pod_name}, choose one of: [{}]",
            several.join(" ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_log_is_found_by_its_number() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(newest_log(directory.path()), None);
        for name in ["9.log", "10.log", "10.log.20260101-000000.gz", "11.log.20260101-000000", "x.log"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(newest_log(directory.path()), Some(directory.path().join("10.log")));
        assert_eq!(newest_log(&directory.path().join("none")), None);
    }
}
