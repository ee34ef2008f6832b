//! Requests to plugins, seen by a plugin that writes them down.

use super::super::lan::web;
use super::{CniSite, HOUSEKEEPING};
use crate::support::eventually_within;
use serde_json::Value;
use std::fs;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// Makes an interface, and writes down what it is called with. STATUS fails while there is a file `down`.
fn recorder(cni: &CniSite) -> String {
    let at = cni.path("").display().to_string();
    format!(
        r#"input=$(cat); echo "$CNI_COMMAND $CNI_IFNAME $CNI_ARGS $(echo "$input" | tr -d '\n')" >> {at}/calls
case $CNI_COMMAND in
VERSION) echo '{{"cniVersion": "1.1.0", "supportedVersions": ["0.4.0", "1.0.0", "1.1.0"]}}';;
STATUS) [ -e {at}/down ] && {{ echo '{{"cniVersion": "1.1.0", "code": 50, "msg": "fabric is down"}}'; exit 1; }}; exit 0;;
ADD) nsenter --net=$CNI_NETNS ip link add $CNI_IFNAME type bridge
  echo '{{"cniVersion": "1.1.0", "interfaces": [{{"name": "'$CNI_IFNAME'", "mac": "02:00:00:00:00:01", "mtu": 1400, "sandbox": "'$CNI_NETNS'"}}], "ips": [{{"address": "10.9.0.1/24", "interface": 0}}], "dns": {{"nameservers": ["10.9.0.53"]}}}}';;
DEL) [ -n "$CNI_NETNS" ] && nsenter --net=$CNI_NETNS ip link delete $CNI_IFNAME; exit 0;;
esac"#
    )
}

fn calls(cni: &CniSite, command: &str) -> Vec<(String, Value)> {
    let text = fs::read_to_string(cni.path("calls")).unwrap_or_default();
    let of = |line: &str| {
        let at = line.find('{').unwrap();
        (line[..at].trim().to_owned(), serde_json::from_str(&line[at..]).unwrap())
    };
    text.lines().filter(|line| line.split(' ').next() == Some(command)).map(of).collect()
}

#[test]
fn version_1_1_plugins_get_status_gc() {
    let mut cni = CniSite::prepare("cni");
    cni.plugin("recorder", &recorder(&cni));
    fs::write(cni.path("down"), "").unwrap();
    let list = r#"{"cniVersion": "1.1.0", "cniVersions": ["1.0.0", "1.1.0", "9.9.9"], "name": "lan", "plugins": [
        {"type": "recorder", "capabilities": {"io.kubernetes.cri.pod-annotations": true, "ips": true, "mac": true}}]}"#;
    cni.write("10-lan.conflist", list);
    cni.site.host.start_daemon();
    let asks = r#"note: kept, v1.multus-cni.io/default-network: '[{"name": "lan", "ips": ["10.9.0.1/24"], "mac": "02:00:00:00:00:01", "cni-args": {"vlan": 7}}]'"#;
    cni.site.host.write_manifest("one.yaml", &web("one", asks, ""));
    cni.tells(
        SOON,
        &["NetworkNotReady", "plugin type=\"recorder\" name=\"lan\" failed (status): code 50 (not available): fabric is down"],
    );
    assert_eq!(calls(&cni, "ADD"), []);
    fs::remove_file(cni.path("down")).unwrap();
    assert_eq!(cni.address("one"), "10.9.0.1");
    let uid = cni.site.host.pod("one").unwrap().uid();
    let (call, input) = calls(&cni, "ADD").pop().unwrap();
    let args = format!(
        "ADD eth0 IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=one-edge-1;K8S_POD_INFRA_CONTAINER_ID={uid};K8S_POD_UID={uid}"
    );
    assert_eq!((call, &input["cniVersion"], &input["args"]["cni"]["vlan"]), (args, &"1.1.0".into(), &7.into()));
    assert_eq!(input["runtimeConfig"]["ips"][0], "10.9.0.1/24");
    assert_eq!(input["runtimeConfig"]["mac"], "02:00:00:00:00:01");
    assert_eq!(input["runtimeConfig"]["io.kubernetes.cri.pod-annotations"]["note"], "kept");

    cni.site.host.kill_daemon();
    fs::remove_file(cni.path("calls")).unwrap();
    cni.site.host.start_daemon();
    let garbage = eventually_within(HOUSEKEEPING, "GC", || calls(&cni, "GC").pop().ok_or_else(|| cni.site.host.daemon_log()));
    assert_eq!(garbage.1["cni.dev/valid-attachments"], serde_json::json!([{"containerID": uid, "ifname": "eth0"}]));
    let checked = eventually_within(HOUSEKEEPING, "CHECK", || calls(&cni, "CHECK").pop().ok_or_else(|| cni.site.host.daemon_log()));
    assert_eq!(checked.1["prevResult"]["interfaces"][0]["mtu"], 1400);
    assert_eq!(calls(&cni, "ADD"), [], "what is connected stays so");
    cni.site.host.remove_manifest("one.yaml");
    cni.site.host.wait_gone("one");
    assert_eq!(calls(&cni, "DEL").pop().unwrap().1["prevResult"]["ips"][0]["address"], "10.9.0.1/24");

    // Nobody knows any more what a pod has.
    cni.site.host.write_manifest("two.yaml", &web("two", "", ""));
    assert_eq!(cni.address("two"), "10.9.0.1");
    let uid = cni.site.host.pod("two").unwrap().uid();
    cni.site.host.kill_daemon();
    fs::write(cni.site.host.path("state/pods").join(&uid).join("cni.json"), "{").unwrap();
    fs::remove_file(cni.path("calls")).unwrap();
    cni.site.host.start_daemon();
    cni.tells(HOUSEKEEPING, &["NetworkRecordLost", "CNI garbage collection is off until the daemon restarts"]);
    assert_eq!(calls(&cni, "GC"), []);
}

#[test]
fn latest_common_version_is_used() {
    let mut cni = CniSite::prepare("cni");
    // Debian's plugins speak 1.0.0 at most.
    let list =
        cni.bridge("").replace(r#""cniVersion": "1.0.0""#, r#""cniVersion": "1.1.0", "cniVersions": ["0.3.1", "0.4.0", "1.1.0"]"#);
    cni.write("10-lan.conflist", &list);
    cni.site.host.start_daemon();
    cni.site.host.write_manifest("one.yaml", &web("one", "", ""));
    assert!(cni.address("one").starts_with("10.77.0."));
    let uid = cni.site.host.pod("one").unwrap().uid();
    let record = fs::read(cni.site.host.path("state/pods").join(uid).join("cni.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let speaks_1_1 = record["attachments"][0]["version"] == "1.1.0";
    assert!(speaks_1_1 || record["attachments"][0]["version"] == "0.4.0", "{record}");
}
