//! A volume at `/dev` itself, the host's own among them.

use crate::support::{TestHost, eventually, leftovers, mounts};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

fn pod(name: &str, spec: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{spec}")
}

/// A pod whose container mounts `source` at `/dev`; `mount` has more of the mount, `mounts` more mounts, `volumes` their volumes.
fn on_dev(name: &str, source: &str, [mount, mounts, volumes, container]: [&str; 4]) -> String {
    let spec = format!(
        "  containers:\n    - name: c\n      image: localhost/busybox:1\n      command: [sleep, '1000000']\n      securityContext: {{privileged: true}}\n{container}      \
         volumeMounts: [{{name: dev, mountPath: /dev{mount}}}{mounts}]\n  volumes: [{{name: dev, {source}}}{volumes}]\n"
    );
    pod(name, &spec)
}

fn host_path(path: &Path) -> String {
    format!("hostPath: {{path: {}}}", path.display())
}

fn sh(host: &TestHost, pod: &str, script: &str) -> String {
    host.exec(pod, "c", &["/bin/sh", "-c", script])
}

/// Output of `script` in a terminal of its own.
fn in_a_terminal(host: &TestHost, pod: &str, script: &str) -> String {
    host.cli_ok(&["exec", "-t", pod, "-c", "c", "--", "/bin/sh", "-c", script]).replace('\r', "")
}

/// A scratch directory with what only the host has: a device node of the numbers of `/dev/zero`, and directories to mount on. Of its own file system:
/// many a `/tmp` has no devices.
fn scratch(host: &TestHost) -> PathBuf {
    let scratch = host.path("devices");
    fs::create_dir(&scratch).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "dev,mode=755", "tmpfs"]).arg(&scratch).status().unwrap();
    assert!(mount.success());
    fs::create_dir(scratch.join("sub")).unwrap();
    for place in ["dongle", "sub/dongle"] {
        assert!(Command::new("mknod").arg(scratch.join(place)).args(["c", "1", "5"]).status().unwrap().success());
    }
    scratch
}

/// Everything in the host's `/dev` but what comes and goes: its file, its kind and device, where it leads.
fn host_dev() -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut directories = vec![PathBuf::from("/dev")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            let Ok(facts) = entry.metadata() else { continue };
            let kind = facts.file_type();
            let name = entry.file_name().to_string_lossy().into_owned();
            // Disks of other tests, and what has its own file system.
            if kind.is_block_device() || ["pts", "shm", "mqueue", "mapper", "disk"].contains(&name.as_str()) {
                continue;
            }
            let target = fs::read_link(entry.path()).unwrap_or_default();
            found.insert(entry.path(), format!("{} {:o} {} {}", facts.ino(), facts.mode(), facts.rdev(), target.display()));
            if kind.is_dir() {
                directories.push(entry.path());
            }
        }
    }
    found
}

const TERMINATION_LOG: &str = "/dev/termination-log";

/// shows: spec.containers[].volumeMounts[].mountPath
#[test]
fn privileged_container_uses_hosts_dev_without_changes() {
    let host = TestHost::start();
    let mut before = host_dev();
    let [mounts, volumes] = [", {name: memory, mountPath: /dev/shm}", ", {name: memory, emptyDir: {medium: Memory}}"];
    host.write_manifest("own.yaml", &on_dev("own", &host_path(Path::new("/dev")), ["", "", "", "      tty: true\n"]));
    host.write_manifest(
        "memory.yaml",
        &on_dev("memory", &host_path(Path::new("/dev")), ["", mounts, volumes, "      workingDir: /dev\n"]),
    );
    host.wait_running("own");
    host.wait_running("memory");
    for name in ["own", "memory"] {
        // The files are the host's own, not others of the same numbers.
        for path in ["/dev/null", "/dev/ptmx", "/dev/random"] {
            let own = sh(&host, name, &format!("stat -c '%d %i' {path}"));
            let hosts = fs::symlink_metadata(path).unwrap();
            assert_eq!(own.trim(), format!("{} {}", hosts.dev(), hosts.ino()), "{path}");
        }
        let listed = sh(&host, name, "ls -A /dev");
        let missing = before.keys().filter(|path| path.parent() == Some(Path::new("/dev"))).find(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            !listed.lines().any(|line| line == name)
        });
        assert_eq!(missing, None, "{listed}");
        for own in ["/dev/pts", "/dev/shm"] {
            assert_ne!(sh(&host, name, &format!("stat -c %d {own}")).trim(), fs::metadata(own).unwrap().dev().to_string(), "{own}");
        }
        sh(&host, name, "touch /dev/shm/of-the-pod");
        assert!(!Path::new("/dev/shm/of-the-pod").try_exists().unwrap());
        assert_eq!(
            in_a_terminal(&host, name, "tty; echo x >/dev/tty"),
            "/dev/pts/0\nx\n".replace('0', if name == "own" { "1" } else { "0" })
        );
    }
    assert_eq!(sh(&host, "own", "readlink /proc/1/fd/0"), "/dev/pts/0\n", "its terminal has come along");
    assert_eq!(sh(&host, "memory", "readlink /proc/1/cwd; readlink /proc/self/cwd"), "/dev\n/dev\n");
    assert_eq!(sh(&host, "memory", "stat -L -c %i /proc/1/cwd"), sh(&host, "memory", "stat -c %i /dev"));

    let say = "      command: [/bin/sh, -c, 'echo farewell >/dev/termination-log; exit 3']\n";
    let last = on_dev("last", &host_path(Path::new("/dev")), ["", "", "", ""]).replace("      command: [sleep, '1000000']\n", say);
    host.write_manifest("last.yaml", &last.replace("spec:\n", "spec:\n  restartPolicy: Never\n"));
    let last = host.wait_for_pod("last", "its end", |pod| pod.phase() == "Failed");
    assert_eq!(last.container("c")["state"]["terminated"]["message"], "farewell\n");
    assert_eq!(fs::read(TERMINATION_LOG).unwrap(), b"", "what is there is only mounted on");

    for name in ["own", "memory", "last"] {
        let uid = host.pod(name).unwrap().uid();
        host.remove_manifest(&format!("{name}.yaml"));
        host.wait_gone(name);
        assert_eq!(leftovers(&uid), Vec::<String>::new());
    }
    let mut after = host_dev();
    for listing in [&mut before, &mut after] {
        listing.remove(Path::new(TERMINATION_LOG));
    }
    assert_eq!(after, before);
}

