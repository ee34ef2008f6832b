//! Running a process in a container: into its cgroup and namespaces, with its confinement.
//!
//! Not libcontainer's, which forgets system call filter and AppArmor profile on this path.

use super::copy;
use super::execute::{self, Outcome};
use super::filter::Filter;
use super::report::Report;
use super::stage::CONFIG_FILE;
use super::{Attempt, Failure};
use libcontainer::oci_spec::runtime::{LinuxSeccomp, Process, Spec};
use libcontainer::syscall::syscall::create_syscall;
use nix::sched::CloneFlags;
use nix::sys::prctl;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Gid, chdir, getcwd, setgroups, setsid};
use podstead_container::ExecSpec;
use podstead_container::cgroup::{CgroupVersion, Cgroups};
use podstead_container::protocol::ShimConfig;
use podstead_pod::ContainerId;
use podstead_sys::process::{Fork, close_others_on_exec, fork, inherited_descriptor};
use podstead_sys::{descriptor_passing, pidfd, terminal};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The namespaces that a process can be in, by their names under `/proc/<pid>/ns`.
const NAMESPACES: [(&str, CloneFlags); 7] = [
    ("user", CloneFlags::CLONE_NEWUSER),
    ("cgroup", CloneFlags::CLONE_NEWCGROUP),
    ("ipc", CloneFlags::CLONE_NEWIPC),
    ("uts", CloneFlags::CLONE_NEWUTS),
    ("net", CloneFlags::CLONE_NEWNET),
    ("pid", CloneFlags::CLONE_NEWPID),
    ("mnt", CloneFlags::CLONE_NEWNS),
];

/// Runs what `exec` (JSON of an [`ExecSpec`]) says in the container. `process` names its first process: its id and, behind a colon, the
/// number of an inherited descriptor that holds it.
pub(super) fn run(config: &ShimConfig, id: &str, process: &str, exec: &str, report: &mut Report) -> Result<(), Failure> {
    let id = ContainerId::new(id);
    let exec: ExecSpec = serde_json::from_str(exec).attempt("decode the exec request")?;
    let (pid, held) = process
        .split_once(':')
        .and_then(|(pid, number)| Some((pid.parse::<u32>().ok()?, inherited_descriptor(number.parse().ok()?).ok()?)))
        .ok_or_else(|| Failure::create("no process to join"))?;
    let bundle = config.paths().bundle(&config.spec.uid, &id);
    let oci = Spec::load(bundle.join(CONFIG_FILE)).attempt("read the OCI spec")?;
    let container = oci.process().as_ref().ok_or_else(|| Failure::create("the OCI spec has no process"))?;

    let filter = filter_of(&oci, config)?;
    let cgroups = config.cgroups().attempt("detect cgroups")?;
    let group = match cgroups.version() {
        CgroupVersion::V1 => Cgroups::container(&config.cgroup, &id),
        // A container that divides its group (systemd does) has moved its first process below: only there is room for another.
        CgroupVersion::V2 => unified_group(pid).unwrap_or_else(|| Cgroups::container(&config.cgroup, &id)),
    };
    let entrances = cgroups.entrances(&group).attempt("open the container's cgroup")?;
    if let Some(score) = container.oom_score_adj() {
        // Without CAP_SYS_RESOURCE it may not be lowered.
        let _not_allowed = fs::write("/proc/self/oom_score_adj", score.to_string());
    }
    // Processes in the container must not look into this one while it is half in.
    prctl::set_dumpable(false).attempt("disable tracing")?;
    let foreign = foreign_namespaces(pid).attempt("inspect the container's namespaces")?;
    pidfd::enter_namespaces(&held, foreign).attempt("enter the container's namespaces")?;
    drop(held);

    let (outcome, far_outcome) = Outcome::new().attempt("create a pipe")?;
    let (near, far) = UnixStream::pair().attempt("create a socket pair")?;
    match fork(CloneFlags::CLONE_PARENT).attempt("fork")? {
        Fork::Child => {
            drop(near);
            let reason = match enter(container, filter.as_ref(), &exec, entrances, &far) {
                Ok(()) => {
                    drop(far);
                    match &exec.copy {
                        Some(job) => copy::run(job, container.apparmor_profile().as_deref(), far_outcome),
                        None => execute::execute(&exec.args, &environment(container, &exec)),
                    }
                }
                Err(Failure { reason, .. }) => reason,
            };
            execute::fail(&far_outcome, &reason)
        }
        Fork::Parent(pid) => {
            drop((far, far_outcome));
            let master = exec.tty.is_some().then(|| receive_terminal(&near)).flatten();
            let told = report.created(pid, master);
            // The child goes on when this end closes.
            drop(near);
            told?;
            outcome.wait().map_or(Ok(()), |reason| Err(Failure::execute(reason)))
        }
    }
}

/// A filter of system calls that is about to be loaded.
enum Loadable {
    Compiled(Filter),
    /// Only libcontainer can load it.
    Described(Box<LinuxSeccomp>),
}

