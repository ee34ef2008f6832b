//! podman, crun and runc, as Debian packages them, and youki, as cargo installs it.

use crate::bundle;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// podman with a private store.
#[derive(Debug)]
pub(crate) struct Podman {
    root: PathBuf,
    runtime: PathBuf,
}

impl Podman {
    /// Loads the test image; `None`, with the reason on stderr, where podman is not installed or does not work.
    pub(crate) fn prepare(root: &Path) -> Option<Self> {
        std::fs::create_dir(root).unwrap();
        // podman raises rlimits, which needs CAP_SYS_RESOURCE; where it is missing runc would fail. A wrapper of about 2 ms.
        let runtime = root.join("runc");
        let script = "#!/bin/sh\nfor a; do [ \"$p\" = --bundle ] && b=$a; p=$a; done\n\
                      [ -n \"$b\" ] && sed -i 's/\"rlimits\":\\[[^]]*\\]/\"rlimits\":[]/' \"$b/config.json\"\nexec runc \"$@\"\n";
        std::fs::write(&runtime, script).unwrap();
        std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o755)).unwrap();
        let podman = Self { root: root.to_owned(), runtime };
        let archive = root.join("busybox.tar");
        let make = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/make-image.sh");
        assert!(
            Command::new(make).args(["--format", "docker"]).arg(&archive).arg("localhost/busybox:1").status().unwrap().success()
        );
        let loaded = podman.command().arg("load").arg("-i").arg(&archive).output();
        match loaded {
            Ok(out) if out.status.success() => Some(podman),
            other => {
                eprintln!("podman cannot be compared with: {other:?}");
                None
            }
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("podman");
        command.arg("--root").arg(self.root.join("root")).arg("--runroot").arg(self.root.join("run"));
        command.arg("--cgroup-manager=cgroupfs").arg("--runtime").arg(&self.runtime);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs a container that waits, on podman's own network of the namespace that the caller is in, and has a port of the host lead to its port 80 if
    /// there is one; its process and its address.
    pub(crate) fn run_connected(&self, name: &str, port: Option<u16>) -> Option<(u32, String)> {
        let publish = port.map(|port| ["-p".to_owned(), format!("{port}:80")]);
        let mut run = self.command();
        run.args(["run", "-d", "--name", name]).args(publish.iter().flatten()).args(["localhost/busybox:1", "sleep", "1000000"]);
        run.status().ok().filter(std::process::ExitStatus::success)?;
        let format = "{{.State.Pid}} {{.NetworkSettings.IPAddress}}";
        let out = self.command().args(["inspect", "--format", format, name]).stdout(Stdio::piped()).output().ok()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let (pid, address) = text.trim().split_once(' ')?;
        Some((pid.parse().ok()?, address.to_owned()))
    }

    /// Removes containers at once, with what is of them in the network of the namespace that the caller is in.
    pub(crate) fn disconnect(&self, names: &[&str]) {
        self.command().args(["rm", "-f", "-t", "0"]).args(names).status().unwrap();
    }

    /// Starts `podman kube play`.
    pub(crate) fn play(&self, manifest: &Path) -> Child {
        self.command().args(["kube", "play"]).arg(manifest).spawn().unwrap()
    }

    /// Removes a pod at once.
    pub(crate) fn remove(&self, pod: &str) {
        self.command().args(["pod", "rm", "-f", "-t", "0", pod]).status().unwrap();
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        if let Err(error) = self.command().args(["system", "reset", "-f"]).status() {
            eprintln!("podman system reset: {error}");
        }
    }
}

/// A bare OCI runtime with a bundle.
#[derive(Debug)]
pub(crate) struct Runtime {
    name: &'static str,
    bundle: PathBuf,
}

impl Runtime {
    /// Those of runc, crun and youki, which is libcontainer with a command line, that are installed and work on this machine.
    pub(crate) fn all(directory: &Path) -> Vec<Self> {
        let candidates = ["runc", "crun", "youki"].map(|name| Self { name, bundle: directory.join(name) });
        candidates
            .into_iter()
            .filter(|runtime| {
                let made = bundle::make(&runtime.bundle, runtime.name);
                let works = made && runtime.command(1_000_000).status().is_ok_and(|status| status.success());
                if !works {
                    eprintln!("{} does not run on this machine: not compared", runtime.name);
                }
                works
            })
            .collect()
    }

    /// The program.
    pub(crate) fn name(&self) -> &str {
        self.name
    }

    fn command(&self, number: usize) -> Command {
        let mut command = Command::new(self.name);
        command.arg("run").arg("--bundle").arg(&self.bundle).arg(format!("podstead-bench-{}-{number}", std::process::id()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Create, start, wait, delete.
    pub(crate) fn run_once(&self, number: usize) -> Duration {
        let start = Instant::now();
        assert!(self.command(number).status().unwrap().success());
        start.elapsed()
    }
}
