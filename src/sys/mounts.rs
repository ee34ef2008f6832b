//! Mounts: what is mounted where, binding what a descriptor names, unmounting.

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// One line of a mountinfo file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// The directory of the file system that is mounted: `/`, or a path in it for a bind mount.
    pub root: PathBuf,
    /// Mount point.
    pub point: PathBuf,
    /// Type of the file system, e.g. `tmpfs`.
    pub kind: String,
    /// Options of the file system (not of the mount), comma-separated.
    pub options: String,
    /// Mounts below travel to its peers.
    pub shared: bool,
    /// Mounts below arrive from its master.
    pub slave: bool,
}

/// All mounts that the calling thread sees, in the order of their making.
pub fn mounts() -> io::Result<Vec<MountEntry>> {
    fs::read("/proc/thread-self/mountinfo").map(|content| parse_mountinfo(&content))
}

/// Parses a mountinfo file (pure). Paths may hold any bytes. Lines that are not understood are left out.
pub fn parse_mountinfo(content: &[u8]) -> Vec<MountEntry> {
    content.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

/// `31 23 0:28 /root /mount/point rw,relatime shared:9 - cgroup source rw,cpu`
fn parse_line(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|byte| *byte == b' ').skip(3);
    let (root, point, _options) = (fields.next()?, fields.next()?, fields.next()?);
    let tags: Vec<&[u8]> = fields.by_ref().take_while(|field| *field != b"-").collect();
    let (kind, _source, options) = (fields.next()?, fields.next()?, fields.next()?);
    let tagged = |name: &[u8]| tags.iter().any(|tag| tag.starts_with(name));
    Some(MountEntry {
        root: unescaped(root),
        point: unescaped(point),
        kind: String::from_utf8_lossy(kind).into_owned(),
        options: String::from_utf8_lossy(options).into_owned(),
        shared: tagged(b"shared:"),
        slave: tagged(b"master:"),
    })
}

