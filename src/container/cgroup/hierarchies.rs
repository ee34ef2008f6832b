//! Mount points of cgroup hierarchies.

use super::CgroupError;
use podstead_sys::mounts::{MountEntry, mounts};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Version of the interface that has the controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CgroupVersion {
    /// One hierarchy per controller; a v2 hierarchy without controllers may be mounted beside them (hybrid).
    V1,
    /// One hierarchy for all.
    V2,
}

/// A mounted v1 hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hierarchy {
    /// Its controllers; `name=systemd` for one that only groups.
    pub(super) controllers: Vec<String>,
    /// Mount point.
    pub(super) mount: PathBuf,
}

/// All mounted hierarchies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hierarchies {
    version: CgroupVersion,
    v1: Vec<Hierarchy>,
    v2: Option<PathBuf>,
}

/// Options of a v1 mount that are not controllers.
const NOT_CONTROLLERS: [&str; 8] =
    ["rw", "ro", "seclabel", "xattr", "noprefix", "clone_children", "cpuset_v2_mode", "release_agent"];

/// Controllers of v1 that libcontainer uses.
const CONTAINER_CONTROLLERS: [&str; 12] =
    ["cpu", "cpuacct", "cpuset", "devices", "hugetlb", "memory", "pids", "perf_event", "blkio", "net_prio", "net_cls", "freezer"];

impl Hierarchies {
    /// Reads `/proc/self/mountinfo`.
    pub fn detect() -> Result<Self, CgroupError> {
        Self::find(mounts().map_err(|source| CgroupError::Read { path: "/proc/thread-self/mountinfo".into(), source })?)
    }

    /// Finds hierarchies among mounts (pure). Of several mounts of one hierarchy the first with the root `/` counts.
    pub fn find(mut mounts: Vec<MountEntry>) -> Result<Self, CgroupError> {
        mounts.sort_by_key(|mount| mount.root != Path::new("/"));
        let mut v1: Vec<Hierarchy> = Vec::new();
        let mut v2 = None;
        for mount in mounts {
            match mount.kind.as_str() {
                "cgroup2" if v2.is_none() => v2 = Some(mount.point),
                "cgroup" => {
                    let is_controller =
                        |option: &&str| !NOT_CONTROLLERS.iter().any(|other| option.split('=').next() == Some(other));
                    let controllers: Vec<String> = mount.options.split(',').filter(is_controller).map(str::to_owned).collect();
                    if !v1.iter().any(|known| known.controllers == controllers) {
                        v1.push(Hierarchy { controllers, mount: mount.point });
                    }
                }
                _ => {}
            }
        }
        let has_controllers = v1.iter().any(|hierarchy| hierarchy.controllers.iter().any(|name| !name.starts_with("name=")));
        let version = match (has_controllers, &v2) {
            (true, _) => CgroupVersion::V1,
            (false, Some(_)) => CgroupVersion::V2,
            (false, None) => return Err(CgroupError::NoHierarchy),
        };
        Ok(Self { version, v1, v2 })
    }

    /// Version of the interface that has the controllers.
    pub fn version(&self) -> CgroupVersion {
        self.version
    }

    /// Returns true if swap can be limited: always on v2 (where the file is missing without swap, libcontainer leaves it alone), with a
    /// boot option on v1.
    pub fn swap_accounting(&self) -> bool {
        match self.version {
            CgroupVersion::V2 => true,
            CgroupVersion::V1 => {
                self.controller("memory").is_some_and(|root| root.join("memory.memsw.limit_in_bytes").try_exists().unwrap_or(false))
            }
        }
    }

    /// Root of the hierarchy that has the controller.
    pub(super) fn controller(&self, name: &str) -> Option<&Path> {
        match self.version {
            CgroupVersion::V2 => self.v2.as_deref(),
            CgroupVersion::V1 => {
                let owner = self.v1.iter().find(|hierarchy| hierarchy.controllers.iter().any(|other| other == name));
                owner.map(|hierarchy| hierarchy.mount.as_path())
            }
        }
    }

    /// Roots of the hierarchies with controllers.
    pub(super) fn limiting(&self) -> Vec<&Path> {
        match self.version {
            CgroupVersion::V2 => self.v2.iter().map(PathBuf::as_path).collect(),
            CgroupVersion::V1 => {
                let limiting =
                    self.v1.iter().filter(|hierarchy| !hierarchy.controllers.iter().all(|name| name.starts_with("name=")));
                limiting.map(|hierarchy| hierarchy.mount.as_path()).collect()
            }
        }
    }

