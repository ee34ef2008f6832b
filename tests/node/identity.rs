//! A container's knowledge of its pod: names, downward API, arguments, terminal and standard input, last words (kubelet rules D19 to D23).

use crate::support::{TestHost, eventually};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

const SLEEP: &str = "image: localhost/busybox:1, command: [sleep, '1000000']";

fn pod(name: &str, metadata: &str, spec: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{metadata}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{spec}")
}

fn sh(host: &TestHost, pod: &str, script: &str) -> String {
    host.exec(pod, "c", &["/bin/sh", "-c", script])
}

/// shows: spec.hostname, spec.subdomain, spec.setHostnameAsFQDN, spec.hostnameOverride, metadata.namespace
#[test]
fn d23_host_name_follows_pod_and_override() {
    let host = TestHost::start();
    let long = "l".repeat(60);
    for (name, spec, expected) in [
        ("plain", "", "plain-edge-1"),
        ("named", "hostname: www", "www"),
        ("sub", "hostname: www, subdomain: site", "www"),
        ("full", "hostname: www, subdomain: site, setHostnameAsFQDN: true", "www.site.shop.svc.cluster.local"),
        ("override", "hostname: www, hostnameOverride: own.example.org", "own.example.org"),
        // 63 bytes, and no dash at the end.
        (long.as_str(), "", &format!("{long}-ed")),
    ] {
        let spec = spec.replace(", ", "\n  ");
        let containers = format!("  {spec}\n  containers: [{{name: c, {SLEEP}}}]\n");
        host.write_manifest(&format!("{name}.yaml"), &pod(name, ", namespace: shop", &containers));
        host.wait_running(name);
        let seen = host.cli_ok(&["exec", "-n", "shop", name, "--", "/bin/sh", "-c", "hostname; echo $HOSTNAME; cat /etc/hostname"]);
        assert_eq!(seen, format!("{expected}\n{expected}\n{expected}\n"), "{name}");
    }
}

/// On the host's network the pod has addresses and the host's name.
/// shows: spec.hostNetwork, spec.hostAliases, spec.dnsPolicy
#[test]
fn d21_d22_pod_on_hosts_network_has_hosts_files() {
    let host = TestHost::start();
    let spec = format!(
        "  hostNetwork: true\n  dnsPolicy: Default\n  hostAliases: [{{ip: 10.1.2.3, hostnames: [db]}}]\n  containers: [{{name: c, {SLEEP}}}]\n"
    );
    host.write_manifest("web.yaml", &pod("web", "", &spec));
    host.wait_running("web");
    let hosts = sh(&host, "web", "cat /etc/hosts");
    let of_the_host = fs::read_to_string("/etc/hosts").unwrap();
    assert!(hosts.starts_with("# Kubernetes-managed hosts file (host network).\n"), "{hosts}");
    assert!(hosts.contains(&of_the_host) && hosts.ends_with("# Entries added by HostAliases.\n10.1.2.3\tdb\n"), "{hosts}");
    let servers = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("nameserver")).take(3).map(str::to_owned).collect()
    };
    let of_the_host = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    assert_eq!(servers(&sh(&host, "web", "cat /etc/resolv.conf")), servers(&of_the_host));
    let name = nix::unistd::gethostname().unwrap().into_string().unwrap();
    assert_eq!(sh(&host, "web", "hostname; echo $HOSTNAME"), format!("{name}\n{name}\n"));
}

