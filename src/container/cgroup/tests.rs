//! The tree on a fake root, and on the kernel that runs the tests (as root).

use super::tree::inherit_cpuset;
use super::*;
use podstead_pod::resources::{CgroupResources, QosClass};
use podstead_pod::{ContainerId, PodUid};
use podstead_sys::mounts::parse_mountinfo;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const PATIENCE: Duration = Duration::from_secs(10);

fn uid() -> PodUid {
    PodUid::new("1b4e28ba-2fa1-11d2-883f-0016d3cca427")
}

fn limited() -> CgroupResources {
    CgroupResources {
        cpu_shares: Some(512),
        cpu_quota_us: Some(50_000),
        memory_limit: Some(32 << 20),
        pids_limit: Some(64),
        ..CgroupResources::default()
    }
}

/// A v2 root as the kernel shows it: every directory has its files.
struct FakeRoot {
    directory: tempfile::TempDir,
    cgroups: Cgroups,
}

impl FakeRoot {
    fn new(groups: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for group in [""].iter().chain(groups) {
            let group = directory.path().join(group);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cgroup.controllers"), "cpuset cpu io memory hugetlb pids rdma misc\n").unwrap();
            for file in ["cgroup.subtree_control", "cpu.weight", "cpu.max", "memory.max", "pids.max"] {
                fs::write(group.join(file), "").unwrap();
            }
        }
        let mount = format!("26 23 0:23 / {} rw - cgroup2 cgroup2 rw\n", directory.path().display());
        let cgroups = Cgroups::new(Hierarchies::find(parse_mountinfo(mount.as_bytes())).unwrap(), "podstead.slice");
        Self { directory, cgroups }
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.directory.path().join(file)).unwrap()
    }
}

#[test]
fn pods_lie_in_the_tier_of_their_class_and_shims_beside_them() {
    let cgroups = FakeRoot::new(&[]).cgroups;
    let path = |qos| cgroups.pod(qos, &PodUid::new("u"));
    assert_eq!(path(QosClass::Guaranteed), Path::new("/podstead.slice/podu"));
    assert_eq!(path(QosClass::Burstable), Path::new("/podstead.slice/burstable/podu"));
    assert_eq!(path(QosClass::BestEffort), Path::new("/podstead.slice/besteffort/podu"));
    assert_eq!(cgroups.shim(&PodUid::new("u")), Path::new("/podstead.slice/shims/u"));
    let container = Cgroups::container(&path(QosClass::Guaranteed), &ContainerId::new("c"));
    assert_eq!(container, Path::new("/podstead.slice/podu/c"));
}

#[test]
fn on_v2_controllers_are_enabled_from_the_root_down_and_limits_written() {
    let groups = ["podstead.slice", "podstead.slice/burstable", "podstead.slice/besteffort", "podstead.slice/shims"];
    let pod = format!("podstead.slice/burstable/pod{}", uid());
    let root = FakeRoot::new(&[&groups[..], &[&pod]].concat());
    root.cgroups.ensure_tree(4).unwrap();
    root.cgroups.set_tier_shares(QosClass::Burstable, 1024).unwrap();
    assert_eq!(root.cgroups.create_pod(QosClass::Burstable, &uid(), &limited()).unwrap(), Path::new("/").join(&pod));

    // The last write stays in a regular file; that it is a write to the right place is what counts here.
    for group in ["", "podstead.slice/", "podstead.slice/burstable/", &format!("{pod}/")] {
        assert!(root.read(&format!("{group}cgroup.subtree_control")).starts_with('+'), "{group}");
    }
    assert_eq!(root.read("podstead.slice/cpu.weight"), "303");
    assert_eq!(root.read("podstead.slice/memory.max"), "", "the top's own limits are the admin's");
    assert_eq!(root.read("podstead.slice/burstable/cpu.weight"), "100");
    assert_eq!(root.read("podstead.slice/besteffort/cpu.weight"), "1");
    assert_eq!(root.read(&format!("{pod}/cpu.weight")), "59");
    assert_eq!(root.read(&format!("{pod}/cpu.max")), "50000 100000");
    assert_eq!(root.read(&format!("{pod}/memory.max")), "33554432");
    assert_eq!(root.read(&format!("{pod}/pids.max")), "64");

    fs::write(root.directory.path().join(&pod).join("memory.max"), "").unwrap();
    root.cgroups.update(&Path::new("/").join(&pod), &CgroupResources::default()).unwrap();
    assert_eq!(root.read(&format!("{pod}/memory.max")), "max");
}

