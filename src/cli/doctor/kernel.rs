//! Features of the kernel.

use super::finding::Finding;
use super::host::Host;
use podstead_container::kernel::lists_profile;
use podstead_pod::security::DEFAULT_APPARMOR_PROFILE;

/// Availability of a kernel module.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Module {
    /// Built in or loaded.
    Here,
    /// On disk; the kernel loads it when it is asked for.
    Loadable,
    Absent,
    /// There is no list of modules to look into.
    Unknown,
}

/// Observed state.
#[derive(Debug)]
struct Observed {
    release: String,
    overlay: Module,
    nf_tables: Module,
    veth: Module,
    /// The client of NFS; unknown unless a pod has a volume of it.
    nfs: Module,
    seccomp: bool,
    /// Namespaces of users that may be made; nothing where the kernel has none.
    user_namespaces: Option<u64>,
    apparmor: bool,
    /// The profile of containers that name none.
    default_profile: bool,
}

pub(super) fn check(host: &Host) -> Vec<Finding> {
    judge(&look(host))
}

fn look(host: &Host) -> Observed {
    let files = &host.files;
    let release = files.read("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    let list = |name: &str| {
        let lists = [format!("/lib/modules/{release}/{name}"), format!("/usr/lib/modules/{release}/{name}")];
        lists.iter().find_map(|path| files.read(path))
    };
    let (built_in, on_disk) = (list("modules.builtin"), list("modules.dep"));
    let module = |name: &str| {
        let is_in = |list: &Option<String>| {
            let file = |line: &str| line.split(':').next().unwrap_or_default().rsplit('/').next().map(str::to_owned);
            list.iter()
                .flat_map(|list| list.lines())
                .filter_map(file)
                .any(|file| file.split('.').next().is_some_and(|stem| stem.replace('-', "_") == name))
        };
        if files.has(&format!("/sys/module/{name}")) || is_in(&built_in) {
            Module::Here
        } else if is_in(&on_disk) {
            Module::Loadable
        } else if on_disk.is_some() {
            Module::Absent
        } else {
            Module::Unknown
        }
    };
    let filesystems = files.read("/proc/filesystems").unwrap_or_default();
    let has_overlay = filesystems.lines().any(|line| line.trim_start_matches("nodev").trim() == "overlay");
    Observed {
        overlay: if has_overlay { Module::Here } else { module("overlay") },
        nf_tables: module("nf_tables"),
        veth: module("veth"),
        nfs: if is_nfs_wanted(host) { module("nfs") } else { Module::Unknown },
        seccomp: files.has("/proc/sys/kernel/seccomp/actions_avail"),
        user_namespaces: files
            .has("/proc/self/ns/user")
            .then(|| files.number("/proc/sys/user/max_user_namespaces").unwrap_or(u64::MAX)),
        apparmor: files.read("/sys/module/apparmor/parameters/enabled").is_some_and(|value| value.starts_with('Y')),
        default_profile: files
            .read("/sys/kernel/security/apparmor/profiles")
            .is_none_or(|profiles| lists_profile(&profiles, DEFAULT_APPARMOR_PROFILE)),
        release,
    }
}

