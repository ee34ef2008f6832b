//! From a sandbox spec to a living shim.

use super::connection::{Connection, Heard, HeldConnection};
use super::{Inner, PodView, blocking, loss, teardown};
use crate::RuntimeError;
use jiff::Timestamp;
use podstead_container::protocol::{Answer, SHIM_READY, ShimConfig, ShimEventKind, ShimHello, ShimStatus, ShimStep, StepTimes};
use podstead_container::record::{Durability, SandboxRecord};
use podstead_container::{PodLifecycleEvent, PodLifecycleEventKind, SandboxSpec, SandboxState, SandboxStatus};
use podstead_pod::{PodFullName, PodUid};
use podstead_sys::atomic_file::{sync_parent, write_atomic};
use podstead_sys::cgroup_moves;
use podstead_sys::layout::Paths;
use podstead_sys::namespaces::Namespace;
use podstead_sys::self_exec::ReadOnlyBinary;
use podstead_sys::tick::Tick;
use podstead_telemetry::trace::Step;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// A shim is ready in milliseconds; a machine that is overloaded takes longer.
const READY: Duration = Duration::from_secs(60);

/// Bytes of a start that are read.
const MAX_SAID: u64 = 64 * 1024;

/// Seconds that the shim gives its helpers.
const HELPER_TIMEOUT_SECS: u64 = 120;

/// Makes the sandbox. What is left after an error is removed by the caller.
pub(super) async fn create_sandbox(inner: &Arc<Inner>, spec: &SandboxSpec) -> Result<SandboxStatus, RuntimeError> {
    let created_at = Timestamp::now();
    let status = SandboxStatus {
        spec: spec.clone(),
        state: SandboxState::Ready,
        created_at,
        shim_pid: None,
        netns: (!spec.namespaces.host_network).then(|| inner.paths().namespaces(&spec.uid).join(Namespace::Net.file_name())),
    };
    let uid = &spec.uid;
    let began = Tick::now();
    let prepared = {
        let (inner, spec) = (Arc::clone(inner), spec.clone());
        blocking("prepare sandbox", move || prepare(&inner, spec, created_at))
    };
    let binary = &inner.options.shim_binary;
    let (prepared, empty) = tokio::join!(prepared, inner.empty_mounts.get(binary));
    let prepared = prepared?;
    inner.trace(uid, Step::SandboxPrepare, began);
    // A sandbox does not outlive a boot; what has to is the range of ids that its volumes were given to.
    let durability = if spec.first_host_id.is_some() { Durability::PowerCut } else { Durability::ProcessDeath };
    let recorded = {
        let (inner, status, cgroup) = (Arc::clone(inner), status.clone(), prepared.cgroup.clone());
        // Written while the shim starts: a crash in between leaves a shim that knows its own spec, or a record without shim.
        blocking("record sandbox", move || {
            let began = Tick::now();
            let (uid, path) = (status.spec.uid.clone(), inner.paths().sandbox_record(&status.spec.uid));
            let record = SandboxRecord::new(status, inner.boot_id.clone(), cgroup);
            let written = record.write(&path, durability).map_err(|error| RuntimeError::failed("record sandbox", error));
            inner.trace(&uid, Step::SandboxRecord, began);
            written
        })
    };
    let started = async {
        let began = Tick::now();
        let started = start_shim(binary, &prepared.config, &spec.full_name, empty).await;
        inner.trace(uid, Step::ShimStart, began);
        started
    };
    let (started, recorded) = tokio::join!(started, recorded);
    started?;
    recorded?;
    // The first container's process moves in some milliseconds, and the shim's start has prepared for that a while ago.
    cgroup_moves::prepare_in_background();
    let began = Tick::now();
    let (connection, hello, shim_status) = connect(inner, &spec.uid).await?;
    inner.trace(uid, Step::ShimConnect, began);
    Ok(adopt(inner, &spec.uid, status, prepared.cgroup, connection, &hello, shim_status))
}

struct Prepared {
    config: PathBuf,
    cgroup: PathBuf,
}

