//! A runtime that only knows what tests tell it, whose `exec` understands a few words; and images that only exist in memory.

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use podstead::api::{PodControl, PodControlError};
use podstead::pod::DesiredPod;
use podstead::pod::{ContainerId, PodUid, SourceId};
use podstead::store::history::{History, Hold, HoldKind, Resumed, RevisionDiff, RevisionError, RolledBack};
use podstead::{
    container::{
        ContainerResources, ContainerSpec, ContainerStatus, ExecSpec, GivenDevice, ObservedPod, PodLifecycleEvent, SandboxSpec,
        SandboxStatus,
    },
    runtime::{ExecInput, ExecOutput, ExecSession, Runtime, RuntimeError, StartError},
};
use podstead::{
    container::{ImageConfig, ProcessUser, ResolvedImage},
    pod::containers::PullPolicy,
    runtime::{
        ImageError, ImageRecord, ImageService, ImageUsage, PruneReport, PrunedImage, PullProgress, PullSecrets, PullState, Repair,
        VerifiedImage, VerifyReport,
    },
};
use podstead::{
    pod::Revision,
    store::{PruneError, SourceControl},
};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, watch};

/// Holds back three pods of the source `held`.
#[derive(Debug)]
pub(crate) struct StubSources;

impl StubSources {
    fn known(source: &SourceId) -> Result<(), RevisionError> {
        match source.as_str() {
            "held" | "manifests" => Ok(()),
            _ => Err(RevisionError::UnknownSource(source.clone())),
        }
    }
}

fn entry(number: u64, revision: &str, in_force: bool) -> serde_json::Value {
    json!({
        "number": number, "revision": revision, "acceptedAt": "1970-01-01T00:00:00Z", "inForce": in_force, "pods": 2, "configMaps": 1,
        "secrets": 0,
    })
}

#[async_trait]
impl SourceControl for StubSources {
    async fn prune(&self, source: &SourceId) -> Result<usize, PruneError> {
        match source.as_str() {
            "held" => Ok(3),
            "manifests" => Err(PruneError::NothingHeld(source.clone())),
            _ => Err(PruneError::UnknownSource(source.clone())),
        }
    }

    async fn suspend(&self, source: &SourceId, command: &str) -> Result<Hold, RevisionError> {
        Self::known(source)?;
        Ok(Hold { kind: HoldKind::Suspended, since: Timestamp::UNIX_EPOCH, command: command.to_owned() })
    }

    async fn resume(&self, source: &SourceId) -> Result<Resumed, RevisionError> {
        Self::known(source)?;
        match source.as_str() {
            "held" => Ok(Resumed { hold: self.suspend(source, "podstead suspend held").await?, diff: None }),
            _ => Err(RevisionError::NotHeld(source.clone())),
        }
    }

    async fn roll_back(&self, source: &SourceId, revision: Option<&str>, command: &str) -> Result<RolledBack, RevisionError> {
        Self::known(source)?;
        let target = match revision {
            None | Some("2" | "abcd") => "abcdef0123456789",
            Some(wanted) => return Err(RevisionError::NoSuchRevision { id: source.clone(), wanted: wanted.to_owned() }),
        };
        let hold = Hold { kind: HoldKind::RolledBack, since: Timestamp::UNIX_EPOCH, command: command.to_owned() };
        Ok(RolledBack { revision: Revision(target.into()), pods: 2, before: Revision("fedcba9876543210".into()), hold })
    }

    async fn history(&self, source: &SourceId) -> Result<History, RevisionError> {
        Self::known(source)?;
        let history = json!({"revisions": [entry(3, "fedcba9876543210", true), entry(2, "abcdef0123456789", false)], "unreadable": ["1: is damaged"]});
        Ok(serde_json::from_value(history).unwrap())
    }

    async fn diff(&self, source: &SourceId, revision: Option<&str>) -> Result<RevisionDiff, RevisionError> {
        Self::known(source)?;
        let change = json!({"changed": [{"field": "spec.containers[c].image", "before": "one", "after": "two"}]});
        let objects = match revision {
            Some("3") => json!([]),
            _ => json!([{"kind": "Pod", "namespace": "default", "name": "web", "change": change}]),
        };
        let (from, to) = (entry(2, "abcdef0123456789", false), entry(3, "fedcba9876543210", true));
        Ok(serde_json::from_value(json!({"from": from, "to": to, "objects": objects})).unwrap())
    }
}