    /// Roots of the v1 hierarchies in which libcontainer makes a group for each container; none on v2.
    pub fn of_containers(&self) -> Vec<PathBuf> {
        let is_used =
            |hierarchy: &&Hierarchy| hierarchy.controllers.iter().any(|name| CONTAINER_CONTROLLERS.contains(&name.as_str()));
        match self.version {
            CgroupVersion::V2 => Vec::new(),
            CgroupVersion::V1 => self.v1.iter().filter(is_used).map(|hierarchy| hierarchy.mount.clone()).collect(),
        }
    }

    /// Roots of all hierarchies.
    pub(super) fn all(&self) -> Vec<&Path> {
        self.v1().chain(self.v2()).collect()
    }

    /// Roots of the hierarchies of v1.
    pub(super) fn v1(&self) -> impl Iterator<Item = &Path> {
        self.v1.iter().map(|hierarchy| hierarchy.mount.as_path())
    }

    /// Root of the hierarchy of v2, with or without controllers.
    pub(super) fn v2(&self) -> Option<&Path> {
        self.v2.as_deref()
    }

    /// Root of the hierarchy that tracks the processes of a group: one that libcontainer puts containers into.
    pub(super) fn tracking(&self) -> &Path {
        let preferred = ["freezer", "pids", "memory", "devices"].into_iter().find_map(|name| self.controller(name));
        preferred.or_else(|| self.limiting().first().copied()).unwrap_or_else(|| Path::new("/sys/fs/cgroup"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_sys::mounts::parse_mountinfo;

    fn found_in(mountinfo: &str) -> Result<Hierarchies, CgroupError> {
        Hierarchies::find(parse_mountinfo(mountinfo.as_bytes()))
    }

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,release_agent=/x,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
90 31 0:32 /kubepods /mnt/with\\040space rw,relatime - cgroup cgroup rw,memory
";

    #[test]
    fn hybrid_hosts_are_v1_and_all_their_hierarchies_are_found() {
        let found = found_in(HYBRID).unwrap();
        assert_eq!(found.version(), CgroupVersion::V1);
        assert_eq!(found.controller("cpuacct"), Some(Path::new("/sys/fs/cgroup/cpu,cpuacct")));
        assert_eq!(found.controller("memory"), Some(Path::new("/sys/fs/cgroup/memory")));
        assert_eq!(found.controller("hugetlb"), None);
        assert_eq!(found.limiting().len(), 2);
        assert_eq!(found.all().len(), 4);
        assert_eq!(found.tracking(), Path::new("/sys/fs/cgroup/memory"));
    }

    #[test]
    fn a_v2_mount_alone_is_v2_also_beside_a_named_hierarchy() {
        let unified = "26 23 0:23 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n";
        let named = "27 23 0:24 / /sys/fs/cgroup/systemd rw shared:5 - cgroup cgroup rw,name=elogind\n";
        for text in [unified.to_owned(), format!("{unified}{named}")] {
            let found = found_in(&text).unwrap();
            assert_eq!(found.version(), CgroupVersion::V2);
            assert_eq!(found.controller("memory"), Some(Path::new("/sys/fs/cgroup")));
            assert_eq!(found.tracking(), Path::new("/sys/fs/cgroup"));
            assert!(found.swap_accounting());
        }
    }

    #[test]
    fn a_whole_mount_wins_over_a_part_of_it() {
        let part = "90 31 0:32 /kubepods /mnt/part rw - cgroup cgroup rw,memory\n";
        let whole = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let found = found_in(&format!("{part}{whole}")).unwrap();
        assert_eq!(found.controller("memory"), Some(Path::new("/sys/fs/cgroup/memory")));
        let found = found_in(part).unwrap();
        assert_eq!(found.controller("memory"), Some(Path::new("/mnt/part")));
    }

    #[test]
    fn a_host_without_hierarchies_is_an_error() {
        let error = found_in("23 1 8:1 / / rw - ext4 /dev/sda1 rw\n").unwrap_err();
        assert_eq!(error.to_string(), "no cgroup hierarchy with controllers is mounted");
    }

    #[test]
    fn this_host_has_hierarchies() {
        Hierarchies::detect().unwrap();
    }
}
