//! ConfigMaps and Secrets beside the pods: environment and files, their changes, their absence.

use crate::support::{TestHost, binary, eventually};
use std::fs;
use std::process::Command;

/// Output of `podstead plan` for these files in place of the source's.
fn plan(host: &TestHost, files: &[(&str, &str)]) -> String {
    let proposed = host.path("proposed");
    fs::create_dir_all(&proposed).unwrap();
    for (name, content) in files {
        fs::write(proposed.join(name), content).unwrap();
    }
    let mut command = Command::new(binary("podstead"));
    command.arg("--config").arg(host.path("config.yaml")).arg("plan").arg(&proposed).args(["--source", "manifests"]);
    let out = command.output().unwrap();
    assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn pod(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: {name}, tier: front}}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{spec}"
    )
}

fn config_map(name: &str, data: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {data}\n")
}

fn secret(name: &str, data: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {data}\n")
}

const SLEEP: &str = "image: localhost/busybox:1, command: [sleep, '1000000']";

fn sh(host: &TestHost, pod: &str, container: &str, script: &str) -> String {
    host.exec(pod, container, &["/bin/sh", "-c", script])
}

/// shows: spec.containers[].env[].valueFrom.secretKeyRef.key, spec.containers[].env[].valueFrom.secretKeyRef.name
/// shows: spec.containers[].env[].valueFrom.configMapKeyRef, spec.containers[].envFrom[].configMapRef.name
/// shows: spec.containers[].envFrom[].prefix, spec.containers[].envFrom[].secretRef
#[test]
fn variables_change_only_their_users() {
    let host = TestHost::start();
    host.write_manifest(
        "a-objects.yaml",
        &[config_map("web", "{MODE: fast, COLOR: red, unused: x}"), secret("db", "{password: hunter2}")].join("---\n"),
    );
    let spec = format!(
        "  containers:
    - {{name: whole, {SLEEP}, envFrom: [{{configMapRef: {{name: web}}}}, {{prefix: DB_, secretRef: {{name: db}}}}, {{secretRef: {{name: none, optional: true}}}}],
       env: [{{name: MODE, value: 'own $(COLOR)'}}]}}
    - {{name: key, {SLEEP}, env: [{{name: PASSWORD, valueFrom: {{secretKeyRef: {{name: db, key: password}}}}}},
       {{name: NOTHING, valueFrom: {{configMapKeyRef: {{name: web, key: none, optional: true}}}}}}]}}
    - {{name: plain, {SLEEP}}}
"
    );
    host.write_manifest("web.yaml", &pod("web", &spec));
    let before = host.wait_running("web");
    assert_eq!(sh(&host, "web", "whole", "echo $MODE,$COLOR,$DB_password"), "own red,red,hunter2\n");
    assert_eq!(sh(&host, "web", "key", "echo $PASSWORD,${NOTHING-unset}"), "hunter2,unset\n");

    let changed = [config_map("web", "{MODE: fast, COLOR: blue, unused: x}"), secret("db", "{password: hunter2}")].join("---\n");
    let web = fs::read_to_string(host.path("manifests/web.yaml")).unwrap();
    let same = fs::read_to_string(host.path("manifests/a-objects.yaml")).unwrap();
    let unchanged = plan(&host, &[("a-objects.yaml", &same), ("web.yaml", &web)]);
    assert_eq!(unchanged, "0 to create, 0 to update, 0 to recreate, 0 to remove, 1 unchanged\n");
    let planned = plan(&host, &[("a-objects.yaml", &changed), ("web.yaml", &web)]);
    assert!(planned.contains("stop container whole") && planned.contains("start container whole"), "{planned}");
    assert!(
        !planned.contains("container key") && !planned.contains("container plain") && !planned.contains("hunter2"),
        "{planned}"
    );

    host.write_manifest("a-objects.yaml", &changed);
    let after = host.wait_for_pod("web", "whole to be restarted", |pod| pod.restarts("whole") == 1 && pod.runs("whole"));
    assert_eq!(sh(&host, "web", "whole", "echo $COLOR"), "blue\n");
    for container in ["key", "plain"] {
        assert_eq!(after.container_id(container), before.container_id(container));
    }
    assert_eq!(after.uid(), before.uid());
}

