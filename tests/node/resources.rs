//! Resources of pods and containers, in the kernel's own files (kubelet rules D24, D25), and changes of them while they run.

use crate::support::{TestHost, cgroup, eventually, kernel_lacks};
use std::time::Duration;

/// A pod `web` whose containers run a script and have more fields, in YAML.
fn pod(spec: &str, containers: &[(&str, &str, &str)]) -> String {
    let mut text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  terminationGracePeriodSeconds: 1\n{spec}  containers:\n"
    );
    for (name, script, more) in containers {
        text += &format!("    - {{name: {name}, image: localhost/busybox:1, command: [/bin/sh, -c, \"{script}\"], {more}}}\n");
    }
    text
}

const FOREVER: &str = "exec sleep 1000000";

fn one(more: &str) -> String {
    pod("", &[("main", FOREVER, more)])
}

/// Waits until the status says that this memory limit of `main` is in force.
fn wait_memory(host: &TestHost, limit: &str) -> crate::support::PodView {
    host.wait_for_pod("web", &format!("a memory limit of {limit}"), |pod| {
        pod.container("main")["resources"]["limits"]["memory"] == limit && pod.runs("main")
    })
}

/// shows: spec.containers[].resources.limits, spec.containers[].resources.requests
#[test]
fn d24_cgroup_values_are_the_kubelets() {
    let host = TestHost::start();
    let a = "resources: {requests: {cpu: 100m, memory: 16Mi}, limits: {cpu: 200m, memory: 32Mi}}";
    let b = "resources: {requests: {cpu: 50m, memory: 16Mi}, limits: {cpu: 300m, memory: 64Mi}}";
    host.write_manifest("web.yaml", &pod("", &[("a", FOREVER, a), ("b", FOREVER, b)]));
    let web = host.wait_running("web");
    let pid = host.container_pid(&web, "a");
    assert_eq!((cgroup::memory_limit(pid, 0), cgroup::cpu_quota(pid, 0)), (Some(32 << 20), Some(20_000)));
    assert_eq!(cgroup::cpu_share(pid, 0), cgroup::share_of(102));
    assert_eq!((cgroup::memory_limit(pid, 1), cgroup::cpu_quota(pid, 1)), (Some(96 << 20), Some(50_000)));
    assert_eq!(cgroup::cpu_share(pid, 1), cgroup::share_of(153));
    assert!(std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap().contains("/burstable/"), "the tier of its class");
}

#[test]
fn d25_oom_score_follows_class_and_memory_request() {
    let host = TestHost::start();
    let info = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total: u64 = info.split_whitespace().nth(1).unwrap().parse().unwrap();
    let quarter = format!("resources: {{requests: {{memory: {}Ki}}}}", total / 4);
    let containers = [("quarter", FOREVER, quarter.as_str()), ("none", FOREVER, "tty: false")];
    host.write_manifest("web.yaml", &pod("", &containers));
    let web = host.wait_running("web");
    let score = |container: &str| -> i32 {
        let pid = host.container_pid(&web, container);
        std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap().trim().parse().unwrap()
    };
    assert!((745..=755).contains(&score("quarter")), "{}", score("quarter"));
    assert_eq!(score("none"), 999, "burstable is below best effort");
    let alone = pod("", &[("main", FOREVER, "tty: false")]).replace("{name: web}", "{name: alone}");
    host.write_manifest("alone.yaml", &alone);
    let pid = host.container_pid(&host.wait_running("alone"), "main");
    assert_eq!(std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap().trim(), "1000");
}

/// shows: spec.containers[].resources.limits, spec.containers[].resources.requests
#[test]
fn limits_change_in_cgroup_of_running_process() {
    let mut host = TestHost::start();
    host.write_manifest("web.yaml", &one("resources: {requests: {cpu: 50m, memory: 16Mi}, limits: {cpu: 100m, memory: 32Mi}}"));
    let before = host.wait_running("web");
    let pid = host.container_pid(&before, "main");
    assert_eq!(before.container("main")["resources"]["limits"]["memory"], "32Mi");
    host.write_manifest("web.yaml", &one("resources: {requests: {cpu: 80m, memory: 16Mi}, limits: {cpu: 300m, memory: 96Mi}}"));
    let after = wait_memory(&host, "96Mi");
    assert_eq!(host.container_pid(&after, "main"), pid, "the process is the same");
    assert_eq!(after.restarts("main"), 0);
    assert_eq!((cgroup::memory_limit(pid, 0), cgroup::cpu_quota(pid, 0)), (Some(96 << 20), Some(30_000)));
    assert_eq!((cgroup::memory_limit(pid, 1), cgroup::cpu_quota(pid, 1)), (Some(96 << 20), Some(30_000)), "the pod's too");
    assert_eq!(cgroup::cpu_share(pid, 0), cgroup::share_of(81));
    // Down again, and through a restart of the daemon.
    host.kill_daemon();
    host.write_manifest("web.yaml", &one("resources: {requests: {cpu: 50m, memory: 16Mi}, limits: {cpu: 100m, memory: 24Mi}}"));
    host.start_daemon();
    let last = wait_memory(&host, "24Mi");
    assert_eq!(host.container_pid(&last, "main"), pid);
    assert_eq!((cgroup::memory_limit(pid, 0), cgroup::cpu_quota(pid, 0)), (Some(24 << 20), Some(10_000)));
    assert_eq!(cgroup::memory_limit(pid, 1), Some(24 << 20));
    assert_eq!(last.container("main")["allocatedResources"]["cpu"], "50m");
}

