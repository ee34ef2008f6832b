//! Device nodes in containers that run.
//!
//! A node lies in a file system in memory of its own, which is the host's, and is mounted on its place below the container's `/dev`. So it works in
//! user namespaces, whose own file systems have no device nodes, and a container cannot remove it without the right to unmount.

use super::{jail, mount_tree, pidfd};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, fchmodat, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchownat, setfsgid, setfsuid, unlinkat};
use rustix::fs::{FileType, makedev, mknodat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen, unmount,
};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

const DEV: &str = "dev";
/// `TMPFS_MAGIC`.
const TMPFS: u64 = 0x0102_1994;
/// Mounts on one place that are taken away; a container may have put some there.
const MAX_MOUNTS: usize = 16;

/// A device node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// A block device; else a character device.
    pub block: bool,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Permission bits.
    pub mode: u32,
    /// Owner, as the host counts.
    pub uid: u32,
    /// Group, as the host counts.
    pub gid: u32,
}

/// Changes below the `/dev` of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Places that become empty, relative to `/dev`.
    pub removed: Vec<PathBuf>,
    /// Nodes by their places, relative to `/dev`. What is there is replaced.
    pub placed: Vec<(PathBuf, Node)>,
}

/// Makes a node and returns its mount, which is not attached anywhere. To be called in a mount namespace of the caller's own, in which nothing is
/// shared; for a moment something is mounted on the directory `scratch` there.
pub fn make(node: &Node, scratch: &Path) -> io::Result<OwnedFd> {
    const NAME: &str = "node";
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in [("source", "podstead"), ("mode", "0755"), ("size", "64k"), ("nr_inodes", "16")] {
        fsconfig_set_string(&context, name, value)?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    // Before Linux 6.15 a detached mount cannot be cloned.
    mount_tree::attach(&root, scratch)?;
    let kind = if node.block { FileType::BlockDevice } else { FileType::CharacterDevice };
    let made = mknodat(&root, NAME, kind, rustix::fs::Mode::empty(), makedev(node.major, node.minor))
        .map_err(io::Error::from)
        .and_then(|()| {
            let (uid, gid) = (Uid::from_raw(node.uid), Gid::from_raw(node.gid));
            fchownat(&root, NAME, Some(uid), Some(gid), nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW)?;
            // Regardless of the umask.
            let mode = Mode::from_bits_truncate(node.mode & 0o777);
            fchmodat(&root, NAME, mode, nix::sys::stat::FchmodatFlags::FollowSymlink)?;
            Ok(mount_tree::clone_mount(&root, NAME, mount_tree::Submounts::Leave)?)
        });
    unmount(scratch, UnmountFlags::DETACH)?;
    made
}

/// Makes the changes in the container of a process that runs in it. `first_host_id` is the root of a container with users of its own. Blocks as long
/// as file systems that the container may have mounted let it wait.
pub fn change(process: &OwnedFd, changes: &Changes, first_host_id: Option<u32>, scratch: &Path) -> io::Result<()> {
    // The directories and mounts of a thread are its own once it has another mount namespace.
    let joined = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("device-nodes".to_owned());
        thread.spawn_scoped(scope, || change_here(process, changes, first_host_id, scratch)).map(|thread| thread.join())
    });
    joined?.unwrap_or_else(|_| Err(io::Error::other("the thread that changes device nodes panicked")))
}

fn change_here(process: &OwnedFd, changes: &Changes, first_host_id: Option<u32>, scratch: &Path) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    let mut placed = Vec::new();
    for (place, node) in &changes.placed {
        placed.push((place, make(node, scratch)?));
    }
    pidfd::enter_namespaces(process, CloneFlags::CLONE_NEWNS)?;
    let root = open("/", OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let dev = openat2(&root, DEV, directory(ResolveFlag::RESOLVE_NO_SYMLINKS))?;
    // Empty files are made in the container's own only: not in a volume that a container with such rights has mounted over it.
    if rustix::fs::fstatfs(&dev)?.f_type as u64 != TMPFS {
        return Err(io::Error::other("the container's /dev is no longer the one that it was started with"));
    }
    for place in &changes.removed {
        explain(place, remove(&dev, place))?;
    }
    for (place, tree) in placed {
        explain(place, attach(&dev, place, &tree, first_host_id))?;
    }
    Ok(())
}

