//! AppArmor profiles, on a kernel that has AppArmor: the machine of `make vm` does.

use crate::support::{TestHost, eventually};
use std::io::Write;
use std::process::{Command, Stdio};

/// The profile of the package.
const DEFAULT: &str = include_str!("../../packaging/deb/apparmor");

/// A profile that allows everything but writing one file.
fn own_profile(name: &str) -> String {
    format!(
        "profile {name} flags=(attach_disconnected,mediate_deleted) {{\n  file,\n  capability,\n  network,\n  signal,\n  ptrace,\n  unix,\n  \
         deny /{name} w,\n}}\n"
    )
}

fn is_enabled() -> bool {
    let enabled = std::fs::read_to_string("/sys/module/apparmor/parameters/enabled").is_ok_and(|enabled| enabled.trim() == "Y");
    if !enabled {
        eprintln!("SKIPPED: this kernel has no AppArmor");
    }
    enabled
}

/// Profiles that are loaded for a test.
struct Profiles(Vec<String>);

impl Profiles {
    fn load(profiles: &[String]) -> Self {
        let profiles = Self(profiles.to_vec());
        for profile in &profiles.0 {
            assert!(Self::parse("--replace", profile), "apparmor_parser refuses {profile}");
        }
        profiles
    }

    fn parse(how: &str, profile: &str) -> bool {
        let Ok(mut parser) = Command::new("apparmor_parser").args([how, "--skip-cache"]).stdin(Stdio::piped()).spawn() else {
            return false;
        };
        let written = parser.stdin.take().is_some_and(|mut stdin| stdin.write_all(profile.as_bytes()).is_ok());
        parser.wait().is_ok_and(|status| status.success()) && written
    }
}

impl Drop for Profiles {
    fn drop(&mut self) {
        for profile in &self.0 {
            Self::parse("--remove", profile);
        }
    }
}

/// shows: spec.securityContext.appArmorProfile.type, spec.securityContext.appArmorProfile.localhostProfile
/// shows: spec.containers[].securityContext.appArmorProfile.type, spec.containers[].securityContext.appArmorProfile.localhostProfile
#[test]
fn container_profile_precedes_the_profile_of_pod() {
    if !is_enabled() {
        return;
    }
    let _profiles = Profiles::load(&["podstead-test-pod", "podstead-test-own"].map(own_profile));
    let host = TestHost::start();
    let container = |name: &str, fields: &str| {
        format!("  - {{name: {name}, image: 'localhost/busybox:1', command: [sleep, '1000000'], securityContext: {{{fields}}}}}\n")
    };
    let containers = container("pods", "")
        + &container("own", "appArmorProfile: {type: Localhost, localhostProfile: podstead-test-own}")
        + &container("free", "appArmorProfile: {type: Unconfined}");
    host.write_manifest(
        "web.yaml",
        &format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  terminationGracePeriodSeconds: 1\n  securityContext: {{appArmorProfile: \
             {{type: Localhost, localhostProfile: podstead-test-pod}}}}\n  containers:\n{containers}"
        ),
    );
    let web = host.wait_running("web");
    for (name, profile) in [("pods", "podstead-test-pod (enforce)"), ("own", "podstead-test-own (enforce)"), ("free", "unconfined")]
    {
        let pid = host.container_pid(&web, name);
        assert_eq!(std::fs::read_to_string(format!("/proc/{pid}/attr/current")).unwrap().trim(), profile, "{name}");
    }
    let touched = |container: &str| {
        host.exec("web", container, &["/bin/sh", "-c", "touch /podstead-test-pod /podstead-test-own; ls / | grep test; true"])
    };
    assert_eq!(touched("free"), "podstead-test-own\npodstead-test-pod\n");
    assert_eq!(touched("pods"), "podstead-test-own\n", "a process that is started in it later is confined, too");
    assert_eq!(touched("own"), "podstead-test-pod\n");
    // A process that copies executes nothing, and is confined all the same.
    std::fs::write(host.path("file"), "x").unwrap();
    let copy = |container: &str| {
        let file = host.path("file").display().to_string();
        host.cli(&["cp", &file, "web:/podstead-test-own", "-c", container]).status.success()
    };
    assert_eq!((copy("free"), copy("pods"), copy("own")), (true, true, false));
    // A profile that is not there keeps its container from starting.
    let missing = container("main", "appArmorProfile: {type: Localhost, localhostProfile: podstead-test-none}");
    host.write_manifest(
        "missing.yaml",
        &format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: missing}}\nspec:\n  containers:\n{missing}"),
    );
    eventually("the reason", || {
        let status = host.pod("missing").map(|pod| pod.0["status"].to_string()).unwrap_or_default();
        if status.contains("podstead-test-none") || status.contains("apparmor") { Ok(()) } else { Err(status) }
    });
    assert!(!host.pod("missing").unwrap().runs("main"));
}

