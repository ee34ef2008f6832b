//! One host: private directories, one daemon, one directory of manifests.

use super::image::image_archive;
use super::kernel;
use super::pod::PodView;
use super::wait::eventually;
use podstead::sys::layout::Paths;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Name of the node; pods are called `<name>-<this>`.
pub(crate) const NODE: &str = "edge-1";

/// A private podstead host.
#[derive(Debug)]
pub(crate) struct TestHost {
    root: PathBuf,
    daemon: Option<Child>,
    /// The network namespace that the daemon takes for the host's; `None` for this machine's.
    netns: Option<String>,
    /// Variables of the daemon beside those of the test.
    pub(crate) environment: Vec<(String, String)>,
    /// The directory of the daemon's systemd credentials.
    pub(crate) credentials: Option<PathBuf>,
    /// The file by which the daemon joins a cgroup before it is executed.
    pub(crate) cgroup_procs: Option<PathBuf>,
}

/// Path of a binary under test.
pub(crate) fn binary(name: &str) -> PathBuf {
    match (std::env::var_os("PODSTEAD_BIN_DIR"), name) {
        (Some(directory), _) => Path::new(&directory).join(name),
        (None, "podstead") => env!("CARGO_BIN_EXE_podstead").into(),
        (None, "podstead-shim") => env!("CARGO_BIN_EXE_podstead-shim").into(),
        (None, other) => panic!("no binary {other}"),
    }
}

impl TestHost {
    /// A host with the test image preloaded and its daemon up.
    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    /// As [`TestHost::start`], with more lines for the configuration.
    pub(crate) fn start_with(more_config: &str) -> Self {
        let mut host = Self::prepare(more_config);
        host.start_daemon();
        host
    }

    /// A host whose daemon does not run yet. It is on this machine's own network, which tests must not touch: its pods have `lo`.
    pub(crate) fn prepare(more_config: &str) -> Self {
        Self::prepare_on(None, "network: {type: none}\n", more_config)
    }

    /// A host in a network namespace of its own, whose daemon does not run yet; its pods are connected.
    pub(crate) fn prepare_in(netns: &str, more_config: &str) -> Self {
        Self::prepare_on(Some(netns.to_owned()), "", more_config)
    }