/// Directories, cgroups, and the shim's configuration.
fn prepare(inner: &Inner, spec: SandboxSpec, created_at: Timestamp) -> Result<Prepared, RuntimeError> {
    let (paths, uid) = (inner.paths(), spec.uid.clone());
    // A stop that did not end well, perhaps an earlier daemon's.
    if std::fs::symlink_metadata(paths.pod_run(&uid)).is_ok() {
        teardown::sweep(inner, &uid)?;
    }
    let cgroup = inner
        .cgroups
        .create_pod(spec.qos, &uid, &spec.resources)
        .map_err(|error| RuntimeError::failed("create the pod's cgroup", error))?;
    inner.cgroups.create_shim(&uid).map_err(|error| RuntimeError::failed("create the shim's cgroup", error))?;
    make_records_directory(paths, &uid)?;
    let run = paths.pod_run(&uid);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&run);
    made.map_err(|error| RuntimeError::failed(format!("create {}", run.display()), error))?;
    let config = ShimConfig {
        state: paths.state.clone(),
        run: paths.run.clone(),
        logs: paths.logs.clone(),
        spec,
        created_at,
        cgroup: cgroup.clone(),
        cgroup_slice: inner.options.cgroup_slice.clone(),
        hierarchies: Some(inner.cgroups.hierarchies().clone()),
        log_limits: *inner.log_limits.lock().unwrap_or_else(PoisonError::into_inner),
        helper_timeout_secs: HELPER_TIMEOUT_SECS,
    };
    let path = paths.shim_config(&uid);
    let text = serde_json::to_vec(&config).map_err(|error| RuntimeError::failed("encode the shim's configuration", error))?;
    write_atomic(&path, &text, 0o600).map_err(|error| RuntimeError::failed("write the shim's configuration", error))?;
    Ok(Prepared { config: path, cgroup })
}

/// Makes the directory of container records. Its name has to be durable before they are: by the pod's record, which is written after both
/// directories are there, or here if that record is older than the directory.
fn make_records_directory(paths: &Paths, uid: &PodUid) -> Result<(), RuntimeError> {
    let directory = paths.container_records(uid);
    let is_recorded = paths.pod_record(uid).try_exists().unwrap_or(true);
    let made = match DirBuilder::new().mode(0o750).create(&directory) {
        Ok(()) if is_recorded => sync_parent(&directory),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => DirBuilder::new().recursive(true).mode(0o750).create(&directory),
        other => other,
    };
    made.map_err(|error| RuntimeError::failed(format!("create {}", directory.display()), error))
}

/// Starts the shim and waits until it is ready, or has said why not. `empty` is a mount namespace with nothing in it.
async fn start_shim(binary: &Path, config: &Path, pod: &PodFullName, empty: Option<OwnedFd>) -> Result<(), RuntimeError> {
    let operation = "start the shim";
    // Where the kernel cannot make it, the shim tries it itself and executes itself a second time.
    let read_only = ReadOnlyBinary::open(binary);
    let program = read_only.as_ref().map_or_else(|_| binary.to_owned(), ReadOnlyBinary::path);
    // No working directory is set: for that, the standard library would have to copy this process to start another. The shim goes to `/` itself.
    let mut child = Command::new(program)
        .arg0(binary)
        .arg("pod")
        .arg(config)
        // Shown in lists of processes and cgroups.
        .arg(pod.to_string())
        .env_clear()
        .stdin(empty.map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| RuntimeError::failed(format!("execute {}", binary.display()), error))?;
    let told = timeout(READY, hear_start(&mut child)).await;
    let told =
        told.map_err(|late| RuntimeError::failed(operation, late))?.map_err(|error| RuntimeError::failed(operation, error))?;
    match told {
        Start::Ready => {
            tokio::spawn(async move {
                let _ended = child.wait().await;
            });
            Ok(())
        }
        Start::Failed(reason) => Err(RuntimeError::failed(operation, reason)),
    }
}

/// End of a shim's start.
enum Start {
    /// The shim serves.
    Ready,
    /// There is none, for this reason.
    Failed(String),
}

