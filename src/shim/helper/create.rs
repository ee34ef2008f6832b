//! Creating and starting a container with libcontainer.

use super::execute::{ExactExecutor, Outcome};
use super::report::Report;
use super::users::Users;
use super::{Attempt, Failure, dev, home, mounts, trace};
use crate::pod::ContainerId;
use crate::runtime::oci::dev::{DEV, DevVolume, dev_volume};
use crate::runtime::oci::{SandboxView, oci_spec, parse_profile};
use crate::runtime::protocol::ShimConfig;
use crate::runtime::{ContainerSpec, SeccompProfile};
use crate::sys::cgroup::Hierarchies;
use crate::sys::kernel::{self, KernelFacts};
use crate::sys::namespaces::Namespace;
use crate::sys::{descriptor_passing, overlay};
use libcontainer::container::Container;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::oci_spec::runtime::Spec;
use libcontainer::syscall::syscall::SyscallType;
use nix::mount::{MsFlags, mount};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Where libcontainer connects to hand over the terminal.
const CONSOLE_SOCKET: &str = "console.sock";

/// The spec as libcontainer reads it, and as exec reads it later.
pub(super) const CONFIG_FILE: &str = "config.json";

/// Creates the container, tells the shim, and starts it when the shim agrees.
pub(super) fn run(config: &ShimConfig, id: &str, report: &mut Report) -> Result<(), Failure> {
    let id = ContainerId::new(id);
    let (paths, uid) = (config.paths(), &config.spec.uid);
    let bundle = paths.bundle(uid, &id);
    let mut spec = mounts::read_spec(&bundle)?;

    let users = Users::of(config, &bundle)?;
    let volume_at_dev = dev_volume(&spec).map_err(|error| Failure::create(crate::shim::explain(&error)))?;
    mounts::isolate(&mut spec, &bundle, users.as_ref())?;
    let (rootfs, layer) = (bundle.join("rootfs"), paths.container_layer(uid, &id));
    if let Some(users) = &users {
        users.prepare_root(&mut spec.image.layers, &layer, &bundle)?;
    }
    overlay::mount(&spec.image.layers, &layer, &rootfs).attempt("mount the root file system")?;
    let root = mounts::open_root(&rootfs)?;
    dev::refuse_links(&spec.mounts, &root).map_err(Failure::of_runtime)?;
    match &users {
        Some(users) => users.act_as_root(|| mounts::make_directory(&root, &spec.cwd)),
        None => mounts::make_directory(&root, &spec.cwd),
    }
    .attempt(&format!("make working directory {}", spec.cwd.display()))
    .map_err(Failure::of_runtime)?;
    if !spec.env.iter().any(|variable| variable.strip_prefix("HOME=").is_some_and(|home| !home.is_empty())) {
        spec.env.push(format!("HOME={}", home::home_of(&root, spec.user.uid)));
    }
    drop(root);

    let mut view = sandbox_view(config, &spec, rootfs)?;
    grow_shared_memory(&view, &spec)?;
    if let (Some(users), Some(shared_memory)) = (&users, view.dev_shm.as_mut()) {
        *shared_memory = users.mapped(shared_memory, &bundle.join("shm"))?;
    }
    require_apparmor(&spec)?;
    let oci = oci_spec(&spec, &view).map_err(|error| Failure::create(crate::shim::explain(&error)))?;
    oci.save(bundle.join(CONFIG_FILE)).attempt("write the OCI spec")?;

    let trace = trace::collect();
    let (outcome, far_outcome) = Outcome::new().attempt("make a pipe")?;
    let executor =
        ExactExecutor::new(far_outcome, (volume_at_dev.is_some() && spec.cwd.starts_with(DEV)).then(|| spec.cwd.clone()));
    let (mut container, terminal) = create(&id, &paths.oci_state(uid), &bundle, executor, &oci).map_err(|error| {
        let said = trace.map(|mut trace| trace.text()).unwrap_or_default();
        Failure::execute(if said.is_empty() { error } else { said })
    })?;
    let pid = container.pid().and_then(|pid| u32::try_from(pid.as_raw()).ok());
    let pid = pid.ok_or_else(|| Failure::create("libcontainer named no process"))?;
    report.created(pid, terminal)?;
    if let Some(DevVolume { index, inner }) = &volume_at_dev {
        dev::mount(&spec.mounts[*index], inner, pid, &view.rootfs, users.as_ref()).map_err(Failure::of_runtime)?;
    }
    container.start().attempt("start").map_err(Failure::of_runtime)?;
    match outcome.wait() {
        None => Ok(()),
        Some(reason) => Err(Failure::execute(reason)),
    }
}

