//! Starting containers and exec processes: the helper does it, this listens to the helper.

use super::client::Role;
use super::container::{Container, Handle, Process};
use super::event_loop::PodShim;
use super::exec_process::ExecProcess;
use super::explain::complain;
use super::helper_job::{HelperJob, HelperMessage, HelperOrder, Purpose, SPEC_FILE, Stage};
use super::poller::{ClientKey, ContainerKey, ExecKey, JobKey, StreamOwner};
use super::recorder::{Reply, Then};
use super::streams::{self, NearEnds, Streams};
use jiff::Timestamp;
use podstead_container::protocol::{Answer, Refusal, ShimEvent, ShimEventKind, ShimStep, StepTime};
use podstead_container::{ContainerSpec, ContainerState, ExecSpec};
use podstead_pod::ContainerId;
use podstead_sys::atomic_file::write_atomic;
use podstead_sys::remove_tree::remove_tree;
use podstead_sys::tick::Tick;
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::time::{Duration, Instant};

/// Exit code of a container that could not be started (kubelet: RunContainerError).
pub(super) const START_ERROR: i32 = 128;

impl PodShim {
    pub(super) fn start_container(&mut self, client: ClientKey, id: u64, spec: ContainerSpec) {
        if let Some(known) = self.containers.by_id(&spec.id) {
            let result = match &known.shown().state {
                ContainerState::Running { .. } => Ok(Answer::Container(Box::new(known.shown().clone()))),
                ContainerState::Created | ContainerState::Exited { .. } | ContainerState::Unknown { .. } => {
                    Err(Refusal::Failed(format!("container {} was started already", spec.id)))
                }
            };
            return self.respond(client, id, result);
        }
        let key = ContainerKey(self.new_key());
        let container = Container::new(key, &spec, self.config.log_limits, Timestamp::now());
        self.containers.insert(container);
        if let Err(reason) = self.launch_start_helper(client, id, key, &spec) {
            self.unmake(key, Reply { client, id, refusal: Some(Refusal::Create(reason)) });
        }
    }

