//! NFS volumes: on a kernel without a client, and with a server of the same kernel.

use crate::support::{TestHost, eventually, kernel_lacks, leftovers, mounts};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};

/// A pod with one volume, mounted at `/data`.
fn pod(name: &str, annotations: &str, source: &str, mount: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, annotations: {{{annotations}}}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:
    - {{name: c, image: localhost/busybox:1, command: [sleep, '1000000'], volumeMounts: [{{name: data, mountPath: /data{mount}}}]}}
  volumes: [{{name: data, nfs: {{{source}}}}}]\n"
    )
}

/// Waits for an event of the pod with these words.
fn wait_told(host: &TestHost, pod: &str, words: &str) {
    eventually(&format!("an event {words:?}"), || {
        // It may not be there yet.
        let told = String::from_utf8_lossy(&host.cli(&["describe", "pod", pod]).stdout).into_owned();
        if told.contains(words) { Ok(()) } else { Err(told) }
    });
}

/// Waits until nothing of a pod is left.
fn wait_clean(host: &TestHost, uid: &str) {
    eventually("no mount to be left", || {
        let left = leftovers(uid);
        if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
    });
    eventually("the pod's directory to be gone", || match host.path("state/pods").join(uid).is_dir() {
        false => Ok(()),
        true => Err("it is there".to_owned()),
    });
}

/// Reports whether this kernel can mount NFS: it refuses a mount without an address, or does not know the type.
fn has_client() -> bool {
    let refused = nix::mount::mount(Some("none:/"), "/", Some("nfs"), nix::mount::MsFlags::empty(), Some("vers=4.2"));
    refused != Err(nix::errno::Errno::ENODEV)
}

/// shows: spec.volumes[].nfs, spec.volumes[].nfs.server, spec.volumes[].nfs.path, spec.volumes[].nfs.readOnly
#[test]
fn kernel_without_nfs_keeps_one_pod_waiting() {
    if has_client() {
        return;
    }
    let mut host = TestHost::start();
    host.write_manifest("shared.yaml", &pod("shared", "", "server: 127.0.0.1, path: /export, readOnly: true", ""));
    let told =
        "MountVolume.SetUp failed for volume \"data\" : mount 127.0.0.1:/export: this host's kernel has no NFS client: install";
    wait_told(&host, "shared", told);
    let waiting = host.wait_for_pod("shared", "to wait", |pod| pod.waiting_reason("c") == "ContainerCreating");
    eventually("status to name the cause", || {
        let status = host.cli_ok(&["status"]);
        if status.contains("no NFS client") { Ok(()) } else { Err(status) }
    });

    let other = "apiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers: [{name: c, image: localhost/busybox:1, command: [sleep, '1000000']}]\n";
    host.write_manifest("other.yaml", other);
    host.wait_running("other");
    host.kill_daemon();
    host.start_daemon();
    host.wait_for_pod("shared", "to wait", |pod| pod.waiting_reason("c") == "ContainerCreating");
    assert_eq!(host.wait_running("other").restarts("c"), 0);
    host.remove_manifest("shared.yaml");
    host.wait_gone("shared");
    wait_clean(&host, &waiting.uid());
}

/// The NFS server of this machine's kernel, with one export: the directory `export` of a host. There can be one at a time.
struct Server {
    programs: Vec<Child>,
    export: PathBuf,
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let out = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if out.status.success() { Ok(()) } else { Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&out.stderr))) }
}

impl Server {
    /// `None` where the kernel has none.
    fn start(host: &TestHost) -> Option<Self> {
        let export = host.path("export");
        fs::create_dir(&export).unwrap();
        if !has_client() || run("mount", &["-t", "nfsd", "nfsd", "/proc/fs/nfsd"]).is_err() {
            kernel_lacks("NFS");
            return None;
        }
        let foreground = |program: &str, option: &str| Command::new(program).arg(option).spawn().unwrap();
        let listed = |words: &str| {
            let out = Command::new("rpcinfo").args(["-p", "127.0.0.1"]).output().map_err(|error| error.to_string())?;
            let list = String::from_utf8_lossy(&out.stdout).into_owned();
            if list.contains(words) { Ok(()) } else { Err(list) }
        };
        let mut programs = vec![foreground("rpcbind", "-f")];
        eventually("rpcbind to answer", || listed("portmapper"));
        programs.push(foreground("rpc.mountd", "-F"));
        eventually("mountd to be registered", || listed("mountd"));
        let server = Self { programs, export };
        let client = format!("127.0.0.1:{}", server.export.display());
        run("exportfs", &["-i", "-o", "rw,no_root_squash,insecure,no_subtree_check,fsid=7", &client]).unwrap();
        run("rpc.nfsd", &["--grace-time", "10", "--lease-time", "10", "4"]).unwrap();
        Some(server)
    }

    fn source(&self) -> String {
        format!("server: 127.0.0.1, path: {}", self.export.display())
    }

    /// Loses all packets for the server, as when its cable is pulled.
    fn fall_silent(&self) {
        run("nft", &["add table inet podstead_silence; add chain inet podstead_silence in { type filter hook input priority 0; }; add rule inet podstead_silence in tcp dport 2049 drop"])
            .unwrap();
    }

    fn speak_again(&self) {
        run("nft", &["delete table inet podstead_silence"]).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(run("nft", &["delete table inet podstead_silence"]));
        // While the server can still answer: else the last user of a mount waits for it. Of a test that passed, there is none.
        for mount in mounts(&format!("{}/state", self.export.parent().unwrap().display())) {
            let flags = nix::mount::MntFlags::MNT_FORCE | nix::mount::MntFlags::MNT_DETACH;
            if mount.components().any(|part| part.as_os_str() == "nfs") {
                nix::mount::umount2(&mount, flags).unwrap_or_default();
            }
        }
        drop(run("rpc.nfsd", &["0"]));
        drop(run("exportfs", &["-ua"]));
        for program in &mut self.programs {
            drop(program.kill());
            drop(program.wait());
        }
        drop(run("umount", &["/proc/fs/nfsd"]));
    }
}

