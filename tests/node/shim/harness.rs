//! A private root directory, cgroup tree and root file system for pods of one test.

use crate::support::binary;
use podstead::container::cgroup::Cgroups;
use podstead::container::protocol::LogLimits;
use podstead::container::{ImageConfig, ResolvedImage};
use podstead::pod::security::DEFAULT_CAPABILITIES;
use podstead::pod::{ContainerId, ContainerName, PodFullName, PodUid};
use podstead::runtime::client::{ShimRuntime, ShimRuntimeOptions};
use podstead::sys::layout::Paths;
use podstead::sys::mounts;
use podstead::{
    container::{
        CgroupResources, ContainerKind, ContainerSpec, ContainerState, ContainerStatus, ExecSpec, Mount, PodLifecycleEvent,
        PodLifecycleEventKind, PodNamespaces, ProcessUser, Propagation, QosClass, SandboxSpec, SeccompProfile, Security,
    },
    runtime::{ExecInput, ExecOutput, ExecSession, Runtime},
};
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

/// Nothing here takes that long on a machine that works.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// One host's worth of directories and cgroups; everything goes with it, also when the test fails.
#[derive(Debug)]
pub(super) struct Host {
    root: PathBuf,
    pub(super) options: ShimRuntimeOptions,
}

/// A runtime on a host, as one daemon has it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) runtime: ShimRuntime,
    events: UnboundedReceiver<PodLifecycleEvent>,
}

impl Host {
    pub(super) fn new() -> Self {
        Self::with_roots_below("")
    }

    /// With a directory in front of the roots, for paths that are longer than a socket's address may be.
    pub(super) fn with_roots_below(directory: &str) -> Self {
        assert!(nix::unistd::geteuid().is_root(), "the node tests run containers: they need root");
        let root = tempfile::Builder::new().prefix("shim").tempdir_in("/tmp").unwrap().keep();
        let top = root.join(directory);
        let paths = Paths { state: top.join("state"), run: top.join("run"), logs: top.join("logs") };
        let name = root.file_name().unwrap().to_str().unwrap();
        let options = ShimRuntimeOptions {
            shim_binary: binary("podstead-shim"),
            cgroup_slice: format!("podstead-test-{name}.slice"),
            ..ShimRuntimeOptions::new(paths)
        };
        let host = Self { root, options };
        host.make_image();
        host
    }

    pub(super) fn with_log_limits(mut self, limits: LogLimits) -> Self {
        self.options.log_limits = limits;
        self
    }

