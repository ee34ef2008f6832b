//! AppArmor profiles, on a kernel that has AppArmor: the machine of `make vm` does.

use crate::support::{TestHost, eventually};
use std::io::Write;
use std::process::{Command, Stdio};

/// Profiles that are loaded for a test. They allow everything but writing one file.
struct Profiles(Vec<String>);

impl Profiles {
    fn load(names: &[&str]) -> Self {
        let profile = |name: &&str| {
            format!(
                "profile {name} flags=(attach_disconnected,mediate_deleted) {{\n  file,\n  capability,\n  network,\n  signal,\n  ptrace,\n  unix,\n  \
                 deny /{name} w,\n}}\n"
            )
        };
        let profiles = Self(names.iter().map(profile).collect());
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
fn a_container_is_confined_by_its_own_profile_and_else_by_its_pod_s() {
    let enabled = std::fs::read_to_string("/sys/module/apparmor/parameters/enabled").unwrap_or_default();
    if enabled.trim() != "Y" {
        eprintln!("SKIPPED: this kernel has no AppArmor");
        return;
    }
    let _profiles = Profiles::load(&["podstead-test-pod", "podstead-test-own"]);
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
