//! The tree of pods: names, making, limiting, removing.

use super::control::{children, make, write};
use super::limits::{Setting, settings};
use super::{CgroupError, CgroupVersion, Hierarchies, control};
use podstead_pod::resources::{CgroupResources, QosClass};
use podstead_pod::{ContainerId, PodUid};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// All cgroups of one podstead: the hierarchies of this host and the top of the tree in them.
///
/// Groups are named by their absolute path in the tree, e.g. `/podstead.slice/burstable/pod<uid>`.
///
/// One type because all operations share the hierarchies of the host; each operation has a file of its own.
#[derive(Clone, Debug)]
pub struct Cgroups {
    pub(super) hierarchies: Hierarchies,
    slice: PathBuf,
}

/// Controllers to enable for the children of a group on v2, where the host has them.
const CONTROLLERS: [&str; 6] = ["cpu", "memory", "pids", "cpuset", "io", "hugetlb"];

/// File of a group of v1 with its threads: whoever writes to it is moved at once ([`Cgroups::join_v1`]).
pub(super) const THREADS_V1: &str = "tasks";

/// The writer, in files with the members of a group.
pub(super) const CALLER: &str = "0";

impl Cgroups {
    /// Name of the top group, unless tests or a second instance use another.
    pub const DEFAULT_SLICE: &str = podstead_sys::layout::DEFAULT_SLICE;

    /// Finds the hierarchies of this host. `slice` is the name of the top group; nothing is made yet.
    pub fn detect(slice: &str) -> Result<Self, CgroupError> {
        Ok(Self::new(Hierarchies::detect()?, slice))
    }

    /// A tree under the top group `slice` in the given hierarchies.
    pub fn new(hierarchies: Hierarchies, slice: &str) -> Self {
        Self { hierarchies, slice: Path::new("/").join(slice) }
    }

    /// Version of the interface in use.
    pub fn version(&self) -> CgroupVersion {
        self.hierarchies.version()
    }

    /// The hierarchies that it is in.
    pub fn hierarchies(&self) -> &Hierarchies {
        &self.hierarchies
    }

    /// The group of a pod.
    pub fn pod(&self, qos: QosClass, uid: &PodUid) -> PathBuf {
        self.tier(qos).join(format!("pod{uid}"))
    }

    /// The group of a container below its pod's.
    pub fn container(pod: &Path, id: &ContainerId) -> PathBuf {
        pod.join(id)
    }

    /// The group of a pod's shim.
    pub fn shim(&self, uid: &PodUid) -> PathBuf {
        self.shims().join(uid)
    }

    /// Makes the tree's upper part. `cpus` is the number of the host's processors: the tree's share of them against other slices.
    pub fn ensure_tree(&self, cpus: u64) -> Result<(), CgroupError> {
        for group in [self.slice.clone(), self.tier(QosClass::Burstable), self.tier(QosClass::BestEffort), self.shims()] {
            self.divide(&group)?;
            self.pass_on_cpuset(&group);
        }
        self.weigh(&self.slice, cpus.saturating_mul(1024))?;
        self.set_tier_shares(QosClass::BestEffort, 2)
    }

    /// Sets what a tier as a whole weighs (kubelet rule D24: for Burstable the sum of its pods' requests). Guaranteed pods stand at the
    /// top and have no tier.
    pub fn set_tier_shares(&self, qos: QosClass, cpu_shares: u64) -> Result<(), CgroupError> {
        match qos {
            QosClass::Guaranteed => Ok(()),
            QosClass::Burstable | QosClass::BestEffort => self.weigh(&self.tier(qos), cpu_shares.max(2)),
        }
    }

    /// Makes the group of a pod, with its limits. One that is there is given the limits.
    pub fn create_pod(&self, qos: QosClass, uid: &PodUid, resources: &CgroupResources) -> Result<PathBuf, CgroupError> {
        let path = self.pod(qos, uid);
        let is_new = self.divide(&path)?;
        let page_sizes = self.hierarchies.huge_page_sizes(&path)?;
        let settings = settings(self.version(), resources, &page_sizes).into_iter();
        // Each write costs: the period of the CPU quota half a millisecond, for example.
        self.apply(&path, settings.filter(|setting| !is_new || !setting.is_default))?;
        Ok(path)
    }

    /// Makes the group of a pod's shim. It has no limits.
    pub fn create_shim(&self, uid: &PodUid) -> Result<PathBuf, CgroupError> {
        let path = self.shim(uid);
        for root in self.hierarchies.all() {
            make_all(root, &path)?;
        }
        Ok(path)
    }

    /// Changes the limits of a group; what `resources` does not limit becomes unlimited, but for huge pages: those that are in use stay, and
    /// there are no others.
    pub fn update(&self, path: &Path, resources: &CgroupResources) -> Result<(), CgroupError> {
        self.write(path, resources)
    }

