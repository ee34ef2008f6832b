//! Execution of a plan's steps. Decides nothing: the result of a step is an [`Outcome`], which is applied to the pod's state.

use super::assemble::Start;
use super::definition::PodDefinition;
use super::event_subject::subject;
use super::plan::{Action, StopReason};
use super::record::{self, PodRecord};
use super::remains;
use super::saved::{HookMark, set_hook_mark};
use super::services::Services;
use super::state::{ImageWork, Outcome, PodState, PreStop};
use podstead_container::{SandboxSpec, SandboxState, SandboxStatus};
use podstead_pod::claims::{ClaimedVolume, claimed_volumes};
use podstead_pod::files::{Projection, projections};
use podstead_pod::{ContainerId, ContainerName};
use podstead_runtime::{NetworkError, RuntimeError, StartError};
use podstead_status::reason;
use podstead_sys::tick::Tick;
use podstead_telemetry::error_chain;
use podstead_telemetry::events::EventType;
use podstead_telemetry::trace::Step;
use podstead_volume::{Giving, VolumeContents, VolumeError};
use std::error::Error;
use std::sync::Arc;

/// Takes steps for one pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct Executor<'a> {
    pub(super) services: &'a Services,
    pub(super) definition: &'a PodDefinition,
    pub(super) state: &'a PodState,
    pub(super) sandbox: Option<&'a SandboxStatus>,
    pub(super) record: &'a PodRecord,
}