fn explain<T>(place: &Path, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| {
        let reason = match Errno::from_raw(error.raw_os_error().unwrap_or_default()) {
            Errno::ELOOP => "a symbolic link is in the way".to_owned(),
            Errno::ENOTDIR | Errno::ENOTEMPTY => "something else is in the way".to_owned(),
            Errno::EXDEV => "a mount is in the way".to_owned(),
            _ => error.to_string(),
        };
        io::Error::new(error.kind(), format!("/{DEV}/{}: {reason}", place.display()))
    })
}

/// Links and other mounts that the container made are not passed.
fn directory(more: ResolveFlag) -> OpenHow {
    OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS | more)
}

/// The directory that a place is in, and its name there. Missing directories are made where `first_host_id` says for whom.
fn parent<'p>(dev: &OwnedFd, place: &'p Path, maker: Option<Option<u32>>) -> io::Result<(OwnedFd, &'p OsStr)> {
    let name = place.file_name().ok_or(Errno::EINVAL)?;
    let mut directory_of = dev.try_clone()?;
    for component in place.parent().into_iter().flat_map(Path::components) {
        let how = || directory(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_XDEV);
        let next = match (openat2(&directory_of, component.as_os_str(), how()), maker) {
            (Err(Errno::ENOENT), Some(first_host_id)) => {
                let made =
                    act_as(first_host_id, || mkdirat(directory_of.as_fd(), component.as_os_str(), Mode::from_bits_truncate(0o755)));
                match made {
                    Ok(()) | Err(Errno::EEXIST) => openat2(&directory_of, component.as_os_str(), how()),
                    Err(error) => Err(error),
                }
            }
            (found, _) => found,
        };
        directory_of = next?;
    }
    Ok((directory_of, name))
}

