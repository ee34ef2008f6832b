//! The daemon dies in the middle of ADD and DEL.

use super::super::lan::{HOST_V4, web};
use super::CniSite;
use crate::support::{eventually, eventually_within, process_exists};
use std::fs;
use std::time::Duration;

/// The bridge plugin, which stops before or after its work for as long as there is a file of that name, and tells that it does.
fn slow_bridge(cni: &CniSite) {
    let at = cni.path("").display().to_string();
    cni.plugin(
        "bridge",
        &format!(
            "input=$(cat)\n\
             pause() {{ if [ -e {at}/pause-$1-$CNI_COMMAND ]; then echo $$ > {at}/paused.new; mv {at}/paused.new {at}/paused; sleep 600; fi; }}\n\
             pause before\n\
             output=$(echo \"$input\" | /usr/lib/cni/bridge); code=$?\n\
             pause after\n\
             echo \"$output\"; exit $code"
        ),
    );
}

fn wait_paused(cni: &CniSite) -> u32 {
    let pid = eventually_within(Duration::from_secs(120), "the plugin to pause", || {
        fs::read_to_string(cni.path("paused")).map_err(|_| cni.site.host.daemon_log())
    });
    fs::remove_file(cni.path("paused")).unwrap();
    pid.trim().parse().unwrap()
}

#[test]
fn daemon_dead_during_plugin_leaves_nothing() {
    let mut cni = CniSite::bridged();
    slow_bridge(&cni);
    for moment in ["before-ADD", "after-ADD"] {
        let pause = cni.path(&format!("pause-{moment}"));
        fs::write(&pause, "").unwrap();
        cni.site.host.write_manifest("one.yaml", &web("one", "", "{containerPort: 80, hostPort: 8081}"));
        let plugin = wait_paused(&cni);
        cni.site.host.kill_daemon();
        fs::remove_file(&pause).unwrap();
        assert!(process_exists(plugin), "a plugin outlives the daemon");
        cni.site.host.start_daemon();
        let address = cni.address("one");
        cni.site.outside.gets(&format!("http://{HOST_V4}:8081/"), "I am one");
        assert!(!process_exists(plugin), "{moment}: the plugin of the earlier daemon works on");
        assert_eq!((cni.leases("lan"), cni.bridge_ports().len()), (vec![address], 1), "{moment}");
        cni.site.host.remove_manifest("one.yaml");
        cni.site.host.wait_gone("one");
        cni.wait_clean();
    }
    for moment in ["before-DEL", "after-DEL"] {
        cni.site.host.write_manifest("one.yaml", &web("one", "", "{containerPort: 80, hostPort: 8081}"));
        cni.address("one");
        let pause = cni.path(&format!("pause-{moment}"));
        fs::write(&pause, "").unwrap();
        cni.site.host.remove_manifest("one.yaml");
        let plugin = wait_paused(&cni);
        cni.site.host.kill_daemon();
        fs::remove_file(&pause).unwrap();
        cni.site.host.start_daemon();
        cni.site.host.wait_gone("one");
        assert!(!process_exists(plugin), "{moment}: the plugin of the earlier daemon works on");
        cni.wait_clean();
    }
}

#[test]
fn host_that_starts_again_gives_addresses_back() {
    let mut cni = CniSite::bridged();
    cni.site.host.write_manifest("one.yaml", &web("one", "", ""));
    cni.address("one");
    // What a power cut leaves: the record and the address on disk, nothing in the kernel.
    let pod = cni.site.host.pod("one").unwrap();
    let (main, shim) = (cni.site.host.container_pid(&pod, "main"), cni.site.host.shim_pid(&pod));
    cni.site.host.kill_daemon();
    for pid in [shim, main] {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL).unwrap();
    }
    eventually("the pod to be dead", || (!process_exists(main)).then_some(()).ok_or(String::new()));
    cni.site.host.start_daemon();
    cni.site
        .host
        .wait_for_pod("one", "another run", |now| now.runs("main") && now.container_id("main") != pod.container_id("main"));
    eventually("one address", || {
        let leases = cni.leases("lan");
        (leases.len() == 1 && cni.bridge_ports().len() == 1).then_some(()).ok_or(format!("{leases:?}"))
    });
    cni.site.host.remove_manifest("one.yaml");
    cni.site.host.wait_gone("one");
    cni.wait_clean();
}