    pub(super) fn paths(&self) -> &Paths {
        &self.options.paths
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The view of a new daemon; must be called in a tokio runtime.
    pub(super) fn node(&self) -> Node {
        let runtime = ShimRuntime::new(self.options.clone()).unwrap();
        let events = runtime.take_events().unwrap();
        Node { runtime, events }
    }

    pub(super) fn layer(&self) -> PathBuf {
        self.root.join("layer")
    }

    fn make_image(&self) {
        let layer = self.layer();
        for directory in ["bin", "etc", "tmp", "root", "proc", "sys", "dev"] {
            fs::create_dir_all(layer.join(directory)).unwrap();
        }
        let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| fs::metadata(path).is_ok());
        fs::copy(busybox.expect("apt-get install busybox-static"), layer.join("bin/busybox")).unwrap();
        for applet in [
            "sh", "sleep", "cat", "echo", "yes", "head", "seq", "dd", "stty", "id", "env", "ls", "hostname", "pwd", "ps", "kill",
            "true", "grep", "mknod", "unshare", "test", "touch", "mount", "readlink", "printf", "sysctl", "tr", "df", "umount",
            "mkdir",
        ] {
            symlink("busybox", layer.join("bin").join(applet)).unwrap();
        }
        fs::write(layer.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\nweb:x:33:33::/var/www:/bin/false\n").unwrap();
    }

    pub(super) fn image(&self) -> ResolvedImage {
        ResolvedImage {
            digest: "sha256:test".to_owned(),
            layers: vec![self.layer()],
            config: ImageConfig::default(),
            lease: Default::default(),
        }
    }

    pub(super) fn pod(&self, name: &str) -> SandboxSpec {
        SandboxSpec {
            uid: PodUid::random(),
            full_name: PodFullName { name: name.to_owned(), namespace: "default".to_owned() },
            attempt: 0,
            hostname: name.to_owned(),
            namespaces: PodNamespaces::default(),
            qos: QosClass::BestEffort,
            resources: CgroupResources::default(),
            sysctls: Vec::new(),
            own_users: false,
            first_host_id: None,
        }
    }

    /// A container that runs a shell script.
    pub(super) fn container(&self, pod: &SandboxSpec, name: &str, script: &str) -> ContainerSpec {
        ContainerSpec {
            pod: pod.uid.clone(),
            full_name: pod.full_name.clone(),
            id: ContainerId::random(),
            name: ContainerName::new(name),
            kind: ContainerKind::Main,
            attempt: 0,
            sandbox_attempt: pod.attempt,
            hash: "hash".to_owned(),
            image_ref: "localhost/test:1".to_owned(),
            image: self.image(),
            args: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            env: vec!["PATH=/bin".to_owned(), "GREETING=hello".to_owned()],
            cwd: "/".into(),
            user: ProcessUser { uid: 0, gid: 0, additional_gids: Vec::new() },
            mounts: Vec::new(),
            shm_size: None,
            security: Security {
                privileged: false,
                capabilities: DEFAULT_CAPABILITIES.map(str::to_owned).to_vec(),
                no_new_privileges: false,
                read_only_root: false,
                unmasked_proc: false,
                seccomp: SeccompProfile::RuntimeDefault,
                apparmor: None,
            },
            resources: CgroupResources::default(),
            declared: Default::default(),
            devices: Default::default(),
            oom_score_adj: 1000,
            log_path: self.paths().container_log(&pod.full_name, &pod.uid, name, 0),
            termination_log: None,
            fallback_to_logs: false,
            tty: false,
            stdin: false,
            stdin_once: false,
            stop_signal: libc::SIGTERM,
            grace_secs: 30,
            always_restarts: false,
            shutdown: Default::default(),
        }
    }

    pub(super) fn cgroups(&self) -> Cgroups {
        Cgroups::detect(&self.options.cgroup_slice).unwrap()
    }

    /// The text of a log: what each line says, streams and tags apart.
    pub(super) fn log(&self, spec: &ContainerSpec) -> Vec<String> {
        log_lines(&spec.log_path).into_iter().map(|line| line.splitn(4, ' ').nth(3).unwrap_or_default().to_owned()).collect()
    }

    /// Remains of all pods in the kernel and in the run directory: nothing, once they are stopped.
    pub(super) fn leftovers(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let root = self.root.to_str().unwrap();
        found.extend(mounts.lines().filter(|line| line.contains(root)).map(|line| format!("mount {line}")));
        for (uid, group) in self.cgroups().list().unwrap() {
            found.push(format!("cgroup {} of {uid}", group.display()));
        }
        for process in processes_naming(root) {
            found.push(format!("process {process}"));
        }
        if let Ok(entries) = fs::read_dir(self.paths().pods_run()) {
            found.extend(entries.map(|entry| format!("directory {}", entry.unwrap().path().display())));
        }
        found
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let cgroups = self.cgroups();
        let mut groups = cgroups.list().unwrap_or_default();
        groups.sort_by_key(|(_, group)| group.to_string_lossy().contains("/shims/"));
        for (_, group) in &groups {
            let _best_effort = cgroups.kill(group, Duration::from_secs(10));
        }
        let _best_effort = cgroups.remove(Path::new(&format!("/{}", self.options.cgroup_slice)), Duration::from_secs(10));
        let _best_effort = mounts::detach_below(&self.root);
        let _best_effort = fs::remove_dir_all(&self.root);
    }
}

impl Node {
    /// Starts a pod and one container that runs `script`.
    pub(super) async fn run(&self, host: &Host, name: &str, script: &str) -> (SandboxSpec, ContainerSpec) {
        let pod = host.pod(name);
        self.runtime.create_sandbox(&pod).await.unwrap();
        let container = host.container(&pod, "main", script);
        self.runtime.start_container(&container).await.unwrap();
        (pod, container)
    }

    pub(super) async fn status(&self, spec: &ContainerSpec) -> ContainerStatus {
        let pod = self.runtime.observe(&spec.pod).await.unwrap().expect("the pod is known");
        pod.containers.into_iter().find(|container| container.id == spec.id).expect("the container is known")
    }

