//! Whatever a crash leaves is cleaned up at the next start, and nothing else is (kubelet rules C11, D17).

use crate::support::{TestHost, eventually, leftovers, process_exists};
use nix::mount::{MsFlags, mount};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn sleeper(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
         - {{name: c, image: 'localhost/busybox:1', command: [/bin/sh, -c, 'echo up; touch /v/x; exec sleep 1000000'], volumeMounts: [{{name: v, mountPath: /v}}, {{name: m, mountPath: /m}}]}}\n  \
         volumes: [{{name: v, emptyDir: {{}}}}, {{name: m, emptyDir: {{medium: Memory}}}}]\n"
    )
}

/// A process in a network namespace of its own, ended with the test.
struct Stray(Child);

impl Stray {
    fn start() -> Self {
        let mut command = Command::new("unshare");
        command.args(["--net", "sleep", "1000000"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        eventually("a namespace of its own", || {
            let other = fs::read_link(format!("/proc/{}/ns/net", child.id())).map_err(|error| error.to_string())?;
            if other == own { Err("not yet".to_owned()) } else { Ok(()) }
        });
        Self(child)
    }
}

impl Drop for Stray {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn bind(source: &Path, target: &Path) {
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND, None::<&str>).unwrap();
}

/// The directories of this host's cgroup tree, one for each hierarchy that has it.
fn slices(host: &TestHost) -> Vec<PathBuf> {
    let paths = podstead::sys::layout::Paths { state: host.path("state"), run: host.path("run"), logs: host.path("log/pods") };
    crate::support::cgroups(&paths.cgroup_slice())
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Waits until the host has nothing that carries this UID.
fn wait_nothing_left(host: &TestHost, uid: &str) {
    eventually(&format!("nothing of {uid} to be left"), || {
        let mut rest = leftovers(uid);
        for folder in ["state/pods", "run/pods"] {
            rest.extend(entries(&host.path(folder)).into_iter().filter(|name| name.contains(uid)));
        }
        if rest.is_empty() { Ok(()) } else { Err(format!("{rest:?}")) }
    });
}

#[test]
fn c11_orphans_are_removed_at_next_start() {
    let mut host = TestHost::start();
    let neighbour = TestHost::start();
    for host in [&host, &neighbour] {
        host.write_manifest("stays.yaml", &sleeper("stays"));
    }
    let own = host.wait_running("stays");
    let foreign = neighbour.wait_running("stays");
    let (own_pid, foreign_pid) = (host.container_pid(&own, "c"), neighbour.container_pid(&foreign, "c"));
    host.kill_daemon();

    // A directory without a record, with a volume in memory, a pinned directory of the user and logs.
    let directory = "orphan-directory";
    let precious = host.path("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("data"), "kept").unwrap();
    let volumes = host.path("state/pods").join(directory).join("volumes");
    fs::create_dir_all(volumes.join("empty-dir/memory")).unwrap();
    fs::create_dir_all(volumes.join("sub-paths/0")).unwrap();
    fs::create_dir_all(host.path("state/pods").join(directory).join("layers/dead/upper")).unwrap();
    fs::write(host.path("state/pods").join(directory).join("junk"), "x").unwrap();
    mount(Some("tmpfs"), &volumes.join("empty-dir/memory"), Some("tmpfs"), MsFlags::empty(), None::<&str>).unwrap();
    bind(&precious, &volumes.join("sub-paths/0"));
    let log_root = host.path("log/pods");
    let logs = |uid: &str| log_root.join(format!("default_gone-edge-1_{uid}"));
    for uid in [directory, "of-a-kubelet"] {
        fs::create_dir_all(logs(uid).join("c")).unwrap();
        fs::write(logs(uid).join("c/0.log"), "").unwrap();
    }
    // A sandbox without a shim: a pinned namespace, a socket that nobody listens at.
    let sandbox = "orphan-sandbox";
    let run = host.path("run/pods").join(sandbox);
    fs::create_dir_all(run.join("ns")).unwrap();
    drop(UnixListener::bind(run.join("shim.sock")).unwrap());
    fs::write(run.join("ns/net"), "").unwrap();
    let stray = Stray::start();
    bind(Path::new(&format!("/proc/{}/ns/net", stray.0.id())), &run.join("ns/net"));
    // Cgroups with a process that nobody is the parent of any more.
    let group = "orphan-group";
    let left = Stray::start();
    for slice in slices(&host) {
        let pod = slice.join("burstable").join(format!("pod{group}")).join("c");
        fs::create_dir_all(&pod).unwrap();
        fs::create_dir_all(slice.join("shims").join(group)).unwrap();
        // On v1 a group that was not given processors takes no process.
        drop(fs::write(pod.join("cgroup.procs"), left.0.id().to_string()));
    }
    assert!(leftovers(group).iter().any(|found| found.starts_with("process")), "the process is in an orphaned group");
    for uid in [directory, sandbox] {
        assert!(leftovers(uid).iter().any(|found| found.starts_with("mount")), "{uid}");
    }

    host.start_daemon();
    for uid in [directory, sandbox, group] {
        wait_nothing_left(&host, uid);
    }
    assert!(!process_exists(left.0.id()), "what runs in an orphaned group is killed");
    assert!(process_exists(stray.0.id()), "a process is not killed for a namespace that was pinned");
    assert_eq!(fs::read_to_string(precious.join("data")).unwrap(), "kept");
    let after = host.wait_running("stays");
    assert_eq!((after.container_id("c"), after.restarts("c")), (own.container_id("c"), 0));
    assert!(process_exists(own_pid) && process_exists(foreign_pid), "nobody else is touched");
    assert_eq!(neighbour.wait_running("stays").container_id("c"), foreign.container_id("c"));

    // Logs outlive their pod a little; those of others stay.
    let mark = host.path("state/gone").join(logs(directory).file_name().unwrap());
    assert!(mark.try_exists().unwrap() && logs(directory).try_exists().unwrap());
    let_an_hour_pass(&mut host, &mark);
    eventually("the logs of the orphan to go", || {
        if logs(directory).try_exists().unwrap() { Err("they are there".to_owned()) } else { Ok(()) }
    });
    assert!(logs("of-a-kubelet").try_exists().unwrap());
    assert!(entries(&host.path("log/pods")).iter().any(|name| name.ends_with(&own.uid())));
}

/// Since the pod went whose log directory has this mark.
fn let_an_hour_pass(host: &mut TestHost, mark: &Path) {
    host.kill_daemon();
    let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    fs::File::options().write(true).open(mark).unwrap().set_modified(hour_ago).unwrap();
    host.start_daemon();
}

#[test]
fn d18_log_is_found_by_its_names() {
    let mut host = TestHost::start();
    host.write_manifest("named.yaml", &sleeper("named"));
    let pod = host.wait_running("named");
    host.wait_log("named", "c", "up");
    let links = host.path("log/containers");
    let name = format!("named-edge-1_default_c-{}.log", pod.container_id("c"));
    let log = fs::read_to_string(links.join(&name)).unwrap();
    assert!(log.ends_with(" stdout F up\n"), "{log}");
    // A daemon that died before it made the link.
    host.kill_daemon();
    fs::remove_file(links.join(&name)).unwrap();
    host.start_daemon();
    eventually("the link", || fs::read_to_string(links.join(&name)).map_err(|error| error.to_string()));
    host.remove_manifest("named.yaml");
    host.wait_gone("named");
    assert!(fs::read_to_string(links.join(&name)).unwrap().starts_with(&log));
    let mark = host.path("state/gone").join(format!("default_named-edge-1_{}", pod.uid()));
    let_an_hour_pass(&mut host, &mark);
    eventually("the link to go", || {
        let left = entries(&links);
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

/// Processes of shims that serve pods of this host.
fn shims(host: &TestHost) -> Vec<i32> {
    let mark = host.path("run").display().to_string();
    let is_shim = |pid: &String| {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        read("comm").starts_with(b"podstead-shim") && String::from_utf8_lossy(&read("cmdline")).contains(&mark)
    };
    entries(Path::new("/proc")).into_iter().filter(is_shim).filter_map(|pid| pid.parse().ok()).collect()
}

#[test]
fn random_kills_leave_nothing_without_pod() {
    let mut host = TestHost::start();
    let mut uids = std::collections::BTreeSet::new();
    let mut killed = 0;
    for round in 0..14_u64 {
        // One pod comes, one changes its identity, one goes.
        host.write_manifest(&format!("p{round}.yaml"), &sleeper(&format!("p{round}")));
        host.write_manifest(
            "always.yaml",
            &sleeper("always").replace("metadata: {", &format!("metadata: {{labels: {{round: '{round}'}}, ")),
        );
        if round >= 2 {
            host.remove_manifest(&format!("p{}.yaml", round - 2));
        }
        // A little later each time, in steps that do not repeat: while records are written, sandboxes made, containers started.
        let delay = Duration::from_millis(round * 37 % 290);
        let until = std::time::Instant::now() + delay;
        while std::time::Instant::now() < until {
            uids.extend(entries(&host.path("state/pods")));
            std::thread::yield_now();
        }
        if round % 3 == 1 {
            for pid in shims(&host) {
                killed += usize::from(kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok());
            }
        }
        host.kill_daemon();
        if round % 3 == 2 {
            for pid in shims(&host) {
                killed += usize::from(kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok());
            }
        }
        uids.extend(entries(&host.path("state/pods")));
        uids.extend(entries(&host.path("run/pods")));
        host.start_daemon();
    }
    assert!(killed > 3, "{killed} shims were killed");
    for name in ["always", "p12", "p13"] {
        host.wait_running(name);
    }
    // The others may still be on their way out.
    let living = eventually("three pods", || {
        let living: Vec<String> = host.pods().iter().map(|pod| pod.uid()).collect();
        if living.len() == 3 { Ok(living) } else { Err(format!("{living:?}")) }
    });
    for uid in uids.iter().filter(|uid| !living.contains(uid)) {
        wait_nothing_left(&host, uid);
    }
    assert_eq!(shims(&host).len(), 3, "one shim for each pod");
    for name in ["always", "p12", "p13"] {
        host.remove_manifest(&format!("{name}.yaml"));
    }
    for name in ["always", "p12", "p13"] {
        host.wait_gone(name);
    }
    for uid in &uids {
        wait_nothing_left(&host, uid);
    }
    assert_eq!((entries(&host.path("state/pods")), entries(&host.path("run/pods"))), (Vec::new(), Vec::new()));
    assert!(!slices(&host).is_empty());
    host.stop_daemon();
    assert_eq!(slices(&host), Vec::<PathBuf>::new(), "a daemon without pods takes its cgroup tree along");
}
