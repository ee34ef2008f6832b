//! The systemd unit of the daemon: its state, its ceiling, and settings that harm pods.

mod settings;

use super::finding::Finding;
use super::host::Host;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

const UNIT: &str = "podstead.service";

/// Observed state.
#[derive(Debug, Default)]
struct Observed {
    /// The host was booted with systemd.
    has_systemd: bool,
    /// Output of `systemctl show`; empty if it failed.
    properties: BTreeMap<String, String>,
    /// The daemon responds, however it was started.
    daemon_answers: bool,
}

const OTHERS: [&str; 9] = [
    "LoadState",
    "ActiveState",
    "UnitFileState",
    "NRestarts",
    "KillMode",
    "RuntimeDirectoryPreserve",
    "NeedDaemonReload",
    "DropInPaths",
    "Result",
];

pub(super) fn check(host: &Host) -> Vec<Finding> {
    let has_systemd = host.files.has("/run/systemd/system");
    let properties = if has_systemd { ask_systemd() } else { BTreeMap::new() };
    judge(&Observed { has_systemd, properties, daemon_answers: host.answers.is_ok() })
}

fn ask_systemd() -> BTreeMap<String, String> {
    let wanted: Vec<&str> = OTHERS.into_iter().chain(settings::names()).collect();
    // systemd answers within its own time limit of 25 s, or not at all.
    let mut command = Command::new("systemctl");
    command.args(["show", UNIT, "--no-pager", "-p", &wanted.join(",")]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    properties(&String::from_utf8_lossy(&output))
}

fn properties(text: &str) -> BTreeMap<String, String> {
    // A lone tilde is a filter that forbids nothing.
    let value = |value: &str| value.strip_prefix('~').filter(|rest| rest.is_empty()).unwrap_or(value).to_owned();
    text.lines().filter_map(|line| line.split_once('=')).map(|(name, written)| (name.to_owned(), value(written))).collect()
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let Observed { properties, .. } = observed;
    if !observed.has_systemd {
        return vec![Finding::note(
            "the host was not booted with systemd",
            "another service manager must start podstead daemon at boot",
            "",
        )];
    }
    let value = |name: &str| properties.get(name).map_or("", String::as_str);
    if matches!(value("LoadState"), "" | "not-found") {
        let remedy = format!("install the package, or systemd/{UNIT} from the source code");
        return vec![Finding::warning(format!("{UNIT} is not installed"), "nothing starts the daemon at boot", remedy)];
    }
    let mut findings = Vec::new();
    match value("ActiveState") {
        "failed" => findings.push(Finding::problem(
            format!("{UNIT} has failed ({})", value("Result")),
            "running containers keep running, but nothing is started, restarted or changed",
            format!("journalctl -u {UNIT} shows why; then systemctl restart {UNIT}"),
        )),
        "inactive" if observed.daemon_answers => {
            let why = "systemd does not restart it if it fails";
            findings.push(Finding::warning(
                format!("the daemon is running, but not as {UNIT}"),
                why,
                format!("systemctl start {UNIT}"),
            ));
        }
        _ => {}
    }
    if matches!(value("UnitFileState"), "disabled" | "masked" | "masked-runtime") {
        let what = format!("{UNIT} is {}", value("UnitFileState"));
        findings.push(Finding::warning(what, "pods do not start after a reboot", format!("systemctl enable {UNIT}")));
    }
    if let Ok(restarts @ 3..) = value("NRestarts").parse::<u32>() {
        let what = format!("systemd has restarted the daemon {restarts} times");
        findings.push(Finding::warning(
            what,
            "pods keep running, but the daemon fails repeatedly",
            format!("journalctl -u {UNIT} shows why"),
        ));
    }
    let drop_ins = value("DropInPaths");
    let place = if drop_ins.is_empty() { format!("the unit (systemctl cat {UNIT})") } else { drop_ins.to_owned() };
    findings.extend(settings::judge(properties, &place));
    if !matches!(value("KillMode"), "" | "process") {
        let what = format!("{UNIT} has KillMode={}", value("KillMode"));
        findings.push(Finding::warning(
            what,
            "a restart of the unit may kill programs that the daemon has started",
            format!("set KillMode=process in {place}"),
        ));
    }
    if value("RuntimeDirectoryPreserve") == "no" {
        findings.push(Finding::problem(
            format!("{UNIT} has RuntimeDirectoryPreserve=no"),
            "stopping the unit removes the sockets of all shims: the next daemon cannot find the running pods and starts them again",
            format!("set RuntimeDirectoryPreserve=yes in {place}"),
        ));
    }
    if value("NeedDaemonReload") == "yes" {
        findings.push(Finding::warning(
            format!("{UNIT} was changed on disk"),
            "systemd still uses the previous version",
            "systemctl daemon-reload",
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(format!("{UNIT} is {} and {}", value("ActiveState"), value("UnitFileState"))));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, Note, Ok, Problem, Warning};
    use super::*;

    fn observed(changes: &[(&str, &str)]) -> Observed {
        let well = [
            ("LoadState", "loaded"),
            ("ActiveState", "active"),
            ("UnitFileState", "enabled"),
            ("NRestarts", "0"),
            ("KillMode", "process"),
            ("RuntimeDirectoryPreserve", "yes"),
            ("NeedDaemonReload", "no"),
            ("PrivateTmp", "no"),
            ("ProtectSystem", "no"),
            ("NoNewPrivileges", "no"),
            ("SystemCallFilter", ""),
            ("MemoryMax", "536870912"),
        ];
        let properties = well.iter().chain(changes).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Observed { has_systemd: true, properties, daemon_answers: true }
    }

    #[test]
    fn states_and_settings_of_the_unit_are_judged() {
        let severities =
            |changes: &[(&str, &str)]| judge(&observed(changes)).iter().map(|finding| finding.severity).collect::<Vec<Severity>>();
        assert_eq!(severities(&[]), [Ok]);
        assert_eq!(severities(&[("LoadState", "not-found")]), [Warning]);
        assert_eq!(severities(&[("ActiveState", "failed")]), [Problem]);
        assert_eq!(severities(&[("ActiveState", "inactive")]), [Warning]);
        assert_eq!(severities(&[("UnitFileState", "disabled")]), [Warning]);
        assert_eq!(severities(&[("NRestarts", "7")]), [Warning]);
        assert_eq!(severities(&[("PrivateTmp", "yes"), ("ProtectSystem", "strict")]), [Problem]);
        assert_eq!(severities(&[("NoNewPrivileges", "yes")]), [Problem]);
        assert_eq!(severities(&[("ProtectProc", "invisible")]), [Problem]);
        assert_eq!(severities(&[("RestrictAddressFamilies", "AF_UNIX AF_INET")]), [Problem]);
        assert_eq!(severities(&[("KillMode", "control-group")]), [Warning]);
        assert_eq!(severities(&[("RuntimeDirectoryPreserve", "no")]), [Problem]);
        assert_eq!(severities(&[("NeedDaemonReload", "yes")]), [Warning]);
        assert_eq!(judge(&Observed::default())[0].severity, Note);
    }

    #[test]
    fn a_filter_of_system_calls_counts_if_it_forbids_something() {
        let read = properties("LoadState=loaded\nSystemCallFilter=~\n");
        assert_eq!(read["SystemCallFilter"], "");
        let read = properties("SystemCallFilter=~mount umount2\n");
        assert_eq!(read["SystemCallFilter"], "~mount umount2");
    }

    #[test]
    fn the_file_that_brings_a_harmful_setting_is_named() {
        let path = "/etc/systemd/system/podstead.service.d/hardening.conf";
        let found = judge(&observed(&[("PrivateTmp", "yes"), ("DropInPaths", path)]));
        assert!(found[0].what.ends_with("has PrivateTmp=yes") && found[0].remedy.contains(path), "{found:?}");
    }
}
