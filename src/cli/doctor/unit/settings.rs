//! Settings of the unit: those that harm pods, and the ceiling of the daemon. **Pure**.
//!
//! The unit file says of each directive why it is set or not; the tables here are the same decisions for a unit that a drop-in changed.

use super::super::finding::Finding;
use super::UNIT;
use podstead_pod::security::ALL_CAPABILITIES;
use std::collections::BTreeMap;

/// Directives that give the daemon a mount namespace, or another one, of its own, with the value that does not.
const PRIVATE: [(&str, &str); 28] = [
    ("PrivateTmp", "no"),
    ("PrivateMounts", "no"),
    ("PrivateDevices", "no"),
    ("PrivateNetwork", "no"),
    ("NetworkNamespacePath", ""),
    ("PrivateUsers", "no"),
    ("PrivateIPC", "no"),
    ("PrivatePIDs", "no"),
    ("ProtectSystem", "no"),
    ("ProtectHome", "no"),
    ("ProtectKernelTunables", "no"),
    ("ProtectKernelLogs", "no"),
    ("ProtectControlGroups", "no"),
    ("ProtectProc", "default"),
    ("ProcSubset", "all"),
    ("ReadOnlyPaths", ""),
    ("ReadWritePaths", ""),
    ("InaccessiblePaths", ""),
    ("ExecPaths", ""),
    ("NoExecPaths", ""),
    ("BindPaths", ""),
    ("BindReadOnlyPaths", ""),
    ("TemporaryFileSystem", ""),
    ("RootDirectory", ""),
    ("RootImage", ""),
    ("LogNamespace", ""),
    ("MountFlags", ""),
    ("DynamicUser", "no"),
];

/// Directives whose effect every container inherits, with the value without effect.
const INHERITED: [(&str, &str); 14] = [
    ("NoNewPrivileges", "no"),
    ("RestrictNamespaces", "no"),
    ("SystemCallFilter", ""),
    ("SystemCallArchitectures", ""),
    ("RestrictAddressFamilies", ""),
    ("RestrictRealtime", "no"),
    ("MemoryDenyWriteExecute", "no"),
    ("RestrictSUIDSGID", "no"),
    ("LockPersonality", "no"),
    ("ProtectClock", "no"),
    ("ProtectHostname", "no"),
    ("ProtectKernelModules", "no"),
    ("AmbientCapabilities", ""),
    ("SecureBits", "0"),
];

/// Capabilities that kernels before 5.9 lack; a bounding set without them was not cut down.
const RECENT_CAPABILITIES: [&str; 3] = ["CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE"];

/// A limit of the daemon's cgroup that the unit sets.
struct Ceiling {
    directive: &'static str,
    /// Value in the unit of this version, in bytes or tasks.
    default: u64,
    /// Consequence of a lower value.
    too_low: &'static str,
}

const CEILINGS: [Ceiling; 3] = [
    Ceiling {
        directive: "MemoryHigh",
        default: 256 << 20,
        too_low: "the kernel throttles the daemon when it unpacks images or reads large sources",
    },
    Ceiling {
        directive: "MemoryMax",
        default: 512 << 20,
        too_low: "the kernel may kill the daemon when it unpacks images or reads large sources; pods keep running",
    },
    Ceiling { directive: "TasksMax", default: 1024, too_low: "the daemon may fail to start threads, CNI plugins or ssh" },
];

/// Properties that [`judge`] looks at.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let tables = PRIVATE.iter().chain(&INHERITED).map(|(name, _)| *name);
    let ceilings = CEILINGS.iter().map(|ceiling| ceiling.directive);
    tables.chain(ceilings).chain(["User", "CapabilityBoundingSet", "OOMPolicy", "ManagedOOMPreference"])
}

/// Findings about the settings. Properties that this systemd does not know are passed over. `place` is where they were set.
pub(super) fn judge(properties: &BTreeMap<String, String>, place: &str) -> Vec<Finding> {
    let take_out = format!("remove that from {place}, then run systemctl daemon-reload and restart the unit");
    let mut findings = Vec::new();
    let private = differing(properties, &PRIVATE);
    if !private.is_empty() {
        findings.push(Finding::problem(
            format!("{UNIT} has {}", private.join(", ")),
            "the daemon then mounts volumes in a namespace of its own: they are invisible to the host and lost at a restart, and hostPath volumes \
             may show other directories than those of the host",
            take_out.clone(),
        ));
    }
    let inherited = differing(properties, &INHERITED);
    if !inherited.is_empty() {
        findings.push(Finding::problem(
            format!("{UNIT} has {}", inherited.join(", ")),
            "every container inherits it: programs fail for reasons that do not show in their pod",
            take_out.clone(),
        ));
    }
    findings.extend(rights(properties, &take_out));
    findings.extend(CEILINGS.iter().filter_map(|ceiling| ceiling.judge(properties.get(ceiling.directive)?, place)));
    findings.extend(out_of_memory(properties, place));
    findings
}

