//! Abilities of this kernel and rights of this process: facts that pure code takes as an argument.

use crate::cgroup::{CgroupVersion, Hierarchies};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Facts about the kernel; the same for all containers until a reboot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFacts {
    /// Version of the cgroup interface that has the controllers.
    pub cgroup: CgroupVersion,
    /// Major and minor version.
    pub release: (u32, u32),
    /// AppArmor is compiled in and enabled.
    pub apparmor: bool,
    /// Capabilities that a container can be given, as bits by number.
    pub capabilities: u64,
    /// Without CAP_SYS_RESOURCE `oom_score_adj` cannot be set below this; `None` when there is no such floor.
    pub oom_score_adj_floor: Option<i32>,
    /// The memory controller can limit swap.
    pub swap_accounting: bool,
}

/// A device node on the host, for privileged containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDevice {
    /// Path on the host and in the container, under `/dev`.
    pub path: PathBuf,
    /// A block device; else a character device.
    pub block: bool,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// Reason why a fact could not be learnt.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A file under `/proc` or `/dev` could not be read.
    #[error("read {path:?}")]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
}

const CAP_SYS_RESOURCE: u32 = 24;

impl KernelFacts {
    /// Looks at `/proc` and `/sys`. The rights are those of the calling process.
    pub fn probe(hierarchies: &Hierarchies) -> Result<Self, KernelError> {
        let status = read("/proc/self/status")?;
        let capabilities = mask(&status, "CapBnd:") & mask(&status, "CapPrm:");
        let floor =
            if capabilities & (1 << CAP_SYS_RESOURCE) != 0 { None } else { read("/proc/self/oom_score_adj")?.trim().parse().ok() };
        Ok(Self {
            cgroup: hierarchies.version(),
            release: release(&read("/proc/sys/kernel/osrelease")?),
            apparmor: fs::read_to_string("/sys/module/apparmor/parameters/enabled").is_ok_and(|value| value.starts_with('Y')),
            capabilities,
            oom_score_adj_floor: floor,
            swap_accounting: hierarchies.swap_accounting(),
        })
    }
}

/// The name of the host, as the kernel has it at the moment.
pub fn host_name() -> String {
    nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns true if an AppArmor profile of this name is loaded. False where the kernel has no AppArmor or does not show its profiles.
pub fn has_apparmor_profile(name: &str) -> bool {
    fs::read_to_string("/sys/kernel/security/apparmor/profiles").is_ok_and(|profiles| lists_profile(&profiles, name))
}

/// Returns true if the kernel shows its AppArmor profiles, and this is none of them.
pub fn lacks_apparmor_profile(name: &str) -> bool {
    fs::read_to_string("/sys/kernel/security/apparmor/profiles").is_ok_and(|profiles| !lists_profile(&profiles, name))
}

/// Lines are `name (mode)`.
pub fn lists_profile(profiles: &str, name: &str) -> bool {
    profiles.lines().any(|line| line.strip_prefix(name).is_some_and(|mode| mode.starts_with(" (")))
}

/// All device nodes under `/dev` as the CRI gives them to a privileged container: not the terminals, nor what each container has of its own.
pub fn host_devices() -> Result<Vec<HostDevice>, KernelError> {
    let mut devices = Vec::new();
    collect_devices(Path::new("/dev"), &mut devices)?;
    devices.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(devices)
}

/// Directories that a container has of its own, or that belong to other software's private trees.
const SKIPPED_DIRECTORIES: [&str; 6] = ["pts", "shm", "fd", "mqueue", ".lxc", ".lxd-mounts"];
/// Nodes that mean something else in a container.
const SKIPPED_NODES: [&str; 2] = ["/dev/console", "/dev/ptmx"];

fn collect_devices(directory: &Path, devices: &mut Vec<HostDevice>) -> Result<(), KernelError> {
    let failed = |source| KernelError::Read { path: directory.to_owned(), source };
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // A node may vanish while we look (udev): that is not an error.
        let Ok(metadata) = fs::symlink_metadata(entry.path()) else { continue };
        let kind = metadata.file_type();
        if kind.is_dir() {
            if !SKIPPED_DIRECTORIES.iter().any(|name| entry.file_name() == *name) {
                collect_devices(&entry.path(), devices)?;
            }
        } else if (kind.is_block_device() || kind.is_char_device())
            && !SKIPPED_NODES.iter().any(|path| entry.path() == Path::new(path))
        {
            devices.push(HostDevice {
                path: entry.path(),
                block: kind.is_block_device(),
                major: nix::libc::major(metadata.rdev()),
                minor: nix::libc::minor(metadata.rdev()),
                mode: metadata.mode() & 0o7777,
                uid: metadata.uid(),
                gid: metadata.gid(),
            });
        }
    }
    Ok(())
}

fn read(path: &str) -> Result<String, KernelError> {
    fs::read_to_string(path).map_err(|source| KernelError::Read { path: path.into(), source })
}

/// Major and minor of e.g. `6.1.0-9-amd64`.
fn release(text: &str) -> (u32, u32) {
    let mut numbers = text.split(['.', '-']).map(|number| number.trim().parse().unwrap_or_default());
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
}

/// The hexadecimal mask behind `key` in `/proc/<pid>/status`; empty when the line is missing.
fn mask(status: &str, key: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .and_then(|value| u64::from_str_radix(value.trim(), 16).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read_from_proc_status() {
        let status = "Name:\tx\nCapPrm:\t000001ffffffffff\nCapBnd:\t00000000a80425fb\n";
        assert_eq!(mask(status, "CapPrm:"), 0x1ff_ffff_ffff);
        assert_eq!(mask(status, "CapBnd:"), 0xa804_25fb);
        assert_eq!(mask(status, "CapAmb:"), 0);
    }

    #[test]
    fn releases_are_read_as_uname_writes_them() {
        assert_eq!(release("6.1.0-9-amd64\n"), (6, 1));
        assert_eq!(release("6.18\n"), (6, 18));
    }

    #[test]
    fn profiles_are_known_by_their_whole_name() {
        let profiles = "/usr/bin/man (enforce)\npodstead-default (enforce)\ndocker-default (enforce)\n";
        assert!(lists_profile(profiles, "podstead-default") && lists_profile(profiles, "/usr/bin/man"));
        assert!(!lists_profile(profiles, "podstead") && !lists_profile(profiles, "default"));
    }

    #[test]
    fn the_devices_of_this_host_include_null_and_no_terminal() {
        let devices = host_devices().unwrap();
        let null = devices.iter().find(|device| device.path == Path::new("/dev/null")).unwrap();
        assert_eq!((null.block, null.major, null.minor), (false, 1, 3));
        assert!(devices.iter().all(|device| !device.path.starts_with("/dev/pts")));
    }

    #[test]
    fn this_kernel_can_be_probed() {
        let facts = KernelFacts::probe(&Hierarchies::detect().unwrap()).unwrap();
        assert_ne!(facts.capabilities & 1, 0, "tests run as root");
    }
}