impl Executor<'_> {
    /// Takes one step.
    pub(super) async fn take(&self, action: &Action) -> Outcome {
        let runtime = &self.services.runtime;
        let uid = &self.definition.desired.uid;
        match action {
            Action::WriteRecord => self.write_record().await,
            // The worker fetches and does hooks beside its turns.
            Action::EnsureImage { .. } | Action::EnsureVolumeImage { .. } | Action::RunPostStart { .. } => Outcome::Pending,
            Action::RunPreStop { container, why, .. } => {
                self.tell(Some(container), EventType::Normal, "Killing", &why.message(container));
                Outcome::Pending
            }
            Action::PrepareVolumes => self.prepare_volumes().await,
            Action::StopContainer { container, id, signal, why, .. } => self.signal(container, id, *signal, *why).await,
            Action::KillContainer { id, .. } => self.gone(runtime.kill_container(uid, id).await),
            Action::StopSandbox => self.stop_sandbox().await,
            Action::CreateSandbox { attempt, .. } => self.create_sandbox(*attempt).await,
            Action::ResizeSandbox(resources) => {
                let attempt = self.sandbox.map_or(0, |sandbox| sandbox.spec.attempt);
                let spec = SandboxSpec { resources: (**resources).clone(), ..self.sandbox_spec(attempt) };
                match runtime.update_sandbox(&spec).await {
                    Ok(sandbox) => Outcome::Sandbox(sandbox),
                    Err(error) => self.resize_failed(None, &error),
                }
            }
            Action::ResizeContainer { container, id, resources } => {
                match runtime.resize_container(uid, id, resources).await {
                    Ok(()) => {
                        self.tell(Some(container), EventType::Normal, "ResizeCompleted", &format!("Resized container {container}"));
                        Outcome::Done
                    }
                    // It ended in between.
                    Err(RuntimeError::NotFound(_)) => Outcome::Pending,
                    Err(error) => self.resize_failed(Some(container), &error),
                }
            }
            Action::SetUpNetwork => self.set_up_network().await,
            Action::RemoveContainer { id, .. } => self.gone(runtime.remove_container(uid, id).await),
            Action::StartContainer { container, attempt, round, .. } => self.start(container, *attempt, *round).await,
            Action::Finish(result) => {
                let message = result.message.as_deref().unwrap_or_default();
                match result.reason.as_deref() {
                    Some(reason::EVICTED) => self.tell(None, EventType::Warning, reason::EVICTED, message),
                    Some(reason::DEADLINE_EXCEEDED) => self.tell(None, EventType::Normal, reason::DEADLINE_EXCEEDED, message),
                    Some(_) | None => {}
                }
                Outcome::Done
            }
            Action::TrimVolumes => match self.services.volumes.trim(&self.definition.desired).await {
                Ok(()) => Outcome::Done,
                Err(error) => self.unmount_failed(&error),
            },
            // The worker measures beside its turns.
            Action::MeasureStorage => Outcome::Done,
            Action::Recreate => {
                self.services.incarnations.recreate(uid.clone()).await;
                Outcome::Done
            }
            Action::RemoveVolumes => match self.services.volumes.remove(uid).await {
                Ok(()) => Outcome::Done,
                Err(error) => self.unmount_failed(&error),
            },
            Action::ForgetPod => self.forget().await,
        }
    }

    async fn prepare_volumes(&self) -> Outcome {
        let (volumes, desired) = (&self.services.volumes, &self.definition.desired);
        let mut prepared = volumes.prepare(desired, self.contents()).await;
        // Else all of it is given when the sandbox is made.
        if prepared.is_ok() && self.sandbox.is_some_and(|sandbox| sandbox.state == SandboxState::Ready) {
            prepared = volumes.give_claims(desired, self.claims(), Giving::Rest).await;
        }
        match prepared {
            Ok(()) => Outcome::Done,
            Err(error) => self.volumes_failed(&error),
        }
    }

    /// The available contents of volumes.
    fn contents(&self) -> VolumeContents {
        let images = self.state.volumes.images.iter().filter_map(|(volume, image)| match image {
            ImageWork::Present(image) => Some((volume.clone(), (**image).clone())),
            ImageWork::Open | ImageWork::Pulling { .. } | ImageWork::Failed(_) => None,
        });
        VolumeContents { files: self.files(), claims: self.claims(), images: images.collect() }
    }

    /// Files of projected volumes, except those with missing parts.
    fn files(&self) -> Vec<Projection> {
        let PodDefinition { desired, objects, .. } = self.definition;
        projections(&desired.pod, objects.seen_by(&desired.source), &self.services.node)
            .into_iter()
            .filter_map(Result::ok)
            .collect()
    }

    /// Claims that its volumes refer to, but for those that are missing.
    fn claims(&self) -> Vec<ClaimedVolume> {
        let PodDefinition { desired, objects, .. } = self.definition;
        claimed_volumes(&desired.pod, objects.seen_by(&desired.source)).into_iter().filter_map(Result::ok).collect()
    }

    async fn write_record(&self) -> Outcome {
        let (record, paths, log) = (self.record.clone(), self.services.paths.clone(), self.services.write_ahead.clone());
        match tokio::task::spawn_blocking(move || record.write(&paths, &log)).await {
            Ok(Ok(())) => Outcome::Done,
            Ok(Err(error)) => {
                let message = error_chain(&error).to_string();
                self.tell(None, EventType::Warning, "FailedToRecordPod", &message);
                Outcome::Failed { reason: reason::CONTAINER_CREATING, message }
            }
            Err(error) => Outcome::failed(reason::CONTAINER_CREATING, &error),
        }
    }

    fn volumes_failed(&self, error: &VolumeError) -> Outcome {
        let message = error_chain(error).to_string();
        let told = match error {
            VolumeError::NotReady { volume, reason } => format!("MountVolume.SetUp failed for volume \"{volume}\" : {reason}"),
            VolumeError::BadMount { .. }
            | VolumeError::Removal { .. }
            | VolumeError::Claims(_)
            | VolumeError::ClaimsOnDisk { .. }
            | VolumeError::List { .. } => message.clone(),
        };
        self.tell(None, EventType::Warning, "FailedMount", &told);
        let reason = match error {
            VolumeError::NotReady { .. }
            | VolumeError::Removal { .. }
            | VolumeError::Claims(_)
            | VolumeError::ClaimsOnDisk { .. }
            | VolumeError::List { .. } => reason::CONTAINER_CREATING,
            VolumeError::BadMount { .. } => reason::CREATE_CONTAINER_CONFIG_ERROR,
        };
        Outcome::Failed { reason, message }
    }

    async fn signal(&self, container: &ContainerName, id: &ContainerId, signal: i32, why: StopReason) -> Outcome {
        // Of one that has a preStop hook, it was told before that.
        if self.state.runs.stop(id).is_none_or(|stop| stop.pre_stop == PreStop::None) {
            self.tell(Some(container), EventType::Normal, "Killing", &why.message(container));
        }
        if let Err(error) = self.services.runtime.signal_container(&self.definition.desired.uid, id, signal).await {
            // SIGKILL follows at the deadline, even if the signal failed.
            tracing::warn!(pod = %self.definition.desired.full_name, %container, error = %error_chain(&error), "cannot signal container");
        }
        Outcome::Pending
    }

    async fn stop_sandbox(&self) -> Outcome {
        let uid = &self.definition.desired.uid;
        let network = match self.services.network.teardown(uid).await {
            // Its namespace is needed until that has come to an end.
            Err(error @ NetworkError::UnderWay) => return Outcome::failed("FailedKillPod", &error),
            other => other.err().map(|error| error_chain(&error).to_string()),
        };
        let sandbox = self.services.runtime.stop_sandbox(uid).await.err().map(|error| error_chain(&error).to_string());
        let problems: Vec<String> = network.into_iter().chain(sandbox).collect();
        if problems.is_empty() {
            return Outcome::Done;
        }
        self.kill_failed(problems.join("; "))
    }

    /// NotFound is success: what shall go is gone.
    fn gone(&self, result: Result<(), RuntimeError>) -> Outcome {
        match result {
            Ok(()) | Err(RuntimeError::NotFound(_)) => Outcome::Done,
            Err(error) => self.kill_failed(error_chain(&error).to_string()),
        }
    }

    fn kill_failed(&self, message: String) -> Outcome {
        self.tell(None, EventType::Warning, "FailedKillPod", &format!("error killing pod: {message}"));
        Outcome::Failed { reason: "FailedKillPod", message }
    }

    fn unmount_failed(&self, error: &VolumeError) -> Outcome {
        let message = error_chain(error).to_string();
        self.tell(None, EventType::Warning, "FailedUnMount", &message);
        Outcome::Failed { reason: "FailedUnMount", message }
    }

    fn sandbox_spec(&self, attempt: u32) -> SandboxSpec {
        SandboxSpec { attempt, ..self.definition.sandbox.clone() }
    }

    async fn create_sandbox(&self, attempt: u32) -> Outcome {
        if self.sandbox.is_some() {
            self.tell(None, EventType::Normal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
        }
        // Now, that nothing of the pod runs and before anything does.
        if let Err(error) = self.services.volumes.give_claims(&self.definition.desired, self.claims(), Giving::All).await {
            return self.volumes_failed(&error);
        }
        match self.services.runtime.create_sandbox(&self.sandbox_spec(attempt)).await {
            Ok(sandbox) => Outcome::Sandbox(sandbox),
            Err(error) => self.sandbox_failed(&error),
        }
    }

    async fn set_up_network(&self) -> Outcome {
        let netns = self.sandbox.and_then(|sandbox| sandbox.netns.as_deref());
        match self.services.network.setup(&self.definition.desired.uid, &self.definition.desired.pod, netns).await {
            Ok(status) => Outcome::Network(status),
            Err(NetworkError::PortTaken(message)) => {
                self.tell(None, EventType::Warning, reason::HOST_PORT_CONFLICT, &message);
                Outcome::Failed { reason: reason::HOST_PORT_CONFLICT, message }
            }
            Err(error @ NetworkError::NotReady(_)) => {
                self.tell(None, EventType::Warning, "NetworkNotReady", &error.to_string());
                Outcome::failed(reason::CONTAINER_CREATING, &error)
            }
            Err(error @ NetworkError::UnderWay) => Outcome::failed(reason::CONTAINER_CREATING, &error),
            Err(error @ NetworkError::Failed { .. }) => self.sandbox_failed(&error),
        }
    }

    fn sandbox_failed(&self, error: &(dyn Error + 'static)) -> Outcome {
        let message = error_chain(error).to_string();
        self.tell(None, EventType::Warning, "FailedCreatePodSandBox", &format!("Failed to create pod sandbox: {message}"));
        Outcome::Failed { reason: reason::CONTAINER_CREATING, message }
    }

    async fn start(&self, name: &ContainerName, attempt: u32, round: u32) -> Outcome {
        let definition = self.definition.container(name);
        let (Some(definition), Some(sandbox), ImageWork::Present(image)) =
            (definition, self.sandbox, &self.state.container(name).image)
        else {
            return Outcome::Failed { reason: reason::CONTAINER_CREATING, message: "its sandbox or image is gone".to_owned() };
        };
        let PodDefinition { desired, objects, devices, .. } = self.definition;
        let (pod_ips, dns) = (self.state.network.ips.as_slice(), self.state.network.dns.as_ref());
        let start = Start { desired, definition, objects, devices, sandbox, image, attempt, round, pod_ips, dns };
        let began = Tick::now();
        let assembled = start.assemble(self.services).await;
        self.trace(Step::Assemble, name, began);
        let spec = match assembled {
            Ok(spec) => spec,
            Err(error) => return self.start_failed(name, error.reason(), error_chain(&error).to_string()),
        };
        if definition.post_start.is_some() {
            let owes = HookMark::OwesPostStart(spec.id.clone());
            set_hook_mark(&self.services.paths, &desired.uid, name, Some(owes)).await;
        }
        let began = Tick::now();
        let settled = self.services.network.settle(&desired.uid).await;
        self.trace(Step::NetworkRecord, name, began);
        if let Err(error) = settled {
            return self.start_failed(name, reason::CONTAINER_CREATING, error_chain(&error).to_string());
        }
        match self.services.runtime.start_container(&spec).await {
            Ok(_) => {
                self.tell(Some(name), EventType::Normal, "Created", &format!("Created container: {name}"));
                self.tell(Some(name), EventType::Normal, "Started", &format!("Started container {name}"));
                Outcome::Started { id: spec.id, owes_hook: definition.post_start.is_some() }
            }
            Err(error @ (StartError::Create(_) | StartError::Execute(_))) => {
                let is_made = matches!(error, StartError::Execute(_));
                let reason = if is_made { reason::RUN_CONTAINER_ERROR } else { reason::CREATE_CONTAINER_ERROR };
                let message = error_chain(&error).to_string();
                if suggests_damage(&message) {
                    self.services.images.doubt(image, &message);
                }
                self.start_failed(name, reason, message)
            }
            Err(error @ StartError::Runtime(_)) => {
                self.start_failed(name, reason::CONTAINER_CREATING, error_chain(&error).to_string())
            }
        }
    }

    /// Reports a failed resize. Running containers keep their resources.
    fn resize_failed(&self, container: Option<&ContainerName>, error: &RuntimeError) -> Outcome {
        let message = error_chain(error).to_string();
        self.tell(container, EventType::Warning, "ResizeError", &message);
        Outcome::Failed { reason: "ResizeError", message }
    }

    fn start_failed(&self, name: &ContainerName, reason: &'static str, message: String) -> Outcome {
        self.tell(Some(name), EventType::Warning, "Failed", &format!("Error: {message}"));
        Outcome::Failed { reason, message }
    }

    async fn forget(&self) -> Outcome {
        let desired = Arc::clone(&self.definition.desired);
        let paths = self.services.paths.clone();
        let marked = tokio::task::spawn_blocking(move || remains::mark_logs(&paths, &desired)).await;
        if let Ok(Err(error)) = marked {
            // Logs that stay are better than a pod that stays.
            tracing::warn!(pod = %self.definition.desired.full_name, error = %error_chain(&error), "cannot mark the logs of a removed pod for deletion");
        }
        let uid = &self.definition.desired.uid;
        // Its record goes with the pod's directory: it has to know before.
        match self.services.network.release(uid).await {
            Ok(()) => {}
            // That comes to its end by itself.
            Err(error @ NetworkError::UnderWay) => return Outcome::failed("FailedKillPod", &error),
            Err(error) => return self.kill_failed(error_chain(&error).to_string()),
        }
        if let Err(error) = self.services.runtime.remove_pod(uid).await {
            return self.kill_failed(error_chain(&error).to_string());
        }
        let (paths, uid, log) = (self.services.paths.clone(), uid.clone(), self.services.write_ahead.clone());
        match tokio::task::spawn_blocking(move || record::remove(&paths, &uid, &log)).await {
            Ok(Ok(())) => Outcome::Done,
            Ok(Err(error)) => self.kill_failed(error_chain(&error).to_string()),
            Err(error) => Outcome::failed("FailedKillPod", &error),
        }
    }

    /// Traces a step for a container that began at `from` and ends now.
    fn trace(&self, step: Step, container: &ContainerName, from: Tick) {
        self.services.traces.add(&self.definition.desired.uid, step, Some(container.as_str()), from, Tick::now());
    }

    /// Records an event about the pod or one of its containers.
    pub(super) fn tell(&self, container: Option<&ContainerName>, kind: EventType, reason: &str, message: &str) {
        self.services.events.record(&subject(&self.definition.desired, container), kind, reason, message);
    }
}

/// Returns true for an error of a start that damaged files of an image may be the reason of: a program that is none, or that cannot be read. The kernel's
/// word for it comes through a shim, as text, which has more to say of a program for another processor, and of a script.
fn suggests_damage(message: &str) -> bool {
    // ENOEXEC, EIO, ELIBBAD and EUCLEAN, as podstead, its libraries and libc spell them.
    const SIGNS: [&str; 6] = [
        "exec format error",
        "Exec format error",
        "I/O error",
        "nput/output error",
        "corrupted shared library",
        "tructure needs cleaning",
    ];
    SIGNS.iter().any(|sign| message.contains(sign)) && !message.contains("exec format error: it is a ")
}
