//! Creating and starting a container with libcontainer.

use super::execute::{Confinement, ExactExecutor, Outcome};
use super::filter::Filter;
use super::places::{self, Remaining};
use super::report::Report;
use super::root::{Root, make_directory};
use super::stage::{Stage, Views};
use super::system_paths::SystemPaths;
use super::trees::Tree;
use super::users::Users;
use super::{Attempt, Failure, home, mounts, trace};
use libcontainer::container::Container;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::oci_spec::runtime::Spec;
use libcontainer::syscall::syscall::SyscallType;
use nix::fcntl::AT_FDCWD;
use nix::mount::{MsFlags, mount};
use podstead_container::kernel::{self, KernelFacts};
use podstead_container::oci::dev::dev_volume;
use podstead_container::oci::{SandboxView, oci_spec, parse_profile};
use podstead_container::protocol::{ShimConfig, ShimStep};
use podstead_container::{ContainerSpec, SeccompProfile};
use podstead_pod::ContainerId;
use podstead_sys::empty_mounts::EmptyMounts;
use podstead_sys::mount_tree::{self, EventFlow, Submounts};
use podstead_sys::namespaces::Namespace;
use podstead_sys::{descriptor_passing, jail, overlay};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Socket on which libcontainer sends the terminal.
const CONSOLE_SOCKET: &str = "console.sock";

/// The host's shared memory.
const HOSTS_SHARED_MEMORY: &str = "/dev/shm";

/// Creates the container, tells the shim, and starts it when the shim agrees.
///
/// `empty` is a mount namespace with nothing in it, if there is one.
pub(super) fn run(config: &ShimConfig, id: &str, empty: Option<OwnedFd>, report: &mut Report) -> Result<(), Failure> {
    let id = ContainerId::new(id);
    let bundle = config.paths().bundle(&config.spec.uid, &id);
    let mut spec = mounts::read_spec(&bundle)?;
    let users = Users::of(config, &bundle)?;
    let Prepared { oci, stage, remaining, confinement } = prepare(config, &id, &mut spec, &bundle, users.as_ref(), empty)?;
    report.ended(ShimStep::Prepare);

    let trace = trace::collect();
    let (outcome, far_outcome) = Outcome::new().attempt("create a pipe")?;
    let executor = ExactExecutor::new(far_outcome, remaining.covers(&spec.cwd).then(|| spec.cwd.clone()), confinement);
    let (mut container, terminal) = create(&id, &stage.state, &stage.bundle, executor, &oci).map_err(|error| {
        let said = trace.map(|mut trace| trace.text()).unwrap_or_default();
        Failure::execute(if said.is_empty() { error } else { said })
    })?;
    report.ended(ShimStep::Create);
    let pid = container.pid().and_then(|pid| u32::try_from(pid.as_raw()).ok());
    let pid = pid.ok_or_else(|| Failure::create("libcontainer reported no process"))?;
    report.created(pid, terminal)?;
    // The namespaces of a process with other rights can only be entered by who may trace it.
    jail::use_all_capabilities().attempt("restore capabilities")?;
    remaining.attach(pid, &stage.rootfs, users.as_ref()).map_err(Failure::of_runtime)?;
    container.start().attempt("start").map_err(Failure::of_runtime)?;
    let refused = outcome.wait();
    report.ended(ShimStep::Execute);
    match refused {
        None => Ok(()),
        Some(reason) => Err(Failure::execute(reason)),
    }
}

/// Input for libcontainer, and the work that is left after it.
struct Prepared {
    /// The spec for libcontainer.
    oci: Spec,
    stage: Stage,
    remaining: Remaining,
    /// Rights that libcontainer leaves to be given up.
    confinement: Option<Confinement>,
}

