//! Files of an image that the runtime reads, mounts on or believes.

use super::{Container, FOREVER, HOSTILE, SECRET, Victim, import, pod, sh};
use crate::support::{TestHost, eventually, image_archive, mounts};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

/// Pods whose files (`/etc/hosts` and so on) are mounted where links of the image lead.
fn assert_host_files_are_the_pods(host: &TestHost, victim: &Victim, fill: impl FnOnce(&Path)) {
    let before = mounts(&victim.directory().display().to_string());
    import(host, &[], fill);
    let list =
        "mount | grep -c victim; for file in hosts hostname resolv.conf; do cat /etc/$file; done; echo seen; exec sleep 1000000";
    host.write_manifest("web.yaml", &pod("web", HOSTILE, &[], &[Container::new("main", list, &[])]));
    let settled = host
        .wait_for_pod("web", "to run or to be refused", |pod| pod.runs("main") || pod.waiting_reason("main").ends_with("Error"));
    if settled.runs("main") {
        let said = host.wait_log("web", "main", "seen");
        assert!(!said.contains(SECRET), "{said}");
    }
    victim.assert_unharmed();
    assert_eq!(mounts(&victim.directory().display().to_string()), before, "something is mounted on the host");
}

/// CVE-2024-5154: `/etc/hosts`, `/etc/hostname`, `/etc/resolv.conf` and `/dev/termination-log` of the image are links to files of the host.
#[test]
fn pod_files_are_not_written_through_links() {
    let host = TestHost::start();
    let victim = Victim::new(&host);
    assert_host_files_are_the_pods(&host, &victim, |layer| {
        ["etc", "dev"].iter().for_each(|folder| fs::create_dir(layer.join(folder)).unwrap());
        let climb = Path::new("../../../../../../..").join(victim.path.strip_prefix("/").unwrap());
        symlink(&victim.path, layer.join("etc/hosts")).unwrap();
        symlink(&climb, layer.join("etc/hostname")).unwrap();
        symlink(victim.directory().join("made"), layer.join("etc/resolv.conf")).unwrap();
        symlink(victim.directory().join("made-too"), layer.join("dev/termination-log")).unwrap();
    });
}

/// CVE-2024-5154 by the directory: `/etc` of the image is a link to a directory of the host, and the path is in the image, too.
#[test]
fn pod_files_pass_no_linked_directory() {
    let host = TestHost::start();
    let victim = Victim::new(&host);
    assert_host_files_are_the_pods(&host, &victim, |layer| {
        // Later layers replace the directory of busybox's.
        symlink(victim.directory(), layer.join("etc")).unwrap();
        fs::create_dir_all(layer.join(victim.directory().strip_prefix("/").unwrap())).unwrap();
    });
}

/// The archive of the test image with its manifest changed, and the digests that follow from that.
fn forge(host: &TestHost, change: impl FnOnce(&mut Value)) -> std::path::PathBuf {
    let folder = host.path("forged");
    fs::create_dir(&folder).unwrap();
    run(Command::new("tar").arg("-C").arg(&folder).arg("-xf").arg(image_archive()));
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let blob = |digest: &str| folder.join("blobs/sha256").join(digest.strip_prefix("sha256:").unwrap());
    let mut index = read(&folder.join("index.json"));
    let entry = &mut index["manifests"][0];
    let mut manifest = read(&blob(entry["digest"].as_str().unwrap()));
    change(&mut manifest);
    let bytes = manifest.to_string();
    fs::write(folder.join("new"), &bytes).unwrap();
    let sum = Command::new("sha256sum").arg(folder.join("new")).output().unwrap();
    let digest = format!("sha256:{}", String::from_utf8_lossy(&sum.stdout).split(' ').next().unwrap());
    fs::rename(folder.join("new"), blob(&digest)).unwrap();
    entry["digest"] = json!(digest);
    entry["size"] = json!(bytes.len());
    for name in ["io.containerd.image.name", "org.opencontainers.image.ref.name"] {
        entry["annotations"][name] = json!(HOSTILE);
    }
    fs::write(folder.join("index.json"), index.to_string()).unwrap();
    let archive = host.path("forged.tar");
    run(Command::new("tar").arg("-C").arg(&folder).arg("-cf").arg(&archive).args(["oci-layout", "index.json", "blobs"]));
    archive
}

/// CVE-2021-41190: one document that is a manifest and an index at once, so that who signs it and who runs it see different images.
#[test]
fn manifest_that_is_index_too_is_refused() {
    let host = TestHost::start();
    let well = forge(&host, |_| {});
    host.cli_ok(&["image", "import", well.to_str().unwrap()]);
    fs::remove_dir_all(host.path("forged")).unwrap();
    let forged = forge(&host, |manifest| {
        let own = json!({"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": manifest["config"]["digest"], "size": manifest["config"]["size"]});
        manifest["manifests"] = json!([own]);
    });
    let refused = host.cli(&["image", "import", forged.to_str().unwrap()]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("is not a container image"), "{told}");
}

/// A manifest whose layer is named by a digest that leads out of the store.
#[test]
fn digests_of_manifest_cannot_be_paths() {
    let host = TestHost::start();
    let victim = Victim::new(&host);
    let climb = format!("sha256:../../../../../../..{}", victim.path.display());
    for digest in [climb.as_str(), "sha256:", "sha256:..", "../../..:0"] {
        let forged = forge(&host, |manifest| manifest["layers"][0]["digest"] = json!(digest));
        let refused = host.cli(&["image", "import", forged.to_str().unwrap()]);
        assert!(!refused.status.success(), "{digest} was taken");
        fs::remove_dir_all(host.path("forged")).unwrap();
    }
    victim.assert_unharmed();
}