/// Knows what tests put into `pods`.
#[derive(Debug, Default)]
pub(crate) struct StubRuntime {
    pub(crate) pods: Mutex<BTreeMap<PodUid, ObservedPod>>,
    /// Sessions whose client has left before their process ended.
    pub(crate) abandoned: watch::Sender<u32>,
}

fn unused(operation: &str) -> RuntimeError {
    RuntimeError::failed(operation, "not a thing that the API does")
}

#[async_trait]
impl Runtime for StubRuntime {
    async fn recover(&self) -> Result<Vec<ObservedPod>, RuntimeError> {
        Err(unused("recover"))
    }

    async fn create_sandbox(&self, _: &SandboxSpec) -> Result<SandboxStatus, RuntimeError> {
        Err(unused("create sandbox"))
    }

    async fn update_sandbox(&self, _: &SandboxSpec) -> Result<SandboxStatus, RuntimeError> {
        Err(unused("update sandbox"))
    }

    async fn resize_container(&self, _: &PodUid, _: &ContainerId, _: &ContainerResources) -> Result<(), RuntimeError> {
        Err(unused("resize"))
    }

    async fn plug_devices(&self, _: &PodUid, _: &ContainerId, _: &[GivenDevice]) -> Result<(), RuntimeError> {
        Err(unused("plug devices"))
    }

    async fn stop_sandbox(&self, _: &PodUid) -> Result<(), RuntimeError> {
        Err(unused("stop sandbox"))
    }

    async fn observe(&self, uid: &PodUid) -> Result<Option<ObservedPod>, RuntimeError> {
        Ok(self.pods.lock().unwrap().get(uid).cloned())
    }

    async fn start_container(&self, _: &ContainerSpec) -> Result<ContainerStatus, StartError> {
        Err(unused("start").into())
    }

    async fn signal_container(&self, _: &PodUid, _: &ContainerId, _: i32) -> Result<(), RuntimeError> {
        Err(unused("signal"))
    }

    async fn kill_container(&self, _: &PodUid, _: &ContainerId) -> Result<(), RuntimeError> {
        Err(unused("kill"))
    }

    async fn remove_container(&self, _: &PodUid, _: &ContainerId) -> Result<(), RuntimeError> {
        Err(unused("remove container"))
    }

    async fn remove_pod(&self, _: &PodUid) -> Result<(), RuntimeError> {
        Err(unused("remove pod"))
    }

    fn weigh_burstable(&self, _: u64) -> Result<(), RuntimeError> {
        Err(unused("set the CPU shares of the burstable cgroup"))
    }

    async fn exec(&self, _: &PodUid, id: &ContainerId, spec: &ExecSpec) -> Result<ExecSession, RuntimeError> {
        let mut words = spec.args.iter().map(String::as_str);
        let program = match (words.next(), words.next()) {
            (Some("cat"), _) => Program::Cat,
            (Some("sizes"), _) => Program::Sizes(spec.tty),
            (Some("hang"), _) => Program::Hang(self.abandoned.clone()),
            (Some("echo"), _) => Program::Say(format!("{} in {id}\n", spec.args[1..].join(" ")), "to stderr\n".into(), 0),
            (Some("exit"), Some(code)) => Program::Say(String::new(), String::new(), code.parse().unwrap()),
            (program, _) => {
                let operation = format!("execute {:?}", program.unwrap_or_default());
                return Err(RuntimeError::failed(operation, "no such file"));
            }
        };
        Ok(program.start())
    }

    async fn attach(&self, _: &PodUid, _: &ContainerId) -> Result<ExecSession, RuntimeError> {
        Ok(Program::Cat.start())
    }

    fn take_events(&self) -> Option<mpsc::UnboundedReceiver<PodLifecycleEvent>> {
        None
    }
}

/// Program of a session.
enum Program {
    /// Writes stdin to stdout until stdin is closed.
    Cat,
    /// Tells the size of its terminal at the start and at each change; ends with the code typed.
    Sizes(Option<(u16, u16)>),
    /// Waits until the client leaves.
    Hang(watch::Sender<u32>),
    /// Writes to stdout and stderr and ends with a code.
    Say(String, String, i32),
}

impl Program {
    fn start(self) -> ExecSession {
        let (input, stdin) = mpsc::channel(4);
        let (stdout, output) = mpsc::channel(4);
        tokio::spawn(self.run(stdin, stdout));
        ExecSession { input, output }
    }