impl Loadable {
    fn load(&self) -> Result<(), Failure> {
        const WHAT: &str = "load system call filter";
        match self {
            Self::Compiled(filter) => filter.load().attempt(WHAT),
            Self::Described(profile) => libcontainer::seccomp::initialize_seccomp(profile).map(drop).attempt(WHAT),
        }
    }
}

/// The filter of the container, from where the host's files are in sight.
fn filter_of(oci: &Spec, config: &ShimConfig) -> Result<Option<Loadable>, Failure> {
    let Some(profile) = oci.linux().as_ref().and_then(|linux| linux.seccomp().as_ref()) else { return Ok(None) };
    let compiled = Filter::of(profile, &config.paths().filters())?;
    Ok(Some(compiled.map_or_else(|| Loadable::Described(Box::new(profile.clone())), Loadable::Compiled)))
}

/// The group of a process in the v2 hierarchy.
fn unified_group(pid: u32) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    groups.lines().find_map(|line| line.strip_prefix("0::")).map(PathBuf::from)
}

fn foreign_namespaces(pid: u32) -> std::io::Result<CloneFlags> {
    let mut foreign = CloneFlags::empty();
    for (name, flag) in NAMESPACES {
        let identity = |process: &str| fs::metadata(format!("/proc/{process}/ns/{name}")).map(|it| (it.dev(), it.ino()));
        if identity("self")? != identity(&pid.to_string())? {
            foreign |= flag;
        }
    }
    Ok(foreign)
}

/// As the container's own environment; a terminal has a type unless the container says which.
fn environment(container: &Process, exec: &ExecSpec) -> Vec<String> {
    let mut environment = container.env().clone().unwrap_or_default();
    if exec.tty.is_some() && !environment.iter().any(|variable| variable.starts_with("TERM=")) {
        environment.push("TERM=xterm".to_owned());
    }
    environment
}

/// In the new process: everything between fork and execve, in the order in which rights are lost.
fn enter(
    container: &Process,
    filter: Option<&Loadable>,
    exec: &ExecSpec,
    entrances: Vec<File>,
    helper: &UnixStream,
) -> Result<(), Failure> {
    let syscall = create_syscall();
    // Only this process goes in: the helper would count against the container's limits.
    for mut entrance in entrances {
        entrance.write_all(b"0").attempt("join the container's cgroup")?;
    }
    setsid().attempt("start a session")?;
    if let Some((columns, rows)) = exec.tty {
        let master = terminal::become_controlled(columns, rows).attempt("open a terminal")?;
        let user = container.user();
        terminal::give_to(std::io::stdin().as_fd(), user.uid()).attempt("give the terminal to its user")?;
        descriptor_passing::send(helper, b"t", &master).attempt("send the terminal")?;
    }
    wait_for_permission(helper);
    for limit in container.rlimits().iter().flatten() {
        // Without CAP_SYS_RESOURCE limits may not be raised.
        let _not_allowed = syscall.set_rlimit(limit);
    }
    let no_new_privileges = container.no_new_privileges() == Some(true);
    if no_new_privileges {
        prctl::set_no_new_privs().attempt("set no_new_privs")?;
    }
    if let Some(profile) = container.apparmor_profile() {
        libcontainer::apparmor::apply_profile(profile).attempt("apply AppArmor profile")?;
    }
    let user = container.user();
    if let Some(mask) = user.umask() {
        umask(Mode::from_bits_truncate(mask));
    }
    close_others_on_exec();
    // As root first, since root may enter what the user may not; then as the user, whose file system may trust only the user.
    let entered = chdir(container.cwd()).is_ok();
    let groups: Vec<Gid> = user.additional_gids().iter().flatten().copied().map(Gid::from_raw).collect();
    setgroups(&groups).attempt("set groups")?;
    syscall.set_id(user.uid().into(), user.gid().into()).attempt("set user")?;
    if let (Some(filter), false) = (filter, no_new_privileges) {
        // Needs a right that is dropped next.
        filter.load()?;
    }
    libcontainer::capabilities::reset_effective(syscall.as_ref()).attempt("reset capabilities")?;
    if let Some(capabilities) = container.capabilities() {
        let given = if exec.copy.is_some() { &copy::capabilities(capabilities, user.uid()) } else { capabilities };
        libcontainer::capabilities::drop_privileges(given, syscall.as_ref()).attempt("drop capabilities")?;
    }
    if !entered {
        chdir(container.cwd()).attempt("enter the working directory")?;
    }
    // A directory outside of the container's root would be named "(unreachable)/...".
    if !getcwd().attempt("inspect the working directory")?.is_absolute() {
        return Err(Failure::create("the working directory is outside of the container"));
    }
    if let (Some(filter), true) = (filter, no_new_privileges) {
        filter.load()?;
    }
    Ok(())
}

/// Until the shim has taken note of this process, it must not end.
fn wait_for_permission(mut helper: &UnixStream) {
    // The helper closes its end, by intent or by its death: both are the permission.
    let _closed = helper.read(&mut [0]);
}

fn receive_terminal(child: &UnixStream) -> Option<OwnedFd> {
    let (mut byte, mut descriptors) = ([0], Vec::new());
    // A child that could not open one says why by the outcome.
    descriptor_passing::receive(child, &mut byte, &mut descriptors).ok()?;
    descriptors.pop()
}
