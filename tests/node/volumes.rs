//! Volumes and their mounts as containers and the kernel see them.

use crate::support::{TestHost, eventually, leftovers};
use std::fs;
use std::process::Command;

const SLEEP: &str = "image: localhost/busybox:1, command: [sleep, '1000000']";

fn pod(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: {name}}}, annotations: {{note: hello}}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{spec}"
    )
}

fn sh(host: &TestHost, pod: &str, script: &str) -> String {
    host.exec(pod, "c", &["/bin/sh", "-c", script])
}

/// Options of the mount at `point` in the container, and its tags (`shared:`, `master:`).
fn mount_of(host: &TestHost, pod: &str, point: &str) -> String {
    let line = sh(host, pod, &format!("grep ' {point} ' /proc/self/mountinfo | tail -1"));
    let fields: Vec<&str> = line.split(' ').collect();
    let tags: Vec<&str> = fields.iter().skip(6).take_while(|field| **field != "-").copied().collect();
    format!("{} {}", fields.get(5).unwrap_or_else(|| panic!("nothing is mounted at {point}")), tags.join(" "))
}

/// Removes the pod and asserts that nothing of it is left.
fn remove(host: &TestHost, name: &str) {
    let uid = host.pod(name).unwrap().uid();
    host.remove_manifest(&format!("{name}.yaml"));
    host.wait_gone(name);
    assert_eq!(leftovers(&uid), Vec::<String>::new());
    assert!(!host.path("state/pods").join(&uid).is_dir());
}