#[test]
fn refused_object_is_told_with_its_place() {
    let host = TestHost::start();
    host.write_manifest("settings.yaml", &config_map("settings", "{MODE: fast}").replace("\ndata:", "\ndta:"));
    let spec = format!("  containers: [{{name: c, {SLEEP}, envFrom: [{{configMapRef: {{name: settings}}}}]}}]\n");
    host.write_manifest("web.yaml", &pod("web", &spec));
    let waiting = host.wait_for_pod("web", "to wait", |pod| pod.waiting_reason("c") == "CreateContainerConfigError");
    let message = waiting.container("c")["state"]["waiting"]["message"].as_str().unwrap();
    let expected = "configmap \"settings\" not found in namespace \"default\": source manifests refuses it: settings.yaml:4:1: dta: unknown field";
    assert!(message.starts_with(expected), "{message}");
    host.write_manifest("settings.yaml", &config_map("settings", "{MODE: fast}"));
    host.wait_running("web");
    assert_eq!(sh(&host, "web", "c", "echo $MODE"), "fast\n");
}

/// shows: spec.volumes[].secret.secretName
#[test]
fn pod_waits_for_its_objects() {
    let host = TestHost::start();
    let env =
        format!("  containers: [{{name: c, {SLEEP}, env: [{{name: A, valueFrom: {{secretKeyRef: {{name: late, key: a}}}}}}]}}]\n");
    let volume = format!(
        "  containers: [{{name: c, {SLEEP}, volumeMounts: [{{name: v, mountPath: /v}}]}}]\n  volumes: [{{name: v, secret: {{secretName: late}}}}]\n"
    );
    host.write_manifest("env.yaml", &pod("env", &env));
    host.write_manifest("volume.yaml", &pod("volume", &volume));
    let waiting = host.wait_for_pod("env", "to wait", |pod| pod.waiting_reason("c") == "CreateContainerConfigError");
    let message = waiting.container("c")["state"]["waiting"]["message"].as_str().unwrap();
    assert_eq!(message, "secret \"late\" not found in namespace \"default\" (looked in source manifests)");
    host.wait_for_pod("volume", "to wait", |pod| pod.waiting_reason("c") == "ContainerCreating");
    let events = eventually("the event", || {
        let events = host.cli_ok(&["get", "events"]);
        if events.contains("FailedMount") { Ok(events) } else { Err(events) }
    });
    assert!(events.contains("MountVolume.SetUp failed for volume \"v\" : secret \"late\" not found"), "{events}");
    // A key that is missing is another reason, and told as one.
    host.write_manifest("late.yaml", &secret("late", "{b: x}"));
    host.wait_for_pod("env", "the missing key", |pod| {
        pod.container("c")["state"]["waiting"]["message"] == "couldn't find key a in Secret default/late of source manifests"
    });
    host.write_manifest("late.yaml", &secret("late", "{a: there}"));
    host.wait_running("env");
    host.wait_running("volume");
    assert_eq!(sh(&host, "env", "c", "echo $A"), "there\n");
    assert_eq!(sh(&host, "volume", "c", "cat /v/a"), "there");
}