    /// `more_config` follows the list of sources, and may go on with it.
    fn prepare_on(netns: Option<String>, network: &str, more_config: &str) -> Self {
        assert!(nix::unistd::geteuid().is_root(), "the node tests run containers: they need root");
        // Short, since socket paths are limited to 107 bytes.
        let root = tempfile::Builder::new().prefix("ps").tempdir_in("/tmp").unwrap().keep();
        for folder in ["manifests", "preload"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        fs::copy(image_archive(), root.join("preload/busybox.tar")).unwrap();
        let at = root.display();
        let config = format!(
            "apiVersion: podstead.dev/v1alpha1\nkind: Config\nnodeName: {NODE}\npaths:\n  state: {at}/state\n  run: {at}/run\n  logs: {at}/log/pods\n\
             preloadPath: {at}/preload\n{network}sources:\n  - name: manifests\n    directory:\n      path: {at}/manifests\n{more_config}"
        );
        fs::write(root.join("config.yaml"), config).unwrap();
        Self { root, daemon: None, netns, credentials: None, cgroup_procs: None, environment: Vec::new() }
    }

    /// Mounts a file system of its own, an ext4 with a journal, on the state directory, with blocks of the size that real disks have: each change of
    /// a directory or a table writes whole blocks. Before the daemon starts.
    pub(crate) fn mount_state(&self) {
        let (image, state) = (self.path("state.img"), self.path("state"));
        fs::create_dir(&state).unwrap();
        fs::File::create(&image).unwrap().set_len(256 << 20).unwrap();
        run(Command::new("mkfs.ext4").args(["-q", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"]).arg(&image));
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&state));
    }

    /// Starts the daemon, and waits for nothing.
    pub(crate) fn spawn_daemon(&mut self) {
        assert!(self.daemon.is_none(), "the daemon runs already");
        let log = fs::OpenOptions::new().create(true).append(true).open(self.root.join("daemon.log")).unwrap();
        let mut command = match (&self.netns, &self.cgroup_procs) {
            (None, None) => Command::new(binary("podstead")),
            (None, Some(procs)) => {
                let mut command = Command::new("sh");
                command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(procs).arg(binary("podstead"));
                command
            }
            (Some(netns), _) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/run/netns/{netns}")).arg(binary("podstead"));
                command
            }
        };
        command.envs(self.credentials.iter().map(|path| ("CREDENTIALS_DIRECTORY", path)));
        command.envs(self.environment.iter().cloned());
        command.args(["daemon", "--config"]).arg(self.root.join("config.yaml"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.daemon = Some(command.spawn().unwrap());
    }

    /// Starts the daemon and waits for its answer.
    pub(crate) fn start_daemon(&mut self) {
        self.spawn_daemon();
        eventually("the daemon to answer", || {
            let out = self.cli(&["version"]);
            if let Ok(Some(status)) = self.daemon_status() {
                panic!("the daemon ended with {status}; its log:\n{}", self.daemon_log());
            }
            out.status.success().then_some(()).ok_or_else(|| text(&out.stderr))
        });
    }

    fn daemon_status(&self) -> std::io::Result<Option<String>> {
        let Some(daemon) = &self.daemon else { return Ok(None) };
        Ok((!kernel::process_exists(daemon.id())).then(|| format!("pid {} gone", daemon.id())))
    }

    /// SIGKILL to the daemon; waits until it is reaped.
    pub(crate) fn kill_daemon(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// Kills all that the daemon started and the daemon itself, and takes away what was in memory alone: as after a power cut. What else is mounted
    /// below the root goes, too.
    pub(crate) fn lose_power(&mut self) {
        self.kill_daemon();
        kernel::purge(&self.paths(), &self.root).unwrap();
        fs::remove_dir_all(self.path("run")).unwrap();
    }

    fn paths(&self) -> Paths {
        Paths { state: self.path("state"), run: self.path("run"), logs: self.path("log/pods") }
    }

    /// SIGTERM to the daemon; waits until it has ended, and asserts that it ended well.
    pub(crate) fn stop_daemon(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(daemon.id() as i32), nix::sys::signal::Signal::SIGTERM).unwrap();
        let status = daemon.wait().unwrap();
        assert!(status.success(), "the daemon ended with {status}; its log:\n{}", self.daemon_log());
    }

    /// Process id of the daemon.
    #[allow(dead_code, reason = "the benchmarks ask for it")]
    pub(crate) fn daemon_pid(&self) -> u32 {
        self.daemon.as_ref().unwrap().id()
    }

    /// The daemon's log.
    pub(crate) fn daemon_log(&self) -> String {
        fs::read_to_string(self.root.join("daemon.log")).unwrap_or_default()
    }

    /// A path below the host's root: `manifests`, `state`, `run`, `logs`, `preload`.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// Puts a manifest in place by rename, as an editor does.
    pub(crate) fn write_manifest(&self, name: &str, content: &str) {
        let hidden = self.root.join("manifests").join(format!(".{name}.new"));
        fs::write(&hidden, content).unwrap();
        fs::rename(hidden, self.root.join("manifests").join(name)).unwrap();
    }

    /// Removes a manifest.
    pub(crate) fn remove_manifest(&self, name: &str) {
        fs::remove_file(self.root.join("manifests").join(name)).unwrap();
    }

    /// Asks for a turn of the housekeeping, which otherwise comes once a minute: a claim that changes asks for one.
    pub(crate) fn keep_house(&self) {
        static TURNS: AtomicU32 = AtomicU32::new(0);
        let turn = TURNS.fetch_add(1, Ordering::Relaxed);
        let claim = format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: turn-{turn}}}\nspec:\n  accessModes: [ReadWriteOnce]\n  \
             resources: {{requests: {{storage: 1Mi}}}}\n"
        );
        self.write_manifest("turn-of-housekeeping.yaml", &claim);
    }

    /// Runs the command line against this host.
    pub(crate) fn cli(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(binary("podstead"));
        command.arg("--socket").arg(self.root.join("run/podstead.sock")).args(arguments).stdin(Stdio::null());
        command.output().unwrap()
    }

    /// Standard output of a command that has to succeed.
    pub(crate) fn cli_ok(&self, arguments: &[&str]) -> String {
        let out = self.cli(arguments);
        assert!(out.status.success(), "podstead {arguments:?}: {}\n{}", out.status, text(&out.stderr));
        text(&out.stdout)
    }

    /// All pods.
    pub(crate) fn pods(&self) -> Vec<PodView> {
        let list: Value = serde_json::from_str(&self.cli_ok(&["get", "pods", "-o", "json"])).unwrap();
        list["items"].as_array().cloned().unwrap_or_default().into_iter().map(PodView).collect()
    }