/// shows: spec.dnsConfig
#[test]
fn d22_dns_config_is_added_to_policy() {
    let host = TestHost::start();
    let spec = format!(
        "  dnsPolicy: Default\n  dnsConfig: {{nameservers: [10.9.8.7], searches: [plant.local], options: [{{name: ndots, value: '3'}}, {{name: rotate}}]}}\n  \
         containers: [{{name: c, {SLEEP}}}]\n"
    );
    host.write_manifest("web.yaml", &pod("web", "", &spec));
    host.wait_running("web");
    let seen = sh(&host, "web", "cat /etc/resolv.conf");
    let of_the_host = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let first = of_the_host.lines().find(|line| line.starts_with("nameserver"));
    assert!(first.is_none_or(|server| seen.contains(server)), "the host's come first: {seen}");
    let word = |line: &str, word: &str| seen.lines().any(|l| l.starts_with(line) && l.split_whitespace().any(|w| w == word));
    assert!(word("search", "plant.local") && word("options", "ndots:3") && word("options", "rotate"), "{seen}");
    if of_the_host.lines().filter(|line| line.starts_with("nameserver")).count() < 3 {
        assert!(word("nameserver", "10.9.8.7"), "{seen}");
    }
}

/// shows: spec.containers[].env[].valueFrom.fieldRef, spec.containers[].env[].valueFrom.resourceFieldRef, spec.enableServiceLinks
/// shows: spec.serviceAccountName, spec.serviceAccount, spec.nodeName, metadata.uid, metadata.annotations, metadata.namespace
#[test]
fn downward_fields_reach_the_environment() {
    let host = TestHost::start();
    let field =
        |name: &str, path: &str| format!("        - {{name: {name}, valueFrom: {{fieldRef: {{fieldPath: \"{path}\"}}}}}}\n");
    let resource =
        |name: &str, selector: &str| format!("        - {{name: {name}, valueFrom: {{resourceFieldRef: {{{selector}}}}}}}\n");
    let env = [
        field("NAME", "metadata.name"),
        field("NAMESPACE", "metadata.namespace"),
        field("UID_", "metadata.uid"),
        field("LABEL", "metadata.labels['app']"),
        field("ANNOTATION", "metadata.annotations['example.org/note']"),
        field("ABSENT", "metadata.labels['none']"),
        field("NODE", "spec.nodeName"),
        field("ACCOUNT", "spec.serviceAccountName"),
        field("HOST_IP", "status.hostIP"),
        field("HOST_IPS", "status.hostIPs"),
        field("POD_IP", "status.podIP"),
        field("POD_IPS", "status.podIPs"),
        resource("CPU_REQUEST", "resource: requests.cpu, divisor: 1m"),
        resource("CPU_LIMIT", "resource: limits.cpu"),
        resource("MEMORY_REQUEST", "resource: requests.memory, divisor: 1Ki"),
        resource("MEMORY_LIMIT", "resource: limits.memory, divisor: 1Mi"),
        resource("OTHERS_LIMIT", "containerName: other, resource: limits.memory"),
        resource("OTHERS_CPU", "containerName: other, resource: requests.cpu"),
        resource("WHOLE_HOST", "containerName: other, resource: limits.cpu, divisor: 1m"),
    ]
    .concat();
    let spec = format!(
        "  hostNetwork: true
  nodeName: edge-1
  serviceAccountName: default
  serviceAccount: default
  enableServiceLinks: true
  containers:
    - name: c
      image: localhost/busybox:1
      command: [sleep, '1000000']
      resources: {{requests: {{cpu: 150m, memory: 20Mi}}, limits: {{cpu: 1500m, memory: 33Mi}}}}
      env:
{env}    - {{name: other, {SLEEP}, resources: {{limits: {{memory: 16Mi}}}}}}
"
    );
    host.write_manifest(
        "seen.yaml",
        &pod("seen", ", namespace: shop, uid: my-own-uid, labels: {app: web}, annotations: {example.org/note: a note}", &spec),
    );
    let seen = host.wait_running("seen");
    assert_eq!(seen.uid(), "my-own-uid");
    let status = &seen.0["status"];
    let ip = status["podIP"].as_str().unwrap_or_default().to_owned();
    let ips: Vec<&str> = status["podIPs"].as_array().into_iter().flatten().filter_map(|entry| entry["ip"].as_str()).collect();
    let pid = host.container_pid(&seen, "c");
    let environ = String::from_utf8(fs::read(format!("/proc/{pid}/environ")).unwrap()).unwrap();
    let value = |name: &str| {
        environ
            .split('\0')
            .find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_else(|| panic!("{name} in {environ}"))
    };
    for (name, expected) in [
        ("NAME", "seen-edge-1"),
        ("NAMESPACE", "shop"),
        ("UID_", "my-own-uid"),
        ("LABEL", "web"),
        ("ANNOTATION", "a note"),
        ("ABSENT", ""),
        ("NODE", "edge-1"),
        ("ACCOUNT", "default"),
        ("HOST_IP", &ip),
        ("HOST_IPS", &ips.join(",")),
        ("POD_IP", &ip),
        ("POD_IPS", &ips.join(",")),
        ("CPU_REQUEST", "150"),
        // Rounded up.
        ("CPU_LIMIT", "2"),
        ("MEMORY_REQUEST", "20480"),
        ("MEMORY_LIMIT", "33"),
        ("OTHERS_LIMIT", "16777216"),
        ("OTHERS_CPU", "0"),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
    let processors = std::thread::available_parallelism().unwrap().get();
    assert!(value("WHOLE_HOST").parse::<usize>().unwrap() >= processors * 500, "without a limit it is what the host can give");
    assert!(!environ.split('\0').any(|entry| entry.contains("_SERVICE_HOST=")), "there are no services: {environ}");
}

/// shows: spec.volumes[].downwardAPI, spec.volumes[].projected.sources[].downwardAPI, spec.volumes[].projected.defaultMode
#[test]
fn downward_fields_reach_files() {
    let host = TestHost::start();
    let items = "[{path: name, fieldRef: {fieldPath: metadata.name}}, {path: in/labels, mode: 0o400, fieldRef: {fieldPath: metadata.labels}},
        {path: annotations, fieldRef: {apiVersion: v1, fieldPath: metadata.annotations}}, {path: one, fieldRef: {fieldPath: \"metadata.labels['app']\"}},
        {path: cpu, resourceFieldRef: {containerName: c, resource: limits.cpu, divisor: 1m}}, {path: memory, resourceFieldRef: {containerName: c, resource: requests.memory}}]";
    let spec = format!(
        "  containers: [{{name: c, {SLEEP}, resources: {{requests: {{memory: 8Mi}}, limits: {{cpu: 250m}}}}, volumeMounts: [{{name: d, mountPath: /d}}, {{name: p, mountPath: /p}}]}}]
  volumes:
    - {{name: d, downwardAPI: {{defaultMode: 0o440, items: {items}}}}}
    - {{name: p, projected: {{defaultMode: 0o440, sources: [{{downwardAPI: {{items: {items}}}}}]}}}}
"
    );
    host.write_manifest("seen.yaml", &pod("seen", ", labels: {app: web, tier: front}, annotations: {note: 'say \"x\"'}", &spec));
    host.wait_running("seen");
    for place in ["/d", "/p"] {
        let script = "for f in name in/labels annotations one cpu memory; do echo \"$(stat -L -c %a $f) $(cat $f)\"; done";
        let seen = sh(&host, "seen", &format!("cd {place}; {script}"));
        // The annotations that podstead stamps are there, too.
        let lines: Vec<&str> =
            seen.lines().filter(|line| !line.starts_with("kubernetes.io/config") && !line.contains(" kubernetes.io/")).collect();
        let note = seen.lines().any(|line| line.ends_with("note=\"say \\\"x\\\"\""));
        assert!(note, "{seen}");
        for line in ["440 seen-edge-1", "400 app=\"web\"", "tier=\"front\"", "440 web", "440 250", "440 8388608"] {
            assert!(lines.contains(&line), "{place}: {line:?} in {seen}");
        }
    }
}

/// shows: spec.containers[].command, spec.containers[].args, spec.containers[].workingDir
#[test]
fn d20_command_runs_in_its_working_directory() {
    let host = TestHost::start();
    let spec = "  containers:
    - name: c
      image: localhost/busybox:1
      command: [$(SHELL_), -c, 'pwd; echo \"$@\"; exec sleep 1000000', $(NAME)]
      args: [$(A), $$(A), '$(NOT_SET)', '$(', '$(PATH)']
      workingDir: /var/www
      env: [{name: SHELL_, value: /bin/sh}, {name: NAME, value: zero}, {name: A, value: $(B)}, {name: B, value: b}]
";
    host.write_manifest("args.yaml", &pod("args", "", spec));
    host.wait_running("args");
    // Variables of the image are not seen, nor is what is declared later.
    host.wait_log("args", "c", "$(B) $(A) $(NOT_SET) $( $(PATH)");
    assert!(host.logs("args", "c").starts_with("/var/www\n"));
    assert_eq!(sh(&host, "args", "pwd"), "/var/www\n", "exec begins there, too");
}

/// shows: spec.containers[].tty, spec.containers[].stdin, spec.containers[].stdinOnce
#[test]
fn container_has_requested_terminal_and_stdin() {
    let host = TestHost::start();
    let script =
        "test -t 0 && echo terminal $TERM; while read line; do echo \"got $line\"; done; echo end of input; exec sleep 1000000";
    let container = |name: &str, more: &str| {
        format!("    - {{name: {name}, image: localhost/busybox:1, command: [/bin/sh, -c, '{script}']{more}}}\n")
    };
    let containers = [
        container("none", ""),
        container("open", ", stdin: true"),
        container("once", ", stdin: true, stdinOnce: true"),
        container("terminal", ", stdin: true, tty: true"),
    ];
    host.write_manifest("input.yaml", &pod("input", "", &format!("  containers:\n{}", containers.concat())));
    host.wait_running("input");
    host.wait_log("input", "none", "end of input");
    host.wait_log("input", "terminal", "terminal xterm");
    let feed = |container: &str, line: &str| {
        let mut command = Command::new(crate::support::binary("podstead"));
        command.arg("--socket").arg(host.path("run/podstead.sock")).args(["attach", "-i", "input", "-c", container]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
        host.wait_log("input", container, &format!("got {}", line.trim()));
        child.kill().unwrap();
        child.wait().unwrap();
    };
    feed("open", "first\n");
    feed("open", "second\n");
    assert!(!host.logs("input", "open").contains("end of input"), "it stays open between attachments");
    feed("once", "first\n");
    host.wait_log("input", "once", "end of input");
    assert!(!host.logs("input", "none").contains("terminal") && !host.logs("input", "open").contains("terminal"));
}

/// shows: spec.containers[].terminationMessagePath, spec.containers[].terminationMessagePolicy
#[test]
fn d19_last_words_come_from_path_or_log() {
    let host = TestHost::start();
    let spec = "  restartPolicy: Never
  containers:
    - {name: own, image: localhost/busybox:1, command: [/bin/sh, -c, 'echo elsewhere > /tmp/words'], terminationMessagePath: /tmp/words}
    - {name: log, image: localhost/busybox:1, command: [/bin/sh, -c, 'echo from the log; exit 1'], terminationMessagePolicy: FallbackToLogsOnError}
    - {name: well, image: localhost/busybox:1, command: [/bin/sh, -c, 'echo from the log'], terminationMessagePolicy: FallbackToLogsOnError}
    - {name: file, image: localhost/busybox:1, command: [/bin/sh, -c, 'echo from the log; exit 1']}
    - {name: long, image: localhost/busybox:1, command: [/bin/sh, -c, 'yes | head -c 10000 > /dev/termination-log']}
";
    host.write_manifest("words.yaml", &pod("words", "", spec));
    let ended = host.wait_for_pod("words", "the end of all", |pod| pod.phase() == "Failed");
    let message = |name: &str| ended.container(name)["state"]["terminated"]["message"].as_str().map(str::to_owned);
    assert_eq!(message("own").as_deref(), Some("elsewhere\n"));
    assert_eq!(message("log").as_deref(), Some("from the log\n"));
    assert_eq!(message("well"), None, "only an error falls back");
    assert_eq!(message("file"), None);
    assert_eq!(message("long").map(|text| text.len()), Some(12 * 1024 / 5), "its part of what a pod may say");
}

/// shows: spec.containers[].envFrom[].configMapRef.optional, spec.containers[].env[].valueFrom.secretKeyRef.optional
/// shows: spec.automountServiceAccountToken, spec.os
#[test]
fn optional_files_and_token_may_be_missing() {
    let host = TestHost::start();
    let container = |optional: bool| {
        format!(
            "{{name: c, {SLEEP}, envFrom: [{{configMapRef: {{name: none, optional: {optional}}}}}], \
             env: [{{name: A, valueFrom: {{secretKeyRef: {{name: none, key: k, optional: true}}}}}}]}}"
        )
    };
    let spec = |optional| {
        format!("  automountServiceAccountToken: false\n  os: {{name: linux}}\n  containers: [{}]\n", container(optional))
    };
    host.write_manifest("may.yaml", &pod("may", "", &spec(true)));
    host.write_manifest("must.yaml", &pod("must", "", &spec(false)));
    host.write_manifest("windows.yaml", &pod("windows", "", &spec(true).replace("linux", "windows")));
    host.wait_running("may");
    assert_eq!(sh(&host, "may", "echo ${A-unset}; ls -A /var/run/secrets /run/secrets 2>/dev/null; true"), "unset\n");
    host.wait_for_pod("must", "to wait", |pod| pod.waiting_reason("c") == "CreateContainerConfigError");
    eventually("the refusal", || {
        let status = host.cli_ok(&["status"]);
        if status.contains("this host runs Linux") { Ok(()) } else { Err(status) }
    });
    assert!(host.pod("windows").is_none());
}

/// shows: spec.activeDeadlineSeconds
#[test]
fn d13_a_pod_past_its_deadline_fails() {
    let host = TestHost::start();
    host.write_manifest(
        "late.yaml",
        &pod("late", "", &format!("  activeDeadlineSeconds: 2\n  containers: [{{name: c, {SLEEP}}}]\n")),
    );
    let late = host.wait_for_pod("late", "the deadline", |pod| pod.phase() == "Failed" && !pod.runs("c"));
    assert_eq!(late.0["status"]["reason"], "DeadlineExceeded");
}

/// shows: spec.containers[].lifecycle.stopSignal
#[test]
fn container_stops_by_its_own_signal() {
    let host = TestHost::start();
    let spec = "  os: {name: linux}
  containers:
    - name: c
      image: localhost/busybox:1
      command: [/bin/sh, -c, 'trap \"echo usr1; exit 0\" USR1; trap \"echo term; exit 0\" TERM; echo ready; while true; do sleep 0.1; done']
      lifecycle: {stopSignal: SIGUSR1}
";
    host.write_manifest("signal.yaml", &pod("signal", "", spec).replace("PeriodSeconds: 1\n", "PeriodSeconds: 60\n"));
    let running = host.wait_running("signal");
    host.wait_log("signal", "c", "ready");
    // A hard link outlives the pod's log directory, which goes with the pod.
    let log = host.path("log/pods").join(format!("default_signal-edge-1_{}/c/0.log", running.uid()));
    fs::hard_link(log, host.path("kept.log")).unwrap();
    host.remove_manifest("signal.yaml");
    host.wait_gone("signal");
    let log = fs::read_to_string(host.path("kept.log")).unwrap();
    assert!(log.contains("stdout F usr1") && !log.contains("stdout F term"), "{log}");
}