    async fn run(self, mut input: mpsc::Receiver<ExecInput>, output: mpsc::Sender<ExecOutput>) {
        let code = match self {
            Self::Cat => loop {
                match input.recv().await {
                    Some(ExecInput::Stdin(bytes)) => {
                        if output.send(ExecOutput::Stdout(bytes)).await.is_err() {
                            return;
                        }
                    }
                    Some(ExecInput::CloseStdin) => break 0,
                    Some(ExecInput::Resize(..)) => {}
                    None => return,
                }
            },
            Self::Sizes(tty) => {
                let tell = |size: Option<(u16, u16)>| ExecOutput::Stdout(Bytes::from(format!("{size:?}\r\n")));
                output.send(tell(tty)).await.ok();
                loop {
                    match input.recv().await {
                        Some(ExecInput::Resize(columns, rows)) => {
                            output.send(tell(Some((columns, rows)))).await.ok();
                        }
                        Some(ExecInput::Stdin(bytes)) => break i32::from(bytes[0] - b'0'),
                        Some(ExecInput::CloseStdin) => {}
                        None => return,
                    }
                }
            }
            Self::Hang(abandoned) => {
                output.send(ExecOutput::Stdout(Bytes::from_static(b"hanging\n"))).await.ok();
                output.closed().await;
                abandoned.send_modify(|number| *number += 1);
                return;
            }
            Self::Say(stdout, stderr, code) => {
                output.send(ExecOutput::Stdout(stdout.into())).await.ok();
                output.send(ExecOutput::Stderr(stderr.into())).await.ok();
                code
            }
        };
        output.send(ExecOutput::Exited(code)).await.ok();
    }
}

/// Images in memory.
#[derive(Debug)]
pub(crate) struct StubImages {
    pub(crate) images: Mutex<Vec<ImageRecord>>,
    pub(crate) pulls: Mutex<Vec<PullState>>,
    progress: broadcast::Sender<PullProgress>,
}

impl StubImages {
    pub(crate) fn new() -> Self {
        let images = Mutex::new(vec![record("docker.io/library/nginx:1.27", '1')]);
        Self { images, pulls: Mutex::default(), progress: broadcast::channel(64).0 }
    }
}

fn record(reference: &str, digit: char) -> ImageRecord {
    let created_at = Timestamp::now() - jiff::SignedDuration::from_hours(50);
    ImageRecord {
        references: vec![reference.into()],
        digest: format!("sha256:{}", digit.to_string().repeat(64)),
        size_bytes: 24 << 20,
        unique_bytes: 20 << 20,
        content_bytes: 23 << 20,
        layers: vec![format!("sha256:{}", "a".repeat(64))],
        pinned: digit == '1',
        created_at,
    }
}

#[async_trait]
impl ImageService for StubImages {
    async fn ensure(&self, reference: &str, _: PullPolicy, _: &PullSecrets) -> Result<ResolvedImage, ImageError> {
        if reference.contains("missing") {
            return Err(ImageError::Pull { reference: reference.into(), reason: "manifest unknown".into() });
        }
        for (fetched, complete) in [(0, false), (512, false), (1024, true)] {
            let layer = format!("sha256:{}", "a".repeat(64));
            self.progress.send(PullProgress { reference: reference.into(), layer, fetched, total: Some(1024), complete }).ok();
        }
        let record = record(reference, '2');
        let digest = record.digest.clone();
        self.images.lock().unwrap().push(record);
        Ok(ResolvedImage { digest, layers: Vec::new(), config: ImageConfig::default(), lease: Default::default() })
    }

    async fn resolve_user(&self, image: &ResolvedImage, user: &str) -> Result<ProcessUser, ImageError> {
        Err(ImageError::NoUser { reference: image.digest.clone(), user: user.into() })
    }

    async fn list(&self) -> Result<Vec<ImageRecord>, ImageError> {
        Ok(self.images.lock().unwrap().clone())
    }

    async fn import(&self, path: PathBuf) -> Result<Vec<String>, ImageError> {
        if std::fs::read(&path).is_err() {
            return Err(ImageError::Import { path, reason: "no such file".into() });
        }
        self.images.lock().unwrap().push(record("localhost/imported:1", '3'));
        Ok(vec!["localhost/imported:1".into()])
    }