/// CVE-2023-25173: groups of the image's user. The primary group is among the supplementary ones, so that a program with another group does not lose
/// what is denied to it, and `Strict` keeps those of the image out.
#[test]
fn groups_are_those_of_pod_and_user() {
    let host = TestHost::start();
    import(&host, &["--user", "alice"], |layer| {
        fs::create_dir(layer.join("etc")).unwrap();
        fs::write(layer.join("etc/passwd"), "root:x:0:0::/:/bin/sh\nalice:x:1000:1000::/:/bin/sh\n").unwrap();
        fs::write(layer.join("etc/group"), "root:x:0:alice\nalice:x:1000:\ndisk:x:6:alice\nshadow:x:42:alice\n").unwrap();
    });
    let script = "sed -n 's/^Groups:[ \\t]*/groups /p' /proc/self/status; exec sleep 1000000";
    for (policy, expected) in [("Strict", vec![7, 1000]), ("Merge", vec![0, 6, 7, 42, 1000])] {
        let spec = format!("securityContext: {{runAsUser: 1000, supplementalGroups: [7], supplementalGroupsPolicy: {policy}}}");
        host.write_manifest("web.yaml", &pod("web", HOSTILE, &[&spec], &[Container::new("main", script, &[])]));
        let said = host.wait_log("web", "main", "groups ");
        let sorted = |text: &str| {
            let mut groups: Vec<u32> = text.split_whitespace().map(|group| group.parse().unwrap()).collect();
            groups.sort_unstable();
            groups
        };
        assert_eq!(sorted(said.trim().strip_prefix("groups ").unwrap()), expected, "{policy}");
        assert_eq!(sorted(&sh(&host, "web", "sed -n 's/^Groups:[ \\t]*//p' /proc/self/status")), expected, "{policy}, by exec");
        host.remove_manifest("web.yaml");
        host.wait_gone("web");
    }
}

/// `/etc/passwd` and `/etc/group` of the image that are no files: reading them blocks, acts on a device, or reads the host's.
#[test]
fn users_are_read_from_files_alone() {
    let host = TestHost::start();
    let victim = Victim::new(&host);
    fs::write(&victim.path, "alice:x:0:0::/:/bin/sh\n").unwrap();
    // A character device that no driver serves: whoever opens it is told so. One that a driver serves would do something, such as start a watchdog.
    let node = |at: &Path, kind: &[&str]| run(Command::new("mknod").arg(at).args(kind));
    let place = |layer: &Path, name: &str| {
        fs::create_dir_all(layer.join("etc")).unwrap();
        layer.join("etc").join(name)
    };
    for kind in ["fifo", "device", "link", "directory"] {
        let make = |at: &Path| match kind {
            "fifo" => node(at, &["p"]),
            "device" => node(at, &["c", "240", "77"]),
            "link" => symlink(&victim.path, at).unwrap(),
            _ => fs::create_dir(at).unwrap(),
        };
        import(&host, &["--user", "alice"], |layer| ["passwd", "group"].iter().for_each(|name| make(&place(layer, name))));
        // A number needs no file.
        let numeric = pod("numeric", HOSTILE, &["securityContext: {runAsUser: 1234}"], &[Container::new("main", FOREVER, &[])]);
        host.write_manifest("numeric.yaml", &numeric);
        host.write_manifest("web.yaml", &pod("web", HOSTILE, &[], &[Container::new("main", FOREVER, &[])]));
        let refused = host.wait_for_pod("web", "the missing user", |pod| pod.waiting_reason("main").starts_with("CreateContainer"));
        let message = refused.container("main")["state"]["waiting"]["message"].to_string();
        assert!(message.contains("alice"), "{kind}: {message}");
        host.wait_running("numeric");
        // `id` would read the same files.
        assert_eq!(sh(&host, "numeric", "sed -n 's/^[UG]id:\\t\\([0-9]*\\).*/\\1/p' /proc/self/status"), "1234\n0\n", "{kind}");
        for name in ["numeric", "web"] {
            host.remove_manifest(&format!("{name}.yaml"));
            host.wait_gone(name);
        }
        fs::remove_dir_all(host.path("hostile-layer")).unwrap();
    }
}

/// Files of users that are larger than any image needs: they are refused, and the daemon does not read them.
#[test]
fn huge_files_of_users_are_refused() {
    let host = TestHost::start();
    import(&host, &["--user", "alice"], |layer| {
        fs::create_dir(layer.join("etc")).unwrap();
        let passwd = fs::File::create(layer.join("etc/passwd")).unwrap();
        passwd.set_len(100 << 20).unwrap();
        fs::write(layer.join("etc/group"), "root:x:0:\n".repeat(700_000)).unwrap();
    });
    host.write_manifest("web.yaml", &pod("web", HOSTILE, &[], &[Container::new("main", FOREVER, &[])]));
    let refused = host.wait_for_pod("web", "the refusal", |pod| pod.waiting_reason("main").starts_with("CreateContainer"));
    let message = refused.container("main")["state"]["waiting"]["message"].to_string();
    assert!(message.contains("/etc/passwd") && message.contains("larger than"), "{message}");
    let status = fs::read_to_string(format!("/proc/{}/status", host.daemon_pid())).unwrap();
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap().trim().trim_end_matches(" kB");
    assert!(anonymous.parse::<u64>().unwrap() < 128 << 10, "the daemon has {anonymous} kB");
    eventually("the daemon to answer", || if host.cli(&["version"]).status.success() { Ok(()) } else { Err(String::new()) });
}