fn differing(properties: &BTreeMap<String, String>, table: &[(&str, &str)]) -> Vec<String> {
    let differs = |(name, harmless): &(&str, &str)| {
        let value = properties.get(*name).filter(|value| value != harmless)?;
        Some(format!("{name}={value}"))
    };
    table.iter().filter_map(differs).collect()
}

/// The daemon is root with all capabilities, or pods lack what it lacks.
fn rights(properties: &BTreeMap<String, String>, take_out: &str) -> Option<Finding> {
    let user = properties.get("User").filter(|user| !matches!(user.as_str(), "" | "root" | "0"));
    if let Some(user) = user {
        let why = "only root can mount and create namespaces and cgroups: no pod starts";
        return Some(Finding::problem(format!("{UNIT} has User={user}"), why, take_out));
    }
    let set: Vec<String> = properties.get("CapabilityBoundingSet")?.split_whitespace().map(str::to_uppercase).collect();
    let expected = ALL_CAPABILITIES.iter().filter(|name| !RECENT_CAPABILITIES.contains(name));
    let missing: Vec<&str> = expected.copied().filter(|name| !set.iter().any(|has| has == name)).collect();
    let what = format!("CapabilityBoundingSet= of {UNIT} lacks {}", missing.join(", "));
    let why = "no pod can have a capability that the daemon lacks, and the daemon itself may fail without it";
    (!missing.is_empty()).then(|| Finding::problem(what, why, take_out))
}

impl Ceiling {
    fn judge(&self, value: &str, place: &str) -> Option<Finding> {
        let Self { directive, default, too_low } = self;
        let usual = self.shown(*default);
        let Ok(limit) = value.parse::<u64>() else {
            // `infinity`: an older unit, or a drop-in that lifts the ceiling. On cgroup v1 systemd shows MemoryHigh=, too.
            let what = format!("{UNIT} has {directive}={value}");
            let why = "a hostile image, registry or repository can make the daemon use any amount; pods have their own limits";
            let remedy =
                format!("set {directive}={usual}, the value in the unit of this version, or remove the other value, in {place}");
            return Some(Finding::warning(what, why, remedy));
        };
        if limit == *default {
            return None;
        }
        let what = format!("{UNIT} has {directive}={}, not {usual}", self.shown(limit));
        if limit > *default {
            return Some(Finding::note(what, "the daemon may use more than the unit of this version allows", ""));
        }
        Some(Finding::warning(what, *too_low, format!("raise it in {place}")))
    }

    /// As it is written in a unit.
    fn shown(&self, limit: u64) -> String {
        let is_mebibytes = self.directive != "TasksMax" && limit.is_multiple_of(1 << 20);
        if is_mebibytes { format!("{}M", limit >> 20) } else { limit.to_string() }
    }
}

