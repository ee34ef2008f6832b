//! Cgroups: which interface, which controllers, and the line of a boot configuration that is missing.

use super::finding::Finding;
use super::host::Host;
use std::collections::BTreeSet;

/// Observed state.
#[derive(Debug, Default)]
struct Observed {
    /// 2, 1, or nothing where no hierarchy is mounted.
    version: Option<u8>,
    /// A v2 hierarchy without controllers is mounted beside those of v1.
    is_hybrid: bool,
    controllers: BTreeSet<String>,
    /// `/proc/cmdline`.
    command_line: String,
    /// Model of the board, if the firmware reports it.
    model: String,
    /// A `cmdline.txt` of the board's firmware.
    firmware_file: Option<&'static str>,
}

/// Controllers that pods need, with the effect of a missing one.
const NEEDED: [(&str, &str); 2] = [
    ("memory", "memory limits cannot be enforced: pods with resources.limits.memory do not start"),
    ("cpu", "CPU shares and limits cannot be enforced: pods with CPU requests or limits do not start"),
];
const WANTED: [(&str, &str); 4] = [
    ("pids", "the number of processes of a pod cannot be limited"),
    ("cpuset", "pods cannot be pinned to CPUs"),
    ("io", "disk weights have no effect"),
    ("hugetlb", "pods that request huge pages do not start"),
];

pub(super) fn check(host: &Host) -> Vec<Finding> {
    judge(&look(host))
}

fn look(host: &Host) -> Observed {
    let unified = host.mounts.iter().find(|mount| mount.kind == "cgroup2").map(|mount| mount.point.clone());
    let v1: Vec<&str> =
        host.mounts.iter().filter(|mount| mount.kind == "cgroup").flat_map(|mount| mount.options.split(',')).collect();
    let all: BTreeSet<String> = match host.files.read("/proc/cgroups") {
        Some(table) => table.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect(),
        None => BTreeSet::new(),
    };
    let mounted: BTreeSet<String> = v1
        .iter()
        .filter(|option| all.contains(**option))
        // v1 has another name for it.
        .map(|option| if *option == "blkio" { "io" } else { option }.to_owned())
        .collect();
    let (version, controllers) = match (&unified, mounted.is_empty()) {
        (_, false) => (Some(1), mounted),
        (Some(point), true) => {
            let list = std::fs::read_to_string(point.join("cgroup.controllers")).unwrap_or_default();
            (Some(2), list.split_whitespace().map(str::to_owned).collect())
        }
        (None, true) => (None, BTreeSet::new()),
    };
    Observed {
        version,
        is_hybrid: version == Some(1) && unified.is_some(),
        controllers,
        command_line: host.files.read("/proc/cmdline").unwrap_or_default(),
        model: host.files.read("/proc/device-tree/model").unwrap_or_default().trim_end_matches('\0').to_owned(),
        firmware_file: ["/boot/firmware/cmdline.txt", "/boot/cmdline.txt"].into_iter().find(|file| host.files.has(file)),
    }
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let Some(version) = observed.version else {
        let why = "without cgroups containers cannot be tracked, limited or killed";
        let remedy = "mount -t cgroup2 none /sys/fs/cgroup (systemd does this at boot)";
        return vec![Finding::problem("no cgroup hierarchy is mounted", why, remedy)];
    };
    let mut findings = Vec::new();
    let is_missing = |name: &str| !observed.controllers.contains(name);
    for (name, why) in NEEDED.into_iter().filter(|(name, _)| is_missing(name)) {
        findings.push(Finding::problem(format!("the kernel has no {name} controller"), why, remedy(observed, name)));
    }
    for (name, why) in WANTED.into_iter().filter(|(name, _)| is_missing(name)) {
        let finding = Finding::note(format!("the kernel has no {name} controller"), why, "");
        findings.push(if name == "pids" { Finding::warning(finding.what, finding.why, remedy(observed, name)) } else { finding });
    }
    let list = observed.controllers.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let interface = match (version, observed.is_hybrid) {
        (1, true) => "v1, hybrid",
        (1, false) => "v1",
        _ => "v2",
    };
    findings.insert(0, Finding::ok(format!("{interface}, with {list}")));
    if version == 1 {
        let why = "this works, but memory for caches is not protected as it is on v2, and systemd has dropped support for v1";
        findings.push(Finding::note("the host uses cgroup v1", why, "boot with systemd.unified_cgroup_hierarchy=1"));
    }
    findings
}

fn remedy(observed: &Observed, name: &str) -> String {
    let has = |word: &str| observed.command_line.split_whitespace().any(|other| other == word);
    let disabled = format!("cgroup_disable={name}");
    if name == "memory" && (observed.model.contains("Raspberry Pi") || (has(&disabled) && observed.firmware_file.is_some())) {
        let file = observed.firmware_file.unwrap_or("/boot/firmware/cmdline.txt");
        return format!("append \" cgroup_enable=memory cgroup_memory=1\" to the line in {file} and reboot");
    }
    if has(&disabled) {
        return format!("remove {disabled} from the kernel command line (/etc/default/grub, then update-grub) and reboot");
    }
    format!("append \" cgroup_enable={name}\" to the kernel command line and reboot, or use a kernel that includes the controller")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{Note, Ok, Problem, Warning};
    use super::*;

    const ALL: [&str; 6] = ["cpu", "cpuset", "hugetlb", "io", "memory", "pids"];

    fn observed(version: u8, without: &[&str]) -> Observed {
        let controllers = ALL.into_iter().filter(|name| !without.contains(name)).map(str::to_owned).collect();
        Observed { version: Some(version), controllers, ..Observed::default() }
    }

    #[test]
    fn what_is_missing_is_judged_by_what_it_is_needed_for() {
        let severities = |observed: &Observed| judge(observed).iter().map(|finding| finding.severity).collect::<Vec<_>>();
        assert_eq!(severities(&observed(2, &[])), [Ok]);
        assert_eq!(severities(&observed(1, &[])), [Ok, Note]);
        assert_eq!(severities(&observed(2, &["memory"])), [Ok, Problem]);
        assert_eq!(severities(&observed(2, &["pids", "io"])), [Ok, Warning, Note]);
        assert_eq!(severities(&Observed::default()), [Problem]);
    }

    #[test]
    fn the_line_that_a_raspberry_pi_lacks_is_named_with_its_file() {
        let pi = Observed {
            command_line: "coherent_pool=1M cgroup_disable=memory root=/dev/mmcblk0p2".into(),
            model: "Raspberry Pi 4 Model B Rev 1.4".into(),
            firmware_file: Some("/boot/firmware/cmdline.txt"),
            ..observed(2, &["memory"])
        };
        let remedy = judge(&pi)[1].remedy.clone();
        assert_eq!(remedy, "append \" cgroup_enable=memory cgroup_memory=1\" to the line in /boot/firmware/cmdline.txt and reboot");
        let pc = Observed { command_line: "quiet cgroup_disable=memory".into(), ..observed(2, &["memory"]) };
        assert!(judge(&pc)[1].remedy.starts_with("remove cgroup_disable=memory from"));
    }
}
