//! Sources with `allow` that reach for objects, claims and names of other sources.
//!
//! The source `base` is unrestricted and owns what is attacked; `apps` has `allow` and attacks, in the same namespace wherever that matters.

use crate::support::{PodView, TestHost, binary, eventually, eventually_within};
use std::fs;
use std::process::Command;
use std::time::Duration;

#[path = "../node/network/lan.rs"]
#[allow(dead_code, reason = "what other suites need of it")]
mod lan;

use lan::{HOST_V4, Site, web};

/// Rights of the restricted source in the cases that share a namespace.
const BESIDE: &str = "{namespaces: [default], persistentVolumes: true}";
const SHARES_ALL: &str =
    "[{with: [apps], secrets: [login], configMaps: [settings], persistentVolumeClaims: [data], subdomains: [db]}]";

/// The source that is configured first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Base,
    Apps,
}

/// Writes the configuration of both sources; a daemon that runs reads it.
fn configure(host: &TestHost, first: First, allow: &str, share_of_base: Option<&str>, share_of_apps: Option<&str>) {
    let path = host.path("config.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let kept = &text[..text.find("sources:\n").unwrap()];
    let source = |name: &str, directory: &str, allow: Option<&str>, share: Option<&str>| {
        let field = |name: &str, value: Option<&str>| value.map(|value| format!("    {name}: {value}\n")).unwrap_or_default();
        let at = host.path(directory);
        let head = format!("  - name: {name}\n    directory:\n      path: {}\n", at.display());
        [head, field("allow", allow), field("share", share)].concat()
    };
    let base = source("base", "manifests", None, share_of_base);
    let apps = source("apps", "apps", Some(allow), share_of_apps);
    let sources = if first == First::Base { base + &apps } else { apps + &base };
    fs::write(host.path("config.new"), format!("{kept}sources:\n{sources}")).unwrap();
    fs::rename(host.path("config.new"), path).unwrap();
}

fn start(first: First, allow: &str) -> TestHost {
    let mut host = TestHost::prepare("");
    fs::create_dir(host.path("apps")).unwrap();
    configure(&host, first, allow, None, None);
    host.start_daemon();
    host
}

/// A host on which `apps` is configured after `base`, and in the same namespace.
fn beside() -> TestHost {
    start(First::Base, BESIDE)
}

/// Puts a manifest into the restricted source by rename.
fn attack(host: &TestHost, name: &str, content: &str) {
    let hidden = host.path("apps").join(format!(".{name}.new"));
    fs::write(&hidden, content).unwrap();
    fs::rename(hidden, host.path("apps").join(name)).unwrap();
}

fn secret(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{key: {value}}}\n")
}

fn config_map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{key: {value}}}\n")
}

fn claim(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}\n"
    )
}

/// A pod that says what it got.
fn pod(name: &str, container: &str, volumes: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  volumes: [{volumes}]\n  containers:\n  - name: c\n    \
         image: localhost/busybox:1\n    command: [/bin/sh, -c, 'echo \"got $A$key\"; cat /v/* 2>/dev/null; echo; exec sleep 1000000']\n{container}\n"
    )
}

const OF_SECRET: &str = "    env: [{name: A, valueFrom: {secretKeyRef: {name: login, key: key}}}]";
const MOUNTS: &str = "    volumeMounts: [{name: v, mountPath: /v}]";

/// The state of the pod whose container waits, when its reason names the owner and the field that would share.
fn wait_refused(host: &TestHost, name: &str, field: &str) -> PodView {
    let told = format!("belongs to source base and is not shared with source apps (to share it, set with: [apps] and {field}");
    let message = |pod: &PodView| pod.container("c")["state"]["waiting"]["message"].as_str().unwrap_or_default().to_owned();
    eventually(&format!("pod {name} to be refused {field}"), || match host.pod(name) {
        Some(pod) if pod.runs("c") => panic!("pod {name} runs: {}", host.logs(name, "c")),
        Some(pod) if message(&pod).contains(&told) => Ok(pod),
        Some(pod) => Err(pod.0["status"].to_string()),
        None => Err("no such pod".to_owned()),
    })
}

/// The restricted source's pod waits, and gets the value once that is shared.
fn refused_until_shared(container: &str, volumes: &str, field: &str) {
    let host = beside();
    host.write_manifest("objects.yaml", &[secret("login", "hunter2"), config_map("settings", "blue42")].join("---\n"));
    attack(&host, "spy.yaml", &pod("spy", container, volumes));
    let waiting = wait_refused(&host, "spy", field);
    let told = waiting.0.to_string();
    assert!(!told.contains("hunter2") && !told.contains("blue42"), "{told}");
    configure(&host, First::Base, BESIDE, Some(SHARES_ALL), None);
    host.wait_running("spy");
    host.wait_log("spy", "c", if field == "secrets" { "hunter2" } else { "blue42" });
}

