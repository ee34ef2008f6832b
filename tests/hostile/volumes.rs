//! Volumes that lead to places of the host which their source may not use.

use crate::support::{TestHost, eventually};
use crate::victim::{Victim, message, remove};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// A host whose only source may use these host paths; `{}` stands for the allowed directory.
fn host(rules: &str) -> (TestHost, Victim, PathBuf) {
    let mut host = TestHost::prepare("");
    let allowed = host.path("allowed");
    fs::create_dir(&allowed).unwrap();
    let rules = rules.replace("{}", &allowed.display().to_string());
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    fs::write(host.path("config.yaml"), format!("{config}    allow: {{privileged: true, hostPaths: [{rules}]}}\n")).unwrap();
    let victim = Victim::make(&host);
    host.start_daemon();
    (host, victim, allowed)
}

/// A pod that runs `script`; `mount` has more of the mount, `kind` is the type of the hostPath.
fn manifest(name: &str, path: &Path, kind: &str, mount: &str, script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  restartPolicy: Never\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
         - name: c\n      image: localhost/busybox:1\n      command: [/bin/sh, -c, '{script}']\n      volumeMounts: [{{name: h, mountPath: /h{mount}}}]\n  \
         volumes: [{{name: h, hostPath: {{path: {}, type: '{kind}'}}}}]\n",
        path.display()
    )
}

const SLEEP: &str = "exec sleep 1000000";

/// Waits until the pod cannot start for a reason with these words.
#[track_caller]
fn waits_because(host: &TestHost, name: &str, words: &str) {
    host.wait_for_pod(name, words, |pod| !pod.runs("c") && message(pod).contains(words));
}

fn sh(host: &TestHost, script: &str) -> String {
    host.exec("evil", "c", &["/bin/sh", "-c", script])
}

const LEADS_OUT: &str = "a symbolic link points outside";

#[test]
fn link_in_writable_path_stays_inside() {
    let (host, victim, allowed) = host("{path: {}}");
    for (name, target) in
        [("absolute", victim.path.clone()), ("up", PathBuf::from("../victim")), ("magic", PathBuf::from("/proc/self/root"))]
    {
        symlink(&target, allowed.join(name)).unwrap();
        host.write_manifest("evil.yaml", &manifest("evil", &allowed.join(name), "", "", SLEEP));
        waits_because(&host, "evil", LEADS_OUT);
        victim.assert_unharmed();
        remove(&host, "evil");
    }
}

#[test]
fn link_of_pod_misleads_no_next_pod() {
    let (host, victim, allowed) = host("{path: {}}");
    let script = format!("ln -s {} /h/out && exec sleep 1000000", victim.path.display());
    host.write_manifest("first.yaml", &manifest("first", &allowed, "", "", &script));
    host.wait_running("first");
    eventually("the link", || fs::symlink_metadata(allowed.join("out")).map_err(|error| error.to_string()));
    for (kind, path) in [
        ("", "out"),
        ("Directory", "out/deep"),
        ("DirectoryOrCreate", "out/made"),
        ("FileOrCreate", "out/new"),
        ("File", "out/keep"),
    ] {
        host.write_manifest("evil.yaml", &manifest("evil", &allowed.join(path), kind, "", SLEEP));
        waits_because(&host, "evil", LEADS_OUT);
        victim.assert_unharmed();
        remove(&host, "evil");
    }
    remove(&host, "first");
}

#[test]
fn link_inside_of_writable_path_is_followed() {
    let (host, victim, allowed) = host("{path: {}}");
    fs::create_dir_all(allowed.join("releases/2")).unwrap();
    symlink("releases/2", allowed.join("current")).unwrap();
    host.write_manifest("evil.yaml", &manifest("evil", &allowed.join("current"), "Directory", "", SLEEP));
    host.wait_running("evil");
    sh(&host, "touch /h/here");
    assert!(allowed.join("releases/2/here").is_file());
    victim.assert_unharmed();
    remove(&host, "evil");
}

#[test]
fn missing_directory_is_made_beneath_allowed_path() {
    let (host, victim, allowed) = host("{path: {}}");
    host.write_manifest("evil.yaml", &manifest("evil", &allowed.join("a/b"), "DirectoryOrCreate", "", SLEEP));
    host.wait_running("evil");
    assert_eq!(fs::metadata(allowed.join("a/b")).unwrap().permissions().mode() & 0o7777, 0o755);
    victim.assert_unharmed();
    remove(&host, "evil");
}

#[test]
fn sub_path_of_linked_path_is_refused() {
    let (host, victim, allowed) = host("{path: {}}");
    symlink(&victim.path, allowed.join("out")).unwrap();
    host.write_manifest("evil.yaml", &manifest("evil", &allowed.join("out"), "", ", subPath: deep", SLEEP));
    waits_because(&host, "evil", LEADS_OUT);
    victim.assert_unharmed();
    remove(&host, "evil");
}