fn remove(dev: &OwnedFd, place: &Path) -> io::Result<()> {
    match parent(dev, place, None) {
        Ok((parent, name)) => clear(&parent, name),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Takes away what is mounted on the place, and what is there.
fn clear(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    rustix::process::fchdir(parent)?;
    for _ in 0..MAX_MOUNTS {
        match umount2(Path::new(name), MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW) {
            Ok(()) => {}
            // A link is no mount.
            Err(Errno::EINVAL | Errno::ENOENT | Errno::ELOOP) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let removed = match unlinkat(parent, name, UnlinkatFlags::NoRemoveDir) {
        Err(Errno::EISDIR) => unlinkat(parent, name, UnlinkatFlags::RemoveDir),
        other => other,
    };
    match removed {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn attach(dev: &OwnedFd, place: &Path, tree: &OwnedFd, first_host_id: Option<u32>) -> io::Result<()> {
    let (parent, name) = parent(dev, place, Some(first_host_id))?;
    clear(&parent, name)?;
    // The file that was made is mounted on, whatever its name leads to by then.
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let point = act_as(first_host_id, || openat(&parent, name, flags, Mode::empty()))?;
    Ok(mount_tree::move_to(tree, &point)?)
}

/// Does it with the container's root as the owner of what is made.
fn act_as<T>(first_host_id: Option<u32>, work: impl FnOnce() -> T) -> T {
    let Some(first) = first_host_id else { return work() };
    let (uid, gid) = (setfsuid(Uid::from_raw(first)), setfsgid(Gid::from_raw(first)));
    // The kernel has taken the rights over files of this thread.
    let _as_its_owner_only = jail::use_all_capabilities();
    let result = work();
    setfsgid(gid);
    setfsuid(uid);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::{Child, Command};

    const ZERO: Node = Node { block: false, major: 1, minor: 5, mode: 0o640, uid: 7, gid: 8 };

    /// A process with a `/dev` in memory of its own.
    fn container() -> (Child, OwnedFd, tempfile::TempDir) {
        let scratch = tempfile::tempdir().unwrap();
        let ready = scratch.path().join("ready");
        let script = format!("mount -t tmpfs none /dev && touch {} && exec sleep 600", ready.display());
        let child = Command::new("unshare").args(["--mount", "--propagation", "private", "sh", "-c", &script]).spawn().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !ready.try_exists().unwrap() {
            assert!(std::time::Instant::now() < deadline, "the process does not come up");
            std::thread::yield_now();
        }
        let process = pidfd::open(child.id()).unwrap();
        (child, process, scratch)
    }

    fn in_it(child: &Child, script: &str) -> String {
        let output =
            Command::new("nsenter").arg(format!("--mount=/proc/{}/ns/mnt", child.id())).args(["sh", "-c", script]).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    }

    fn placed(place: &str, node: Node) -> Changes {
        Changes { placed: vec![(place.into(), node)], removed: Vec::new() }
    }

    #[test]
    fn nodes_come_change_and_go() {
        let (mut child, process, scratch) = container();
        let show = |child: &Child| {
            in_it(child, "stat -c '%F %u %g %a %t:%T' /dev/serial/by-id/radio; head -c 2 /dev/serial/by-id/radio | wc -c")
        };
        change(&process, &placed("serial/by-id/radio", ZERO), None, scratch.path()).unwrap();
        assert_eq!(show(&child), "character special file 7 8 640 1:5\n2\n");
        let null = Node { minor: 3, ..ZERO };
        change(&process, &placed("serial/by-id/radio", null), None, scratch.path()).unwrap();
        assert_eq!(show(&child), "character special file 7 8 640 1:3\n0\n");
        let gone = Changes { removed: vec!["serial/by-id/radio".into(), "none/there".into()], placed: Vec::new() };
        change(&process, &gone, None, scratch.path()).unwrap();
        change(&process, &gone, None, scratch.path()).unwrap();
        assert_eq!(in_it(&child, "ls -A /dev/serial/by-id; grep -c ' /dev/serial' /proc/self/mountinfo"), "0\n");
        assert!(
            !fs::read_to_string("/proc/self/mountinfo").unwrap().contains(scratch.path().to_str().unwrap()),
            "nothing on the host"
        );
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn links_of_the_container_lead_nowhere() {
        let (mut child, process, scratch) = container();
        let victim = scratch.path().join("victim");
        fs::create_dir(&victim).unwrap();
        in_it(&child, &format!("ln -s {} /dev/serial; ln -s {}/file /dev/radio", victim.display(), victim.display()));
        let error = change(&process, &placed("serial/radio", ZERO), None, scratch.path()).unwrap_err();
        assert_eq!(error.to_string(), "/dev/serial/radio: a symbolic link is in the way");
        change(&process, &placed("radio", ZERO), None, scratch.path()).unwrap();
        assert_eq!(in_it(&child, "stat -c %F /dev/radio"), "character special file\n", "a link at the place itself is replaced");
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
        in_it(&child, "mkdir -p /dev/full-of/things; touch /dev/file");
        let error = change(&process, &placed("full-of", ZERO), None, scratch.path()).unwrap_err();
        assert_eq!(error.to_string(), "/dev/full-of: something else is in the way");
        let error = change(&process, &placed("file/radio", ZERO), None, scratch.path()).unwrap_err();
        assert_eq!(error.to_string(), "/dev/file/radio: something else is in the way");
        in_it(&child, &format!("mkdir /dev/mounted; mount --bind {} /dev/mounted", victim.display()));
        let error = change(&process, &placed("mounted/radio", ZERO), None, scratch.path()).unwrap_err();
        assert_eq!(error.to_string(), "/dev/mounted/radio: a mount is in the way");
        in_it(&child, &format!("mount --bind {} /dev", victim.display()));
        let error = change(&process, &placed("radio", ZERO), None, scratch.path()).unwrap_err();
        assert!(fs::read_dir(&victim).unwrap().count() == 0, "{error}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