#[test]
fn key_of_anothers_secret_needs_share() {
    refused_until_shared(OF_SECRET, "", "secrets");
}

#[test]
fn whole_secret_in_environment_needs_share() {
    refused_until_shared("    envFrom: [{secretRef: {name: login}}]", "", "secrets");
}

#[test]
fn key_of_anothers_config_map_needs_share() {
    refused_until_shared("    env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: key}}}]", "", "configMaps");
}

#[test]
fn whole_config_map_in_environment_needs_share() {
    refused_until_shared("    envFrom: [{configMapRef: {name: settings}}]", "", "configMaps");
}

#[test]
fn secret_volume_needs_share() {
    refused_until_shared(MOUNTS, "{name: v, secret: {secretName: login}}", "secrets");
}

#[test]
fn config_map_volume_needs_share() {
    refused_until_shared(MOUNTS, "{name: v, configMap: {name: settings}}", "configMaps");
}

#[test]
fn projected_volume_needs_share() {
    refused_until_shared(MOUNTS, "{name: v, projected: {sources: [{secret: {name: login}}]}}", "secrets");
}

#[test]
fn optional_reference_gets_nothing_of_another_source() {
    let host = beside();
    host.write_manifest("login.yaml", &secret("login", "hunter2"));
    let container = "    env: [{name: A, valueFrom: {secretKeyRef: {name: login, key: key, optional: true}}}]";
    attack(&host, "spy.yaml", &pod("spy", container, ""));
    host.wait_running("spy");
    assert!(!host.wait_log("spy", "c", "got").contains("hunter2"));
}

#[test]
fn pull_secret_of_other_source_is_unused() {
    let host = beside();
    host.write_manifest(
        "login.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '{\"auths\": {}}'}\n",
    );
    let spy =
        pod("spy", "    imagePullPolicy: Always", "").replace("  volumes:", "  imagePullSecrets: [{name: login}]\n  volumes:");
    attack(&host, "spy.yaml", &spy.replace("localhost/busybox:1", "127.0.0.1:1/none:1"));
    eventually("the refusal of the pull secret", || {
        let events = host.cli_ok(&["get", "events", "-o", "json"]);
        let told = "secret \\\"login\\\" in namespace \\\"default\\\" belongs to source base and is not shared with source apps";
        if events.contains(told) { Ok(()) } else { Err(events) }
    });
}

/// shows: a claim is refused, and what is shared can be written to
#[test]
fn claim_of_another_source_needs_share() {
    let host = beside();
    host.write_manifest("data.yaml", &claim("data"));
    host.write_manifest("owner.yaml", &pod("owner", MOUNTS, "{name: v, persistentVolumeClaim: {claimName: data}}"));
    host.wait_running("owner");
    host.exec("owner", "c", &["/bin/sh", "-c", "echo precious > /v/file"]);
    attack(&host, "spy.yaml", &pod("spy", MOUNTS, "{name: v, persistentVolumeClaim: {claimName: data}}"));
    wait_refused(&host, "spy", "persistentVolumeClaims");
    configure(&host, First::Base, BESIDE, Some(SHARES_ALL), None);
    host.wait_running("spy");
    host.exec("spy", "c", &["/bin/sh", "-c", "echo shared > /v/file"]);
    assert_eq!(host.exec("owner", "c", &["cat", "/v/file"]), "shared\n");
}

#[test]
fn equal_claim_leads_to_no_foreign_data() {
    for first in [First::Base, First::Apps] {
        let host = start(first, BESIDE);
        // The attacker comes first, with something planted.
        attack(
            &host,
            "spy.yaml",
            &[claim("data"), pod("spy", MOUNTS, "{name: v, persistentVolumeClaim: {claimName: data}}")].join("---\n"),
        );
        host.wait_running("spy");
        host.exec("spy", "c", &["/bin/sh", "-c", "echo planted > /v/file"]);
        host.write_manifest(
            "owner.yaml",
            &[claim("data"), pod("owner", MOUNTS, "{name: v, persistentVolumeClaim: {claimName: data}}")].join("---\n"),
        );
        host.wait_running("owner");
        assert_eq!(host.exec("owner", "c", &["ls", "/v"]), "", "{first:?}");
        host.exec("owner", "c", &["/bin/sh", "-c", "echo precious > /v/file"]);
        assert_eq!(host.exec("spy", "c", &["cat", "/v/file"]), "planted\n", "it keeps what it has mounted");
        // A new pod of it gets neither.
        attack(&host, "second.yaml", &pod("second", MOUNTS, "{name: v, persistentVolumeClaim: {claimName: data}}"));
        wait_refused(&host, "second", "persistentVolumeClaims");
    }
}