    /// Moves the calling thread, which has to be its process's only one, into a group that was made by [`Cgroups::create_shim`], in the hierarchies
    /// of v1. The kernel waits for nobody: no process can fork or end in the midst of such a move (`cgroup_procs_write_start` in
    /// `kernel/cgroup/cgroup.c`). All other moves may wait for some milliseconds ([`podstead_sys::cgroup_moves`]).
    pub fn join_v1(&self, path: &Path) -> Result<(), CgroupError> {
        for root in self.hierarchies.v1() {
            inherit_cpuset(root, path)?;
            write(&below(root, path).join(THREADS_V1), CALLER)?;
        }
        Ok(())
    }

    /// The directory of a group in the hierarchy of v2, if there is one: for [`podstead_sys::process::fork_into_cgroup`], which does not wait either.
    pub fn directory_v2(&self, path: &Path) -> Option<PathBuf> {
        self.hierarchies.v2().map(|root| below(root, path))
    }

    /// Moves the caller into the group with this directory in the hierarchy of v2.
    pub fn join_v2(directory: &Path) -> Result<(), CgroupError> {
        write(&directory.join("cgroup.procs"), CALLER)
    }

    /// Opens the ways into a group that was made by libcontainer, in the hierarchies that it made it in: a process that writes `0` to each
    /// is in it, if it has one thread. For processes that cannot see the hierarchies any more when they go in.
    pub fn entrances(&self, path: &Path) -> Result<Vec<fs::File>, CgroupError> {
        let v1 = self.hierarchies.v1().map(|root| below(root, path).join(THREADS_V1));
        let v2 = self.hierarchies.v2().map(|root| below(root, path).join("cgroup.procs"));
        let mut entrances = Vec::new();
        for file in v1.chain(v2) {
            match fs::OpenOptions::new().write(true).open(&file) {
                Ok(entrance) => entrances.push(entrance),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(CgroupError::Write { path: file, value: CALLER.to_owned(), source }),
            }
        }
        Ok(entrances)
    }