/// shows: spec.containers[].resizePolicy[].resourceName, spec.containers[].resizePolicy[].restartPolicy
#[test]
fn container_restarts_for_its_resize_policy() {
    let host = TestHost::start();
    let with = |resources: &str| {
        one(&format!("resizePolicy: [{{resourceName: memory, restartPolicy: RestartContainer}}], resources: {resources}"))
    };
    host.write_manifest("web.yaml", &with("{requests: {cpu: 50m, memory: 16Mi}, limits: {memory: 32Mi}}"));
    let before = host.wait_running("web");
    host.write_manifest("web.yaml", &with("{requests: {cpu: 80m, memory: 16Mi}, limits: {memory: 32Mi}}"));
    let pid = host.container_pid(&before, "main");
    eventually("the share", || match cgroup::cpu_share(pid, 0) {
        share if share == cgroup::share_of(81) => Ok(()),
        other => Err(other.to_string()),
    });
    assert_eq!(host.pod("web").unwrap().container_id("main"), before.container_id("main"));
    host.write_manifest("web.yaml", &with("{requests: {cpu: 80m, memory: 16Mi}, limits: {memory: 48Mi}}"));
    let after = wait_memory(&host, "48Mi");
    assert_ne!(after.container_id("main"), before.container_id("main"));
    assert_eq!((after.restarts("main"), after.uid()), (1, before.uid()));
    assert_eq!(cgroup::memory_limit(host.container_pid(&after, "main"), 0), Some(48 << 20));
}