/// shows: spec.containers[].env[].valueFrom.fileKeyRef
#[test]
fn variables_come_from_a_written_file() {
    let mut host = TestHost::start();
    let spec = format!(
        "  initContainers:
    - name: i
      image: localhost/busybox:1
      command: [/bin/sh, -c, \"mkdir /d/sub; printf \\\"# note\\\\nA='one two'  # x\\\\nB='b'\\\\n\\\" > /d/sub/app.env\"]
      volumeMounts: [{{name: d, mountPath: /d}}]
  containers:
    - {{name: c, {SLEEP}, env: [{{name: A, valueFrom: {{fileKeyRef: {{volumeName: d, path: sub/app.env, key: A}}}}}},
        {{name: NO_KEY, valueFrom: {{fileKeyRef: {{volumeName: d, path: sub/app.env, key: Z, optional: true}}}}}},
        {{name: NO_FILE, valueFrom: {{fileKeyRef: {{volumeName: d, path: none, key: A, optional: true}}}}}},
        {{name: LATER, value: 'has $(A)'}}]}}
  volumes: [{{name: d, emptyDir: {{}}}}]
"
    );
    host.write_manifest("web.yaml", &pod("web", &spec));
    host.write_manifest("key.yaml", &pod("key", &spec.replace("key: Z, optional: true", "key: Z")));
    host.write_manifest("file.yaml", &pod("file", &spec.replace("path: none, key: A, optional: true", "path: none, key: A")));
    host.wait_running("web");
    assert_eq!(
        sh(&host, "web", "echo \"$A,$LATER,${NO_KEY-unset},${NO_FILE-unset}\"; ls /"),
        sh(&host, "web", "echo 'one two,has one two,unset,unset'; ls /")
    );
    assert_eq!(sh(&host, "web", "test -e /d || echo none"), "none\n", "the container does not mount it");
    for (name, expected) in [
        ("key", "environment variable key \"Z\" not found in file \"sub/app.env\""),
        ("file", "couldn't parse env file \"none\" of volume \"d\": it does not exist"),
    ] {
        let waiting = host.wait_for_pod(name, "to wait", |pod| pod.waiting_reason("c") == "CreateContainerConfigError");
        assert_eq!(waiting.container("c")["state"]["waiting"]["message"].as_str(), Some(expected));
    }
    // What is written later is found: the start is tried again.
    let place = host.path("state/pods").join(host.pod("file").unwrap().uid()).join("volumes/empty-dir/d/none");
    fs::write(place, "A='late'\n").unwrap();
    host.wait_running("file");
    assert_eq!(sh(&host, "file", "echo $NO_FILE"), "late\n");
    host.kill_daemon();
    host.start_daemon();
    host.wait_running("file");
    remove(&host, "file");
}

/// shows: spec.containers[].volumeMounts[].readOnly, spec.containers[].volumeMounts[].recursiveReadOnly
/// shows: spec.containers[].volumeMounts[].mountPropagation, spec.volumes[].hostPath.path
#[test]
fn mounts_propagate_and_are_read_only() {
    let host = TestHost::start();
    // A mount of its own, shared with its peers, with another mount in it.
    let shared = host.path("shared");
    fs::create_dir_all(shared.join("made")).unwrap();
    let mount = |arguments: &[&str]| assert!(Command::new("mount").args(arguments).status().unwrap().success());
    mount(&["-t", "tmpfs", "tmpfs", shared.to_str().unwrap()]);
    mount(&["--make-shared", shared.to_str().unwrap()]);
    for name in ["inner", "later"] {
        fs::create_dir(shared.join(name)).unwrap();
    }
    mount(&["-t", "tmpfs", "tmpfs", shared.join("inner").to_str().unwrap()]);
    let spec = format!(
        "  containers:
    - {{name: c, {SLEEP}, securityContext: {{privileged: true}}, volumeMounts: [{{name: h, mountPath: /rw}}, {{name: h, mountPath: /ro, readOnly: true}},
        {{name: h, mountPath: /rro, readOnly: true, recursiveReadOnly: Enabled}},
        {{name: h, mountPath: /if, readOnly: true, recursiveReadOnly: IfPossible}},
        {{name: h, mountPath: /not, readOnly: true, recursiveReadOnly: Disabled}},
        {{name: h, mountPath: /slave, mountPropagation: HostToContainer}}, {{name: h, mountPath: /both, mountPropagation: Bidirectional}},
        {{name: h, mountPath: /none, mountPropagation: None}}]}}
  volumes: [{{name: h, hostPath: {{path: {}}}}}]
",
        shared.display()
    );
    host.write_manifest("web.yaml", &pod("web", &spec));
    host.wait_running("web");
    let writable = |path: &str| sh(&host, "web", &format!("touch {path}/x 2>/dev/null && echo yes || echo no"));
    for (path, expected) in [
        ("/rw", "yes\n"),
        ("/rw/inner", "yes\n"),
        ("/ro", "no\n"),
        ("/ro/inner", "yes\n"),
        ("/rro", "no\n"),
        ("/rro/inner", "no\n"),
        ("/if/inner", "no\n"),
        ("/not", "no\n"),
        ("/not/inner", "yes\n"),
    ] {
        assert_eq!(writable(path), expected, "{path}");
    }
    assert!(mount_of(&host, "web", "/rro").starts_with("ro"), "{}", mount_of(&host, "web", "/rro"));
    assert!(mount_of(&host, "web", "/slave").contains("master:"), "{}", mount_of(&host, "web", "/slave"));
    assert!(mount_of(&host, "web", "/both").contains("shared:"), "{}", mount_of(&host, "web", "/both"));

    // What the host mounts arrives where it is told to, and what the container mounts comes back from one place only.
    mount(&["-t", "tmpfs", "tmpfs", shared.join("later").to_str().unwrap()]);
    fs::write(shared.join("later/from-host"), "").unwrap();
    assert_eq!(
        sh(&host, "web", "cd /; ls -d slave/later/* both/later/* none/later/* rw/later/* 2>/dev/null; true"),
        "both/later/from-host\nslave/later/from-host\n"
    );
    sh(
        &host,
        "web",
        "mkdir /both/a /none/b; mount -t tmpfs tmpfs /both/a; mount -t tmpfs tmpfs /none/b; touch /both/a/x /none/b/x",
    );
    assert!(shared.join("a/x").is_file() && !shared.join("b/x").try_exists().unwrap());
    remove(&host, "web");
    assert!(shared.join("inner/x").is_file(), "nothing of the host's is removed");
    let unmounted = Command::new("umount").args(["--recursive", shared.to_str().unwrap()]).status().unwrap();
    assert!(unmounted.success());
}

/// shows: spec.volumes[].hostPath.type, spec.volumes[].hostPath.path
#[test]
fn host_path_must_match_its_type() {
    let host = TestHost::start();
    let at = host.path("host");
    fs::create_dir_all(at.join("dir")).unwrap();
    fs::write(at.join("file"), "content").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at.join("socket")).unwrap();
    let volume = |index: usize, path: &str, kind: &str| {
        let path = if path.starts_with('/') { path.to_owned() } else { at.join(path).display().to_string() };
        format!("    - {{name: v{index}, hostPath: {{path: {path}, type: {kind}}}}}\n")
    };
    let good = [
        ("dir", "Directory"),
        ("made", "DirectoryOrCreate"),
        ("file", "File"),
        ("new", "FileOrCreate"),
        ("socket", "Socket"),
        ("/dev/null", "CharDevice"),
        ("plain", "''"),
    ];
    let volumes: String = good.iter().enumerate().map(|(index, (path, kind))| volume(index, path, kind)).collect();
    let mounts: Vec<String> = (0..good.len()).map(|index| format!("{{name: v{index}, mountPath: /v/{index}}}")).collect();
    let spec = format!("  containers: [{{name: c, {SLEEP}, volumeMounts: [{}]}}]\n  volumes:\n{volumes}", mounts.join(", "));
    host.write_manifest("good.yaml", &pod("good", &spec));
    host.wait_running("good");
    assert_eq!(
        sh(&host, "good", "cd /v; stat -c %F 0 1 2 3 4 5 6"),
        "directory\ndirectory\nregular file\nregular empty file\nsocket\ncharacter special file\ndirectory\n"
    );
    assert!(at.join("made").is_dir() && at.join("new").is_file());

    for (name, path, kind, told) in [
        ("absent", "none", "Directory", "does not exist, expected a directory"),
        ("wrong", "file", "Directory", "is a file, expected a directory"),
        ("block", "/dev/null", "BlockDevice", "is a character device, expected a block device"),
        ("sock", "file", "Socket", "is a file, expected a socket"),
    ] {
        let spec = format!(
            "  containers: [{{name: c, {SLEEP}, volumeMounts: [{{name: v0, mountPath: /v}}]}}]\n  volumes:\n{}",
            volume(0, path, kind)
        );
        host.write_manifest(&format!("{name}.yaml"), &pod(name, &spec));
        let waiting = host.wait_for_pod(name, "the reason", |pod| {
            pod.container("c")["state"]["waiting"]["message"].as_str().is_some_and(|message| message.contains(told))
        });
        assert_eq!(waiting.waiting_reason("c"), "ContainerCreating");
    }
    fs::create_dir(at.join("none")).unwrap();
    host.wait_running("absent");
}