#[test]
fn retained_data_are_not_next_sources() {
    let host = beside();
    host.write_manifest(
        "owner.yaml",
        &[claim("data"), pod("owner", MOUNTS, "{name: v, persistentVolumeClaim: {claimName: data}}")].join("---\n"),
    );
    host.wait_running("owner");
    host.exec("owner", "c", &["/bin/sh", "-c", "echo precious > /v/file"]);
    host.remove_manifest("owner.yaml");
    host.wait_gone("owner");
    attack(
        &host,
        "spy.yaml",
        &[claim("data"), pod("spy", MOUNTS, "{name: v, persistentVolumeClaim: {claimName: data}}")].join("---\n"),
    );
    eventually("the claim to be refused", || match host.pod("spy") {
        Some(pod) if pod.runs("c") => panic!("it runs: {}", host.exec("spy", "c", &["cat", "/v/file"])),
        Some(pod) if pod.0.to_string().contains("belong to source base, not to apps") => Ok(()),
        other => Err(format!("{other:?} {}", host.cli_ok(&["get", "events"]))),
    });
}

#[test]
fn secret_of_a_restricted_source_shadows_nobodys() {
    for first in [First::Base, First::Apps] {
        let host = start(first, BESIDE);
        attack(&host, "login.yaml", &[secret("login", "forged"), pod("own", OF_SECRET, "")].join("---\n"));
        host.wait_log("own", "c", "got forged");
        // A pod of another source does not start to use it, though there is no other of that name.
        host.write_manifest("owner.yaml", &pod("owner", OF_SECRET, ""));
        eventually("the other source's Secret to be refused", || match host.pod("owner") {
            Some(pod) if pod.runs("c") => panic!("it runs: {}", host.logs("owner", "c")),
            Some(pod) if pod.0.to_string().contains("belongs to source apps and is not shared with source base") => Ok(()),
            other => Err(format!("{other:?}")),
        });
        host.write_manifest("login.yaml", &secret("login", "genuine"));
        host.wait_log("owner", "c", "got genuine");
        assert!(!host.logs("owner", "c").contains("forged"), "{first:?}");
        // Each keeps its own.
        attack(&host, "another.yaml", &pod("another", OF_SECRET, ""));
        host.wait_log("another", "c", "got forged");
    }
}

#[test]
fn shared_secret_of_restricted_source_is_used() {
    let host = beside();
    configure(&host, First::Base, BESIDE, None, Some("[{with: [base], secrets: ['*']}]"));
    attack(&host, "login.yaml", &secret("login", "offered"));
    host.write_manifest("user.yaml", &pod("user", OF_SECRET, ""));
    host.wait_log("user", "c", "got offered");
}

#[test]
fn restricted_source_takes_no_name_or_volume() {
    for first in [First::Base, First::Apps] {
        let host = start(first, BESIDE);
        let with_scratch = |what: &str| {
            pod("web", &format!("    workingDir: /\n    env: [{{name: A, value: {what}}}]\n{MOUNTS}"), "{name: v, emptyDir: {}}")
        };
        attack(&host, "web.yaml", &with_scratch("forged"));
        host.wait_log("web", "c", "got forged");
        host.exec("web", "c", &["/bin/sh", "-c", "echo planted > /v/file"]);
        let forged = host.pod("web").unwrap().uid();
        host.write_manifest("web.yaml", &with_scratch("genuine"));
        host.wait_log("web", "c", "got genuine");
        let genuine = host.pod("web").unwrap().uid();
        assert_ne!(genuine, forged, "{first:?}");
        assert_eq!(host.exec("web", "c", &["ls", "/v"]), "", "{first:?}");
        // Nor does it inherit: another incarnation follows.
        host.exec("web", "c", &["/bin/sh", "-c", "echo precious > /v/file"]);
        host.remove_manifest("web.yaml");
        eventually("the restricted source's pod to follow", || match host.pod("web") {
            Some(pod) if pod.uid() != genuine && pod.runs("c") => Ok(()),
            other => Err(format!("{other:?}")),
        });
        assert_eq!(host.exec("web", "c", &["ls", "/v"]), "", "{first:?}");
    }
}