#[test]
fn a_limit_that_the_host_cannot_set_is_an_error_that_names_the_file() {
    let root = FakeRoot::new(&["podstead.slice"]);
    let resources = CgroupResources { memory_limit: Some(1 << 20), ..CgroupResources::default() };
    let error = root.cgroups.create_pod(QosClass::Guaranteed, &uid(), &resources).unwrap_err();
    assert!(error.to_string().contains(&format!("podstead.slice/pod{}/memory.max", uid())), "{error}");
    root.cgroups.create_pod(QosClass::Guaranteed, &uid(), &CgroupResources::default()).unwrap();
}

#[test]
fn huge_pages_that_are_not_named_are_not_had() {
    let pod = format!("podstead.slice/pod{}", uid());
    let container = format!("{pod}/c");
    let root = FakeRoot::new(&["podstead.slice", &pod, &container]);
    let limits = |group: &str| ["2MB", "1GB"].map(|size| root.read(&format!("{group}/hugetlb.{size}.max")));
    for group in [&pod, &container] {
        for size in ["2MB", "1GB"] {
            fs::write(root.directory.path().join(group).join(format!("hugetlb.{size}.max")), "").unwrap();
        }
    }
    root.cgroups.create_pod(QosClass::Guaranteed, &uid(), &CgroupResources::default()).unwrap();
    assert_eq!(limits(&pod), ["0", "0"]);
    let named = CgroupResources { hugepages: vec![("2MB".into(), 4 << 20)], ..CgroupResources::default() };
    root.cgroups.resize_container(&Path::new("/").join(&container), &named).unwrap();
    assert_eq!(limits(&container), ["4194304", "0"]);
}

#[test]
fn usage_is_read_as_v2_writes_it() {
    let root = FakeRoot::new(&["podstead.slice"]);
    let write = |file: &str, content: &str| fs::write(root.directory.path().join("podstead.slice").join(file), content).unwrap();
    write("memory.current", "5000\n");
    write("memory.stat", "anon 1000\nfile 4000\ninactive_file 1500\n");
    write("memory.events", "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n");
    write("cpu.stat", "usage_usec 12\nuser_usec 10\nsystem_usec 2\n");
    write("pids.current", "3\n");
    let path = Path::new("/podstead.slice");
    let expected = Usage { cpu_nanos: 12_000, memory_bytes: 5000, working_set_bytes: 3500, pids: 3 };
    assert_eq!(root.cgroups.usage(path).unwrap(), expected);
    assert_eq!(root.cgroups.oom_kills(path).unwrap(), 2);
    assert_eq!(root.cgroups.usage(Path::new("/gone")).unwrap(), Usage::default());
    assert_eq!(root.cgroups.oom_kills(Path::new("/gone")).unwrap(), 0);
}

/// A tree of its own on this host's kernel, removed with all that is in it.
struct RealTree {
    cgroups: Cgroups,
    slice: PathBuf,
    children: Vec<Child>,
}

impl RealTree {
    fn new(hierarchies: Hierarchies) -> Self {
        let name = format!("podstead-test-{}-{}.slice", std::process::id(), PodUid::random());
        Self { cgroups: Cgroups::new(hierarchies, &name), slice: Path::new("/").join(name), children: Vec::new() }
    }

    /// All hierarchies of the host.
    fn whole() -> Self {
        Self::new(Hierarchies::detect().unwrap())
    }

    /// The v2 hierarchy alone, with or without controllers; `None` where none is mounted.
    fn unified() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
        Some(Self::new(Hierarchies::find(parse_mountinfo(line.as_bytes())).unwrap()))
    }

    /// Starts a shell in the group.
    fn spawn(&mut self, group: &Path, script: &str) -> u32 {
        // The group is entered before anything can fork; where that fails, the script does not run.
        let waiting = format!("read _ && {{ {script}\n}}");
        let mut command = Command::new("sh");
        command.args(["-c", &waiting]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().unwrap();
        let (pid, stdin) = (child.id(), child.stdin.take());
        self.children.push(child);
        for root in self.cgroups.hierarchies.all() {
            inherit_cpuset(root, group).unwrap();
            fs::write(below(root, group).join("cgroup.procs"), pid.to_string()).unwrap();
        }
        writeln!(stdin.unwrap()).unwrap();
        pid
    }

    fn wait_for(&self, condition: impl Fn() -> bool) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while !condition() {
            assert!(std::time::Instant::now() < deadline, "condition not met in time");
            std::thread::yield_now();
        }
    }
}

impl Drop for RealTree {
    fn drop(&mut self) {
        let killed = self.cgroups.kill(&self.slice, PATIENCE);
        for child in &mut self.children {
            let _status = child.wait();
        }
        let removed = self.cgroups.remove(&self.slice, PATIENCE);
        if !std::thread::panicking() {
            killed.unwrap();
            removed.unwrap();
        }
    }
}