/// shows: spec.containers[].volumeMounts[].subPathExpr, spec.containers[].volumeMounts[].subPath, spec.volumes[].emptyDir.medium
#[test]
fn sub_path_follows_the_environment() {
    let mut host = TestHost::start();
    let spec = format!(
        "  containers:
    - {{name: c, {SLEEP}, env: [{{name: POD, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}],
       volumeMounts: [{{name: d, mountPath: /all}}, {{name: d, mountPath: /own, subPathExpr: logs/$(POD)}}, {{name: d, mountPath: /fixed, subPath: a/b}}]}}
  volumes: [{{name: d, emptyDir: {{medium: Memory, sizeLimit: 1Mi}}}}]
"
    );
    host.write_manifest("web.yaml", &pod("web", &spec));
    let before = host.wait_running("web");
    sh(&host, "web", "touch /own/x /fixed/y");
    assert_eq!(sh(&host, "web", "cd /all; find . -type f | sort"), "./a/b/y\n./logs/web-edge-1/x\n");
    assert_eq!(sh(&host, "web", "stat -f -c %T /all"), "tmpfs\n");
    assert_eq!(sh(&host, "web", "dd if=/dev/zero of=/all/big bs=1M count=2 2>/dev/null; stat -c %s /all/big"), "1048576\n");
    host.kill_daemon();
    host.start_daemon();
    assert_eq!(host.wait_running("web").container_id("c"), before.container_id("c"));
    remove(&host, "web");
}

/// shows: spec.volumes[].configMap.defaultMode, spec.volumes[].configMap.items, spec.volumes[].configMap.optional
/// shows: spec.volumes[].secret.items, spec.volumes[].secret.optional
/// shows: spec.volumes[].downwardAPI
/// shows: spec.volumes[].projected.defaultMode, spec.volumes[].projected.sources[].configMap.items[].mode
/// shows: spec.volumes[].projected.sources[].configMap.optional, spec.volumes[].projected.sources[].secret.optional
/// shows: spec.volumes[].projected.sources[].downwardAPI.items[].mode, spec.volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef
#[test]
fn volume_files_have_names_modes_and_content() {
    let host = TestHost::start();
    host.write_manifest(
        "a-objects.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {one: '1', two: '2'}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {one: s1, two: s2}\n",
    );
    let downward = "{path: ref/name, fieldRef: {apiVersion: v1, fieldPath: metadata.name}, mode: 0o604},
        {path: note, fieldRef: {fieldPath: \"metadata.annotations['note']\"}},
        {path: cpu, resourceFieldRef: {containerName: c, resource: limits.memory, divisor: 1Mi}, mode: 0o606}";
    let spec = format!(
        "  containers: [{{name: c, {SLEEP}, resources: {{limits: {{memory: 64Mi}}}}, volumeMounts: [{{name: m, mountPath: /m}}, {{name: s, mountPath: /s}},
    {{name: d, mountPath: /d}}, {{name: p, mountPath: /p}}, {{name: none, mountPath: /none}}, {{name: no-secret, mountPath: /no-secret}}]}}]
  volumes:
    - {{name: m, configMap: {{name: m, defaultMode: 0o640, items: [{{key: one, path: a/uno}}, {{key: two, path: dos, mode: 0o600}}]}}}}
    - {{name: s, secret: {{secretName: s, items: [{{key: two, path: b/dos, mode: 0o400}}]}}}}
    - {{name: none, configMap: {{name: none, optional: true}}}}
    - {{name: no-secret, secret: {{secretName: none, optional: true}}}}
    - name: d
      downwardAPI:
        defaultMode: 0o444
        items: [{downward}]
    - name: p
      projected:
        defaultMode: 0o440
        sources:
          - configMap: {{name: m, items: [{{key: one, path: m, mode: 0o600}}]}}
          - secret: {{name: s, items: [{{key: one, path: s}}]}}
          - configMap: {{name: none, optional: true}}
          - secret: {{name: none, optional: true}}
          - downwardAPI:
              items: [{downward}]
"
    );
    host.write_manifest("web.yaml", &pod("web", &spec));
    host.wait_running("web");
    let listed =
        |place: &str| sh(&host, "web", &format!("cd {place}/..data && find . -type f -exec stat -c '%n %a' {{}} + | sort"));
    assert_eq!(listed("/m"), "./a/uno 640\n./dos 600\n");
    assert_eq!(listed("/s"), "./b/dos 400\n");
    assert_eq!(listed("/d"), "./cpu 606\n./note 444\n./ref/name 604\n");
    assert_eq!(listed("/p"), "./cpu 606\n./m 600\n./note 440\n./ref/name 604\n./s 440\n");
    assert_eq!(
        sh(&host, "web", "cat /m/a/uno /m/dos /s/b/dos /d/ref/name /d/note /d/cpu /p/m /p/s; ls /none /no-secret"),
        "12s2web-edge-1hello641s1/no-secret:\n\n/none:\n"
    );
    remove(&host, "web");
    eventually("the tmpfs to be gone", || {
        let left = leftovers("volumes/projected");
        if left.iter().all(|mount| !mount.contains(host.path("state").to_str().unwrap())) { Ok(()) } else { Err(left.join("\n")) }
    });
}