/// shows: spec.securityContext.appArmorProfile.type, spec.containers[].securityContext.appArmorProfile.type
#[test]
fn default_profile_confines_and_permits_usual_work() {
    if !is_enabled() {
        return;
    }
    let loaded = std::fs::read_to_string("/sys/kernel/security/apparmor/profiles").unwrap();
    // Not to be taken away from whoever loaded it before.
    let _profiles = (!loaded.contains("podstead-default ")).then(|| Profiles::load(&[DEFAULT.to_owned()]));
    let host = TestHost::start();
    let script = "trap 'echo bye; exit 0' TERM; sleep 1000000 & echo up; while true; do sleep 0.1; done";
    let container = |name: &str, fields: &str| {
        format!(
            "  - {{name: {name}, image: 'localhost/busybox:1', command: [/bin/sh, -c, \"{script}\"], securityContext: {{{fields}}}}}\n"
        )
    };
    let mount = "capabilities: {add: [SYS_ADMIN]}";
    let containers = container("silent", mount)
        + &container("named", "appArmorProfile: {type: RuntimeDefault}")
        + &container("free", &format!("appArmorProfile: {{type: Unconfined}}, {mount}"))
        + &container("privileged", "privileged: true");
    host.write_manifest(
        "web.yaml",
        &format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  terminationGracePeriodSeconds: 30\n  containers:\n{containers}"
        ),
    );
    let web = host.wait_running("web");
    let confined = "podstead-default (enforce)";
    for (name, profile) in [("silent", confined), ("named", confined), ("free", "unconfined"), ("privileged", "unconfined")] {
        let pid = host.container_pid(&web, name);
        assert_eq!(std::fs::read_to_string(format!("/proc/{pid}/attr/current")).unwrap().trim(), profile, "{name}");
    }
    let tries_to_mount = "mount -t tmpfs none /tmp 2>/dev/null && echo mounted || echo refused";
    assert_eq!(host.exec("web", "free", &["/bin/sh", "-c", tries_to_mount]), "mounted\n");
    assert_eq!(host.exec("web", "silent", &["/bin/sh", "-c", tries_to_mount]), "refused\n");
    let usual = "echo text > /file && cat /file && ln /file /link && mkfifo /pipe && cat /proc/1/status > /dev/null && \
                 { sleep 1000 & kill $!; } && echo done";
    assert_eq!(host.exec("web", "named", &["/bin/sh", "-c", usual]), "text\ndone\n");
    host.wait_log("web", "silent", "up");
    let log = host.path("log/pods").join(format!("default_web-edge-1_{}/silent/0.log", web.uid()));
    std::fs::hard_link(log, host.path("silent.log")).unwrap();
    host.remove_manifest("web.yaml");
    host.wait_gone("web");
    assert!(std::fs::read_to_string(host.path("silent.log")).unwrap().contains(" bye\n"), "a signal from the host is heard");
}
