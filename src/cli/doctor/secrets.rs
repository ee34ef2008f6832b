//! The machine key, with which data on disk is encrypted.

use super::finding::Finding;
use super::host::Host;
use podstead_sys::machine_key::{MachineKey, credentials};
use podstead_telemetry::error_chain;
use std::os::unix::fs::PermissionsExt;

/// Observed state.
#[derive(Debug)]
struct Observed {
    path: String,
    /// Existence of the key, or the error of reading it.
    key: Result<bool, String>,
    /// Permission bits of its file.
    mode: Option<u32>,
    is_root: bool,
}

pub(super) fn check(host: &Host) -> Vec<Finding> {
    let path = host.paths.machine_key();
    let key = MachineKey::load(&path, credentials().as_deref());
    judge(&Observed {
        key: key.map(|key| key.is_some()).map_err(|error| error_chain(&error).to_string()),
        mode: std::fs::metadata(&path).ok().map(|metadata| metadata.permissions().mode() & 0o777),
        path: path.display().to_string(),
        is_root: host.is_root,
    })
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let path = &observed.path;
    let mut findings = vec![match &observed.key {
        Ok(true) => Finding::ok("the machine key is readable"),
        Ok(false) => Finding::note("this host has no machine key yet", "the daemon creates it when it starts", ""),
        Err(error) if observed.is_root => Finding::problem(
            format!("cannot use the machine key: {error}"),
            "Secrets that are stored for a start without network cannot be decrypted; they are fetched again from their sources",
            format!("restore {path} from a backup, or remove it: the daemon then creates a new one"),
        ),
        Err(_) => Finding::note("this user cannot read the machine key", "", "sudo podstead doctor"),
    }];
    if observed.mode.is_some_and(|mode| mode & 0o077 != 0) {
        let why = "anyone who can read it can decrypt the Secrets that are stored on disk";
        findings.push(Finding::problem(format!("{path} is readable by other users"), why, format!("chmod 600 {path}")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, Note, Ok as Well, Problem};
    use super::*;

    #[test]
    fn a_key_is_readable_for_root_and_for_nobody_else() {
        let severities = |key: Result<bool, &str>, mode, is_root| {
            let observed = Observed { path: "/k".into(), key: key.map_err(str::to_owned), mode, is_root };
            judge(&observed).iter().map(|finding| finding.severity).collect::<Vec<Severity>>()
        };
        assert_eq!(severities(Ok(true), Some(0o600), true), [Well]);
        assert_eq!(severities(Ok(false), None, true), [Note]);
        assert_eq!(severities(Err("3 bytes"), Some(0o600), true), [Problem]);
        assert_eq!(severities(Err("permission denied"), None, false), [Note]);
        assert_eq!(severities(Ok(true), Some(0o644), true), [Well, Problem]);
    }
}