/// Everything before libcontainer's turn. When it returns, this process sees of the host what libcontainer may see.
fn prepare(
    config: &ShimConfig,
    id: &ContainerId,
    spec: &mut ContainerSpec,
    bundle: &Path,
    users: Option<&Users>,
    empty: Option<OwnedFd>,
) -> Result<Prepared, Failure> {
    let (paths, uid) = (config.paths(), &config.spec.uid);
    // Told before anything is made.
    dev_volume(spec).map_err(|error| Failure::create(crate::explain(&error)))?;
    let views = if spec.devices.hooks.is_empty() { Some(Views::take(&paths, uid, users)?) } else { None };
    let mut trees = Tree::take_all(spec, users)?;
    let shared_memory = take_shared_memory(config, spec, users)?;
    let layer = paths.container_layer(uid, id);
    // All that is mounted is opened before, unless something needs a place among the host's files to be made.
    let is_open = views.is_some() && users.is_none() && spec.devices.plugged.iter().flatten().next().is_none();
    let (overlay, empty) = match empty.filter(|_| is_open) {
        Some(empty) => open_all(spec, &layer, &empty)?,
        None => (None, None),
    };
    if empty.is_none() {
        mounts::isolate()?;
        trees.extend(Tree::make_plugged(spec, users, bundle)?);
    }
    if let Some(users) = users {
        users.prepare_root(&mut spec.image.layers, &layer, bundle)?;
    }
    let overlay = match overlay {
        Some(overlay) => overlay,
        None => overlay::make(&spec.image.layers, &layer, &Stage::overlay_target(bundle)).attempt("mount the root file system")?,
    };
    let mut stage = match views {
        Some(views) => Stage::jail(bundle, views, empty)?,
        None => Stage::host(&paths, uid, bundle),
    };
    if stage.has_hooks() {
        trees = trees.into_iter().map(|tree| tree.replaced(|mount| stage.put_behind_cgroups(mount))).collect::<Result<_, _>>()?;
    }
    let root = Root::open(&stage.put_rootfs(&overlay)?)?;
    drop(overlay);
    make_home(spec, &root, users)?;
    let mut view = sandbox_view(config, spec, &stage)?;
    let mut remaining = places::attach(spec, trees, &root, &stage, users).map_err(Failure::of_runtime)?;
    view.binds.clone_from(&remaining.binds);
    view.dev_shm = Some(stage.put(&shared_memory, "shm")?);
    require_apparmor(spec)?;
    let mut oci = oci_spec(spec, &view).map_err(|error| Failure::create(crate::explain(&error)))?;
    let for_exec = serde_json::to_vec(&oci).attempt("encode the OCI spec")?;
    // Where programs of the host take part, libcontainer reads the spec that exec reads.
    let confinement = if stage.has_hooks() { None } else { take_confinement(&mut oci, &paths.filters())? };
    // Mounts of a container with its own users are made with their rights alone.
    if !stage.has_hooks() && users.is_none() {
        remaining.system_paths = SystemPaths::take(&mut oci);
    }
    let is_same = confinement.is_none() && remaining.system_paths.is_empty();
    let for_libcontainer = if is_same { &for_exec } else { &serde_json::to_vec(&oci).attempt("encode the OCI spec")? };
    stage.write_config(&for_exec, for_libcontainer)?;
    stage.enter()?;
    root.check(&stage.rootfs).map_err(Failure::of_runtime)?;
    jail::forgo_tracing().attempt("drop capabilities")?;
    Ok(Prepared { oci, stage, remaining, confinement })
}

/// Takes the filter of system calls out of the spec, and with it the capabilities if the filter has to be loaded before the others are given up.
fn take_confinement(oci: &mut Spec, filters: &Path) -> Result<Option<Confinement>, Failure> {
    let profile = oci.linux().as_ref().and_then(|linux| linux.seccomp().as_ref());
    let Some(filter) = profile.map(|profile| Filter::of(profile, filters)).transpose()?.flatten() else { return Ok(None) };
    if let Some(linux) = oci.linux_mut() {
        linux.set_seccomp(None);
    }
    let mut capabilities = None;
    if let Some(process) = oci.process_mut().as_mut().filter(|process| process.no_new_privileges() != Some(true)) {
        capabilities = process.capabilities().clone();
        process.set_capabilities(None);
    }
    Ok(Some(Confinement { filter, capabilities }))
}

/// Makes the working directory, and sets `HOME`.
fn make_home(spec: &mut ContainerSpec, root: &Root, users: Option<&Users>) -> Result<(), Failure> {
    let make = || make_directory(&root.directory, &spec.cwd);
    users
        .map_or_else(make, |users| users.act_as_root(make))
        .attempt(&format!("create working directory {}", spec.cwd.display()))
        .map_err(Failure::of_runtime)?;
    if !spec.env.iter().any(|variable| variable.strip_prefix("HOME=").is_some_and(|home| !home.is_empty())) {
        spec.env.push(format!("HOME={}", home::home_of(&root.directory, spec.user.uid)));
    }
    Ok(())
}