#[test]
fn paths_missing_in_hosts_dev_are_refused() {
    let host = TestHost::start();
    let [mounts, volumes] = [", {name: more, mountPath: /dev/podstead-has-no-such}", ", {name: more, emptyDir: {}}"];
    host.write_manifest("web.yaml", &on_dev("web", &host_path(Path::new("/dev")), ["", mounts, volumes, ""]));
    let failed = host.wait_for_pod("web", "the reason", |pod| pod.container("c")["lastState"]["terminated"].is_object());
    let ended = &failed.container("c")["lastState"]["terminated"];
    assert_eq!(ended["reason"], "StartError");
    assert!(
        ended["message"].as_str().unwrap().contains("cannot mount on /dev/podstead-has-no-such: it does not exist on the host"),
        "{ended}"
    );
    assert!(!Path::new("/dev/podstead-has-no-such").try_exists().unwrap());
}

#[test]
fn volume_at_dev_has_files_and_mounts() {
    let host = TestHost::start();
    let scratch = scratch(&host);
    let [mounts, volumes] = [
        ", {name: more, mountPath: /dev/more/deep}, {name: more, mountPath: /dev/shm/inner}",
        ", {name: more, emptyDir: {}}, {name: shared, emptyDir: {}}",
    ];
    host.write_manifest("web.yaml", &on_dev("web", &host_path(&scratch), ["", mounts, volumes, ""]));
    host.write_manifest("part.yaml", &on_dev("part", &host_path(&scratch), [", subPath: sub", "", "", ""]));
    host.write_manifest("empty.yaml", &on_dev("empty", "emptyDir: {}", ["", "", "", "      tty: true\n"]));
    for name in ["web", "part", "empty"] {
        host.wait_running(name);
        assert_eq!(sh(&host, name, "ls -d /dev/null /dev/fd /dev/ptmx 2>/tmp/why || echo none"), "none\n", "{name}");
        let terminal = in_a_terminal(&host, name, "tty");
        assert!(terminal.starts_with("/dev/pts/"), "{name}: {terminal:?}");
        sh(&host, name, "touch /dev/shm/x; test -d /dev/mqueue; test -f /dev/termination-log");
    }
    for name in ["web", "part"] {
        assert_eq!(sh(&host, name, "head -c 3 /dev/dongle | tr '\\0' z"), "zzz", "{name}");
    }
    assert_eq!(sh(&host, "web", "ls /dev"), "dongle\nmore\nmqueue\npts\nshm\nsub\ntermination-log\n");
    assert_eq!(sh(&host, "part", "ls /dev"), "dongle\nmqueue\npts\nshm\ntermination-log\n");
    assert_eq!(sh(&host, "empty", "ls /dev"), "console\nmqueue\npts\nshm\ntermination-log\n");
    sh(&host, "web", "echo y >/dev/more/deep/y; cat /dev/shm/inner/y; touch /dev/by-the-container");
    assert!(scratch.join("by-the-container").try_exists().unwrap());
    // Places to mount on, and nothing else.
    assert_eq!(fs::read_dir(scratch.join("more/deep")).unwrap().count() + fs::read_dir(scratch.join("shm")).unwrap().count(), 0);
    assert!(fs::symlink_metadata(scratch.join("dongle")).unwrap().file_type().is_char_device());
}