    /// Starts the helper first and has the record of intent written while it works: the program is executed only after both.
    fn launch_start_helper(&mut self, client: ClientKey, id: u64, key: ContainerKey, spec: &ContainerSpec) -> Result<(), String> {
        let uid = self.config.spec.uid.clone();
        let bundle = self.paths.bundle(&uid, &spec.id);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&bundle)
            .map_err(|error| format!("create {}: {error}", bundle.display()))?;
        let text = serde_json::to_vec(spec).map_err(|error| format!("encode spec: {error}"))?;
        write_atomic(&bundle.join(SPEC_FILE), &text, 0o600).map_err(|error| format!("write spec: {error}"))?;
        let far_ends = if spec.tty {
            None
        } else {
            let (near, far) = streams::pipes(spec.stdin, self.config.spec.host_id(spec.user.uid))
                .map_err(|error| format!("create pipes: {error}"))?;
            let opened = Streams::open(StreamOwner::Container(key), near, &mut self.poller);
            let opened = opened.map_err(|error| format!("watch pipes: {error}"))?;
            if let Some(container) = self.containers.get_mut(key) {
                container.streams = opened;
            }
            Some(far)
        };
        let config = self.paths.shim_config(&uid);
        let empty = self.empty_mounts.as_ref().map(|namespace| namespace.as_raw_fd().to_string());
        let mut arguments = vec![OsStr::new("start"), config.as_os_str(), OsStr::new(spec.id.as_str())];
        arguments.extend(empty.as_deref().map(OsStr::new));
        let job = JobKey(self.new_key());
        let deadline = Instant::now() + Duration::from_secs(self.config.helper_timeout_secs);
        let order = HelperOrder {
            purpose: Purpose::Start(key),
            arguments: &arguments,
            far_ends,
            inherited: self.empty_mounts.as_ref(),
            reply_to: (client, id),
            deadline,
        };
        let started = HelperJob::spawn(job, order, &mut self.poller);
        self.helpers.insert(job, started.map_err(|error| format!("start helper: {error}"))?);
        self.record(key, Then::Permit(job));
        Ok(())
    }

    pub(super) fn start_exec(&mut self, client: ClientKey, id: u64, container: &ContainerId, spec: &ExecSpec) {
        if let Err(reason) = self.launch_exec_helper(client, id, container, spec) {
            self.respond(client, id, Err(reason));
        }
    }

    /// Returns the process that will be there.
    pub(super) fn launch_exec_helper(
        &mut self,
        client: ClientKey,
        id: u64,
        container: &ContainerId,
        spec: &ExecSpec,
    ) -> Result<ExecKey, Refusal> {
        let (key, job) = (ExecKey(self.new_key()), JobKey(self.new_key()));
        let container_key = self.container_by_id(container).ok_or_else(|| Refusal::NotFound(container.clone()))?;
        let process = self.containers.get(container_key).map(|container| &container.process);
        let Some(Process::Running(Handle { pid, descriptor: Some(descriptor) })) = process else {
            return Err(Refusal::Failed(format!("container {container} is not running")));
        };
        let process = format!("{pid}:{}", descriptor.as_raw_fd());
        let spec_text = serde_json::to_string(spec).map_err(|error| Refusal::Failed(format!("encode exec: {error}")))?;
        let (near, far) = match spec.tty {
            Some(_) => (None, None),
            None => {
                let (near, far) = streams::pipes(spec.stdin, self.config.spec.host_id(0))
                    .map_err(|error| Refusal::Failed(format!("create pipes: {error}")))?;
                (Some(near), Some(far))
            }
        };
        let config = self.paths.shim_config(&self.config.spec.uid);
        let arguments =
            [OsStr::new("exec"), config.as_os_str(), OsStr::new(container.as_str()), OsStr::new(&process), OsStr::new(&spec_text)];
        let deadline = Instant::now() + Duration::from_secs(self.config.helper_timeout_secs);
        let order = HelperOrder {
            purpose: Purpose::Exec(key),
            arguments: &arguments,
            far_ends: far,
            inherited: Some(descriptor),
            reply_to: (client, id),
            deadline,
        };
        let started = HelperJob::spawn(job, order, &mut self.poller);
        self.helpers.insert(job, started.map_err(|error| Refusal::Failed(format!("start helper: {error}")))?);
        self.execs.insert(key, ExecProcess::new(client, spec, near));
        Ok(key)
    }

    /// A helper said something.
    pub(super) fn listen_to_helper(&mut self, key: JobKey) {
        let Some(job) = self.helpers.get_mut(key) else { return };
        let is_open = job.read(&mut self.scratch).is_some();
        while let Some(message) = self.helpers.get_mut(key).and_then(HelperJob::next_message) {
            match message {
                HelperMessage::Created { pid } => self.process_created(key, pid),
                HelperMessage::Started { times } => {
                    self.tell_start_times(key, times);
                    self.finish_job(key, Ok(()));
                }
                HelperMessage::Failed { stage, reason } => self.finish_job(key, Err((stage, reason))),
            }
        }
        // The helper can report nothing more.
        let is_mute = !is_open || self.helpers.get(key).is_some_and(|job| job.has_exited);
        if is_mute && self.helpers.get(key).is_some() {
            self.fail_job(key, Stage::Create, "the helper exited without a result".to_owned());
        }
    }

    /// Tells the times of a start, before its end is told.
    fn tell_start_times(&mut self, key: JobKey, helper: Vec<StepTime>) {
        let Some(HelperJob { purpose: Purpose::Start(container), began, recorded, .. }) = self.helpers.get(key) else { return };
        let (container, began, recorded) = (*container, *began, *recorded);
        let begun = helper.first().map_or(began, |first| Tick::from_nanos(first.from));
        let own = [StepTime::new(ShimStep::HelperStart, began, begun), StepTime::new(ShimStep::Record, began, recorded)];
        let executed = helper.last().map_or(recorded, |last| Tick::from_nanos(last.to));
        self.tell_times(container, own.into_iter().chain(helper).collect());
        if let Some(container) = self.containers.get_mut(container) {
            container.executed = Some(executed);
        }
        self.tell_first_output(container);
    }

    fn process_created(&mut self, key: JobKey, pid: u32) {
        let process = self.helpers.take_exit(pid).map_or_else(|| Process::Created(Handle::new(pid)), Process::EndedEarly);
        let Some(job) = self.helpers.get_mut(key) else { return };
        let terminal = job.take_terminal();
        match job.purpose {
            Purpose::Start(container_key) => {
                if let Some(container) = self.containers.get_mut(container_key) {
                    container.process = process;
                    let with_stdin = container.stdin != super::container::StdinPolicy::None;
                    if let Some(master) = terminal {
                        let (owner, near) = (StreamOwner::Container(container_key), NearEnds::Terminal { master, with_stdin });
                        match Streams::open(owner, near, &mut self.poller) {
                            Ok(streams) => container.streams = streams,
                            Err(error) => complain("watch terminal", &error),
                        }
                    }
                }
            }
            Purpose::Exec(exec_key) => {
                if let Some(exec) = self.execs.get_mut(&exec_key) {
                    exec.process = process;
                    let with_stdin = exec.with_stdin;
                    if let Some(master) = terminal {
                        exec.waiting = Some(NearEnds::Terminal { master, with_stdin });
                    }
                }
            }
        }
        job.process_is_made();
    }

    /// The record of intent is on disk.
    pub(super) fn intent_recorded(&mut self, key: JobKey) {
        if let Some(job) = self.helpers.get_mut(key) {
            job.intent_is_recorded();
        }
    }

    /// A helper's work cannot come to a good end. Nothing if it has come to another one.
    pub(super) fn fail_job(&mut self, key: JobKey, stage: Stage, reason: String) {
        self.helpers.kill(key);
        self.finish_job(key, Err((stage, reason)));
    }

    fn finish_job(&mut self, key: JobKey, result: Result<(), (Stage, String)>) {
        let Some(job) = self.helpers.remove(key, &mut self.poller) else { return };
        let (client, id) = job.reply_to;
        match (job.purpose, result) {
            (Purpose::Start(container), Ok(())) => self.start_succeeded(container, client, id),
            (Purpose::Start(container), Err((stage, reason))) => {
                let reply = Reply { client, id, refusal: Some(refusal(stage, reason.clone())) };
                match stage {
                    Stage::Create => self.unmake(container, reply),
                    Stage::Execute => self.start_failed(container, &reason, reply),
                }
            }
            (Purpose::Exec(exec), Ok(())) => self.open_exec_session(exec, client, id),
            (Purpose::Exec(exec), Err((stage, reason))) => {
                if let Some(mut failed) = self.execs.remove(&exec) {
                    failed.kill();
                    failed.streams.close(&mut self.poller);
                }
                self.respond(client, id, Err(refusal(stage, reason)));
            }
        }
    }

    fn start_succeeded(&mut self, key: ContainerKey, client: ClientKey, id: u64) {
        self.rest_later();
        let Some(container) = self.containers.get_mut(key) else { return };
        let started_at = Timestamp::now();
        container.log.begin();
        match std::mem::replace(&mut container.process, Process::Gone) {
            Process::Created(handle) | Process::Running(handle) => {
                container.status.state = ContainerState::Running { pid: handle.pid, started_at };
                container.process = Process::Running(handle);
                let status = container.status.clone();
                self.record_at_once(key);
                self.respond(client, id, Ok(Answer::Container(Box::new(status.clone()))));
                self.announce(ShimEvent { kind: ShimEventKind::Started, container: status });
            }
            Process::EndedEarly(ending) => {
                container.told = Some(container.status.clone());
                container.status.state = ContainerState::Running { pid: 0, started_at };
                self.container_ended(key, ending, Some(Reply { client, id, refusal: None }));
            }
            Process::Awaited | Process::Gone => {
                let refusal = Some(Refusal::Create("the helper reported no process".to_owned()));
                self.unmake(key, Reply { client, id, refusal });
            }
        }
    }

    /// Leaves nothing of a container that was not made. It has not run, so that nothing follows for its pod but another attempt.
    fn unmake(&mut self, key: ContainerKey, reply: Reply) {
        self.clear_away(key);
        let Some(container) = self.containers.get(key) else { return };
        let layer = self.paths.container_layer(&self.config.spec.uid, container.id());
        if let Err(error) = remove_tree(&layer) {
            complain("remove the layer of a failed start", &error);
        }
        self.unrecord(key, reply);
    }

    /// Leaves nothing of a failed start but its record, which is told when it is on disk.
    fn start_failed(&mut self, key: ContainerKey, reason: &str, reply: Reply) {
        self.clear_away(key);
        let Some(container) = self.containers.get_mut(key) else { return };
        container.status.state = ContainerState::Exited {
            started_at: None,
            finished_at: Timestamp::now(),
            exit_code: START_ERROR,
            signal: None,
            oom_killed: false,
            error: Some(reason.to_owned()),
            message: None,
        };
        self.record(key, Then::Tell { reply: Some(reply), attached: Vec::new(), ending: None });
    }

    /// Removes what a failed start left in the kernel and under the run directory.
    fn clear_away(&mut self, key: ContainerKey) {
        let Some(container) = self.containers.get_mut(key) else { return };
        container.told.get_or_insert_with(|| container.status.clone());
        if let Some(handle) = container.process.handle() {
            // It may sleep in a trap of its own; what is left of it goes with its group below.
            let _gone = handle.signal(libc::SIGKILL);
        }
        container.process = Process::Gone;
        container.streams.close(&mut self.poller);
        container.log.close(Timestamp::now());
        let status = container.status.clone();
        let cgroup = self.container_cgroup(&status.id);
        self.groups.kill(&self.config, &cgroup);
        self.groups.remove(&self.config, cgroup);
        let uid = &self.config.spec.uid;
        for directory in [self.paths.bundle(uid, &status.id), self.paths.oci_state(uid).join(&status.id)] {
            if let Err(error) = remove_tree(&directory) {
                complain("clean up after a failed start", &error);
            }
        }
    }

    fn open_exec_session(&mut self, key: ExecKey, client: ClientKey, id: u64) {
        let Some(exec) = self.execs.get_mut(&key) else { return };
        if let Some(near) = exec.waiting.take() {
            match Streams::open(StreamOwner::Exec(key), near, &mut self.poller) {
                Ok(streams) => exec.streams = streams,
                Err(error) => complain("watch pipes or terminal", &error),
            }
        }
        let ending = exec.ending();
        if let Process::Created(handle) = std::mem::replace(&mut exec.process, Process::Gone) {
            exec.process = Process::Running(handle);
        }
        self.respond(client, id, Ok(Answer::SessionOpen));
        match (self.clients.get_mut(client), self.execs.get_mut(&key)) {
            (Some(client), _) => client.role = Role::Exec(key),
            (None, Some(exec)) if exec.is_hook => exec.client = None,
            // It went away while its process was made.
            (None, Some(exec)) => {
                exec.client = None;
                exec.kill();
            }
            (None, None) => {}
        }
        if let Some(ending) = ending {
            self.exec_ended(key, ending);
        }
    }

    /// A helper that took too long.
    pub(super) fn abandon_helper(&mut self, key: JobKey) {
        let limit = self.config.helper_timeout_secs;
        self.fail_job(key, Stage::Create, format!("timed out after {limit} s"));
    }

    /// The container is killed while it is being made.
    pub(super) fn abandon_helper_of(&mut self, container: ContainerKey) {
        if let Some(key) = self.helpers.of_container(container) {
            self.fail_job(key, Stage::Create, "killed while starting".to_owned());
        }
    }
}

fn refusal(stage: Stage, reason: String) -> Refusal {
    match stage {
        Stage::Create => Refusal::Create(reason),
        Stage::Execute => Refusal::Execute(reason),
    }
}