    /// The pod whose manifest has this name.
    pub(crate) fn pod(&self, name: &str) -> Option<PodView> {
        let full = format!("{name}-{NODE}");
        self.pods().into_iter().find(|pod| pod.0["metadata"]["name"] == full.as_str())
    }

    /// Waits until the pod satisfies `condition`.
    pub(crate) fn wait_for_pod(&self, name: &str, what: &str, condition: impl Fn(&PodView) -> bool) -> PodView {
        eventually(&format!("pod {name}: {what}"), || match self.pod(name) {
            Some(pod) if condition(&pod) => Ok(pod),
            Some(pod) => Err(format!("{}\n{}", pod.0["status"], tail(&self.daemon_log()))),
            None => Err(format!("no such pod\n{}", tail(&self.daemon_log()))),
        })
    }

    /// Waits until every container of the pod runs.
    pub(crate) fn wait_running(&self, name: &str) -> PodView {
        self.wait_for_pod(name, "all containers running", |pod| {
            pod.phase() == "Running"
                && pod.0["status"]["containerStatuses"]
                    .as_array()
                    .is_some_and(|list| !list.is_empty() && list.iter().all(|status| status["state"]["running"].is_object()))
        })
    }

    /// Waits until the pod is not listed any more.
    pub(crate) fn wait_gone(&self, name: &str) {
        eventually(&format!("pod {name} to be gone"), || match self.pod(name) {
            None => Ok(()),
            Some(pod) => Err(format!("{}\n{}", pod.0["status"], tail(&self.daemon_log()))),
        });
    }

    /// The container's log, as `podstead logs` prints it.
    pub(crate) fn logs(&self, name: &str, container: &str) -> String {
        self.cli_ok(&["logs", name, "-c", container])
    }

    /// Waits until the container's log has a line that contains `needle`; returns the log.
    pub(crate) fn wait_log(&self, name: &str, container: &str, needle: &str) -> String {
        eventually(&format!("{needle:?} in the log of {name}/{container}"), || {
            let out = self.cli(&["logs", name, "-c", container]);
            let log = text(&out.stdout);
            if log.contains(needle) { Ok(log) } else { Err(format!("{log}{}", text(&out.stderr))) }
        })
    }

    /// Runs a command in the pod's container; standard output of a command that has to succeed.
    pub(crate) fn exec(&self, name: &str, container: &str, command: &[&str]) -> String {
        let mut arguments = vec!["exec", name, "-c", container, "--"];
        arguments.extend(command);
        self.cli_ok(&arguments)
    }

    /// Host process id of the container's first process, by the record that its shim keeps.
    pub(crate) fn container_pid(&self, pod: &PodView, container: &str) -> u32 {
        let path =
            self.root.join("state/pods").join(pod.uid()).join("containers").join(format!("{}.json", pod.container_id(container)));
        let record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        find_key(&record, "pid").and_then(Value::as_u64).unwrap_or_else(|| panic!("no pid in {record}")) as u32
    }

    /// Host process id of the pod's shim.
    pub(crate) fn shim_pid(&self, pod: &PodView) -> u32 {
        self.find_shim(pod).unwrap_or_else(|| panic!("no podstead-shim has {} in its command line", pod.uid()))
    }

    /// Host process id of the pod's shim, if there is one.
    pub(crate) fn find_shim(&self, pod: &PodView) -> Option<u32> {
        let mark = pod.uid();
        let is_shim = |pid: u32| {
            let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            comm.trim() == "podstead-shim"
                && fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&mark))
        };
        fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
            .find(|pid| is_shim(*pid))
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- daemon log of {}:\n{}", self.root.display(), tail(&self.daemon_log()));
        }
        if let Some(mut daemon) = self.daemon.take() {
            drop(daemon.kill());
            drop(daemon.wait());
        }
        if let Err(error) = kernel::purge(&self.paths(), &self.root) {
            eprintln!("--- left behind by {}: {error}", self.root.display());
        }
        // Some tests leave directories deeper than the standard library removes.
        drop(podstead::sys::remove_tree::remove_tree(&self.root));
    }
}

fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

fn find_key<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map.get(key).or_else(|| map.values().find_map(|inner| find_key(inner, key))),
        Value::Array(list) => list.iter().find_map(|inner| find_key(inner, key)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
