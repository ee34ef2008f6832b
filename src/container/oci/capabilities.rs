//! Effective capabilities of a container: the requested ones, as far as the host has them.

use super::OciError;
use crate::Security;
use oci_spec::runtime::{Capabilities, Capability};
use podstead_pod::security::{ALL_CAPABILITIES, DEFAULT_CAPABILITIES};
use std::str::FromStr;

/// Cuts the list down to what this host can give (`available`: bits by number). What everybody gets by default or by `ALL` is left out
/// in silence where the host lacks it, as runc does; what the manifest names must be there.
pub(super) fn granted(security: &Security, available: u64) -> Result<Capabilities, OciError> {
    let all = ALL_CAPABILITIES.iter().all(|name| security.capabilities.iter().any(|other| other == name));
    let mut granted = Capabilities::new();
    for name in &security.capabilities {
        let unknown = || OciError::UnknownCapability(name.clone());
        let number = ALL_CAPABILITIES.iter().position(|other| other == name).ok_or_else(unknown)?;
        if available & (1 << number) != 0 {
            granted.insert(capability(name).ok_or_else(unknown)?);
        } else if !all && !security.privileged && !DEFAULT_CAPABILITIES.contains(&name.as_str()) {
            return Err(OciError::CapabilityUnavailable(name.clone()));
        }
    }
    Ok(granted)
}

fn capability(name: &str) -> Option<Capability> {
    Capability::from_str(name.strip_prefix("CAP_")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeccompProfile;

    fn security(capabilities: &[&str], privileged: bool) -> Security {
        Security {
            privileged,
            capabilities: capabilities.iter().map(|name| (*name).to_owned()).collect(),
            no_new_privileges: false,
            read_only_root: false,
            unmasked_proc: false,
            seccomp: SeccompProfile::RuntimeDefault,
            apparmor: None,
        }
    }

    #[test]
    fn every_capability_of_linux_is_known_to_the_oci_types() {
        for name in ALL_CAPABILITIES {
            assert!(capability(name).is_some(), "{name}");
        }
        assert_eq!(granted(&security(&ALL_CAPABILITIES, false), u64::MAX).unwrap().len(), ALL_CAPABILITIES.len());
    }

    #[test]
    fn what_the_host_lacks_is_left_out_of_defaults_and_all_but_refused_by_name() {
        let without_chown = !1_u64;
        assert_eq!(granted(&security(&DEFAULT_CAPABILITIES, false), without_chown).unwrap().len(), DEFAULT_CAPABILITIES.len() - 1);
        let without_sys_time = !(1_u64 << 25);
        assert_eq!(granted(&security(&ALL_CAPABILITIES, true), without_sys_time).unwrap().len(), ALL_CAPABILITIES.len() - 1);
        assert_eq!(granted(&security(&ALL_CAPABILITIES, false), without_sys_time).unwrap().len(), ALL_CAPABILITIES.len() - 1);
        let refused = granted(&security(&["CAP_CHOWN", "CAP_SYS_TIME"], false), without_sys_time).unwrap_err();
        assert_eq!(refused.to_string(), "capability CAP_SYS_TIME is not available on this host");
        let unknown = granted(&security(&["CAP_FLY"], false), u64::MAX).unwrap_err();
        assert_eq!(unknown.to_string(), "unknown capability \"CAP_FLY\"");
    }
}
