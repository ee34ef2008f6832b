//! While no daemon runs: pods become what their rows say that a daemon finds.

use super::row::{Row, Stage, signal_for};
use super::shim_line::ShimLine;
use super::snapshot::Processes;
use super::world::Ends;
use crate::support::{TestHost, eventually};
use jiff::Timestamp;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use podstead::container::protocol::Operation;
use podstead::container::{ContainerSpec, ContainerState, ContainerStatus};
use podstead::pod::{ContainerId, PodFullName, PodUid};
use podstead::sys::layout::Paths;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Paths of things of a host.
pub(super) fn paths(host: &TestHost) -> Paths {
    Paths { state: host.path("state"), run: host.path("run"), logs: host.path("log/pods") }
}

/// The log directory of a pod.
pub(super) fn log_directory(host: &TestHost, pod: &str, uid: &str) -> PathBuf {
    let name = PodFullName { name: format!("{pod}-edge-1"), namespace: "default".to_owned() };
    paths(host).pod_logs(&name, &PodUid::new(uid))
}

/// The directory in which [`super::logs::keep`] puts the logs of a pod.
pub(super) fn kept_logs(host: &TestHost, uid: &str) -> PathBuf {
    host.path("kept-logs").join(uid)
}

/// Brings a pod into the state of its row.
pub(super) fn arrange(host: &TestHost, processes: &Processes, row: &Row, (pod, uid): (&str, &str), ends: &mut Ends) {
    let mut stage = Absence { host, uid: PodUid::new(uid), line: ShimLine::open(&paths(host).shim_socket(&PodUid::new(uid))), pod };
    for status in stage.settled() {
        let name = status.name.as_str();
        let is_running = matches!(status.state, ContainerState::Running { .. });
        let pid = processes.container(pod, name).first().map(|process| process.pid);
        let Some(run) = row.run(name) else {
            stage.forget(&status);
            stage.forget_logs(name);
            continue;
        };
        if status.attempt > run.attempt {
            stage.forget(&status);
            fs::remove_file(log_directory(host, pod, uid).join(name).join(format!("{}.log", status.attempt))).unwrap();
        } else if status.attempt == run.attempt {
            match run.state.as_str() {
                "running" => {}
                "unknown" if row.loses_sandbox() || run.sandbox.is_some() => {}
                "unknown" => stage.lose(&status),
                "created" => stage.half_make(&status),
                // The next daemon brings it about.
                _ if row.code_when_asked(name).is_some() => assert!(is_running, "{}: {status:?}", row.name),
                code if is_running => {
                    ends.insert((pod.to_owned(), name.to_owned()), Timestamp::now());
                    kill(Pid::from_raw(pid.unwrap() as i32), signal_for(code)).unwrap();
                    stage.wait_exited(&status.id);
                }
                code => assert_eq!(exit_code(&status.state).map(|code| code.to_string()).as_deref(), Some(code), "{}", row.name),
            }
            if row.is_sick(name) || row.post_start.get(name) == Some(&Stage::Failed) {
                fs::write(format!("/proc/{}/root/sick", pid.unwrap()), "").unwrap();
            }
        }
    }
    let known = stage.line.status();
    for run in row.containers.iter().filter(|run| run.sandbox.is_none()) {
        let is_known = known.iter().any(|status| status.name.as_str() == run.name);
        assert!(is_known || matches!(run.state.as_str(), "created" | "unknown"), "{}: {} is not there", row.name, run.name);
    }
    if row.loses_sandbox() {
        let shim = processes.shim(uid).unwrap();
        kill(Pid::from_raw(shim.pid as i32), Signal::SIGKILL).unwrap();
        eventually("the shim to be gone", || Processes::of(uid).shim(uid).map_or(Ok(()), |it| Err(format!("{it:?}"))));
    }
}

/// The daemon had learned what is new, and died before it did anything of it: so it is written in the pod's record, and the record of the
/// source is lost.
pub(super) fn announce(host: &TestHost, uid: &str, manifest: Option<&str>) {
    let path = paths(host).pod_record(&PodUid::new(uid));
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    match manifest {
        None => record["is_removed"] = true.into(),
        Some(manifest) => {
            let new: Value = serde_json::from_str(manifest).unwrap();
            let (new, spec) = (&new["spec"], &mut record["desired"]["pod"]["spec"]);
            for list in ["initContainers", "containers"] {
                let wanted = |name: &Value| new[list].as_array().into_iter().flatten().find(|container| container["name"] == *name);
                let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) else { continue };
                // One that is new is as those that there are, but for what follows.
                let names: Vec<Value> = containers.iter().map(|container| container["name"].clone()).collect();
                let added = new[list].as_array().into_iter().flatten().filter(|container| !names.contains(&container["name"]));
                let added: Vec<Value> =
                    added.map(|container| with(containers[0].clone(), container, &["name", "command"])).collect();
                containers.extend(added);
                containers.retain(|container| wanted(&container["name"]).is_some());
                for container in containers {
                    let fields = ["image", "imagePullPolicy", "env", "envFrom", "volumeMounts"];
                    *container = with(container.clone(), wanted(&container["name"]).unwrap(), &fields);
                }
            }
            if new["volumes"][0]["name"] == "missing" {
                spec["volumes"] = new["volumes"].clone();
            }
        }
    }
    fs::write(&path, record.to_string()).unwrap();
}

/// A container with some fields of another one.
fn with(mut container: Value, other: &Value, fields: &[&str]) -> Value {
    for field in fields {
        match other.get(field) {
            Some(value) => container[*field] = value.clone(),
            None => drop(container.as_object_mut().unwrap().remove(*field)),
        }
    }
    container
}