/// shows: spec.containers[].volumeMounts[].readOnly, spec.containers[].volumeMounts[].recursiveReadOnly
#[test]
fn volume_at_dev_keeps_flags_and_propagation() {
    let host = TestHost::start();
    let scratch = scratch(&host);
    let mount = |arguments: &[&str]| assert!(Command::new("mount").args(arguments).status().unwrap().success());
    let shared = host.path("shared");
    fs::create_dir(&shared).unwrap();
    mount(&["-t", "tmpfs", "tmpfs", shared.to_str().unwrap()]);
    mount(&["--make-shared", shared.to_str().unwrap()]);
    for name in ["inner", "later"] {
        fs::create_dir(shared.join(name)).unwrap();
    }
    mount(&["-t", "tmpfs", "tmpfs", shared.join("inner").to_str().unwrap()]);
    let [both, volumes] =
        [", {name: both, mountPath: /both, mountPropagation: Bidirectional}", &format!(", {{name: both, {}}}", host_path(&shared))];
    for (name, source, mount, more) in [
        ("frozen", &scratch, ", readOnly: true", ["", ""]),
        ("surface", &shared, ", readOnly: true", ["", ""]),
        ("depth", &shared, ", readOnly: true, recursiveReadOnly: Enabled", ["", ""]),
        ("slave", &shared, ", mountPropagation: HostToContainer", ["", ""]),
        ("beside", &shared, "", [both, volumes]),
    ] {
        host.write_manifest(&format!("{name}.yaml"), &on_dev(name, &host_path(source), [mount, more[0], more[1], ""]));
    }
    for name in ["frozen", "surface", "depth", "slave", "beside"] {
        host.wait_running(name);
        sh(&host, name, "touch /dev/shm/x; echo x >/dev/termination-log");
        let terminal = in_a_terminal(&host, name, "tty");
        assert!(terminal.starts_with("/dev/pts/"), "{name}: {terminal:?}");
    }
    let writable = |pod: &str, path: &str| sh(&host, pod, &format!("touch {path}/x 2>/tmp/why && echo yes || echo no"));
    for (name, path, expected) in [
        ("frozen", "/dev", "no\n"),
        ("surface", "/dev", "no\n"),
        ("surface", "/dev/inner", "yes\n"),
        ("depth", "/dev", "no\n"),
        ("depth", "/dev/inner", "no\n"),
        ("slave", "/dev", "yes\n"),
    ] {
        assert_eq!(writable(name, path), expected, "{name} {path}");
    }
    // Of the containers' own mounts the host sees none.
    let mut own = mounts(&shared.display().to_string());
    // Where the directory of temporary files is mounted at two places, they are seen there, too.
    own.retain(|point| point.starts_with(&shared));
    assert_eq!(own, [shared.join("inner"), shared.clone()]);
    mount(&["-t", "tmpfs", "tmpfs", shared.join("later").to_str().unwrap()]);
    fs::write(shared.join("later/seen"), "").unwrap();
    eventually("the host's later mount to be seen", || match sh(&host, "slave", "ls /dev/later").as_str() {
        "seen\n" => Ok(()),
        other => Err(other.to_owned()),
    });
    assert_eq!(sh(&host, "beside", "ls /dev/later"), "");
    assert_eq!(sh(&host, "beside", "ls /both/later"), "seen\n");
}

/// shows: spec.hostUsers
#[test]
fn volume_at_dev_has_pods_own_users() {
    let host = TestHost::start();
    fs::set_permissions(host.path(""), fs::Permissions::from_mode(0o711)).unwrap();
    let scratch = scratch(&host);
    let own = |name: &str, source: &str| {
        let manifest =
            on_dev(name, source, ["", ", {name: more, mountPath: /dev/more}", ", {name: more, emptyDir: {}}", "      tty: true\n"]);
        host.write_manifest(&format!("{name}.yaml"), &manifest.replace("spec:\n", "spec:\n  hostUsers: false\n"));
        host.wait_running(name);
        sh(&host, name, "touch /dev/shm/x /dev/more/x /dev/x; echo x >/dev/termination-log");
        assert_eq!(sh(&host, name, "stat -c %u /dev /dev/x /dev/pts /dev/more/x /dev/termination-log"), "0\n".repeat(5));
        let terminal = in_a_terminal(&host, name, "tty");
        assert!(terminal.starts_with("/dev/pts/"), "{name}: {terminal:?}");
    };
    own("empty", "emptyDir: {}");
    own("scratch", &host_path(&scratch));
    // The host's own has no such ids, which is told instead of being passed over.
    let hosts = on_dev("hosts", &host_path(Path::new("/dev")), ["", "", "", ""]);
    host.write_manifest("hosts.yaml", &hosts.replace("spec:\n", "spec:\n  hostUsers: false\n"));
    let refused = host.wait_for_pod("hosts", "the reason", |pod| pod.waiting_reason("c") == "CreateContainerError");
    let message = refused.container("c")["state"]["waiting"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("needs an ID-mapped mount of /dev, which this kernel or file system does not support"), "{message}");
    for made in ["x", "shm", "termination-log"] {
        assert_eq!(fs::metadata(scratch.join(made)).unwrap().uid(), 0, "{made}");
    }
}