/// Makes the root file system, and enters the empty mount namespace. Without the first, or the second, everything is mounted in a copy of the host's
/// mounts.
fn open_all(spec: &ContainerSpec, layer: &Path, empty: &OwnedFd) -> Result<(Option<OwnedFd>, Option<EmptyMounts>), Failure> {
    let overlay = overlay::make_detached(&spec.image.layers, layer).attempt("mount the root file system")?;
    let entered = match &overlay {
        Some(_) => EmptyMounts::enter(empty).attempt("enter the empty mount namespace")?,
        None => None,
    };
    Ok((overlay, entered))
}

/// Clones the pod's shared memory, or the host's, for libcontainer. To be called in the host's mount namespace.
fn take_shared_memory(config: &ShimConfig, spec: &ContainerSpec, users: Option<&Users>) -> Result<OwnedFd, Failure> {
    let host_path = if config.spec.namespaces.host_ipc {
        PathBuf::from(HOSTS_SHARED_MEMORY)
    } else {
        config.paths().shared_memory(&config.spec.uid)
    };
    if !config.spec.namespaces.host_ipc {
        grow_shared_memory(&host_path, spec)?;
    }
    let what = format!("clone {}", host_path.display());
    let tree = mount_tree::clone_mount(AT_FDCWD, &host_path, Submounts::Leave).attempt(&what)?;
    // Not the peer of the host's.
    mount_tree::set_event_flow(&tree, EventFlow::Private).attempt(&what)?;
    if let Some(users) = users {
        users.map(&tree, &host_path)?;
    }
    Ok(tree)
}

/// libcontainer's part. The builder, and with it the near copy of the outcome's far end, is gone when it returns.
fn create(
    id: &ContainerId,
    state: &Path,
    bundle: &Path,
    executor: ExactExecutor,
    oci: &Spec,
) -> Result<(Container, Option<OwnedFd>), String> {
    let explain = |error: &dyn std::error::Error| crate::explain(error);
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
    received
        .map_err(|error| format!("receive the terminal: {error}"))?
        .ok_or_else(|| "libcontainer did not send a terminal".to_owned())
}

fn sandbox_view(config: &ShimConfig, spec: &ContainerSpec, stage: &Stage) -> Result<SandboxView, Failure> {
    let (paths, namespaces) = (config.paths(), config.spec.namespaces);
    let pin = |namespace: Namespace, own: bool| own.then(|| stage.namespaces.join(namespace.file_name()));
    let localhost_seccomp = match &spec.security.seccomp {
        SeccompProfile::Localhost(path) => {
            let path = paths.seccomp_profiles().join(path);
            let what = format!("seccomp profile {}", path.display());
            let text = std::fs::read(&path).attempt(&what)?;
            Some(parse_profile(&text).attempt(&what)?)
        }
        SeccompProfile::RuntimeDefault | SeccompProfile::Unconfined => None,
    };
    let hierarchies = config.hierarchies().attempt("detect cgroups")?;
    Ok(SandboxView {
        namespaces,
        net: pin(Namespace::Net, !namespaces.host_network),
        ipc: pin(Namespace::Ipc, !namespaces.host_ipc),
        uts: pin(Namespace::Uts, !namespaces.host_network),
        user: pin(Namespace::User, config.spec.first_host_id.is_some()),
        pid: pin(Namespace::Pid, namespaces.share_process && !namespaces.host_pid),
        cgroup: config.cgroup.clone(),
        cgroup_mounts: hierarchies.of_containers(),
        dev_shm: None,
        binds: Vec::new(),
        rootfs: stage.rootfs.clone(),
        facts: KernelFacts::probe(&hierarchies).attempt("probe kernel features")?,
        huge_page_sizes: hierarchies.huge_page_sizes_below(&config.cgroup).attempt("list huge page sizes")?,
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
fn grow_shared_memory(target: &Path, spec: &ContainerSpec) -> Result<(), Failure> {
    let Some(wanted) = spec.shm_size else { return Ok(()) };
    let now = nix::sys::statvfs::statvfs(target).attempt("statvfs /dev/shm")?;
    if now.blocks().saturating_mul(now.fragment_size()) >= wanted {
        return Ok(());
    }
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let size = format!("size={wanted}");
    mount(None::<&str>, target, None::<&str>, flags, Some(size.as_str())).attempt("resize /dev/shm")
}