#[test]
fn link_in_allowed_path_itself_is_operators() {
    let mut host = TestHost::prepare("");
    fs::create_dir(host.path("real")).unwrap();
    symlink(host.path("real"), host.path("linked")).unwrap();
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    let rule = format!("    allow: {{hostPaths: [{{path: {}}}]}}\n", host.path("linked").display());
    fs::write(host.path("config.yaml"), config + &rule).unwrap();
    host.start_daemon();
    host.write_manifest("evil.yaml", &manifest("evil", &host.path("linked/sub"), "", "", SLEEP));
    host.wait_running("evil");
    assert!(host.path("real/sub").is_dir());
    remove(&host, "evil");
}

/// Starts containers while `name` in the directory is now a directory of its own and now a link; returns how many saw the first.
fn race(host: &TestHost, directory: &Path, path: &Path, mount: &str, starts: usize) -> usize {
    let stop = AtomicBool::new(false);
    let mut started = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let directory = fs::File::open(directory).unwrap();
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(&directory, "flip", &directory, "link", rustix::fs::RenameFlags::EXCHANGE).unwrap();
            }
        });
        let attempt = || {
            let name = |number| format!("evil-{number}");
            for number in 0..starts {
                let text = manifest(&name(number), path, "", mount, "touch /h/by-the-pod; ls /h >/tmp/list; cat /tmp/list");
                host.write_manifest(&format!("{}.yaml", name(number)), &text);
            }
            for number in 0..starts {
                let pod = host.wait_for_pod(&name(number), "a try", |pod| pod.phase() == "Succeeded" || !message(pod).is_empty());
                started += usize::from(pod.phase() == "Succeeded");
                if pod.phase() == "Succeeded" {
                    let log = host.logs(&name(number), "c");
                    assert!(!log.contains("secret") && !log.contains("keep"), "{log}");
                }
            }
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt));
        stop.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|failure| std::panic::resume_unwind(failure));
    });
    for number in 0..starts {
        remove(host, &format!("evil-{number}"));
    }
    started
}

#[test]
fn flipping_host_path_stays_inside() {
    let (host, victim, allowed) = host("{path: {}}");
    fs::create_dir_all(allowed.join("flip/deep")).unwrap();
    symlink(&victim.path, allowed.join("link")).unwrap();
    race(&host, &allowed, &allowed.join("flip/deep"), "", 20);
    victim.assert_unharmed();
    race(&host, &allowed, &allowed.join("flip"), "", 20);
    victim.assert_unharmed();
}

#[test]
fn flipping_sub_path_stays_inside() {
    let (host, victim, allowed) = host("{path: {}}");
    fs::create_dir_all(allowed.join("flip/deep")).unwrap();
    symlink(&victim.path, allowed.join("link")).unwrap();
    race(&host, &allowed, &allowed, ", subPath: flip/deep", 20);
    victim.assert_unharmed();
}

/// A tmpfs of its own below the allowed directory.
fn mount_below(allowed: &Path) -> PathBuf {
    let below = allowed.join("below");
    fs::create_dir(&below).unwrap();
    assert!(Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(&below).status().unwrap().success());
    below
}

#[test]
fn read_only_path_covers_mounts_below_it() {
    let (host, victim, allowed) = host("{path: {}, readOnly: true}");
    let below = mount_below(&allowed);
    for more in
        [", readOnly: true", ", readOnly: true, recursiveReadOnly: Disabled", ", readOnly: true, recursiveReadOnly: IfPossible"]
    {
        host.write_manifest("evil.yaml", &manifest("evil", &allowed, "", more, SLEEP));
        host.wait_running("evil");
        for path in ["/h", "/h/below"] {
            assert_eq!(
                sh(&host, &format!("touch {path}/x 2>/dev/null && echo written || echo refused")),
                "refused\n",
                "{more} {path}"
            );
        }
        remove(&host, "evil");
    }
    assert_eq!(fs::read_dir(&below).unwrap().count(), 0);
    victim.assert_unharmed();
}

#[test]
fn read_only_root_covers_paths_below_it() {
    let (host, victim, _) = host("{path: /, readOnly: true}");
    host.write_manifest("evil.yaml", &manifest("evil", Path::new("/"), "", ", readOnly: true", SLEEP));
    host.wait_running("evil");
    let name = format!("podstead-hostile-{}", std::process::id());
    for directory in ["/h/dev/shm", "/h/tmp", "/h/run", &format!("/h{}", victim.path.display())] {
        let tried = format!("touch {directory}/{name} 2>/dev/null && echo written || echo refused");
        assert_eq!(sh(&host, &tried), "refused\n", "{directory}");
    }
    assert!(!Path::new("/dev/shm").join(&name).try_exists().unwrap());
    victim.assert_unharmed();
    remove(&host, "evil");
}

#[test]
fn sub_path_of_read_only_covers_below() {
    let (host, victim, allowed) = host("{path: {}, readOnly: true}");
    fs::create_dir(allowed.join("sub")).unwrap();
    let below = mount_below(&allowed.join("sub"));
    host.write_manifest("evil.yaml", &manifest("evil", &allowed, "", ", subPath: sub, readOnly: true", SLEEP));
    host.wait_running("evil");
    assert_eq!(sh(&host, "touch /h/below/x 2>/dev/null && echo written || echo refused"), "refused\n");
    assert_eq!(fs::read_dir(below).unwrap().count(), 0);
    victim.assert_unharmed();
    remove(&host, "evil");
}

