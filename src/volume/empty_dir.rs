//! `emptyDir`: a directory of the pod's, on disk or in memory, that lives as long as the pod.

use super::memory::{NO_SWAP, mount_tmpfs};
use super::ownership::{ChangePolicy, open_to_all, own};
use k8s_openapi::api::core::v1::EmptyDirVolumeSource;
use podstead_pod::Pod;
use podstead_pod::quantity::Amount;
use podstead_pod::resources::{pod_cgroup, pod_limits};
use podstead_sys::atomic_file::{remove_durable, write_atomic};
use podstead_sys::mounts::{MountEntry, detach, is_mounted_at, mounts};
use rustix::mount::{MountFlags, mount, mount_remount};
use rustix::param::page_size;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Makes the directory, and in it the tmpfs that the medium asks for. What is there is kept, with the owners and modes that containers gave
/// it: the volume is opened to all and given to the pod's group once, when it is new.
/// `memory_bytes` is what all pods may use.
pub(super) fn prepare(pod: &Pod, source: &EmptyDirVolumeSource, directory: &Path, memory_bytes: u64) -> Result<(), String> {
    let medium = source.medium.as_deref().unwrap_or_default();
    let note = note(directory);
    if !is_there(directory, medium)? {
        // The note is about another directory.
        remove_durable(&note).map_err(|error| format!("remove {note:?}: {error}"))?;
    }
    make(directory).map_err(|error| format!("create {directory:?}: {error}"))?;
    match medium {
        "" => unmounted(directory)?,
        "Memory" => mounted(directory, size_limit(pod, source, memory_bytes)?)?,
        huge => huge_pages(directory, page_bytes(pod, huge)?)?,
    }
    let group = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref()).and_then(|context| context.fs_group);
    let group = group.and_then(|group| u32::try_from(group).ok());
    let noted = format!("{medium} {}", group.map(|group| group.to_string()).unwrap_or_default());
    if fs::read(&note).is_ok_and(|present| present == noted.as_bytes()) {
        return Ok(());
    }
    let own = || {
        open_to_all(directory)?;
        if let Some(group) = group {
            // The policy has no effect on these volumes, in Kubernetes neither.
            own(directory, group, ChangePolicy::OnRootMismatch)?;
        }
        if medium.is_empty() {
            // No power cut may leave the note without what it says.
            fs::File::open(directory)?.sync_all()?;
        }
        write_atomic(&note, noted.as_bytes(), 0o600)
    };
    own().map_err(|error| format!("set owner and mode of {directory:?}: {error}"))
}

/// Says for which medium and group the volume is ready: names of volumes have no dots.
fn note(directory: &Path) -> PathBuf {
    directory.with_extension("ready")
}

/// Names of the files and directories that belong to a volume of this name.
pub(super) fn entries(volume: &str) -> [String; 2] {
    [volume.to_owned(), format!("{volume}.ready")]
}

/// Returns true if the volume exists, on its medium.
fn is_there(directory: &Path, medium: &str) -> Result<bool, String> {
    let wanted = match medium {
        "" => None,
        "Memory" => Some("tmpfs"),
        _ => Some("hugetlbfs"),
    };
    let mounted = mount_at(directory)?;
    Ok(mounted.as_ref().map(|mount| mount.kind.as_str()) == wanted && fs::symlink_metadata(directory).is_ok())
}

/// The smallest of `sizeLimit`, the memory limit of the pod's cgroup and the memory that all pods may use, as the kubelet; `None`, where that
/// is not known, leaves the kernel's half of the RAM.
fn size_limit(pod: &Pod, source: &EmptyDirVolumeSource, memory_bytes: u64) -> Result<Option<u64>, String> {
    let declared = source.size_limit.as_ref().map(Amount::read).transpose().map_err(|error| format!("sizeLimit {error}"))?;
    let limits = [declared.map(Amount::value), pod_cgroup(pod).memory_limit];
    let limits = limits.into_iter().flatten().filter_map(|bytes| u64::try_from(bytes).ok());
    Ok(limits.chain([memory_bytes]).filter(|bytes| *bytes > 0).min())
}

