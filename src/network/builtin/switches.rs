//! Sysctls that pods need: IP forwarding.
//!
//! Thrown only when they are not, noted before they are thrown, and never thrown back: pods outlive the daemon. A restart of the host does.

use super::record::{self, ThrownSwitches};
use crate::record::RecordError;
use podstead_sys::layout::Paths;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const IPV4_FORWARD: &str = "ipv4/ip_forward";
const IPV6_FORWARD: &str = "ipv6/conf/all/forwarding";

/// Reason why IP forwarding cannot be enabled.
#[derive(Debug, thiserror::Error)]
pub(super) enum SwitchError {
    /// The change cannot be recorded.
    #[error("record the changed sysctls")]
    Note(#[source] RecordError),
    /// A sysctl cannot be read or written.
    #[error("set sysctl {}", path.display())]
    Sysctl {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Returns true if pods can have IPv6 addresses: the kernel supports it, and it is not disabled for new interfaces.
pub(super) fn has_ipv6(root: &Path) -> bool {
    fs::read_to_string(root.join("ipv6/conf/default/disable_ipv6")).is_ok_and(|value| value.trim() == "0")
}

/// Switches that were thrown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Throw {
    /// Since the host started.
    pub(super) ever: ThrownSwitches,
    /// Just now.
    pub(super) now: ThrownSwitches,
}

/// Enables IP forwarding, and returns the sysctls that podstead has changed. `root` is `/proc/sys/net`.
pub(super) fn throw(root: &Path, paths: &Paths, with_ipv6: bool) -> Result<Throw, SwitchError> {
    let mut thrown = record::read_switches(paths).unwrap_or_default();
    let noted = thrown;
    let opens_ipv4 = !is_on(root, IPV4_FORWARD)?;
    let opens_ipv6 = with_ipv6 && !is_on(root, IPV6_FORWARD)?;
    thrown.ipv4 |= opens_ipv4;
    thrown.ipv6 |= opens_ipv6;
    if thrown != noted {
        record::write_switches(paths, thrown).map_err(SwitchError::Note)?;
    }
    if opens_ipv4 {
        write(root, IPV4_FORWARD, "1")?;
        tracing::info!("set net.ipv4.ip_forward to 1; forwarding pod traffic only");
    }
    if opens_ipv6 {
        keep_router_advertisements(root)?;
        write(root, IPV6_FORWARD, "1")?;
        tracing::info!("set net.ipv6.conf.all.forwarding to 1; forwarding pod traffic only");
    }
    Ok(Throw { ever: thrown, now: ThrownSwitches { ipv4: opens_ipv4, ipv6: opens_ipv6 } })
}

/// The names of switches.
pub(super) fn names(switches: ThrownSwitches) -> Vec<&'static str> {
    let all = [(switches.ipv4, "net.ipv4.ip_forward"), (switches.ipv6, "net.ipv6.conf.all.forwarding")];
    all.into_iter().filter_map(|(is_meant, name)| is_meant.then_some(name)).collect()
}

/// A host with IP forwarding ignores router advertisements unless `accept_ra` is 2: set where they were accepted before.
fn keep_router_advertisements(root: &Path) -> Result<(), SwitchError> {
    let directory = root.join("ipv6/conf");
    let failed = |source| SwitchError::Sysctl { path: directory.clone(), source };
    for entry in fs::read_dir(&directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let setting = Path::new("ipv6/conf").join(name).join("accept_ra");
        match fs::read_to_string(root.join(&setting)) {
            Ok(value) if value.trim() == "1" => write(root, &setting, "2")?,
            // Not this interface's, or it has gone away.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

fn is_on(root: &Path, setting: &str) -> Result<bool, SwitchError> {
    let path = root.join(setting);
    match fs::read_to_string(&path) {
        Ok(value) => Ok(value.trim() != "0"),
        Err(source) => Err(SwitchError::Sysctl { path, source }),
    }
}

fn write(root: &Path, setting: impl AsRef<Path>, value: &str) -> Result<(), SwitchError> {
    let path = root.join(setting);
    fs::write(&path, value).map_err(|source| SwitchError::Sysctl { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(root: &Path, forward: &str) -> Paths {
        for (setting, value) in [
            ("ipv4/ip_forward", forward),
            ("ipv6/conf/all/forwarding", forward),
            ("ipv6/conf/default/disable_ipv6", "0"),
            ("ipv6/conf/all/accept_ra", "1"),
            ("ipv6/conf/eth0/accept_ra", "1"),
            ("ipv6/conf/eth1/accept_ra", "0"),
        ] {
            let path = root.join(setting);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{value}\n")).unwrap();
        }
        Paths { state: root.into(), run: root.into(), logs: root.into() }
    }

    fn value(root: &Path, setting: &str) -> String {
        fs::read_to_string(root.join(setting)).unwrap().trim().to_owned()
    }

    #[test]
    fn what_is_off_is_thrown_and_remembered_as_podsteads_doing() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let paths = host(root, "0");
        let both = ThrownSwitches { ipv4: true, ipv6: true };
        assert_eq!(throw(root, &paths, true).unwrap(), Throw { ever: both, now: both });
        assert_eq!((value(root, IPV4_FORWARD), value(root, IPV6_FORWARD)), ("1".into(), "1".into()));
        let again = Throw { ever: both, now: ThrownSwitches::default() };
        assert_eq!(throw(root, &paths, true).unwrap(), again, "it stays podstead's doing");
    }

    #[test]
    fn what_was_on_and_is_switched_off_by_somebody_is_thrown_and_noted() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let paths = host(root, "1");
        throw(root, &paths, true).unwrap();
        fs::write(root.join(IPV4_FORWARD), "0\n").unwrap();
        let ipv4 = ThrownSwitches { ipv4: true, ipv6: false };
        assert_eq!(throw(root, &paths, true).unwrap(), Throw { ever: ipv4, now: ipv4 });
        assert_eq!(names(ipv4), ["net.ipv4.ip_forward"]);
        assert_eq!(record::read_switches(&paths).unwrap(), ipv4);
    }

    #[test]
    fn uplinks_that_listened_to_routers_go_on_listening() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        throw(root, &host(root, "0"), true).unwrap();
        assert_eq!(value(root, "ipv6/conf/eth0/accept_ra"), "2");
        assert_eq!(value(root, "ipv6/conf/all/accept_ra"), "2");
        assert_eq!(value(root, "ipv6/conf/eth1/accept_ra"), "0");
    }

    #[test]
    fn what_is_on_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(throw(root, &host(root, "1"), true).unwrap(), Throw::default());
        assert_eq!(value(root, "ipv6/conf/eth0/accept_ra"), "1");
        assert!(has_ipv6(root));
        fs::write(root.join("ipv6/conf/default/disable_ipv6"), "1\n").unwrap();
        assert!(!has_ipv6(root));
        assert!(!has_ipv6(&root.join("nowhere")));
    }

    #[test]
    fn a_host_without_ipv6_is_asked_for_ipv4_only() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let paths = host(root, "0");
        fs::remove_dir_all(root.join("ipv6")).unwrap();
        assert_eq!(throw(root, &paths, false).unwrap().ever, ThrownSwitches { ipv4: true, ipv6: false });
    }
}