#[test]
fn volume_keeps_modes_set_by_containers() {
    let mut host = TestHost::start();
    let config = |text: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata: {{text: '{text}'}}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data}}\nspec:\n  accessModes: [ReadWriteOnce]\n  resources: {{requests: {{storage: 1Gi}}}}\n"
        )
    };
    let spec = format!(
        "  securityContext: {{fsGroup: 4321}}
  containers:
    - {{name: c, {SLEEP}, volumeMounts: [{{name: disk, mountPath: /v/disk}}, {{name: memory, mountPath: /v/memory}}, {{name: claim, mountPath: /v/claim}}, {{name: m, mountPath: /m}}]}}
  volumes: [{{name: disk, emptyDir: {{}}}}, {{name: memory, emptyDir: {{medium: Memory}}}}, {{name: claim, persistentVolumeClaim: {{claimName: data}}}}, {{name: m, configMap: {{name: m}}}}]
"
    );
    host.write_manifest("a-objects.yaml", &config("one"));
    host.write_manifest("web.yaml", &pod("web", &spec));
    host.wait_running("web");
    let seen = |host: &TestHost| sh(host, "web", "cd /v; stat -c '%n %a %g' * */*");
    sh(&host, "web", "cd /v; touch disk/x memory/x claim/x");
    let expected = |mode: &str, file: &str| {
        let places = ["claim", "disk", "memory"];
        let tops = places.map(|place| format!("{place} {mode} 4321\n")).concat();
        tops + &places.map(|place| format!("{place}/x {file} 4321\n")).concat()
    };
    assert_eq!(seen(&host), expected("2777", "644"));
    // Without limits, the one in memory may be as large as the host's.
    let size = sh(&host, "web", "stat -f -c '%b %S' /v/memory");
    let bytes: u64 = size.split_whitespace().map(|number| number.parse::<u64>().unwrap()).product();
    let info = fs::read_to_string("/proc/meminfo").unwrap();
    assert_eq!(bytes, info.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024);
    sh(&host, "web", "cd /v; chmod 600 */x; chmod 700 *; chmod g-s *");
    // The second change is written after all that came of the first.
    let change = |host: &TestHost, texts: [&str; 2]| {
        for text in texts {
            host.write_manifest("a-objects.yaml", &config(text));
            eventually("the file to change", || {
                let found = sh(host, "web", "cat /m/text");
                if found == text { Ok(()) } else { Err(found) }
            });
        }
    };
    change(&host, ["two", "three"]);
    assert_eq!(seen(&host), expected("700", "600"));
    host.kill_daemon();
    host.start_daemon();
    host.wait_running("web");
    change(&host, ["four", "five"]);
    assert_eq!(seen(&host), expected("700", "600"));
    remove(&host, "web");
}