    /// Waits until an event says that the container died, and returns its state.
    pub(super) async fn exited(&mut self, spec: &ContainerSpec) -> ContainerState {
        loop {
            match self.status(spec).await.state {
                ContainerState::Created | ContainerState::Running { .. } => {}
                state => return state,
            }
            self.event().await;
        }
    }

    pub(super) async fn event(&mut self) -> PodLifecycleEvent {
        timeout(PATIENCE, self.events.recv()).await.expect("an event comes in time").expect("the runtime lives")
    }

    pub(super) async fn lost(&mut self, uid: &PodUid) {
        let lost = PodLifecycleEvent { uid: uid.clone(), kind: PodLifecycleEventKind::SandboxLost };
        while self.event().await != lost {}
    }

    /// Runs a command in a container; its output on both streams and its exit code.
    pub(super) async fn exec(&self, spec: &ContainerSpec, args: &[&str]) -> (String, String, Option<i32>) {
        let exec = ExecSpec { args: args.iter().map(|word| (*word).to_owned()).collect(), tty: None, stdin: false, copy: None };
        let session = self.runtime.exec(&spec.pod, &spec.id, &exec).await.unwrap();
        finish(session).await
    }
}

/// Reads a session to its end.
pub(super) async fn finish(mut session: ExecSession) -> (String, String, Option<i32>) {
    let (mut stdout, mut stderr, mut code) = (Vec::new(), Vec::new(), None);
    while let Some(output) = timeout(PATIENCE, session.output.recv()).await.expect("the session goes on") {
        match output {
            ExecOutput::Stdout(bytes) => stdout.extend_from_slice(&bytes),
            ExecOutput::Stderr(bytes) => stderr.extend_from_slice(&bytes),
            ExecOutput::Exited(exit_code) => code = Some(exit_code),
        }
    }
    (String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned(), code)
}

/// Reads from a session until `text` has come; returns all that came.
pub(super) async fn read_until(session: &mut ExecSession, text: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(text) {
        match timeout(PATIENCE, session.output.recv()).await.unwrap_or_else(|_| panic!("{text:?} comes in time, not only {seen:?}"))
        {
            Some(ExecOutput::Stdout(bytes) | ExecOutput::Stderr(bytes)) => seen.push_str(&String::from_utf8_lossy(&bytes)),
            other => panic!("{other:?} after {seen:?}, before {text:?}"),
        }
    }
    seen
}

pub(super) async fn type_in(session: &ExecSession, text: &str) {
    session.input.send(ExecInput::Stdin(text.to_owned().into())).await.unwrap();
}

/// All lines of a log file, with headers.
pub(super) fn log_lines(path: &Path) -> Vec<String> {
    let mut bytes = fs::read(path).unwrap_or_default();
    if path.extension().is_some_and(|end| end == "gz") {
        let mut plain = Vec::new();
        flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).unwrap();
        bytes = plain;
    }
    String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
}

/// Waits for a condition that no event tells.
pub(super) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        assert!(tokio::time::Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Processes whose command line or environment names `text`.
pub(super) fn processes_naming(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(command) = fs::read(entry.path().join("cmdline")) else { continue };
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if pid != std::process::id() && command.contains(text) {
            found.push(format!("{pid} {command}"));
        }
    }
    found
}

/// An exit as tests compare it: code, signal, killed for want of memory.
pub(super) fn outcome(state: &ContainerState) -> (i32, Option<i32>, bool) {
    match state {
        ContainerState::Exited { exit_code, signal, oom_killed, .. } => (*exit_code, *signal, *oom_killed),
        other => panic!("not exited: {other:?}"),
    }
}

/// Gives a container all that this host has to give.
pub(super) fn make_privileged(container: &mut ContainerSpec) {
    container.security.privileged = true;
    let more = ["CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_NET_ADMIN", "CAP_DAC_READ_SEARCH", "CAP_LINUX_IMMUTABLE"];
    container.security.capabilities.extend(more.map(str::to_owned));
}

/// A writable bind mount.
pub(super) fn bind(host_path: &Path, container_path: &str) -> Mount {
    Mount {
        host_path: host_path.to_owned(),
        container_path: container_path.into(),
        read_only: false,
        recursive_read_only: false,
        no_exec: false,
        propagation: Propagation::Private,
        pinned: None,
    }
}