#[test]
fn limits_reach_this_kernel_and_can_be_changed_and_taken_away() {
    let tree = RealTree::whole();
    tree.cgroups.ensure_tree(2).unwrap();
    tree.cgroups.ensure_tree(2).unwrap();
    let pod = tree.cgroups.create_pod(QosClass::Burstable, &uid(), &limited()).unwrap();
    let file = match tree.cgroups.version() {
        CgroupVersion::V1 => "memory.limit_in_bytes",
        CgroupVersion::V2 => "memory.max",
    };
    let root = tree.cgroups.hierarchies.controller("memory").unwrap().to_owned();
    let limit = || fs::read_to_string(tree::below(&root, &pod).join(file)).unwrap().trim().to_owned();
    assert_eq!(limit(), (32 << 20).to_string());
    tree.cgroups.update(&pod, &CgroupResources { memory_limit: Some(16 << 20), ..limited() }).unwrap();
    assert_eq!(limit(), (16 << 20).to_string());
    tree.cgroups.update(&pod, &CgroupResources::default()).unwrap();
    assert!(limit() == "max" || limit().parse::<u64>().unwrap() > 1 << 40, "{}", limit());
    assert_eq!(tree.cgroups.list().unwrap(), [(uid(), pod.clone())]);
    tree.cgroups.remove(&pod, PATIENCE).unwrap();
    tree.cgroups.remove(&pod, PATIENCE).unwrap();
    assert_eq!(tree.cgroups.list().unwrap(), []);
}

/// Limits of an earlier group of the pod, after a kill between its creation and its record, do not stay.
#[test]
fn group_that_exists_is_given_the_defaults_too() {
    let tree = RealTree::whole();
    tree.cgroups.ensure_tree(2).unwrap();
    let pod = tree.cgroups.create_pod(QosClass::Burstable, &uid(), &limited()).unwrap();
    let root = tree.cgroups.hierarchies.controller("pids").unwrap().to_owned();
    let limit = || fs::read_to_string(tree::below(&root, &pod).join("pids.max")).unwrap().trim().to_owned();
    assert_ne!(limit(), "max");
    tree.cgroups.create_pod(QosClass::Burstable, &uid(), &CgroupResources::default()).unwrap();
    assert_eq!(limit(), "max");
}

/// v1 only: groups begin with the processors and memory nodes of those above them.
#[test]
fn new_groups_have_the_processors_of_the_tree() {
    let tree = RealTree::whole();
    tree.cgroups.ensure_tree(2).unwrap();
    let (CgroupVersion::V1, Some(root)) = (tree.cgroups.version(), tree.cgroups.hierarchies.controller("cpuset")) else { return };
    let pod = tree::below(root, &tree.cgroups.pod(QosClass::BestEffort, &uid()));
    fs::create_dir(&pod).unwrap();
    let read = |directory: &Path, file: &str| fs::read_to_string(directory.join(file)).unwrap();
    for file in ["cpuset.cpus", "cpuset.mems"] {
        assert_eq!(read(&pod, file), read(root, file), "{file}");
    }
    tree.cgroups.create_pod(QosClass::BestEffort, &uid(), &CgroupResources::default()).unwrap();
}

/// Everything that a shim's group is used for, on one set of hierarchies.
fn a_group_is_entered_counted_killed_and_removed(mut tree: RealTree) {
    let group = tree.cgroups.create_shim(&uid()).unwrap();
    assert!(!tree.cgroups.is_populated(&group).unwrap());
    assert!(tree.cgroups.wait_empty(&group, Duration::ZERO).unwrap());
    let pid = tree.spawn(&group, "sleep 1000 & sleep 1000 & wait");
    tree.wait_for(|| tree.cgroups.processes(&group).unwrap().len() == 3);
    assert!(tree.cgroups.processes(&group).unwrap().contains(&pid));
    assert!(tree.cgroups.is_populated(&group).unwrap());
    assert!(!tree.cgroups.wait_empty(&group, Duration::from_millis(20)).unwrap());
    assert!(tree.cgroups.list().unwrap().contains(&(uid(), group.clone())));

    let error = tree.cgroups.remove(&group, Duration::from_millis(5)).unwrap_err();
    assert!(matches!(error, CgroupError::Remove { .. }), "{error}");
    tree.cgroups.kill(&group, PATIENCE).unwrap();
    assert!(!tree.cgroups.is_populated(&group).unwrap());
    tree.cgroups.kill(&group, PATIENCE).unwrap();
    tree.cgroups.remove(&group, PATIENCE).unwrap();
    tree.cgroups.kill(&group, PATIENCE).unwrap();
    assert!(tree.cgroups.processes(&group).unwrap().is_empty());
}