    async fn prune(&self, all: bool, _: bool) -> Result<PruneReport, ImageError> {
        let image = |name: &str, kept: Option<&str>| PrunedImage {
            references: vec![name.to_owned()],
            digest: format!("sha256:{}", "1".repeat(64)),
            kept: kept.map(ToOwned::to_owned),
        };
        let removed = all.then(|| image("docker.io/library/old:1", None));
        let images = removed.into_iter().chain([image("docker.io/library/nginx:1.27", Some("pod shop/web"))]).collect();
        Ok(PruneReport { images, freed_bytes: if all { 3 << 20 } else { 0 }, layers: 0 })
    }

    async fn pin(&self, reference: &str, pinned: bool) -> Result<(), ImageError> {
        let mut images = self.images.lock().unwrap();
        match images.iter_mut().find(|image| image.references.iter().any(|name| name == reference)) {
            Some(image) => image.pinned = pinned,
            None => return Err(ImageError::Inspect { reference: reference.into(), reason: "it is not present".into() }),
        }
        Ok(())
    }

    async fn verify(&self, references: &[String], repair: bool) -> Result<VerifyReport, ImageError> {
        let image = |name: &str, damage: &[&str], unlisted_layers| VerifiedImage {
            references: vec![name.to_owned()],
            digest: format!("sha256:{}", "1".repeat(64)),
            damage: damage.iter().map(|part| (*part).to_owned()).collect(),
            unlisted_layers,
            repair: (repair && !damage.is_empty()).then(|| Repair::Done { from: "docker.io".to_owned() }),
        };
        let mut images = vec![image("docker.io/library/nginx:1.27", &[], 2)];
        images.push(image("docker.io/library/old:1", &["layer 0123456789ab: /etc/passwd has another content"], 0));
        images.retain(|image| references.is_empty() || image.references.iter().any(|name| references.contains(name)));
        Ok(VerifyReport { images, read_bytes: 24 << 20 })
    }

    async fn usage(&self) -> Result<ImageUsage, ImageError> {
        Ok(ImageUsage {
            images: 1,
            disk_bytes: 24 << 20,
            unused_bytes: 0,
            free_bytes: 1 << 30,
            all_bytes: 4 << 30,
            ..ImageUsage::default()
        })
    }

    async fn remove(&self, reference: &str, force: bool) -> Result<(), ImageError> {
        if reference.contains("needed") && !force {
            return Err(ImageError::Needed { reference: reference.into(), reason: "it is needed (pod shop/web)".into() });
        }
        let mut images = self.images.lock().unwrap();
        let before = images.len();
        images.retain(|image| !image.references.iter().any(|name| name == reference));
        if images.len() == before {
            let reason = "no such image".into();
            return Err(ImageError::Inspect { reference: reference.into(), reason });
        }
        Ok(())
    }

    fn pulls(&self) -> Vec<PullState> {
        self.pulls.lock().unwrap().clone()
    }

    fn arrivals(&self) -> watch::Receiver<u64> {
        watch::Sender::default().subscribe()
    }

    fn progress(&self) -> broadcast::Receiver<PullProgress> {
        self.progress.subscribe()
    }
}

/// Records orders; the pod `ended` takes none.
#[derive(Debug, Default)]
pub(crate) struct StubOrders(std::sync::Mutex<Vec<String>>);

impl StubOrders {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn record(&self, order: &str, pod: &DesiredPod) -> Result<(), PodControlError> {
        if pod.full_name.name.starts_with("ended") {
            return Err(PodControlError::Conflict("the pod has ended".to_owned()));
        }
        self.0.lock().unwrap().push(format!("{order} {}", pod.full_name.name));
        Ok(())
    }
}

#[async_trait]
impl PodControl for StubOrders {
    async fn stop(&self, pod: &DesiredPod) -> Result<(), PodControlError> {
        self.record("stop", pod)
    }

    async fn start(&self, pod: &DesiredPod) -> Result<(), PodControlError> {
        self.record("start", pod)
    }

    async fn restart(&self, pod: &DesiredPod) -> Result<(), PodControlError> {
        self.record("restart", pod)
    }

    async fn forget_ended(&self, pod: &DesiredPod) -> bool {
        self.record("forget", pod).is_ok()
    }

    async fn end(&self, pod: &DesiredPod, grace: Duration) -> Result<(), PodControlError> {
        self.record(&format!("end in {} s", grace.as_secs()), pod)
    }
}
