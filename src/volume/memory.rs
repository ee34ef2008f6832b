//! Volumes in memory: a tmpfs that is not swapped out.

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::io;
use std::path::Path;

/// Keeps a tmpfs out of the swap. Kernels before 6.4 do not know it.
pub(super) const NO_SWAP: &str = "noswap";

/// Mounts a tmpfs with these options, kept out of the swap where the kernel can.
pub(super) fn mount_tmpfs(directory: &Path, flags: MountFlags, options: &str) -> io::Result<()> {
    let with = |options: String| -> io::Result<Result<(), Errno>> {
        let options = CString::new(options)?;
        Ok(mount("tmpfs", directory, "tmpfs", flags, options.as_c_str()))
    };
    match with(format!("{options},{NO_SWAP}"))? {
        Err(Errno::INVAL) => Ok(with(options.to_owned())??),
        mounted => Ok(mounted?),
    }
}