/// Hides from the next daemon what was in force of the source: it begins with what the directory has.
pub(super) fn forget_source(host: &TestHost) {
    fs::remove_file(host.path("state/sources/manifests/last-good.json")).unwrap();
}

fn exit_code(state: &ContainerState) -> Option<i32> {
    match state {
        ContainerState::Exited { exit_code, .. } => Some(*exit_code),
        ContainerState::Created | ContainerState::Running { .. } | ContainerState::Unknown { .. } => None,
    }
}

struct Absence<'a> {
    host: &'a TestHost,
    uid: PodUid,
    line: ShimLine,
    pod: &'a str,
}

impl Absence<'_> {
    /// The pod's containers, when no start is under way any more.
    fn settled(&mut self) -> Vec<ContainerStatus> {
        eventually("starts to be over", || {
            let all = self.line.status();
            let is_open = all.iter().any(|status| status.state == ContainerState::Created);
            if is_open { Err(format!("{all:?}")) } else { Ok(all) }
        })
    }

    fn wait_exited(&mut self, id: &ContainerId) {
        eventually("a container to end", || {
            let status = self.line.status().into_iter().find(|status| status.id == *id).unwrap();
            exit_code(&status.state).map(|_| ()).ok_or_else(|| format!("{status:?}"))
        });
    }

    /// As if it had never been.
    fn forget(&mut self, status: &ContainerStatus) {
        self.line.kill(&status.id);
        self.wait_exited(&status.id);
        self.line.remove(&status.id);
        fs::remove_file(paths(self.host).container_record(&self.uid, &status.id)).unwrap();
    }

    /// As [`Absence::forget`], for a start that may have failed: the shim forgets such a container by itself.
    fn forget_attempt(&mut self, status: &ContainerStatus) {
        eventually("a start to have failed or to be over", || {
            match self.line.status().into_iter().find(|known| known.id == status.id) {
                None => Ok(()),
                Some(now) if exit_code(&now.state).is_some() => {
                    self.line.remove(&now.id);
                    Err("it is being removed".to_owned())
                }
                Some(now) => {
                    self.line.kill_if_there(&now.id);
                    Err(format!("{now:?}"))
                }
            }
        });
        fs::remove_file(paths(self.host).container_record(&self.uid, &status.id)).unwrap_or_default();
        self.forget_logs(status.name.as_str());
    }

    fn forget_logs(&self, container: &str) {
        fs::remove_dir_all(log_directory(self.host, self.pod, self.uid.as_str()).join(container)).unwrap_or_default();
    }

    /// Ends and is recorded as running: as after the death of an earlier shim of the same sandbox.
    fn lose(&mut self, status: &ContainerStatus) {
        let path = paths(self.host).container_record(&self.uid, &status.id);
        let record = fs::read(&path).unwrap();
        self.line.kill(&status.id);
        self.wait_exited(&status.id);
        self.line.remove(&status.id);
        fs::write(&path, record).unwrap();
    }

    /// Made, and never started: the process that makes it is stopped half-way.
    fn half_make(&mut self, status: &ContainerStatus) {
        let paths = paths(self.host);
        let spec = fs::read(paths.bundle(&self.uid, &status.id).join("spec.json")).unwrap();
        let mut spec: ContainerSpec = serde_json::from_slice(&spec).unwrap();
        self.forget(status);
        self.forget_logs(status.name.as_str());
        let shim = Processes::of(self.uid.as_str()).shim(self.uid.as_str()).unwrap().pid;
        eventually("a start to be stopped half-way", || {
            spec.id = ContainerId::random();
            let before = children(shim);
            self.line.tell(Operation::Start(Box::new(spec.clone())));
            let helper = self.helper_of(&spec.id, shim);
            let is_early = helper.is_some_and(|helper| {
                stop(helper) && children(helper).is_empty() && {
                    let new: Vec<u32> = children(shim).into_iter().filter(|pid| !before.contains(pid)).collect();
                    new == [helper]
                }
            });
            let now = self.line.status().into_iter().find(|status| status.id == spec.id).unwrap();
            if is_early && now.state == ContainerState::Created {
                return Ok(());
            }
            // It may have come so far that its process runs.
            if let Some(helper) = helper {
                kill(Pid::from_raw(helper as i32), Signal::SIGKILL).unwrap_or_default();
            }
            self.forget_attempt(&now);
            Err(format!("{now:?}"))
        });
    }

    /// The process that makes a container; `None` when its work is done. Asks without a pause, for it lives for a few milliseconds.
    fn helper_of(&mut self, id: &ContainerId, shim: u32) -> Option<u32> {
        let is_it = |pid: &u32| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(id.as_str()))
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(helper) = children(shim).into_iter().find(is_it) {
                return Some(helper);
            }
            if self.line.status().iter().any(|status| status.id == *id && status.state != ContainerState::Created) {
                return None;
            }
            assert!(Instant::now() < deadline, "no process makes the container");
        }
    }
}

/// The child processes of a process.
fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Stops a process and waits until it stands still; `false` if it has ended.
fn stop(pid: u32) -> bool {
    kill(Pid::from_raw(pid as i32), Signal::SIGSTOP).unwrap_or_default();
    eventually("the helper to stand still or to be gone", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        match stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
            Some('T') => Ok(true),
            None | Some('Z' | 'X') => Ok(false),
            Some(_) => Err(stat.clone()),
        }
    })
}