#[test]
fn refusal_outlives_the_daemon() {
    for first in [First::Base, First::Apps] {
        let mut host = start(first, BESIDE);
        host.write_manifest("login.yaml", &secret("login", "hunter2"));
        host.write_manifest("owner.yaml", &pod("owner", OF_SECRET, ""));
        host.wait_log("owner", "c", "got hunter2");
        attack(&host, "spy.yaml", &pod("spy", OF_SECRET, ""));
        wait_refused(&host, "spy", "secrets");
        attack(&host, "owner.yaml", &pod("owner", "", ""));
        let before = host.wait_running("owner");
        host.kill_daemon();
        host.start_daemon();
        wait_refused(&host, "spy", "secrets");
        let after = host.wait_running("owner");
        assert_eq!((after.uid(), after.container_id("c")), (before.uid(), before.container_id("c")), "{first:?}");
        // From the last good state alone.
        host.lose_power();
        for directory in ["apps", "manifests"] {
            fs::rename(host.path(directory), host.path(&format!("{directory}.gone"))).unwrap();
        }
        host.start_daemon();
        host.wait_running("owner");
        wait_refused(&host, "spy", "secrets");
    }
}

#[test]
fn revoked_share_counts_at_next_start() {
    let host = beside();
    configure(&host, First::Base, BESIDE, Some(SHARES_ALL), None);
    host.write_manifest("login.yaml", &secret("login", "hunter2"));
    attack(&host, "spy.yaml", &pod("spy", OF_SECRET, ""));
    host.wait_log("spy", "c", "got hunter2");
    let before = host.wait_running("spy");
    configure(&host, First::Base, BESIDE, None, None);
    // The configuration is read at its own pace: one of the next pods is refused.
    let mut number = 0;
    eventually("a new pod to be refused", || {
        number += 1;
        let name = format!("next-{number}");
        attack(&host, "next.yaml", &pod(&name, OF_SECRET, ""));
        let seen =
            host.wait_for_pod(&name, "to run or to be refused", |pod| pod.runs("c") || pod.0.to_string().contains("is not shared"));
        if seen.runs("c") { Err(name) } else { Ok(()) }
    });
    let after = host.wait_running("spy");
    assert_eq!(after.container_id("c"), before.container_id("c"), "what runs goes on");
}