#[test]
fn read_only_path_over_dev_covers_below() {
    let (host, victim, allowed) = host("{path: {}, readOnly: true}");
    for name in ["pts", "shm", "mqueue"] {
        fs::create_dir(allowed.join(name)).unwrap();
    }
    fs::write(allowed.join("termination-log"), "").unwrap();
    let below = mount_below(&allowed);
    let text = manifest("evil", &allowed, "", ", readOnly: true", SLEEP).replace("mountPath: /h", "mountPath: /dev");
    host.write_manifest("evil.yaml", &text);
    host.wait_running("evil");
    assert_eq!(sh(&host, "touch /dev/below/x 2>/tmp/why && echo written || echo refused"), "refused\n");
    assert_eq!(fs::read_dir(below).unwrap().count(), 0);
    victim.assert_unharmed();
    remove(&host, "evil");
}

/// The refusal of the manifest's check.
fn refused(host: &TestHost, text: &str) -> String {
    host.write_manifest("evil.yaml", text);
    eventually("the problem", || {
        let told = host.cli_ok(&["get", "events"]);
        if told.contains("evil.yaml") { Ok(told) } else { Err(told) }
    })
}

#[test]
fn read_only_path_with_propagation_is_refused() {
    let (host, victim, allowed) = host("{path: {}, readOnly: true}");
    let text = manifest("evil", &allowed, "", ", readOnly: true, mountPropagation: HostToContainer", SLEEP);
    let told = refused(&host, &text);
    assert!(told.contains("with mountPropagation"), "{told}");
    assert!(host.pod("evil").is_none());
    victim.assert_unharmed();
}

#[test]
fn revoked_rules_hold_for_next_start() {
    let (mut host, victim, allowed) = host("{path: {}}");
    fs::write(allowed.join("go"), "").unwrap();
    let text = manifest("evil", &allowed, "", "", "while test -e /h/go; do sleep 0.1; done; exit 1").replace("Never", "Always");
    host.write_manifest("evil.yaml", &text);
    host.wait_running("evil");
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    host.kill_daemon();
    let without = config.lines().map(|line| match line.find("    allow:") {
        Some(0) => "    allow: {hostPaths: []}".to_owned(),
        _ => line.to_owned(),
    });
    fs::write(host.path("config.yaml"), without.collect::<Vec<_>>().join("\n")).unwrap();
    fs::remove_file(allowed.join("go")).unwrap();
    host.start_daemon();
    eventually("no container to run", || match host.pod("evil") {
        Some(pod) if pod.runs("c") => Err(pod.0["status"].to_string()),
        _ => Ok(()),
    });
    victim.assert_unharmed();
}

#[test]
fn volumes_over_proc_and_sys_are_refused() {
    for place in ["/proc", "/sys", "//proc/."] {
        let (host, victim, allowed) = host("{path: {}}");
        let text = manifest("evil", &allowed, "", "", SLEEP).replace("mountPath: /h", &format!("mountPath: {place}"));
        let told = refused(&host, &text);
        assert!(told.contains("must not be /proc or /sys"), "{told}");
        assert!(host.pod("evil").is_none());
        victim.assert_unharmed();
    }
}

/// Files below a directory that somebody else than root may read, whatever directories lead to them.
fn open_files(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(facts) = entry.metadata() else { continue };
            // Mounts have rights of their own.
            if facts.dev() != fs::metadata(&directory).unwrap().dev() {
                continue;
            }
            if facts.is_dir() {
                directories.push(entry.path());
            } else if facts.is_file() && facts.mode() & 0o044 != 0 {
                found.push(format!("{} {:o}", entry.path().display(), facts.mode()));
            }
        }
    }
    found
}

#[test]
fn environment_of_pods_is_for_root_only() {
    let mut host = TestHost::prepare("");
    fs::set_permissions(host.path(""), fs::Permissions::from_mode(0o711)).unwrap();
    host.start_daemon();
    for (name, more) in [("own", "  hostUsers: false\n"), ("shared", "")] {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{more}  containers:\n    - name: c\n      \
             image: localhost/busybox:1\n      command: [/bin/sh, -c, 'exec sleep 1000000']\n      env: [{{name: PASSWORD, value: very-secret}}]\n"
        );
        host.write_manifest(&format!("{name}.yaml"), &text);
        let pod = host.wait_running(name);
        let run = host.path("run/pods").join(pod.uid());
        assert!(run.join("bundles").join(pod.container_id("c")).join("config.json").is_file(), "exec needs it");
        assert_eq!(open_files(&run), Vec::<String>::new());
        let read = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "grep", "-rl", "very-secret"])
            .arg(&run)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&read.stdout), "", "nobody reads it");
        assert_eq!(host.exec(name, "c", &["/bin/sh", "-c", "echo $PASSWORD"]), "very-secret\n");
        remove(&host, name);
    }
}