fn make(directory: &Path) -> io::Result<()> {
    // Above it only root needs to pass: containers get the directory itself.
    if let Some(parent) = directory.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o750).create(parent)?;
    }
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ if !fs::symlink_metadata(directory)?.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        _ => Ok(()),
    }
}

/// The manifest may have changed the medium: what was in memory is gone for new containers.
fn unmounted(directory: &Path) -> Result<(), String> {
    if is_mounted(directory)? {
        detach(directory).map_err(|error| format!("unmount {directory:?}: {error}"))?;
    }
    Ok(())
}

fn mounted(directory: &Path, limit: Option<u64>) -> Result<(), String> {
    // "50%" is what the kernel does without a size; it is said to take an earlier one away.
    let size = limit.map_or("size=50%".to_owned(), |limit| format!("size={limit}"));
    let mut present = mount_at(directory)?;
    if present.take_if(|present| present.kind != "tmpfs").is_some() {
        unmounted(directory)?;
    }
    match present {
        None => mount_tmpfs(directory, MountFlags::empty(), &format!("{size},mode=0777"))
            .map_err(|error| format!("mount tmpfs on {directory:?}: {error}")),
        // The kernel rounds the size of a tmpfs up to its pages, which have 16 or 64 KiB on some 64-bit ARM, and shows it in KiB.
        Some(present) if shown_size(&present) == limit.map(|bytes| bytes.next_multiple_of(page_size() as u64)) => Ok(()),
        Some(present) => {
            // The option that keeps it out of the swap can neither be added nor removed.
            let is_unswapped = present.options.split(',').any(|option| option == NO_SWAP);
            let data = CString::new(if is_unswapped { format!("{size},{NO_SWAP}") } else { size });
            let resized =
                data.map_err(io::Error::from).and_then(|data| Ok(mount_remount(directory, MountFlags::empty(), data.as_c_str())?));
            resized.map_err(|error| format!("resize tmpfs on {directory:?}: {error}"))
        }
    }
}

/// The size of the pages that `HugePages-<size>` names; `HugePages` stands for the only size that the pod has limits for.
fn page_bytes(pod: &Pod, medium: &str) -> Result<u64, String> {
    let limits = pod_limits(pod);
    let mut limited = limits.keys().filter_map(|name| name.strip_prefix("hugepages-"));
    let size = match (medium.strip_prefix("HugePages-"), limited.next(), limited.next()) {
        (Some(size), _, _) => size,
        (None, Some(size), None) if medium == "HugePages" => size,
        (None, _, _) => return Err(format!("medium {medium:?} names no page size, and the pod does not limit exactly one")),
    };
    let bytes = size.parse::<Amount>().ok().and_then(|amount| u64::try_from(amount.value()).ok());
    bytes.ok_or_else(|| format!("medium {medium:?} has an invalid page size"))
}

/// The pod's cgroup limits how many there can be.
fn huge_pages(directory: &Path, page_bytes: u64) -> Result<(), String> {
    match mount_at(directory)? {
        Some(present) if present.kind == "hugetlbfs" => return Ok(()),
        Some(_) | None => unmounted(directory)?,
    }
    let data = CString::new(format!("pagesize={page_bytes}")).map_err(|error| error.to_string())?;
    mount("hugetlbfs", directory, "hugetlbfs", MountFlags::empty(), data.as_c_str())
        .map_err(|error| format!("mount huge pages of {page_bytes} bytes on {directory:?}: {error}"))
}

/// The size in bytes among the mount's options; absent when it is the default.
fn shown_size(mount: &MountEntry) -> Option<u64> {
    let size = mount.options.split(',').find_map(|option| option.strip_prefix("size="))?;
    size.strip_suffix('k')?.parse::<u64>().ok()?.checked_mul(1024)
}

fn is_mounted(directory: &Path) -> Result<bool, String> {
    is_mounted_at(directory).map_err(|error| format!("look for a mount on {directory:?}: {error}"))
}

/// The mount there, if there is one. Most often there is none, and the list of mounts, which is long on a host with many pods, is not read.
fn mount_at(directory: &Path) -> Result<Option<MountEntry>, String> {
    if !is_mounted(directory)? {
        return Ok(None);
    }
    let all = mounts().map_err(|error| format!("read mounts: {error}"))?;
    Ok(all.into_iter().rfind(|mount| mount.point == directory))
}