#[test]
fn restricted_source_has_namespace_of_its_own() {
    let host = start(First::Apps, "{}");
    host.write_manifest("login.yaml", &[secret("login", "hunter2"), pod("web", OF_SECRET, "")].join("---\n"));
    host.wait_log("web", "c", "got hunter2");
    let other = pod("other", "", "").replace("{name: other}", "{name: other, namespace: default}");
    attack(&host, "web.yaml", &[secret("login", "own"), pod("web", OF_SECRET, ""), other].join("---\n"));
    eventually("the pod in the namespace of its source", || {
        let out = host.cli(&["logs", "-n", "apps", "web", "-c", "c"]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        if text.contains("got own") { Ok(()) } else { Err(text) }
    });
    assert_eq!(host.pods().iter().filter(|pod| pod.0["metadata"]["name"] == "other-edge-1").count(), 0);
    let told = host.cli_ok(&["status"]);
    assert!(told.contains("this source may not use namespace \"default\""), "{told}");
}

#[test]
fn plan_says_what_the_daemon_does() {
    let host = beside();
    host.write_manifest("login.yaml", &secret("login", "hunter2"));
    let plan = || {
        let mut command = Command::new(binary("podstead"));
        let out = command
            .arg("--config")
            .arg(host.path("config.yaml"))
            .args(["plan", "--source", "apps"])
            .arg(host.path("spy.yaml"))
            .output();
        let out = out.unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
    };
    fs::write(host.path("spy.yaml"), pod("spy", OF_SECRET, "")).unwrap();
    eventually("the Secret to be accepted", || {
        let out = host.cli(&["get", "secrets"]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        if text.contains("login") { Ok(()) } else { Err(text) }
    });
    let refused = plan();
    assert!(refused.contains("create pod default/spy"), "{refused}");
    assert!(refused.contains("belongs to source base and is not shared with source apps"), "{refused}");
    configure(&host, First::Base, BESIDE, Some(SHARES_ALL), None);
    let shared = plan();
    assert!(shared.contains("create pod default/spy") && !shared.contains("is not shared"), "{shared}");
}

/// A site whose sources are `base` and `apps`.
fn site(first: First) -> Site {
    site_with(first, BESIDE)
}

/// As [`site`], with this `allow`.
fn site_with(first: First, allow: &str) -> Site {
    let mut site = Site::prepare("");
    fs::create_dir(site.host.path("apps")).unwrap();
    configure(&site.host, first, allow, None, None);
    site.host.start_daemon();
    site
}

/// A web server that is a member of a subdomain.
fn member(name: &str, hostname: &str, subdomain: &str) -> String {
    web(name, "", "").replace("spec:\n", &format!("spec:\n  hostname: {hostname}\n  subdomain: {subdomain}\n"))
}

/// The addresses that a question from a pod's network namespace is answered with.
fn dig(site: &Site, name: &str) -> Vec<String> {
    let pid = site.host.container_pid(&site.host.wait_running("client"), "main").to_string();
    let name = format!("{name}.default.svc.cluster.local");
    let out = Command::new("nsenter")
        .args(["-t", &pid, "-n", "dig", "+time=2", "+tries=3", "@169.254.0.1", "+short", &name])
        .output()
        .unwrap();
    let mut found: Vec<String> = String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect();
    found.sort();
    found
}

fn digs(site: &Site, name: &str, addresses: &[&String]) {
    let mut expected: Vec<String> = addresses.iter().map(|address| (*address).clone()).collect();
    expected.sort();
    eventually(&format!("{expected:?} for {name}"), || match dig(site, name) {
        found if found == expected => Ok(()),
        found => Err(format!("{found:?}")),
    });
}

#[test]
fn restricted_source_needs_share_for_subdomain() {
    for first in [First::Base, First::Apps] {
        let site = site(first);
        attack(&site.host, "evil.yaml", &member("evil", "db-0", "db"));
        let evil = site.addresses("evil")[0].clone();
        site.web("client", "", "");
        digs(&site, "evil", &[&evil]);
        site.host.write_manifest("db.yaml", &member("good", "db-0", "db"));
        let good = site.addresses("good")[0].clone();
        for name in ["db", "db-0.db"] {
            digs(&site, name, &[&good]);
        }
        assert_eq!(dig(&site, "evil.db"), [""; 0], "{first:?}");
        configure(&site.host, first, BESIDE, Some(SHARES_ALL), None);
        digs(&site, "db", &[&good, &evil]);
        digs(&site, "evil.db", &[&evil]);
        digs(&site, "db-0.db", &[&good]);
    }
}

#[test]
fn restricted_source_answers_to_no_foreign_name() {
    let site = site(First::Apps);
    attack(&site.host, "evil.yaml", &member("evil", "x", "web"));
    // Its own name is another source's subdomain.
    attack(&site.host, "db.yaml", &web("db", "", ""));
    let (evil, squatter) = (site.addresses("evil")[0].clone(), site.addresses("db")[0].clone());
    let good = site.web("web", "", "")[0].clone();
    site.host.write_manifest("member.yaml", &member("member", "db-0", "db"));
    let of_set = site.addresses("member")[0].clone();
    site.web("client", "", "");
    digs(&site, "web", &[&good]);
    digs(&site, "db", &[&of_set]);
    digs(&site, "db-edge-1", &[&squatter]);
    digs(&site, "evil", &[&evil]);
    // Whatever the daemon hears first after a restart.
    let mut site = site;
    site.host.kill_daemon();
    site.host.start_daemon();
    digs(&site, "web", &[&good]);
    digs(&site, "db", &[&of_set]);
}

#[test]
fn pod_name_wins_over_subdomain() {
    let site = site(First::Base);
    site.host.write_manifest("member.yaml", &member("member", "m", "web"));
    let of_set = site.addresses("member")[0].clone();
    let named = site.web("web", "", "")[0].clone();
    site.web("client", "", "");
    digs(&site, "web", &[&named]);
    digs(&site, "m.web", &[&of_set]);
}

#[test]
fn host_port_is_left_to_unrestricted_source() {
    for first in [First::Base, First::Apps] {
        let site = site_with(first, "{namespaces: [default], persistentVolumes: true, hostPorts: [8080]}");
        attack(&site.host, "evil.yaml", &web("evil", "", "{containerPort: 80, hostPort: 8080}"));
        site.host.wait_running("evil");
        let url = format!("http://{HOST_V4}:8080/");
        site.outside.gets(&url, "I am evil");
        site.host.write_manifest("good.yaml", &web("good", "", "{containerPort: 80, hostPort: 8080}"));
        eventually_within(Duration::from_secs(120), "the port to lead to the other pod", || match site.outside.get(&url) {
            Ok(text) if text.contains("I am good") => Ok(()),
            other => Err(format!("{other:?}")),
        });
        assert!(site.host.pod("evil").is_none(), "{first:?}");
        // It is not lost, either.
        site.host.write_manifest("good.yaml", &web("good", "", "{containerPort: 80, hostPort: 8081}"));
        site.outside.gets(&url, "I am evil");
    }
}
