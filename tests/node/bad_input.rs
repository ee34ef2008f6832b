//! Bad input is explained with file, line and field, and takes nothing down that runs.

use crate::support::{TestHost, eventually};
use std::fs;

const GOOD: &str = "apiVersion: v1
kind: Pod
metadata:
  name: good
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: localhost/busybox:1
      command: [sleep, '1000000']
";

/// Writes each bad file beside a running pod's manifest, and *as* its manifest, and expects `needles` in `podstead status`.
fn expect(host: &TestHost, file: &str, content: &[u8], needles: &[&str]) {
    let before = host.wait_running("good");
    for name in [file, "good.yaml"] {
        fs::write(host.path("manifests").join(name), content).unwrap();
        eventually(&format!("{needles:?} for {name}"), || {
            let status = host.cli_ok(&["status"]);
            let told = |needle: &&str| status.contains(&needle.replace("FILE", name));
            if needles.iter().all(told) { Ok(()) } else { Err(status) }
        });
        let after = host.pod("good").expect("the pod must stay");
        assert_eq!(after.container_id("main"), before.container_id("main"));
        assert!(after.runs("main"), "{name} must not stop the pod");
    }
    fs::remove_file(host.path("manifests").join(file)).unwrap();
    host.write_manifest("good.yaml", GOOD);
    eventually("the problem to be over", || {
        let status = host.cli_ok(&["status"]);
        if status.contains("error[") { Err(status) } else { Ok(()) }
    });
    assert_eq!(host.wait_running("good").container_id("main"), before.container_id("main"));
}

#[test]
fn bad_files_are_named_and_pods_stay() {
    let host = TestHost::start();
    host.write_manifest("good.yaml", GOOD);
    host.wait_running("good");

    let unknown = GOOD.replace("spec:\n", "spec:\n  hostNetwrok: true\n");
    expect(&host, "unknown.yaml", unknown.as_bytes(), &["FILE:6:3", "spec.hostNetwrok", "hostNetwork"]);
    let wrong_type = GOOD.replace("terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: soon");
    expect(&host, "type.yaml", wrong_type.as_bytes(), &["FILE:6:", "spec.terminationGracePeriodSeconds"]);
    expect(&host, "binary.yaml", b"\x7fELF\x02\x01\x01\x00\x00\x00", &["FILE"]);
    let invalid = [GOOD.as_bytes(), b"    # \xff\xfe\n"].concat();
    expect(&host, "utf8.yaml", &invalid, &["FILE:11:", "UTF-8"]);
    let huge = [GOOD.as_bytes(), &b"# padding\n".repeat(2_000_000)].concat();
    expect(&host, "huge.yaml", &huge, &["FILE", "10485760"]);
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..10 {
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(","));
    }
    expect(&host, "bomb.yaml", bomb.as_bytes(), &["FILE"]);
    let duplicate = GOOD.replace("  name: good\n", "  name: good\n  name: better\n");
    expect(&host, "duplicate.yaml", duplicate.as_bytes(), &["FILE:5:3", "name"]);
}

#[test]
fn network_disks_are_told_how_to_be_had() {
    let host = TestHost::start();
    host.write_manifest("good.yaml", GOOD);
    host.wait_running("good");
    let with = |source: &str| format!("{GOOD}  volumes:\n    - name: disk\n      {source}\n");
    let iscsi = with("iscsi: {targetPortal: 192.0.2.1, iqn: 'iqn.2001-04.com.example:a', lun: 0}");
    let words =
        "not supported (log in to the target on the host, for example with open-iscsi, and use the device or a hostPath volume)";
    expect(&host, "iscsi.yaml", iscsi.as_bytes(), &["FILE:13:7", "spec.volumes[0].iscsi", words]);
    let cifs = "mount the volume on the host, a CIFS share for example by /etc/fstab, and use a hostPath volume";
    let csi = with("csi: {driver: smb.csi.k8s.io, volumeAttributes: {source: //nas/share}}");
    expect(&host, "csi.yaml", csi.as_bytes(), &["FILE:13:7", "spec.volumes[0].csi", cifs]);
    let flex = with("flexVolume: {driver: fstab/cifs, options: {networkPath: //nas/share}}");
    expect(&host, "flex.yaml", flex.as_bytes(), &["FILE:13:7", "spec.volumes[0].flexVolume", cifs]);
}

#[test]
fn first_of_two_equal_names_runs_on() {
    let host = TestHost::start();
    host.write_manifest("good.yaml", GOOD);
    let before = host.wait_running("good");
    host.write_manifest("zz-second.yaml", &GOOD.replace("1000000", "2000000"));
    eventually("both places to be named", || {
        let status = host.cli_ok(&["status"]);
        if status.contains("zz-second.yaml") && status.contains("good.yaml") { Ok(()) } else { Err(status) }
    });
    assert_eq!(host.wait_running("good").container_id("main"), before.container_id("main"));
}

#[test]
fn broken_preloaded_archive_is_named() {
    let host = TestHost::start();
    host.write_manifest("good.yaml", GOOD);
    let before = host.wait_running("good");
    let archive = fs::read(crate::support::image_archive()).unwrap();
    fs::write(host.path("preload/broken.tar"), &archive[..archive.len() / 2]).unwrap();
    eventually("the archive to be named", || {
        let events = host.cli_ok(&["get", "events"]);
        if events.contains("broken.tar") { Ok(()) } else { Err(events) }
    });
    assert_eq!(host.wait_running("good").container_id("main"), before.container_id("main"));
    assert!(host.cli_ok(&["image", "ls"]).contains("localhost/busybox"));
}