/// The kernel writes space, tab, newline and backslash in paths as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|digits| first == b'\\' && digits.iter().all(|digit| (b'0'..b'8').contains(digit)));
        match digits {
            Some(digits) => {
                bytes.push(digits.iter().fold(0_u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// The mount that `path` lies on: the last made of those with the longest mount point above it.
pub fn mount_of<'mounts>(mounts: &'mounts [MountEntry], path: &Path) -> Option<&'mounts MountEntry> {
    mounts.iter().filter(|mount| path.starts_with(&mount.point)).max_by_key(|mount| mount.point.as_os_str().len())
}

/// Mounts `source`, whatever its path is or has become, and all that is mounted below it, at `target`.
pub fn bind_descriptor(source: impl AsFd, target: &Path) -> io::Result<()> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(source, "", flags)?;
    Ok(move_mount(tree, "", rustix::fs::CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Unmounts every mount below `directory` (and at it), deepest first. A mount that stays busy until `patience` is over is detached:
/// it vanishes from here at once and in full when its last user ends. Goes on after a failure; the failures are returned.
pub fn unmount_below(directory: &Path, patience: Duration) -> Vec<(PathBuf, io::Error)> {
    let deadline = Instant::now() + patience;
    let points = match mounts() {
        Ok(mounts) => mounts.into_iter().map(|mount| mount.point).filter(|point| point.starts_with(directory)),
        Err(error) => return vec![(directory.to_owned(), error)],
    };
    let points: Vec<PathBuf> = points.collect();
    let unmounted = points.into_iter().rev().map(|point| (unmount_patiently(&point, deadline), point));
    unmounted.filter_map(|(result, point)| result.err().map(|error| (point, error))).collect()
}

/// Unmounts one mount; see [`unmount_below`]. One that is not there is success.
fn unmount_patiently(point: &Path, deadline: Instant) -> io::Result<()> {
    loop {
        match unmount(point, UnmountFlags::NOFOLLOW) {
            // EINVAL: not, or no longer, a mount point, e.g. unmounted by propagation.
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => return Ok(()),
            Err(rustix::io::Errno::BUSY) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Err(_) => return Ok(unmount(point, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH)?),
        }
    }
}

/// Detaches every mount below `directory`, deepest first. What is mounted at the directory itself stays.
pub fn detach_below(directory: &Path) -> io::Result<()> {
    let points = mounts()?.into_iter().map(|mount| mount.point);
    let points: Vec<PathBuf> = points.filter(|point| point.starts_with(directory) && point != directory).collect();
    points.iter().rev().try_for_each(|point| detach(point))
}

/// Detaches the topmost mount at `point`; users keep it until they end.
pub fn detach(point: &Path) -> io::Result<()> {
    match unmount(point, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH) {
        Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if something is mounted at exactly `point`.
pub fn is_mount_point(mounts: &[MountEntry], point: &Path) -> bool {
    mounts.iter().any(|mount| mount.point.as_os_str().as_bytes() == point.as_os_str().as_bytes())
}

/// Reports whether something is mounted at `point`. One question to the kernel, however many mounts there are.
pub fn is_mounted_at(point: &Path) -> io::Result<bool> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let found = match statx(CWD, point, flags, StatxFlags::empty()) {
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(false),
        found => found?,
    };
    if found.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT) {
        return Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    }
    // Before Linux 5.8. Mounts are listed by their real path.
    let point = match (point.parent().map(fs::canonicalize), point.file_name()) {
        (Some(parent), Some(name)) => parent?.join(name),
        (_, None) | (None, _) => point.to_owned(),
    };
    Ok(is_mount_point(&mounts()?, &point))
}

/// Reports whether the files at a path are in memory: those of a tmpfs count as memory of the cgroup that writes them, and nothing can reclaim them.
pub fn is_in_memory(path: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    rustix::fs::statfs(path).is_ok_and(|system| [TMPFS, RAMFS].contains(&(system.f_type as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_private_mounts;

    #[test]
    fn mountinfo_is_parsed_with_tags_and_odd_bytes() {
        let text = b"24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
            25 24 0:5 / /mnt/a\\040b\\134c\xff rw,nosuid master:1 - tmpfs tmpfs rw,size=64k\n\
            26 24 8:1 /etc /mnt/etc rw shared:7 master:1 - ext4 /dev/vda rw\n\
            broken\n";
        let mounts = parse_mountinfo(text);
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[1].point.as_os_str().as_bytes(), b"/mnt/a b\\c\xff");
        assert_eq!((mounts[1].kind.as_str(), mounts[1].options.as_str()), ("tmpfs", "rw,size=64k"));
        let tags: Vec<(bool, bool)> = mounts.iter().map(|mount| (mount.shared, mount.slave)).collect();
        assert_eq!(tags, [(true, false), (false, true), (true, true)]);
        assert_eq!(mounts[2].root, Path::new("/etc"));
        assert_eq!(mount_of(&mounts, Path::new("/mnt/etc/hosts")), Some(&mounts[2]));
        assert_eq!(mount_of(&mounts, Path::new("/mnt/etcetera")), Some(&mounts[0]));
    }

    #[test]
    fn what_is_mounted_is_told_without_the_list() {
        in_private_mounts("mounts::tests::what_is_mounted_is_told_without_the_list", || {
            let root = tempfile::tempdir().unwrap();
            let (directory, file, link) = (root.path().join("directory"), root.path().join("file"), root.path().join("link"));
            fs::create_dir(&directory).unwrap();
            fs::write(&file, "").unwrap();
            std::os::unix::fs::symlink(&directory, &link).unwrap();
            let told = || [&directory, &file, &link].map(|path| is_mounted_at(path).unwrap());
            assert_eq!(told(), [false; 3]);
            assert!(!is_mounted_at(&root.path().join("missing")).unwrap());
            assert!(is_mounted_at(Path::new("/proc")).unwrap());
            bind_descriptor(fs::File::open(root.path()).unwrap(), &directory).unwrap();
            bind_descriptor(fs::File::open(&file).unwrap(), &file).unwrap();
            assert_eq!(told(), [true, true, false], "a link is not what it leads to");
            let table = mounts().unwrap();
            assert!([&directory, &file].iter().all(|path| is_mount_point(&table, path)));
            detach(&directory).unwrap();
            detach(&file).unwrap();
            assert_eq!(told(), [false; 3]);
        });
    }

    #[test]
    fn a_descriptor_is_bound_where_it_is_and_unmounted_with_all_below() {
        in_private_mounts("mounts::tests::a_descriptor_is_bound_where_it_is_and_unmounted_with_all_below", || {
            let root = tempfile::tempdir().unwrap();
            let (source, target) = (root.path().join("source"), root.path().join("target"));
            fs::create_dir_all(source.join("inner")).unwrap();
            fs::create_dir(&target).unwrap();
            rustix::mount::mount("tmpfs", source.join("inner"), "tmpfs", rustix::mount::MountFlags::empty(), None).unwrap();
            fs::write(source.join("inner/file"), "x").unwrap();
            let descriptor = fs::File::open(&source).unwrap();
            let moved = root.path().join("moved");
            fs::rename(&source, &moved).unwrap();
            bind_descriptor(&descriptor, &target).unwrap();
            assert_eq!(fs::read(target.join("inner/file")).unwrap(), b"x");
            let count = || mounts().unwrap().iter().filter(|mount| mount.point.starts_with(&target)).count();
            assert_eq!(count(), 2);
            detach_below(&target).unwrap();
            assert_eq!(count(), 1, "the mount at the directory stays");
            unmount(&target, UnmountFlags::NOFOLLOW).unwrap();
            bind_descriptor(&descriptor, &target).unwrap();
            // A user keeps the inner mount busy: it is detached.
            let user = fs::File::open(target.join("inner/file")).unwrap();
            assert!(unmount_below(&target, Duration::from_millis(20)).is_empty());
            assert_eq!(count(), 0);
            drop(user);
            assert_eq!(fs::read(moved.join("inner/file")).unwrap(), b"x", "the source is untouched");
        });
    }
}