/// The line of the mount table for the volume of a pod.
fn mount_line(host: &TestHost, uid: &str) -> String {
    let place = host.path("state/pods").join(uid).join("volumes/nfs/data").display().to_string();
    let table = fs::read_to_string("/proc/mounts").unwrap();
    table.lines().find(|line| line.contains(&place)).unwrap_or_default().to_owned()
}

#[test]
fn pods_share_export_by_versions_3_and_4() {
    let mut host = TestHost::start();
    let Some(server) = Server::start(&host) else { return };
    let source = server.source();
    host.write_manifest("one.yaml", &pod("one", "", &source, ""));
    let one = host.wait_running("one");
    let sh = |pod: &str, script: &str| host.exec(pod, "c", &["/bin/sh", "-c", script]);
    assert_eq!(
        sh("one", "echo hello >/data/file && mkdir -p /data/deep && echo below >/data/deep/file && cat /data/file"),
        "hello\n"
    );
    assert_eq!(fs::read_to_string(server.export.join("file")).unwrap(), "hello\n");
    let line = mount_line(&host, &one.uid());
    assert!(line.contains("vers=4.2") && line.contains("hard") && line.contains("nodev"), "{line:?}");

    let options = "nfs.podstead.dev/data: 'vers=3,soft,timeo=100'";
    host.write_manifest("two.yaml", &pod("two", options, &format!("{source}, readOnly: true"), ""));
    host.write_manifest("three.yaml", &pod("three", "", &source, ", subPath: deep"));
    host.write_manifest("four.yaml", &pod("four", "", &source, ", subPath: new/er"));
    let two = host.wait_running("two");
    assert_eq!(sh("two", "cat /data/file; touch /data/x 2>/dev/null || echo read-only"), "hello\nread-only\n");
    let line = mount_line(&host, &two.uid());
    assert!(line.contains("vers=3") && line.contains("soft") && line.contains("nolock") && line.contains(" ro,"), "{line:?}");
    host.wait_running("three");
    assert_eq!(sh("three", "cat /data/file"), "below\n");
    host.wait_running("four");
    assert!(server.export.join("new/er").is_dir());

    // Somebody unmounts one by hand: the container that is started again has it.
    let place = host.path("state/pods").join(one.uid()).join("volumes/nfs/data");
    nix::mount::umount2(&place, nix::mount::MntFlags::MNT_DETACH).unwrap();
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(host.container_pid(&one, "c").cast_signed()),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    let one = host.wait_for_pod("one", "to run again", |pod| pod.runs("c") && pod.restarts("c") == 1);
    assert_eq!(sh("one", "cat /data/file"), "hello\n");
    assert!(mount_line(&host, &one.uid()).contains("vers=4.2"));

    host.write_manifest("none.yaml", &pod("none", "", &format!("server: 127.0.0.1, path: {}/none", server.export.display()), ""));
    wait_told(&host, "none", "127.0.0.1 exports no directory");

    host.kill_daemon();
    host.start_daemon();
    assert_eq!(host.wait_running("one").container_id("c"), one.container_id("c"));
    let uids: Vec<String> = host.pods().iter().map(|pod| pod.uid()).collect();
    for name in ["one", "two", "three", "four", "none"] {
        host.remove_manifest(&format!("{name}.yaml"));
        host.wait_gone(name);
    }
    for uid in uids {
        wait_clean(&host, &uid);
    }
    assert_eq!(fs::read_to_string(server.export.join("deep/file")).unwrap(), "below\n", "the data stay");
}

#[test]
fn silent_server_holds_up_its_own_pods_only() {
    let mut host = TestHost::start();
    let Some(server) = Server::start(&host) else { return };
    host.write_manifest("old.yaml", &pod("old", "", &server.source(), ""));
    let old = host.wait_running("old");
    server.fall_silent();
    // Options of its own: not the connection that there is.
    host.write_manifest("new.yaml", &pod("new", "nfs.podstead.dev/data: 'nosharecache,vers=3'", &server.source(), ""));
    wait_told(&host, "new", "waiting for an answer of 127.0.0.1");
    let other = pod("other", "", "", "").replace("nfs: {}", "emptyDir: {}");
    host.write_manifest("other.yaml", &other);
    host.wait_running("other");

    host.kill_daemon();
    host.start_daemon();
    assert_eq!(host.wait_running("old").container_id("c"), old.container_id("c"));
    wait_told(&host, "new", "waiting for an answer of 127.0.0.1");
    host.stop_daemon();
    host.start_daemon();
    host.remove_manifest("old.yaml");
    host.wait_gone("old");
    wait_clean(&host, &old.uid());

    server.speak_again();
    let new = host.wait_running("new");
    assert_eq!(host.exec("new", "c", &["/bin/sh", "-c", "echo x >/data/x && cat /data/x"]), "x\n");
    let place = host.path("state/pods").join(new.uid()).join("volumes/nfs/data");
    let count = mounts(&new.uid()).into_iter().filter(|point| *point == place).count();
    assert_eq!(count, 1, "the process of the killed daemon has not mounted it, too");
    for name in ["new", "other"] {
        host.remove_manifest(&format!("{name}.yaml"));
        host.wait_gone(name);
    }
    wait_clean(&host, &new.uid());
}
