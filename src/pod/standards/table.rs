//! The controls: level, first version, and the control that each takes the place of.

use super::subject::Subject;
use super::{Findings, Level, host, privileges, profiles, sysctls, users, volumes};

/// One control of the standards.
pub(super) struct Control {
    /// Its name in Kubernetes.
    pub(super) name: &'static str,
    /// The lowest level that has it. A level has the controls of those below it.
    pub(super) level: Level,
    /// The minor release that it came with; later changes of its rule are in `check`.
    pub(super) since: u32,
    pub(super) check: fn(&Subject<'_>, &mut Findings),
    /// The control of `baseline` that does not count beside it.
    pub(super) replaces: Option<&'static str>,
}

const fn baseline(name: &'static str, since: u32, check: fn(&Subject<'_>, &mut Findings)) -> Control {
    Control { name, level: Level::Baseline, since, check, replaces: None }
}

const fn restricted(
    name: &'static str,
    since: u32,
    check: fn(&Subject<'_>, &mut Findings),
    replaces: Option<&'static str>,
) -> Control {
    Control { name, level: Level::Restricted, since, check, replaces }
}

/// All controls, in the order in which Kubernetes reports them.
pub(super) const CONTROLS: &[Control] = &[
    baseline("appArmorProfile", 0, profiles::apparmor),
    baseline("capabilities_baseline", 0, privileges::added_capabilities),
    baseline("hostNamespaces", 0, host::namespaces),
    baseline("hostPathVolumes", 0, volumes::host_paths),
    baseline("hostPorts", 0, host::ports),
    baseline("hostProbesAndHostLifecycle", 34, host::probes),
    baseline("privileged", 0, privileges::privileged),
    baseline("procMount", 0, privileges::proc_mount),
    baseline("seLinuxOptions", 0, profiles::selinux),
    baseline("seccompProfile_baseline", 0, profiles::seccomp),
    baseline("sysctls", 0, sysctls::sysctls),
    baseline("windowsHostProcess", 0, host::windows_processes),
    restricted("allowPrivilegeEscalation", 8, privileges::escalation, None),
    restricted("capabilities_restricted", 22, privileges::dropped_capabilities, Some("capabilities_baseline")),
    restricted("procMount_restricted", 35, privileges::masked_proc, Some("procMount")),
    restricted("restrictedVolumes", 0, volumes::types, Some("hostPathVolumes")),
    restricted("runAsNonRoot", 0, users::non_root, None),
    restricted("runAsUser", 23, users::not_zero, None),
    restricted("seccompProfile_restricted", 19, profiles::seccomp_is_set, Some("seccompProfile_baseline")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_replaced_control_is_one_of_baseline_and_names_are_unique() {
        let names: BTreeSet<_> = CONTROLS.iter().map(|control| control.name).collect();
        assert_eq!(names.len(), CONTROLS.len());
        for replaced in CONTROLS.iter().filter_map(|control| control.replaces) {
            let control = CONTROLS.iter().find(|control| control.name == replaced).expect("the control is there");
            assert_eq!(control.level, Level::Baseline, "{replaced}");
        }
    }
}