/// Reads what the processes of a start say, until none of them can say anything.
async fn hear_start(child: &mut Child) -> io::Result<Start> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (said, complaint) = tokio::try_join!(read_all(stdout), read_all(stderr))?;
    if said == [SHIM_READY] {
        return Ok(Start::Ready);
    }
    let status = child.wait().await?;
    let complaint = String::from_utf8_lossy(&complaint);
    Ok(match (status.success(), complaint.trim()) {
        // A shim that does not say it.
        (true, _) => Start::Ready,
        (false, "") => Start::Failed(status.to_string()),
        (false, reason) => Start::Failed(reason.to_owned()),
    })
}

async fn read_all(stream: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // An error is a sentence.
        stream.take(MAX_SAID).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// Connects to a living shim, whose events go into the view from the release of the connection on.
pub(super) async fn connect(inner: &Arc<Inner>, uid: &PodUid) -> Result<(HeldConnection, ShimHello, ShimStatus), RuntimeError> {
    let (for_news, for_end) = (Arc::downgrade(inner), Arc::downgrade(inner));
    let (news_uid, end_uid) = (uid.clone(), uid.clone());
    let hear = move |heard: Heard<'_>| {
        if let Some(inner) = for_news.upgrade() {
            note(&inner, &news_uid, heard);
        }
    };
    let gone = move |number| match for_end.upgrade() {
        Some(inner) => loss::connection_ended(inner, end_uid, number),
        None => Box::pin(std::future::ready(())),
    };
    Connection::open(inner.paths(), uid, hear, gone).await
}

/// Takes note of what a shim says, in its order.
fn note(inner: &Inner, uid: &PodUid, heard: Heard<'_>) {
    match heard {
        Heard::Answered(Answer::Container(status)) => {
            if let Some(pod) = inner.pods().get_mut(uid) {
                pod.note((**status).clone());
            }
        }
        Heard::Times(times) => trace(inner, uid, &times),
        Heard::Answered(Answer::Done | Answer::Status(_) | Answer::SessionOpen) => {}
        Heard::Event(event) => {
            let id = event.container.id.clone();
            if let Some(pod) = inner.pods().get_mut(uid) {
                pod.note(event.container);
            }
            let kind = match event.kind {
                ShimEventKind::Started => PodLifecycleEventKind::ContainerStarted(id),
                ShimEventKind::Died => PodLifecycleEventKind::ContainerDied(id),
            };
            inner.tell(PodLifecycleEvent { uid: uid.clone(), kind });
        }
    }
}

/// Traces the steps that a shim has taken for a container.
fn trace(inner: &Inner, uid: &PodUid, times: &StepTimes) {
    let about = Some(times.container.as_str());
    for time in &times.steps {
        let step = match time.step {
            ShimStep::HelperStart => Step::HelperStart,
            ShimStep::Record => Step::StartRecord,
            ShimStep::Prepare => Step::ContainerPrepare,
            ShimStep::Create => Step::ContainerCreate,
            ShimStep::AwaitRecord => Step::AwaitStartRecord,
            ShimStep::Execute => Step::ContainerExecute,
            ShimStep::FirstOutput => Step::FirstOutput,
            ShimStep::Other => continue,
        };
        inner.options.traces.add(uid, step, about, Tick::from_nanos(time.from), Tick::from_nanos(time.to));
    }
}

/// Puts a connected sandbox into the view. Containers that are known from records stay.
pub(super) fn adopt(
    inner: &Inner,
    uid: &PodUid,
    mut status: SandboxStatus,
    cgroup: PathBuf,
    connection: HeldConnection,
    hello: &ShimHello,
    shim: ShimStatus,
) -> SandboxStatus {
    status.shim_pid = Some(hello.pid);
    status.state = SandboxState::Ready;
    let mut pods = inner.pods();
    let pod: &mut PodView = pods.entry(uid.clone()).or_default();
    pod.sandbox = Some(status.clone());
    pod.cgroup = cgroup;
    pod.connection = Some(connection.release());
    for container in shim.containers {
        pod.note(container);
    }
    status
}
