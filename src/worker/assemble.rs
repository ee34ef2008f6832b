//! Assembly of a [`ContainerSpec`] from a container's definition, with everything resolved.

use super::cdi::{self, CdiError, Injected};
use super::definition::ContainerDefinition;
use super::event_subject::subject;
use super::hook_action::Hook;
use super::plugged::{self, MissingDevice};
use super::process;
use super::services::Services;
use k8s_openapi::api::core::v1::Container;
use podstead_container::{
    ContainerSpec, ProcessUser, ResolvedImage, SandboxStatus, ShutdownHook, ShutdownRequest, ShutdownTurn, kernel,
};
use podstead_pod::containers::{self, TerminationMessagePolicy};
use podstead_pod::devices::DeviceRequest;
use podstead_pod::env::{self, EnvFacts, SkippedKeys};
use podstead_pod::host_files::NetworkDns;
use podstead_pod::objects::Objects;
use podstead_pod::resources::oom_score_adj;
use podstead_pod::security::{DEFAULT_APPARMOR_PROFILE, container_security, run_as};
use podstead_pod::{ContainerId, DesiredPod};
use podstead_probe::action::{Action as Check, HttpGet, http};
use podstead_runtime::ImageError;
use podstead_status::reason;
use podstead_telemetry::events::EventType;
use podstead_volume::{ContainerMounts, VolumeError};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// Reason why a container cannot be created.
#[derive(Debug, thiserror::Error)]
pub(super) enum AssembleError {
    /// It is not in the pod: the plan is of another definition.
    #[error("the pod has no container {0}")]
    NoContainer(String),
    /// A file that variables come from cannot be read.
    #[error("couldn't parse env file")]
    EnvFiles(#[source] VolumeError),
    /// A variable has no value.
    #[error(transparent)]
    Environment(env::EnvError),
    /// The user is not in the image.
    #[error("resolve user")]
    User(#[source] ImageError),
    /// The user must not be root.
    #[error("{0}")]
    NonRoot(String),
    /// Neither pod nor image names a program.
    #[error("no command specified")]
    NoCommand,
    /// A device is unavailable.
    #[error("failed to inject CDI devices")]
    Devices(#[source] CdiError),
    /// A device that may be unplugged is not there.
    #[error(transparent)]
    Unplugged(MissingDevice),
    /// A volume is not there.
    #[error("mount volumes")]
    Mounts(#[source] VolumeError),
}

impl AssembleError {
    /// The waiting reason (kubelet rule D8).
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            AssembleError::NoContainer(_) | AssembleError::NoCommand | AssembleError::Devices(_) => reason::CREATE_CONTAINER_ERROR,
            AssembleError::Unplugged(_) => reason::DEVICE_MISSING,
            AssembleError::EnvFiles(_) | AssembleError::Environment(_) | AssembleError::User(_) | AssembleError::NonRoot(_) => {
                reason::CREATE_CONTAINER_CONFIG_ERROR
            }
            AssembleError::Mounts(VolumeError::BadMount { .. }) => reason::CREATE_CONTAINER_CONFIG_ERROR,
            AssembleError::Mounts(
                VolumeError::NotReady { .. }
                | VolumeError::Removal { .. }
                | VolumeError::Claims(_)
                | VolumeError::ClaimsOnDisk { .. }
                | VolumeError::List { .. },
            ) => reason::CONTAINER_CREATING,
        }
    }
}

/// A container that is about to be started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<'a> {
    /// Its pod.
    pub(super) desired: &'a DesiredPod,
    /// Its definition.
    pub(super) definition: &'a ContainerDefinition,
    /// ConfigMaps and Secrets.
    pub(super) objects: &'a Objects,
    /// Devices of the host that its pod names.
    pub(super) devices: &'a [DeviceRequest],
    /// The sandbox that it is started in.
    pub(super) sandbox: &'a SandboxStatus,
    /// Its image.
    pub(super) image: &'a ResolvedImage,
    /// Its restart count.
    pub(super) attempt: u32,
    /// Number of times all containers of the sandbox were restarted.
    pub(super) round: u32,
    /// Addresses of its pod.
    pub(super) pod_ips: &'a [IpAddr],
    /// DNS settings from its network.
    pub(super) dns: Option<&'a NetworkDns>,
}

impl Start<'_> {
    /// Asks images and volumes for what the container needs, and puts it together.
    pub(super) async fn assemble(&self, services: &Services) -> Result<ContainerSpec, AssembleError> {
        let pod = &self.desired.pod;
        let name = &self.definition.name;
        let (_, container) = containers::find(pod, name.as_str()).ok_or_else(|| AssembleError::NoContainer(name.to_string()))?;
        let facts = EnvFacts {
            service_variables: services.service_variables.of_pod(pod, &self.desired.source).await,
            ..self.facts(services)
        };
        let files = services.volumes.env_files(self.desired, env::env_files(container)).await.map_err(AssembleError::EnvFiles)?;
        let environment = env::container_environment(pod, container, self.objects.seen_by(&self.desired.source), &files, &facts)
            .map_err(AssembleError::Environment)?;
        self.tell_skipped(services, &environment.skipped);
        let declared = environment.variables;
        let run_as = run_as(pod, container);
        let wanted = process::user_to_resolve(&run_as, &self.image.config);
        let resolved = services.images.resolve_user(self.image, &wanted).await.map_err(AssembleError::User)?;
        let user = process::with_groups(&run_as, resolved);
        process::check_non_root(&run_as, &user, &self.desired.full_name.to_string(), name.as_str())
            .map_err(AssembleError::NonRoot)?;
        let mounts = services
            .volumes
            .container_mounts(self.desired, name, self.attempt, self.pod_ips, self.dns, &declared)
            .await
            .map_err(AssembleError::Mounts)?;
        for exceeded in &mounts.dns_exceeded {
            services.events.record(&subject(self.desired, None), EventType::Warning, "DNSConfigForming", exceeded);
        }
        let injected = self.devices(services, &user).await?;
        self.put_together(services, container, &declared, user, mounts, injected)
    }

