//! Other programs that pull images, as Debian packages them.

use super::content::{Images as _, Registry};
use super::meter::{Cost, Meter};
use crate::support::eventually;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Puller {
    Podman,
    Containerd,
    SkopeoUmoci,
    /// `curl | sha256sum | gunzip | sha256sum | tar`, one layer after the other: as little as anybody can do.
    Pipeline,
}

/// A daemon that ends with this.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Puller {
    /// Those that are installed; the others are named on standard error.
    pub(super) fn all() -> Vec<Self> {
        let is_there = |program: &&str| Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success());
        let all = [Self::Podman, Self::Containerd, Self::SkopeoUmoci, Self::Pipeline];
        all.into_iter()
            .filter(|puller| {
                let missing = puller.programs().iter().find(|program| !is_there(program));
                if let Some(missing) = missing {
                    eprintln!("{} is not compared: no {missing}", puller.name());
                }
                missing.is_none()
            })
            .collect()
    }

    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Podman => &["podman"],
            Self::Containerd => &["containerd", "ctr"],
            Self::SkopeoUmoci => &["skopeo", "umoci"],
            Self::Pipeline => &["curl"],
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Containerd => "containerd",
            Self::SkopeoUmoci => "skopeo and umoci",
            Self::Pipeline => "curl, sha256sum, gunzip, tar",
        }
    }

    /// Pulls into an empty directory.
    pub(super) fn pull(self, registry: &Registry, image: &str, directory: &Path, meter: &Meter) -> Cost {
        match self {
            Self::Podman => podman(image, directory, meter),
            Self::Containerd => containerd(image, directory, meter),
            Self::SkopeoUmoci => skopeo_and_umoci(image, directory, meter),
            Self::Pipeline => pipeline(registry, image, directory, meter),
        }
    }
}

fn podman(image: &str, directory: &Path, meter: &Meter) -> Cost {
    let mut podman = Command::new("podman");
    podman.arg("--root").arg(directory.join("root")).arg("--runroot").arg(directory.join("run"));
    podman.args(["--storage-driver", "overlay", "pull", "--quiet", "--tls-verify=false", image]);
    let cost = meter.measure(&[], || run(&mut podman));
    // It mounts this on itself.
    drop(Command::new("umount").arg("--lazy").arg(directory.join("root/overlay")).output());
    cost
}

fn containerd(image: &str, directory: &Path, meter: &Meter) -> Cost {
    let (config, socket) = (directory.join("config.toml"), directory.join("socket"));
    let text = format!(
        "version = 2\nroot = \"{0}/root\"\nstate = \"{0}/state\"\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = \"{1}\"\n",
        directory.display(),
        socket.display()
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new("containerd");
    command.arg("--config").arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let daemon = Daemon(command.spawn().unwrap());
    let ctr = || {
        let mut ctr = Command::new("ctr");
        ctr.arg("--address").arg(&socket);
        ctr
    };
    eventually("containerd to answer", || {
        let out = ctr().arg("version").output().unwrap();
        if out.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&out.stderr).into_owned()) }
    });
    meter.measure(&[daemon.0.id()], || run(ctr().args(["images", "pull", "--plain-http", image])))
}

fn skopeo_and_umoci(image: &str, directory: &Path, meter: &Meter) -> Cost {
    let layout = format!("{}/layout:1", directory.display());
    meter.measure(&[], || {
        let mut skopeo = Command::new("skopeo");
        skopeo.args(["copy", "--quiet", "--insecure-policy", "--src-tls-verify=false"]);
        run(skopeo.arg(format!("docker://{image}")).arg(format!("oci:{layout}")));
        run(Command::new("umoci").args(["unpack", "--image", &layout]).arg(directory.join("bundle")));
    })
}

fn pipeline(registry: &Registry, image: &str, directory: &Path, meter: &Meter) -> Cost {
    let repository = image.strip_prefix(&registry.host).unwrap().trim_end_matches(":1").to_owned();
    let layers: Vec<String> = registry.layers(image).into_iter().map(|(digest, _)| digest).collect();
    // As the jobs of podstead: the checksums of the compressed and of the unpacked bytes, and the tree.
    let script = "set -eo pipefail; url=$1; shift\n\
                  for digest; do\n  mkdir \"$digest\"\n  \
                  curl -sf \"$url/$digest\" | tee >(sha256sum >compressed) | gzip -dc | tee >(sha256sum >unpacked) | tar -xp -C \"$digest\"\n\
                  done; wait";
    let mut bash = Command::new("bash");
    bash.current_dir(directory).args(["-c", script, "bash"]);
    bash.arg(format!("http://{}/v2{repository}/blobs", registry.host)).args(layers);
    meter.measure(&[], || run(&mut bash))
}