/// shows: spec.volumes[].configMap.name, spec.containers[].volumeMounts[].subPath
#[test]
fn files_change_together_but_sub_paths_stay() {
    let mut host = TestHost::start();
    host.write_manifest("objects.yaml", &config_map("m", "{one: '1', two: '1', old: x}"));
    let spec = format!(
        "  containers: [{{name: c, {SLEEP}, volumeMounts: [{{name: v, mountPath: /v}}, {{name: v, mountPath: /sub/one, subPath: one}}]}}]
  volumes: [{{name: v, configMap: {{name: m}}}}]\n"
    );
    host.write_manifest("web.yaml", &pod("web", &spec));
    let before = host.wait_running("web");
    assert_eq!(sh(&host, "web", "c", "cat /v/one /v/two /v/old /sub/one"), "11x1");
    assert_eq!(sh(&host, "web", "c", "readlink /v/one"), "..data/one\n");
    let refused = host.cli(&["exec", "web", "-c", "c", "--", "/bin/sh", "-c", "echo x > /v/x"]);
    assert!(!refused.status.success(), "the volume is read-only");
    let of_source = |name: &str| fs::read_to_string(host.path("manifests").join(name)).unwrap();
    let unchanged = plan(&host, &[("objects.yaml", &of_source("objects.yaml")), ("web.yaml", &of_source("web.yaml"))]);
    assert_eq!(unchanged, "0 to create, 0 to update, 0 to recreate, 0 to remove, 1 unchanged\n");

    host.write_manifest("objects.yaml", &config_map("m", "{one: '2', two: '2', new: n1}"));
    eventually("the new files", || {
        let seen = sh(&host, "web", "c", "cat /v/one /v/two /v/new 2>/dev/null; true");
        if seen == "22n1" { Ok(()) } else { Err(seen) }
    });
    // What is obsolete goes after the swap.
    eventually("the old files to be gone", || {
        let seen = sh(&host, "web", "c", "cat /sub/one; ls /v; ls -A /v | wc -l");
        if seen == "1new\none\ntwo\n5\n" { Ok(()) } else { Err(seen) }
    });

    // Deleted: what runs keeps its files, also through a restart of the daemon.
    host.remove_manifest("objects.yaml");
    eventually("the deletion to be told", || {
        let events = host.cli_ok(&["get", "events"]);
        if events.contains("configmap \"m\" not found") { Ok(()) } else { Err(events) }
    });
    host.kill_daemon();
    host.start_daemon();
    let after = host.wait_running("web");
    assert_eq!(after.container_id("c"), before.container_id("c"));
    assert_eq!(sh(&host, "web", "c", "cat /v/one"), "2");
}

/// shows: spec.securityContext.fsGroup, spec.volumes[].secret.defaultMode, spec.volumes[].secret.secretName
/// shows: spec.volumes[].projected.sources[].configMap.name, spec.volumes[].projected.sources[].configMap.items[].key
/// shows: spec.volumes[].projected.sources[].configMap.items[].path, spec.volumes[].projected.sources[].secret.name
/// shows: spec.volumes[].projected.sources[].secret.items, spec.volumes[].projected.sources[].downwardAPI.items[].path
/// shows: spec.volumes[].projected.sources[].downwardAPI.items[].fieldRef
#[test]
fn secret_has_its_modes_on_tmpfs_only() {
    let host = TestHost::start();
    let hidden = "very-hidden-value";
    host.write_manifest(
        "objects.yaml",
        &[config_map("m", "{conf: plain}"), secret("s", &format!("{{key: {hidden}}}"))].join("---\n"),
    );
    let spec = format!(
        "  securityContext: {{fsGroup: 4321}}
  containers: [{{name: c, {SLEEP}, env: [{{name: S, valueFrom: {{secretKeyRef: {{name: s, key: key}}}}}}],
     volumeMounts: [{{name: s, mountPath: /s}}, {{name: p, mountPath: /p}}]}}]
  volumes:
    - {{name: s, secret: {{secretName: s, defaultMode: 0o400}}}}
    - name: p
      projected:
        sources:
          - {{configMap: {{name: m, items: [{{key: conf, path: etc/app.conf}}]}}}}
          - {{secret: {{name: s, items: [{{key: key, path: etc/key, mode: 0o600}}]}}}}
          - {{downwardAPI: {{items: [{{path: labels, fieldRef: {{fieldPath: metadata.labels}}}}]}}}}
"
    );
    host.write_manifest("web.yaml", &pod("web", &spec));
    let web = host.wait_running("web");
    assert_eq!(sh(&host, "web", "c", "stat -f -c %T /s/key /p/etc/key"), "tmpfs\ntmpfs\n");
    assert_eq!(sh(&host, "web", "c", "stat -L -c '%a %g' /s/key /p/etc/app.conf /p/etc/key"), "440 4321\n644 4321\n640 4321\n");
    assert_eq!(sh(&host, "web", "c", "cat /p/etc/app.conf /p/labels"), "plainapp=\"web\"\ntier=\"front\"");

    // An edit of a label reaches the file without a restart.
    host.write_manifest("web.yaml", &pod("web", &spec).replace("tier: front", "tier: back"));
    eventually("the new label", || {
        let labels = sh(&host, "web", "c", "cat /p/labels");
        if labels.ends_with("tier=\"back\"") { Ok(()) } else { Err(labels) }
    });
    assert_eq!(host.wait_running("web").container_id("c"), web.container_id("c"));

    // Nothing that the daemon keeps on disk or says holds the value.
    // The run directory is on a tmpfs on a real host.
    for place in ["state", "log"] {
        assert_eq!(files_with(&host.path(place), hidden), Vec::<String>::new());
    }
    let said = [
        host.cli_ok(&["describe", "pod", "web"]),
        host.cli_ok(&["get", "pods", "-o", "yaml"]),
        host.cli_ok(&["get", "events"]),
        host.cli_ok(&["status"]),
        host.daemon_log(),
    ];
    assert!(said.iter().all(|text| !text.contains(hidden)));

    host.remove_manifest("web.yaml");
    host.wait_gone("web");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&web.uid()), "nothing of it stays mounted");
}