/// libcontainer's part. The builder, and with it the near copy of the outcome's far end, is gone when it returns.
fn create(
    id: &ContainerId,
    state: &Path,
    bundle: &Path,
    executor: ExactExecutor,
    oci: &Spec,
) -> Result<(Container, Option<OwnedFd>), String> {
    let explain = |error: &dyn std::error::Error| crate::shim::explain(error);
    let has_terminal = oci.process().as_ref().and_then(|process| process.terminal()).unwrap_or_default();
    let console = match has_terminal {
        true => Some(listen(bundle).map_err(|error| format!("listen for the terminal: {error}"))?),
        false => None,
    };
    let builder = ContainerBuilder::new(id.to_string(), SyscallType::default())
        .with_root_path(state)
        .map_err(|error| explain(&error))?
        .with_executor(executor)
        .with_console_socket(console.is_some().then(|| bundle.join(CONSOLE_SOCKET)))
        .as_init(bundle)
        .with_systemd(false)
        .with_detach(true)
        .as_sibling(true);
    let container = builder.build().map_err(|error| explain(&error))?;
    let terminal = match console {
        Some(listener) => Some(receive_terminal(&listener)?),
        None => None,
    };
    Ok((container, terminal))
}

/// Bound by a relative name: socket addresses are short, paths may be long.
fn listen(bundle: &Path) -> std::io::Result<UnixListener> {
    std::env::set_current_dir(bundle)?;
    let listener = UnixListener::bind(CONSOLE_SOCKET);
    std::env::set_current_dir("/")?;
    listener
}

fn receive_terminal(listener: &UnixListener) -> Result<OwnedFd, String> {
    let received = listener.accept().and_then(|(socket, _)| {
        let (mut bytes, mut descriptors) = ([0; 256], Vec::new());
        descriptor_passing::receive(&socket, &mut bytes, &mut descriptors)?;
        Ok(descriptors.pop())
    });
    received.map_err(|error| format!("receive the terminal: {error}"))?.ok_or_else(|| "libcontainer sent no terminal".to_owned())
}

fn sandbox_view(config: &ShimConfig, spec: &ContainerSpec, rootfs: PathBuf) -> Result<SandboxView, Failure> {
    let (paths, uid, namespaces) = (config.paths(), &config.spec.uid, config.spec.namespaces);
    let pin = |namespace: Namespace, own: bool| own.then(|| paths.namespaces(uid).join(namespace.file_name()));
    let localhost_seccomp = match &spec.security.seccomp {
        SeccompProfile::Localhost(path) => {
            let path = paths.seccomp_profiles().join(path);
            let what = format!("seccomp profile {}", path.display());
            let text = std::fs::read(&path).attempt(&what)?;
            Some(parse_profile(&text).attempt(&what)?)
        }
        SeccompProfile::RuntimeDefault | SeccompProfile::Unconfined => None,
    };
    Ok(SandboxView {
        namespaces,
        net: pin(Namespace::Net, !namespaces.host_network),
        ipc: pin(Namespace::Ipc, !namespaces.host_ipc),
        uts: pin(Namespace::Uts, !namespaces.host_network),
        user: pin(Namespace::User, config.spec.first_host_id.is_some()),
        pid: pin(Namespace::Pid, namespaces.share_process && !namespaces.host_pid),
        cgroup: config.cgroup.clone(),
        dev_shm: (!namespaces.host_ipc).then(|| paths.shared_memory(uid)),
        rootfs,
        facts: KernelFacts::probe().attempt("look at the kernel")?,
        huge_page_sizes: Hierarchies::detect()
            .and_then(|hierarchies| hierarchies.huge_page_sizes_below(&config.cgroup))
            .attempt("look for huge pages")?,
        host_devices: match spec.security.privileged {
            true => kernel::host_devices().attempt("list devices")?,
            false => Vec::new(),
        },
        localhost_seccomp,
    })
}

/// A profile may be loaded at any time: one that is missing is waited for. Where the kernel does not show its profiles, it is tried.
fn require_apparmor(spec: &ContainerSpec) -> Result<(), Failure> {
    let missing = spec.security.apparmor.as_deref().filter(|name| kernel::lacks_apparmor_profile(name));
    missing.map_or(Ok(()), |name| Err(Failure::create(format!("AppArmor profile {name:?} is not loaded"))))
}

/// One `/dev/shm` serves the whole pod: it is as large as the container that wants most.
fn grow_shared_memory(view: &SandboxView, spec: &ContainerSpec) -> Result<(), Failure> {
    let (Some(target), Some(wanted)) = (&view.dev_shm, spec.shm_size) else { return Ok(()) };
    let now = nix::sys::statvfs::statvfs(target).attempt("look at /dev/shm")?;
    if now.blocks().saturating_mul(now.fragment_size()) >= wanted {
        return Ok(());
    }
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let size = format!("size={wanted}");
    mount(None::<&str>, target, None::<&str>, flags, Some(size.as_str())).attempt("resize /dev/shm")
}