/// Consequences when memory is short.
fn out_of_memory(properties: &BTreeMap<String, String>, place: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(policy) = properties.get("OOMPolicy").filter(|policy| *policy != "continue") {
        let why = "when memory is short and the kernel kills a process in the cgroup of the daemon, such as a CNI plugin, systemd stops the daemon";
        findings.push(Finding::warning(
            format!("{UNIT} has OOMPolicy={policy}"),
            why,
            format!("set OOMPolicy=continue in {place}"),
        ));
    }
    if let Some(preference) = properties.get("ManagedOOMPreference").filter(|preference| *preference != "omit") {
        let why = "systemd-oomd may kill the daemon, which uses little memory and is started again, instead of the process that uses the memory";
        let remedy = format!("set ManagedOOMPreference=omit in {place}");
        findings.push(Finding::note(format!("{UNIT} has ManagedOOMPreference={preference}"), why, remedy));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity::{self, Note, Problem, Warning};
    use super::*;

    const FILE: &str = include_str!("../../../../systemd/podstead.service");
    const PLACE: &str = "/etc/systemd/system/podstead.service.d/memory.conf";

    /// Properties as `systemctl show` has them for the packaged unit, as far as they are not defaults of systemd.
    fn packaged() -> BTreeMap<String, String> {
        let directives = FILE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
        let bytes = |value: &str| match value.strip_suffix('M').and_then(|number| number.parse::<u64>().ok()) {
            Some(mebibytes) => (mebibytes << 20).to_string(),
            None => value.to_owned(),
        };
        let mut properties: BTreeMap<_, _> = directives.map(|(name, value)| (name.to_owned(), bytes(value))).collect();
        for (name, harmless) in PRIVATE.iter().chain(&INHERITED) {
            properties.entry((*name).to_owned()).or_insert_with(|| (*harmless).to_owned());
        }
        properties.insert("CapabilityBoundingSet".to_owned(), ALL_CAPABILITIES.join(" ").to_lowercase());
        properties
    }

    fn severities(name: &str, value: &str) -> Vec<Severity> {
        let mut properties = packaged();
        properties.insert(name.to_owned(), value.to_owned());
        judge(&properties, PLACE).iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn packaged_unit_has_the_ceiling_and_nothing_that_harms() {
        assert_eq!(judge(&packaged(), PLACE), []);
        for ceiling in &CEILINGS {
            assert_eq!(packaged()[ceiling.directive], ceiling.default.to_string(), "{}", ceiling.directive);
        }
        assert!(names().all(|name| packaged().contains_key(name) || name == "User"), "{:?}", packaged());
    }

    #[test]
    fn unit_file_gives_the_reason_of_each_directive_that_harms() {
        let comments: Vec<&str> = FILE.lines().filter(|line| line.starts_with('#')).collect();
        let comments = comments.join("\n");
        // Not written any more: PrivateMounts= replaced it.
        let harmful = PRIVATE.iter().chain(&INHERITED).map(|(name, _)| *name).filter(|name| *name != "MountFlags");
        for name in harmful.chain(["User", "CapabilityBoundingSet"]) {
            assert!(comments.contains(&format!("{name}=")), "the unit's comments say nothing of {name}=");
        }
    }

    #[test]
    fn ceiling_that_is_missing_lower_or_higher_is_told() {
        for directive in ["MemoryHigh", "MemoryMax", "TasksMax"] {
            assert_eq!(severities(directive, "infinity"), [Warning], "{directive}");
            assert_eq!(severities(directive, "64"), [Warning], "{directive}");
            assert_eq!(severities(directive, "1073741824"), [Note], "{directive}");
        }
        let mut properties = packaged();
        properties.insert("MemoryMax".to_owned(), (1_u64 << 30).to_string());
        assert_eq!(judge(&properties, PLACE)[0].what, "podstead.service has MemoryMax=1024M, not 512M");
        properties.insert("MemoryMax".to_owned(), "infinity".to_owned());
        let missing = &judge(&properties, PLACE)[0];
        assert!(missing.remedy.starts_with("set MemoryMax=512M") && missing.remedy.ends_with(PLACE), "{missing:?}");
        properties.remove("MemoryMax");
        assert_eq!(judge(&properties, PLACE), [], "systemd that does not know it");
    }

    #[test]
    fn policy_of_killing_for_memory_is_told() {
        assert_eq!(severities("OOMPolicy", "stop"), [Warning]);
        assert_eq!(severities("ManagedOOMPreference", "none"), [Note]);
    }

    #[test]
    fn unit_without_roots_rights_is_a_problem() {
        assert_eq!(severities("User", "podstead"), [Problem]);
        assert_eq!(severities("User", "root"), []);
        assert_eq!(severities("CapabilityBoundingSet", "cap_chown cap_sys_admin"), [Problem]);
        let old_kernel = ALL_CAPABILITIES.iter().filter(|name| !RECENT_CAPABILITIES.contains(name));
        let old_kernel: Vec<String> = old_kernel.map(|name| name.to_lowercase()).collect();
        assert_eq!(severities("CapabilityBoundingSet", &old_kernel.join(" ")), []);
        assert_eq!(severities("SecureBits", "1"), [Problem]);
    }

    #[test]
    fn namespaces_of_its_own_are_a_problem() {
        for (name, value) in [("BindPaths", "/a:/b"), ("LogNamespace", "pods"), ("ReadWritePaths", "/srv"), ("PrivatePIDs", "yes")]
        {
            assert_eq!(severities(name, value), [Problem], "{name}");
        }
    }
}