/// Regular files on disk below `directory` that hold `needle`. What is mounted in there (the tmpfs itself) is not on disk.
fn files_with(directory: &std::path::Path, needle: &str) -> Vec<String> {
    use std::os::unix::fs::MetadataExt;
    let device = fs::metadata(directory).unwrap().dev();
    let mut found = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // What is replaced meanwhile is looked at under its name.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() && metadata.dev() == device {
                folders.push(entry.path());
            } else if metadata.is_file()
                && fs::read(entry.path()).is_ok_and(|content| String::from_utf8_lossy(&content).contains(needle))
            {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}

#[test]
fn kills_during_changes_leave_no_mix() {
    let mut host = TestHost::start();
    let objects = |value: u32| {
        [config_map("m", &format!("{{one: '{value}', two: '{value}'}}")), config_map("env", "{A: same}")].join("---\n")
    };
    host.write_manifest("objects.yaml", &objects(0));
    let spec = format!(
        "  containers: [{{name: c, {SLEEP}, envFrom: [{{configMapRef: {{name: env}}}}], volumeMounts: [{{name: v, mountPath: /v}}]}}]
  volumes: [{{name: v, configMap: {{name: m}}}}]\n"
    );
    host.write_manifest("web.yaml", &pod("web", &spec));
    let before = host.wait_running("web");
    let root = host.path("state/pods").join(before.uid()).join("volumes/projected/v");
    // One look at the directory behind ..data, as a reader that opens it first. While files are swapped it may be gone by then.
    let look = || {
        let data = fs::canonicalize(root.join("..data"))?;
        std::io::Result::Ok((fs::read_to_string(data.join("one"))?, fs::read_to_string(data.join("two"))?))
    };
    for value in 1..25 {
        host.write_manifest("objects.yaml", &objects(value));
        // A little later each time: before, during and after the swap.
        let until = std::time::Instant::now() + std::time::Duration::from_micros(u64::from(value) * 500);
        while std::time::Instant::now() < until {
            if let Ok((one, two)) = look() {
                assert_eq!(one, two);
            }
        }
        host.kill_daemon();
        let (one, two) = look().unwrap();
        assert_eq!(one, two);
        host.start_daemon();
    }
    let after = host.wait_running("web");
    eventually("the last files", || {
        let seen = sh(&host, "web", "c", "cat /v/one /v/two");
        if seen == "2424" { Ok(()) } else { Err(seen) }
    });
    eventually("one directory, ..data and two links to be left", || {
        let left: Vec<_> = fs::read_dir(&root).unwrap().flatten().map(|entry| entry.file_name()).collect();
        if left.len() == 4 { Ok(()) } else { Err(format!("{left:?}")) }
    });
    assert_eq!((after.container_id("c"), after.restarts("c")), (before.container_id("c"), 0));
}

#[test]
fn example_with_settings_does_what_it_says() {
    let host = TestHost::start();
    let example = include_str!("../../manifests/settings.yaml");
    host.write_manifest("settings.yaml", example);
    let before = host.wait_running("settings");
    let log = host.wait_log("settings", "main", "hello from a file");
    assert!(log.starts_with("level info, a password of 9 characters\n"), "{log}");
    host.write_manifest("settings.yaml", &example.replace("hello from a file", "hello again"));
    host.wait_log("settings", "main", "hello again");
    assert_eq!(host.wait_running("settings").container_id("main"), before.container_id("main"));
    host.write_manifest("settings.yaml", &example.replace("change-me", "changed"));
    host.wait_for_pod("settings", "a restart with the other password", |pod| pod.restarts("main") == 1 && pod.runs("main"));
    host.wait_log("settings", "main", "a password of 7 characters");
}
