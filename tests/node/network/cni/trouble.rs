//! Plugins that are missing, fail or hang.

use super::super::lan::web;
use super::CniSite;
use crate::support::{eventually, leftovers};
use std::fs;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(90);

#[test]
fn failing_plugin_is_reported_in_words() {
    let mut cni = CniSite::prepare("cni");
    cni.write("10-lan.conflist", r#"{"cniVersion": "1.0.0", "name": "lan", "plugins": [{"type": "absent"}]}"#);
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("one.yaml", &web("one", "", ""));
    let says = |words: &[&str]| cni.tells(SOON, &[&["FailedCreatePodSandBox"], words].concat());
    says(&["plugin type=\"absent\" name=\"lan\" failed (add): plugin not found in ", "/bin, /usr/lib/cni"]);
    cni.plugin("absent", r#"[ $CNI_COMMAND = DEL ] && exit 0; echo '{"cniVersion": "1.0.0", "code": 11, "msg": "no carrier", "details": "plc0 is down"}'; exit 1"#);
    says(&["plugin type=\"absent\" name=\"lan\" failed (add): code 11 (try again later): no carrier: plc0 is down"]);
    cni.plugin("absent", "[ $CNI_COMMAND = DEL ] && exit 0; echo oops >&2; exit 3");
    says(&["failed (add): exit status: 3: oops"]);
    cni.plugin("absent", "[ $CNI_COMMAND = DEL ] && exit 0; echo nonsense");
    says(&["failed (add): printed an invalid result: expected ident"]);
    // It is given up and killed, with what it started.
    let pids = cni.path("pids");
    cni.plugin("absent", &format!("[ $CNI_COMMAND = DEL ] && exit 0\nsetsid sleep 4242 &\necho $! >> {}\nwait", pids.display()));
    says(&["failed (add): did not end within 20 s and was killed"]);
    let first = fs::read_to_string(&pids).unwrap().lines().next().unwrap().to_owned();
    assert!(!crate::support::process_exists(first.parse().unwrap()), "{first} lives");
    // While it hangs, the pod can be removed, and nothing is left.
    let hangs = |count: usize| {
        eventually("another attempt", || {
            let text = fs::read_to_string(&pids).unwrap_or_default();
            (text.lines().count() > count).then_some(()).ok_or(text)
        });
    };
    hangs(fs::read_to_string(&pids).unwrap().lines().count());
    let uid = cni.site.host.pod("one").unwrap().uid();
    cni.site.host.remove_manifest("one.yaml");
    cni.site.host.wait_gone("one");
    eventually("nothing of the pod", || {
        let left = leftovers(&uid);
        let sleeping = fs::read_to_string(&pids).unwrap();
        let last: u32 = sleeping.lines().last().unwrap().parse().unwrap();
        (left.is_empty() && !crate::support::process_exists(last)).then_some(()).ok_or(format!("{left:?}"))
    });
}

#[test]
fn unmade_network_blocks_no_other_one() {
    let mut cni = CniSite::prepare("cni");
    cni.plugin("broken", "echo '{\"code\": 100, \"msg\": \"broken\"}'; exit 1");
    cni.write("10-lan.conflist", r#"{"cniVersion": "1.0.0", "name": "lan", "plugins": [{"type": "broken"}]}"#);
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("one.yaml", &web("one", "", ""));
    cni.tells(SOON, &["FailedCreatePodSandBox", "failed (add): code 100: broken"]);
    cni.write("10-lan.conflist", &cni.bridge(""));
    cni.tells(SOON, &["NetworkLeftBehind", "failed (del): code 100: broken"]);
    assert!(cni.address("one").starts_with("10.77.0."));
}

#[test]
fn plugin_gone_for_good_frees_its_pod() {
    let mut cni = CniSite::prepare("cni");
    cni.plugin("link", r#"[ $CNI_COMMAND = ADD ] && nsenter --net=$CNI_NETNS ip link add eth0 type bridge; cat > /dev/null; [ $CNI_COMMAND = ADD ] && echo '{"cniVersion": "1.0.0", "interfaces": [{"name": "eth0", "sandbox": "/x"}], "ips": [{"address": "10.9.0.1/24", "interface": 0}]}'; exit 0"#);
    cni.write("10-lan.conflist", r#"{"cniVersion": "1.0.0", "name": "lan", "plugins": [{"type": "link"}]}"#);
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("one.yaml", &web("one", "", ""));
    assert_eq!(cni.address("one"), "10.9.0.1");
    fs::remove_file(cni.path("bin/link")).unwrap();
    cni.site.host.remove_manifest("one.yaml");
    cni.tells(SOON, &["FailedKillPod", "plugin type=\"link\" name=\"lan\" failed (del): plugin not found"]);
    cni.tells(SOON, &["NetworkLeftBehind", "may have left resources of the pod behind: plugin type=\"link\""]);
    cni.site.host.wait_gone("one");
}
