//! Disk usage of a directory, counted as `du` counts: blocks, not lengths, and a file with several names once.
//!
//! Containers write into these directories while they are walked, and may do so with the intent to mislead: nothing is followed out of the
//! tree or onto another file system, memory and work are bounded, and what goes beyond the bounds is not counted. So the sum is never too
//! high.

use super::beneath::open_directory;
use rustix::fs::{AtFlags, Dir, FileType, Stat, statat};
use std::collections::HashSet;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Directories opened inside each other before what lies deeper is kept for later.
const MAX_DEPTH: usize = 64;
/// Directories kept for later.
const MAX_KEPT: usize = 64;
/// Files with several names that are remembered.
const MAX_LINKED: usize = 65_536;
/// Size of a block of `st_blocks`, on every file system.
const BLOCK_BYTES: u64 = 512;

/// Number of entries that may be visited, over several walks.
#[derive(Debug)]
pub struct WalkBudget {
    entries: u64,
}

impl WalkBudget {
    /// So many entries.
    pub const fn of(entries: u64) -> Self {
        Self { entries }
    }

    /// Returns true if nothing is left: the count may be incomplete.
    pub const fn is_spent(&self) -> bool {
        self.entries == 0
    }

    fn spend(&mut self) -> bool {
        let is_left = self.entries > 0;
        self.entries = self.entries.saturating_sub(1);
        is_left
    }
}

/// Bytes on disk below `directory` and of it; 0 when it is not there. What cannot be read is not counted.
pub fn disk_usage(directory: &Path, budget: &mut WalkBudget) -> io::Result<u64> {
    let top = match File::open(directory) {
        Ok(top) => top,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut walk = Walk { bytes: top.metadata()?.blocks() * BLOCK_BYTES, linked: HashSet::new(), kept: Vec::new(), budget };
    walk.kept.push(top.into());
    while let Some(directory) = walk.kept.pop() {
        walk.enter(&directory, 0);
    }
    Ok(walk.bytes)
}

struct Walk<'a> {
    bytes: u64,
    /// Device and inode of files that have several names and were counted.
    linked: HashSet<(u64, u64)>,
    kept: Vec<OwnedFd>,
    budget: &'a mut WalkBudget,
}

impl Walk<'_> {
    fn enter(&mut self, directory: &OwnedFd, depth: usize) {
        let Ok(mut entries) = Dir::read_from(directory) else { return };
        while let Some(Ok(entry)) = entries.read() {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            if !self.budget.spend() {
                return;
            }
            // Files removed meanwhile do not count.
            let Ok(stat) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                self.enter_child(directory, name, &stat, depth);
            } else if stat.st_nlink < 2 || self.is_first_name(&stat) {
                self.add(&stat);
            }
        }
    }

    fn enter_child(&mut self, parent: &OwnedFd, name: &CStr, stat: &Stat, depth: usize) {
        // A mount point: what is on it lies elsewhere.
        let Ok(child) = open_directory(parent, name) else { return };
        self.add(stat);
        if depth < MAX_DEPTH {
            self.enter(&child, depth + 1);
        } else if self.kept.len() < MAX_KEPT {
            self.kept.push(child);
        }
    }

    fn add(&mut self, stat: &Stat) {
        self.bytes = self.bytes.saturating_add(u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(BLOCK_BYTES));
    }

    fn is_first_name(&mut self, stat: &Stat) -> bool {
        self.linked.len() < MAX_LINKED && self.linked.insert((stat.st_dev, stat.st_ino))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use std::fs;
    use std::os::unix::fs::symlink;

    const MIB: u64 = 1 << 20;

    fn usage(directory: &Path) -> u64 {
        disk_usage(directory, &mut WalkBudget::of(1 << 20)).unwrap()
    }

    fn fill(path: &Path, bytes: usize) {
        fs::write(path, vec![7; bytes]).unwrap();
    }

    #[test]
    fn blocks_count_and_names_and_symlinks_and_holes_do_not() {
        let root = tempfile::tempdir().unwrap();
        let (tree, outside) = (root.path().join("tree"), root.path().join("outside"));
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::create_dir(&outside).unwrap();
        fill(&outside.join("big"), 8 << 20);
        let empty = usage(&tree);
        fill(&tree.join("a/b/one"), 1 << 20);
        fs::hard_link(tree.join("a/b/one"), tree.join("a/two")).unwrap();
        symlink(&outside, tree.join("link")).unwrap();
        File::create(tree.join("hole")).unwrap().set_len(1 << 30).unwrap();
        let full = usage(&tree) - empty;
        assert!((MIB..MIB + 65_536).contains(&full), "{full}");
        assert_eq!(usage(&root.path().join("none")), 0);
    }

    #[test]
    fn a_tree_deeper_than_any_path_is_counted_to_its_end() {
        let root = tempfile::tempdir().unwrap();
        let mut directory: OwnedFd = File::open(root.path()).unwrap().into();
        for _ in 0..20_000 {
            rustix::fs::mkdirat(&directory, "deep", Mode::from_raw_mode(0o700)).unwrap();
            directory = open_directory(&directory, c"deep").unwrap();
        }
        let before = usage(root.path());
        let file = rustix::fs::openat(&directory, "file", OFlags::CREATE | OFlags::WRONLY, Mode::from_raw_mode(0o600)).unwrap();
        rustix::io::write(&file, &vec![7; 1 << 20]).unwrap();
        assert!(usage(root.path()) - before >= MIB);
        drop((file, directory));
        crate::remove_tree::remove_tree(&root.path().join("deep")).unwrap();
    }

    #[test]
    fn a_walk_ends_when_its_budget_is_spent() {
        let root = tempfile::tempdir().unwrap();
        (0..20).for_each(|name: u32| fill(&root.path().join(name.to_string()), 4096));
        let mut budget = WalkBudget::of(5);
        let seen = disk_usage(root.path(), &mut budget).unwrap();
        assert!(seen < usage(root.path()));
        assert!(!budget.spend());
    }
}