#[test]
fn a_group_is_entered_counted_killed_and_removed_in_all_hierarchies() {
    a_group_is_entered_counted_killed_and_removed(RealTree::whole());
}

#[test]
fn a_group_is_entered_counted_killed_and_removed_in_the_unified_hierarchy() {
    if let Some(tree) = RealTree::unified() {
        a_group_is_entered_counted_killed_and_removed(tree);
    }
}

/// Ticks of the processor that a process has used.
fn used(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().split(' ').nth(11).unwrap().parse().unwrap()
}

fn stopped_jobs_wait_until_they_are_swept(tree: &RealTree) {
    let group = tree.cgroups.create_job("1", &JobLimits { memory: 1 << 30, tasks: 8 }).unwrap();
    let mut job = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let attached = tree.cgroups.attach_job(&group, job.id());
    let stands_still = || {
        let before = used(job.id());
        std::thread::park_timeout(Duration::from_millis(100));
        used(job.id()) == before
    };
    tree.wait_for(|| used(job.id()) > 0);
    tree.cgroups.pace_jobs(JobsPace::Stopped);
    tree.wait_for(stands_still);
    tree.cgroups.pace_jobs(JobsPace::Idle);
    tree.wait_for(|| !stands_still());
    // The daemon dies while they stand still, and the next one finds them.
    tree.cgroups.pace_jobs(JobsPace::Stopped);
    let swept = tree.cgroups.sweep_jobs(PATIENCE);
    job.kill().unwrap();
    job.wait().unwrap();
    attached.unwrap();
    swept.unwrap();
    let next = tree.cgroups.create_job("1", &JobLimits { memory: 1 << 30, tasks: 8 }).unwrap();
    assert!(!tree.cgroups.is_populated(&next).unwrap());
    tree.cgroups.remove(&next, PATIENCE).unwrap();
}

#[test]
fn stopped_jobs_wait_until_they_are_swept_in_all_hierarchies() {
    stopped_jobs_wait_until_they_are_swept(&RealTree::whole());
}

#[test]
fn stopped_jobs_wait_until_they_are_swept_in_the_unified_hierarchy() {
    // Without controllers, no host's jobs are there.
    if let Some(tree) = RealTree::unified().filter(|tree| tree.cgroups.hierarchies.controller("cpu").is_some()) {
        stopped_jobs_wait_until_they_are_swept(&tree);
    }
}

/// A shell that makes ever more processes, each of which does the same, until it is killed.
const FORKING: &str = "f() { while :; do (f) & sleep 0.01; done; }; f";

fn what_forks_as_it_dies_is_killed_all_the_same(mut tree: RealTree) {
    let group = tree.cgroups.create_shim(&uid()).unwrap();
    tree.spawn(&group, FORKING);
    tree.wait_for(|| tree.cgroups.processes(&group).unwrap().len() > 20);
    tree.cgroups.kill(&group, PATIENCE).unwrap();
    assert!(tree.cgroups.processes(&group).unwrap().is_empty());
}

#[test]
fn what_forks_as_it_dies_is_killed_all_the_same_with_all_hierarchies() {
    what_forks_as_it_dies_is_killed_all_the_same(RealTree::whole());
}

#[test]
fn what_forks_as_it_dies_is_killed_all_the_same_in_the_unified_hierarchy() {
    if let Some(tree) = RealTree::unified() {
        what_forks_as_it_dies_is_killed_all_the_same(tree);
    }
}

#[test]
fn a_process_that_uses_up_its_memory_is_counted() {
    let mut tree = RealTree::whole();
    if tree.cgroups.version() == CgroupVersion::V2 {
        tree.cgroups.ensure_tree(1).unwrap();
    }
    let group = tree.cgroups.create_shim(&uid()).unwrap();
    let limit = CgroupResources { memory_limit: Some(8 << 20), ..CgroupResources::default() };
    tree.cgroups.update(&group, &limit).unwrap();
    assert_eq!(tree.cgroups.oom_kills(&group).unwrap(), 0);
    tree.spawn(&group, "head -c 64M /dev/zero | tail -c 64M >/dev/null; sleep 1000");
    tree.wait_for(|| tree.cgroups.oom_kills(&group).unwrap() > 0);
    let usage = tree.cgroups.usage(&group).unwrap();
    assert!(usage.cpu_nanos > 0 && usage.memory_bytes > 0 && usage.pids > 0, "{usage:?}");
    assert!(usage.memory_bytes <= 8 << 20 && usage.working_set_bytes <= usage.memory_bytes, "{usage:?}");
}