    /// The pods that have groups, their own or their shim's, with the path of each group: for finding orphans.
    pub fn list(&self) -> Result<Vec<(PodUid, PathBuf)>, CgroupError> {
        let mut found = Vec::new();
        for root in self.hierarchies.all() {
            for parent in [self.slice.clone(), self.tier(QosClass::Burstable), self.tier(QosClass::BestEffort)] {
                for name in children(&below(root, &parent))? {
                    if let Some(uid) = name.strip_prefix("pod") {
                        found.push((PodUid::new(uid), parent.join(&name)));
                    }
                }
            }
            let shims = self.shims();
            found.extend(children(&below(root, &shims))?.into_iter().map(|name| (PodUid::new(name.clone()), shims.join(name))));
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// Removes a group and all below it from every hierarchy. One that is not there is success; processes in it are an error. The kernel
    /// may say "busy" for a moment after the last process left: that is tried again until `patience` is over.
    pub fn remove(&self, path: &Path, patience: Duration) -> Result<(), CgroupError> {
        let deadline = Instant::now() + patience;
        for root in self.hierarchies.all() {
            remove_below(&below(root, path), deadline)?;
        }
        Ok(())
    }

    /// Removes the tree's upper part from every hierarchy if no pod has a group: a daemon that ends without pods leaves nothing behind.
    /// It stays while foreign processes or groups are in it.
    pub fn remove_if_unused(&self) -> Result<(), CgroupError> {
        if !self.list()?.is_empty() {
            return Ok(());
        }
        for root in self.hierarchies.all() {
            let tiers = [self.tier(QosClass::Burstable), self.tier(QosClass::BestEffort)];
            for group in tiers.into_iter().chain([self.shims(), self.jobs(), self.slice.clone()]) {
                let directory = below(root, &group);
                match fs::remove_dir(&directory) {
                    Err(error) if !is_in_use_or_gone(&error) => {
                        return Err(CgroupError::Remove { path: directory, source: error });
                    }
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(())
    }

    fn tier(&self, qos: QosClass) -> PathBuf {
        match qos {
            QosClass::Guaranteed => self.slice.clone(),
            QosClass::Burstable => self.slice.join("burstable"),
            QosClass::BestEffort => self.slice.join("besteffort"),
        }
    }

    fn shims(&self) -> PathBuf {
        self.slice.join("shims")
    }

    pub(super) fn slice(&self) -> &Path {
        &self.slice
    }

    /// Makes a group whose children can be limited; returns true if no hierarchy had it.
    pub(super) fn divide(&self, path: &Path) -> Result<bool, CgroupError> {
        let mut is_new = true;
        for root in self.hierarchies.limiting() {
            is_new &= make_all(root, path)?;
            match self.version() {
                CgroupVersion::V1 => inherit_cpuset(root, path)?,
                CgroupVersion::V2 => enable_controllers(root, path)?,
            }
        }
        Ok(is_new)
    }

    /// v1: new groups below this one begin with its processors and memory nodes. Writing them to each new group would cost about two milliseconds,
    /// since the kernel then divides the processors anew (`cgroup.clone_children`, `Documentation/admin-guide/cgroup-v1/cgroups.rst`). Where it
    /// fails, they are written.
    fn pass_on_cpuset(&self, path: &Path) {
        let (CgroupVersion::V1, Some(root)) = (self.version(), self.hierarchies.controller("cpuset")) else { return };
        if let Err(error) = write(&below(root, path).join("cgroup.clone_children"), "1") {
            tracing::debug!(error = &error as &dyn std::error::Error, "new groups do not begin with the processors of the tree");
        }
    }

    /// Sets a group's share of the processors and nothing else. A host that cannot share them is no error: the manifest does not request these shares.
    fn weigh(&self, path: &Path, cpu_shares: u64) -> Result<(), CgroupError> {
        let resources = CgroupResources { cpu_shares: Some(cpu_shares), ..CgroupResources::default() };
        let shares = settings(self.version(), &resources, &[]).into_iter().take(1);
        self.apply(path, shares.map(|setting| Setting { resets: true, ..setting }))
    }

    fn write(&self, path: &Path, resources: &CgroupResources) -> Result<(), CgroupError> {
        let page_sizes = self.hierarchies.huge_page_sizes(path)?;
        self.apply(path, settings(self.version(), resources, &page_sizes).into_iter())
    }

    pub(super) fn apply(&self, path: &Path, settings: impl Iterator<Item = Setting>) -> Result<(), CgroupError> {
        for Setting { controller, file, value, resets, is_default: _ } in settings {
            let Some(root) = self.hierarchies.controller(controller) else {
                if resets {
                    continue;
                }
                let source = io::Error::new(io::ErrorKind::NotFound, format!("this host has no {controller} controller"));
                return Err(CgroupError::Write { path: path.join(file), value, source });
            };
            match write(&below(root, path).join(file), &value) {
                Err(CgroupError::Write { source, .. })
                    if resets && matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::ResourceBusy) => {}
                other => other?,
            }
        }
        Ok(())
    }
}

fn is_in_use_or_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ResourceBusy | io::ErrorKind::DirectoryNotEmpty)
}

/// The directory of the group `path` in the hierarchy at `root`.
pub(crate) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Makes the group and those above it that are missing; returns false if the group was there.
fn make_all(root: &Path, path: &Path) -> Result<bool, CgroupError> {
    let directory = below(root, path);
    match make(&directory) {
        Err(CgroupError::Make { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            if let Some(above) = path.parent() {
                make_all(root, above)?;
            }
            make(&directory)
        }
        made => made,
    }
}

/// v1: a new group may have neither processors nor memory nodes, and accepts no process until they are set.
pub(super) fn inherit_cpuset(root: &Path, path: &Path) -> Result<(), CgroupError> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let has_own = control::read(&below(root, path).join(file))?.is_none_or(|own| !own.trim().is_empty());
        if has_own {
            continue;
        }
        let mut directory = root.to_owned();
        let Some(mut inherited) = control::read(&directory.join(file))? else { continue };
        for component in path.strip_prefix("/").unwrap_or(path).components() {
            directory.push(component);
            let own = control::read(&directory.join(file))?.unwrap_or_default();
            if own.trim().is_empty() {
                write(&directory.join(file), inherited.trim())?;
            } else {
                inherited = own;
            }
        }
    }
    Ok(())
}

/// v2: enables the controllers from the root down to the group itself, for its children. A controller that cannot be enabled is
/// missed when a limit is written, with the file's name.
fn enable_controllers(root: &Path, path: &Path) -> Result<(), CgroupError> {
    let mut directory = root.to_owned();
    let components = path.strip_prefix("/").unwrap_or(path).components();
    for component in std::iter::once(None).chain(components.map(Some)) {
        directory.extend(component);
        let available = control::read(&directory.join("cgroup.controllers"))?.unwrap_or_default();
        let enabled = control::read(&directory.join("cgroup.subtree_control"))?.unwrap_or_default();
        let has = |list: &str, name: &str| list.split_whitespace().any(|other| other == name);
        for name in CONTROLLERS.iter().filter(|name| has(&available, name) && !has(&enabled, name)) {
            if let Err(error) = write(&directory.join("cgroup.subtree_control"), &format!("+{name}")) {
                tracing::debug!(controller = name, group = %directory.display(), error = &error as &dyn std::error::Error, "cannot enable a cgroup controller");
            }
        }
    }
    Ok(())
}

fn remove_below(directory: &Path, deadline: Instant) -> Result<(), CgroupError> {
    for child in children(directory)? {
        remove_below(&directory.join(child), deadline)?;
    }
    let mut pause = Duration::from_micros(200);
    loop {
        match fs::remove_dir(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            Err(source) => return Err(CgroupError::Remove { path: directory.to_owned(), source }),
        }
    }
}
