//! Which boot this is: process ids, mounts and cgroups mean nothing in another one.

use std::fs;
use std::io;

/// The kernel's random id of this boot.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}