    fn shutdown_turn(&self, services: &Services) -> ShutdownTurn {
        let position =
            containers::all(&self.desired.pod).position(|(_, container)| container.name == self.definition.name.as_str());
        let hook = match &self.definition.pre_stop {
            Some(Hook::Check(Check::Exec(args))) => Some(ShutdownHook::Exec(args.clone())),
            Some(Hook::Sleep(time)) => Some(ShutdownHook::Sleep(time.as_secs())),
            Some(Hook::Check(Check::Http(_) | Check::Tcp(_) | Check::Grpc(_)) | Hook::Unusable(_)) | None => None,
        };
        let request = match &self.definition.pre_stop {
            Some(Hook::Check(Check::Http(request))) => self.shutdown_request(services, request),
            Some(Hook::Check(Check::Exec(_) | Check::Tcp(_) | Check::Grpc(_)) | Hook::Sleep(_) | Hook::Unusable(_)) | None => None,
        };
        ShutdownTurn { position: position.and_then(|at| u32::try_from(at).ok()).unwrap_or_default(), hook, request }
    }

    /// The part of an HTTP preStop hook that a shim can do alone: all but HTTPS, for which a shim is too small.
    fn shutdown_request(&self, services: &Services, request: &HttpGet) -> Option<ShutdownRequest> {
        let HttpGet { is_tls, host, port, path, headers: _ } = request;
        if *is_tls {
            return None;
        }
        // One that cannot be sent fails there as it would here.
        let headers = http::headers(request, http::Asker::Hook).ok()?;
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let is_own_network = !self.sandbox.spec.namespaces.host_network;
        let address = match is_own_network {
            true => self.pod_ips.first().copied(),
            false => services.host_addresses.get(services.clock.now().moment).first().copied(),
        };
        let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)).to_string();
        Some(ShutdownRequest {
            in_pod: is_own_network && host.is_none(),
            host: host.clone().unwrap_or(address),
            port: *port,
            path: path.clone(),
            headers: headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect(),
        })
    }

    /// Tells what an `envFrom` leaves out (the kubelet's event).
    fn tell_skipped(&self, services: &Services, skipped: &[SkippedKeys]) {
        let subject = subject(self.desired, Some(&self.definition.name));
        for SkippedKeys { object, keys } in skipped {
            let message = format!(
                "Keys [{}] from the EnvFrom {object} were skipped since they are considered invalid environment variable names or values",
                keys.join(", ")
            );
            services.events.record(&subject, EventType::Warning, "InvalidEnvironmentVariableNames", &message);
        }
    }

    async fn devices(&self, services: &Services, user: &ProcessUser) -> Result<Injected, AssembleError> {
        let (pod, directories, user) = (Arc::clone(&self.desired.pod), services.cdi_directories.borrow().clone(), user.clone());
        let (name, requests) = (self.definition.name.clone(), self.devices.to_vec());
        let find = move || {
            let mut injected = cdi::inject(&pod, &directories, &user).map_err(AssembleError::Devices)?;
            injected.devices.plugged = plugged::at_start(&requests, &name, &user).map_err(AssembleError::Unplugged)?;
            Ok(injected)
        };
        match tokio::task::spawn_blocking(find).await {
            Ok(found) => found,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    fn facts(&self, services: &Services) -> EnvFacts {
        let host_ips = services.host_addresses.get(services.clock.now().moment);
        EnvFacts { pod_ips: self.pod_ips.to_vec(), host_ips, ..services.node.clone() }
    }

    fn put_together(
        &self,
        services: &Services,
        container: &Container,
        declared: &[(String, String)],
        mut user: ProcessUser,
        mounts: ContainerMounts,
        injected: Injected,
    ) -> Result<ContainerSpec, AssembleError> {
        let DesiredPod { uid, full_name, pod, .. } = self.desired;
        let image = &self.image.config;
        let args = process::arguments(env::expanded_command(container, declared), env::expanded_args(container, declared), image);
        if args.is_empty() {
            return Err(AssembleError::NoCommand);
        }
        // As `hostname` says it in the container: on the host's network what the kernel says now, which need not be the node's name.
        let hostname = match self.sandbox.spec.namespaces.host_network {
            true => kernel::host_name(),
            false => self.sandbox.spec.hostname.clone(),
        };
        let tty = container.tty.unwrap_or(false);
        user.additional_gids.extend(injected.gids);
        Ok(ContainerSpec {
            pod: uid.clone(),
            full_name: full_name.clone(),
            id: ContainerId::random(),
            name: self.definition.name.clone(),
            kind: self.definition.kind,
            attempt: self.attempt,
            sandbox_attempt: self.sandbox.spec.attempt,
            hash: self.definition.hash.in_round(self.round),
            image_ref: self.definition.image.clone(),
            image: self.image.clone(),
            args,
            env: process::with_variables(process::environment(image, &hostname, tty, declared), injected.env),
            cwd: process::working_directory(container.working_dir.as_deref(), image).into(),
            user,
            mounts: mounts.mounts,
            shm_size: mounts.shm_size,
            devices: injected.devices,
            security: container_security(pod, container, default_apparmor()),
            resources: self.definition.resources.cgroup.clone(),
            declared: self.definition.resources.declared.clone(),
            oom_score_adj: oom_score_adj(pod, container, services.node.allocatable_memory_bytes),
            log_path: services.paths.container_log(full_name, uid, &container.name, self.attempt),
            termination_log: Some(mounts.termination_log),
            fallback_to_logs: match containers::termination_message_policy(container) {
                TerminationMessagePolicy::File => false,
                TerminationMessagePolicy::FallbackToLogsOnError => true,
            },
            tty,
            stdin: container.stdin.unwrap_or(false),
            stdin_once: container.stdin_once.unwrap_or(false),
            stop_signal: process::stop_signal(containers::stop_signal(container), image),
            grace_secs: containers::termination_grace_secs(pod).max(1),
            always_restarts: self.definition.exits.always_restarts(),
            shutdown: self.shutdown_turn(services),
        })
    }
}

/// The default AppArmor profile, if it is loaded. Checked at each start: an administrator may load it at any time.
fn default_apparmor() -> Option<&'static str> {
    kernel::has_apparmor_profile(DEFAULT_APPARMOR_PROFILE).then_some(DEFAULT_APPARMOR_PROFILE)
}