fn is_nfs_wanted(host: &Host) -> bool {
    let pods = host.answers.iter().flat_map(|answers| &answers.pods);
    let mut volumes = pods.filter_map(|pod| pod.spec.as_ref()).flat_map(|spec| spec.volumes.iter().flatten());
    volumes.any(|volume| volume.nfs.is_some())
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let mut findings = Vec::new();
    let release = version(&observed.release);
    if release < (5, 6) {
        findings.push(Finding::problem(
            format!("the kernel is {}", observed.release),
            "containers need system calls that Linux 5.6 added",
            "use a newer kernel",
        ));
    } else if release < (5, 12) {
        findings.push(Finding::note(
            format!("the kernel is {}", observed.release),
            "idmapped and recursive read-only mounts need Linux 5.12: pods with hostUsers: false or recursiveReadOnly do not start",
            "use a newer kernel",
        ));
    }
    if observed.overlay == Module::Absent {
        let why = "image layers are mounted with it: no container starts";
        findings.push(Finding::problem("the kernel has no overlayfs", why, "use a kernel with CONFIG_OVERLAY_FS"));
    }
    if !observed.seccomp {
        let why = "only containers with seccompProfile Unconfined start";
        findings.push(Finding::problem("the kernel has no seccomp filters", why, "use a kernel with CONFIG_SECCOMP_FILTER"));
    }
    match observed.user_namespaces {
        None => findings.push(Finding::note("the kernel has no user namespaces", "pods with hostUsers: false do not start", "")),
        Some(0) => findings.push(Finding::note(
            "user namespaces are disabled",
            "pods with hostUsers: false do not start",
            "sysctl -w user.max_user_namespaces=65536, and set it in /etc/sysctl.d",
        )),
        Some(_) => {}
    }
    for (module, name, why) in [
        (observed.nf_tables, "nf_tables", "host ports cannot be forwarded to pods, and pods cannot reach other hosts"),
        (observed.veth, "veth", "pods cannot have their own network"),
    ] {
        if module == Module::Absent {
            findings.push(Finding::warning(
                format!("the kernel has no {name}"),
                why,
                "use a kernel that has it, or set hostNetwork: true",
            ));
        }
    }
    if observed.nfs == Module::Absent {
        findings.push(Finding::warning(
            "the kernel has no NFS client",
            "pods with nfs volumes do not start",
            "install the kernel package with the module nfs (on Debian a linux-image package)",
        ));
    }
    if !observed.apparmor {
        findings.push(Finding::note(
            "AppArmor is disabled",
            "pods that name an AppArmor profile do not start; other pods run without one",
            "",
        ));
    } else if !observed.default_profile {
        findings.push(Finding::warning(
            format!("the AppArmor profile {DEFAULT_APPARMOR_PROFILE} is not loaded"),
            "containers that do not name a profile run unconfined by AppArmor",
            "apparmor_parser --replace /etc/apparmor.d/podstead-default (package apparmor), then restart the containers",
        ));
    }
    let can = format!("{}, with overlayfs, seccomp and user namespaces", observed.release);
    if findings.iter().all(|finding| finding.severity == super::finding::Severity::Note)
        && observed.user_namespaces.is_some_and(|n| n > 0)
    {
        findings.insert(0, Finding::ok(can));
    }
    findings
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, Note, Ok, Problem, Warning};
    use super::*;

    fn well() -> Observed {
        Observed {
            release: "6.12.48+rpt-rpi-v8".into(),
            overlay: Module::Loadable,
            nf_tables: Module::Unknown,
            veth: Module::Here,
            nfs: Module::Unknown,
            seccomp: true,
            user_namespaces: Some(10),
            apparmor: true,
            default_profile: true,
        }
    }

    #[test]
    fn each_feature_is_judged_by_what_does_not_work_without_it() {
        let severities = |observed: Observed| judge(&observed).iter().map(|finding| finding.severity).collect::<Vec<Severity>>();
        assert_eq!(severities(well()), [Ok]);
        assert_eq!(severities(Observed { release: "5.4.0-1".into(), ..well() }), [Problem]);
        assert_eq!(severities(Observed { release: "5.10.0".into(), ..well() }), [Ok, Note]);
        assert_eq!(severities(Observed { overlay: Module::Absent, ..well() }), [Problem]);
        assert_eq!(severities(Observed { seccomp: false, ..well() }), [Problem]);
        assert_eq!(severities(Observed { user_namespaces: Some(0), ..well() }), [Note]);
        assert_eq!(severities(Observed { user_namespaces: None, ..well() }), [Note]);
        assert_eq!(severities(Observed { nf_tables: Module::Absent, veth: Module::Absent, ..well() }), [Warning, Warning]);
        assert_eq!(severities(Observed { nfs: Module::Absent, ..well() }), [Warning]);
        assert_eq!(severities(Observed { apparmor: false, ..well() }), [Ok, Note]);
        assert_eq!(severities(Observed { apparmor: false, default_profile: false, ..well() }), [Ok, Note]);
        assert_eq!(severities(Observed { default_profile: false, ..well() }), [Warning]);
    }
}
