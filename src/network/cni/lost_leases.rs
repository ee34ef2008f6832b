//! Cleanup of host-local after a power cut: empty files named by an address, since the plugin does not flush its writes. To it these
//! addresses are given out, but to nobody: no DEL finds them, and they would be lost for good.

use super::spec::conflist::{Conflist, Plugin};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Default directory of host-local.
const DIRECTORY: &str = "/var/lib/cni/networks";
/// A lease is two short lines.
const MAX_LEASE_BYTES: u64 = 4096;

/// Gives back addresses of a network that host-local has given to nobody; which these are. While somebody else's plugin is at work there, nothing happens.
pub(super) fn give_back(network: &Conflist) -> io::Result<Vec<IpAddr>> {
    let mut given_back = Vec::new();
    for directory in network.plugins.iter().filter_map(directory_of) {
        given_back.extend(empty_in(&directory.join(&network.name))?);
    }
    Ok(given_back)
}

/// Directory of leases of the plugin's host-local; `None` if its addresses come from elsewhere.
fn directory_of(plugin: &Plugin) -> Option<PathBuf> {
    let ipam = plugin.written.get("ipam")?;
    if ipam.get("type")?.as_str()? != "host-local" {
        return None;
    }
    let configured = ipam.get("dataDir").and_then(|value| value.as_str()).filter(|text| !text.is_empty());
    Some(PathBuf::from(configured.unwrap_or(DIRECTORY)))
}

fn empty_in(directory: &Path) -> io::Result<Vec<IpAddr>> {
    // The plugin's own lock: who holds it sees no lease that is just being written.
    let lock = match File::options().write(true).open(directory.join("lock")) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Vec::new()),
        held => held?,
    }
    let mut removed = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Some(address) = entry.file_name().to_str().and_then(|name| name.parse::<IpAddr>().ok()) else { continue };
        let found = entry.metadata()?;
        // Some file systems leave as many zeros as there were bytes.
        let is_empty = found.is_file() && found.len() <= MAX_LEASE_BYTES && fs::read(entry.path())?.iter().all(|byte| *byte == 0);
        if is_empty {
            fs::remove_file(entry.path())?;
            removed.push(address);
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cni::spec::conflist::Form;

    #[test]
    fn addresses_of_nobody_are_given_back_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        let text = format!(
            r#"{{"cniVersion": "1.0.0", "name": "lan", "plugins": [{{"type": "bridge", "ipam": {{"type": "host-local", "dataDir": "{}"}}}}, {{"type": "portmap"}}]}}"#,
            root.path().display()
        );
        let network = Conflist::parse(text.as_bytes(), Form::List).unwrap();
        assert_eq!(give_back(&network).unwrap(), [] as [IpAddr; 0], "no address was ever given out");
        let at = root.path().join("lan");
        fs::create_dir(&at).unwrap();
        for (name, content) in [
            ("lock", ""),
            ("last_reserved_ip.0", ""),
            ("10.77.0.2", ""),
            ("10.77.0.3", "uid\r\neth0"),
            ("10.77.0.4", "\0\0\0\0"),
            ("fd00::2", ""),
        ] {
            fs::write(at.join(name), content).unwrap();
        }
        let other = File::open(at.join("lock")).unwrap();
        flock(&other, FlockOperation::LockExclusive).unwrap();
        assert_eq!(give_back(&network).unwrap(), [] as [IpAddr; 0], "a plugin is at work");
        drop(other);
        let mut given_back = give_back(&network).unwrap();
        given_back.sort_unstable();
        assert_eq!(given_back, ["10.77.0.2", "10.77.0.4", "fd00::2"].map(|text| text.parse::<IpAddr>().unwrap()));
        let mut left: Vec<_> = fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort_unstable();
        assert_eq!(left, ["10.77.0.3", "last_reserved_ip.0", "lock"]);
    }

    #[test]
    fn host_local_has_a_directory_of_its_own_where_none_is_configured() {
        let directory = |ipam: &str| {
            let text = format!(r#"{{"cniVersion": "1.0.0", "name": "lan", "plugins": [{{"type": "bridge", "ipam": {ipam}}}]}}"#);
            directory_of(&Conflist::parse(text.as_bytes(), Form::List).unwrap().plugins[0])
        };
        assert_eq!(directory(r#"{"type": "host-local"}"#), Some(DIRECTORY.into()));
        assert_eq!(directory(r#"{"type": "dhcp"}"#), None);
        assert_eq!(directory("{}"), None);
    }
}