#[test]
fn memory_in_use_is_not_taken_away() {
    let host = TestHost::start();
    // What is in shared memory cannot be given back.
    let hungry = "dd if=/dev/zero of=/dev/shm/held bs=1M count=20 2>/dev/null; echo full; exec sleep 1000000";
    let with = |limit: &str| {
        pod("", &[("main", hungry, &format!("resources: {{requests: {{memory: 1Mi}}, limits: {{memory: {limit}}}}}"))])
    };
    host.write_manifest("web.yaml", &with("256Mi"));
    host.wait_running("web");
    host.wait_log("web", "main", "full");
    host.write_manifest("web.yaml", &with("8Mi"));
    let condition = |pod: &crate::support::PodView| {
        let conditions = pod.0["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == "PodResizeInProgress")
    };
    let waiting = host.wait_for_pod("web", "the refusal", |pod| condition(pod).is_some());
    let refused = condition(&waiting).unwrap();
    assert_eq!(refused["reason"], "Error");
    assert!(refused["message"].as_str().unwrap().contains("below current usage"), "{refused}");
    assert_eq!(waiting.container("main")["resources"]["limits"]["memory"], "256Mi");
    let pid = host.container_pid(&waiting, "main");
    assert_eq!((cgroup::memory_limit(pid, 0), cgroup::memory_limit(pid, 1)), (Some(256 << 20), Some(256 << 20)));
    host.write_manifest("web.yaml", &with("128Mi"));
    let done = wait_memory(&host, "128Mi");
    assert!(condition(&done).is_none());
    assert_eq!(done.restarts("main"), 0);
}

#[test]
fn process_limit_holds_for_whole_pod() {
    let host = TestHost::start_with("podPidsLimit: 24\n");
    host.write_manifest("web.yaml", &one("tty: false"));
    let web = host.wait_running("web");
    assert_eq!(cgroup::pids_limit(host.container_pid(&web, "main"), 1), Some(24));
    let fork = "for i in $(seq 40); do sleep 30 & done; wait";
    let out = host.cli(&["exec", "web", "--", "/bin/sh", "-c", fork]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("fork"), "{out:?}");
}

#[test]
fn container_gets_huge_pages_it_names() {
    if !cgroup::is_mounted("hugetlb") {
        return kernel_lacks("a hugetlb controller where podstead looks for it");
    }
    let host = TestHost::start();
    let named = "resources: {limits: {hugepages-2Mi: 4Mi, memory: 16Mi}}";
    host.write_manifest("web.yaml", &pod("", &[("main", FOREVER, named), ("none", FOREVER, "tty: false")]));
    let web = host.wait_running("web");
    let limits = |container: &str, level: usize| cgroup::huge_page_limits(host.container_pid(&web, container), level);
    for (container, level, bytes) in [("main", 0, 4 << 20), ("none", 0, 0), ("main", 1, 4 << 20)] {
        let limits = limits(container, level);
        assert!(limits.contains_key("2MB"), "{limits:?}");
        for (size, limit) in &limits {
            assert_eq!(*limit, if size == "2MB" { bytes } else { 0 }.to_string(), "{container}, {level} above: {limits:?}");
        }
    }
}

/// shows: spec.resources.limits, spec.resources.requests
#[test]
fn pod_level_resources_change_while_running() {
    let host = TestHost::start();
    let with = |memory: &str| {
        let spec = format!("  resources: {{requests: {{cpu: 100m, memory: 32Mi}}, limits: {{cpu: 500m, memory: {memory}}}}}\n");
        pod(&spec, &[("main", FOREVER, "tty: false"), ("small", FOREVER, "resources: {limits: {memory: 16Mi}}")])
    };
    host.write_manifest("web.yaml", &with("64Mi"));
    let before = host.wait_running("web");
    let (main, small) = (host.container_pid(&before, "main"), host.container_pid(&before, "small"));
    assert_eq!(before.0["status"]["qosClass"], "Burstable");
    assert_eq!((cgroup::memory_limit(main, 1), cgroup::cpu_quota(main, 1)), (Some(64 << 20), Some(50_000)));
    assert_eq!(cgroup::cpu_share(main, 1), cgroup::share_of(102));
    assert_eq!((cgroup::memory_limit(main, 0), cgroup::memory_limit(small, 0)), (Some(64 << 20), Some(16 << 20)));
    host.write_manifest("web.yaml", &with("96Mi"));
    eventually("the new limit of the pod", || match (cgroup::memory_limit(main, 1), cgroup::memory_limit(main, 0)) {
        (Some(pods), Some(own)) if pods == 96 << 20 && own == 96 << 20 => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let after = host.pod("web").unwrap();
    assert_eq!((after.container_id("main"), after.restarts("main")), (before.container_id("main"), 0));
    host.write_manifest("web.yaml", &with("16Mi"));
    eventually("the refusal: containers may not have more than the pod requests", || {
        let out = host.cli_ok(&["status"]);
        out.contains("spec.resources.requests[memory]").then_some(()).ok_or(out)
    });
}

/// The job of a daemon that asks a server.
fn job_that_asks(daemon: u32) -> Option<u32> {
    let parent = format!("PPid:\t{daemon}\n");
    let is_it = |pid: &u32| {
        let has =
            |file: &str, part: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).is_ok_and(|text| text.contains(part));
        has("cmdline", "podstead-job\0fetch") && has("status", &parent)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is_it)
}

/// Such as those that unpack images; here one that asks a server, which does not answer.
#[test]
fn jobs_stop_while_a_pod_starts() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = TestHost::start_with(&format!("  - name: site\n    http: {{url: 'http://{}'}}\n", server.local_addr().unwrap()));
    let (_asked, _) = server.accept().unwrap();
    let job = eventually("the job", || job_that_asks(host.daemon_pid()).ok_or_else(|| "none".to_owned()));
    let is_stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{job}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with('T')
    };
    let wait_for_end = || eventually("the job to go on", || if is_stopped() { Err("stopped".to_owned()) } else { Ok(()) });
    let mut stopped = false;
    std::thread::scope(|scope| {
        let start = scope.spawn(|| {
            host.write_manifest("web.yaml", &one(""));
            host.wait_running("web")
        });
        while !start.is_finished() {
            stopped |= is_stopped();
            std::thread::sleep(Duration::from_millis(1));
        }
        let file = cgroup::jobs_idle(host.container_pid(&start.join().unwrap(), "main"));
        match std::fs::read_to_string(&file) {
            Ok(_) => eventually("jobs to run as others again", || match std::fs::read_to_string(&file).unwrap().trim() {
                "0" => Ok(()),
                other => Err(other.to_owned()),
            }),
            Err(_) => kernel_lacks("groups that are idle"),
        }
    });
    assert!(stopped, "the job went on while a pod started");
    wait_for_end();
}
