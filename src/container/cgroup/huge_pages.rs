//! Sizes of huge pages that a group can be limited in.

use super::control::{files, read};
use super::tree::below;
use super::{CgroupError, CgroupVersion, Hierarchies};
use std::path::Path;

pub(super) const CONTROLLER: &str = "hugetlb";

impl Hierarchies {
    /// Sizes as the kernel spells them, in order; none where the group has no such files.
    pub(super) fn huge_page_sizes(&self, group: &Path) -> Result<Vec<String>, CgroupError> {
        let Some(root) = self.controller(CONTROLLER) else { return Ok(Vec::new()) };
        let suffix = suffix(self.version());
        let size = |file: &String| Some(file.strip_prefix("hugetlb.")?.strip_suffix(suffix)?.to_owned());
        // Those with a dot limit reservations.
        let files = files(&below(root, group))?;
        let mut sizes: Vec<String> = files.iter().filter_map(size).filter(|size| !size.contains('.')).collect();
        sizes.sort();
        Ok(sizes)
    }

    /// The same for the groups that are made in `group`.
    pub fn huge_page_sizes_below(&self, group: &Path) -> Result<Vec<String>, CgroupError> {
        let is_passed_on = match (self.version(), self.controller(CONTROLLER)) {
            (CgroupVersion::V1, _) | (CgroupVersion::V2, None) => true,
            (CgroupVersion::V2, Some(root)) => {
                let enabled = read(&below(root, group).join("cgroup.subtree_control"))?.unwrap_or_default();
                enabled.split_whitespace().any(|name| name == CONTROLLER)
            }
        };
        if is_passed_on { self.huge_page_sizes(group) } else { Ok(Vec::new()) }
    }
}

/// Name of the file that limits pages of a size.
pub(super) fn limit_file(version: CgroupVersion, size: &str) -> String {
    format!("hugetlb.{size}{}", suffix(version))
}

const fn suffix(version: CgroupVersion) -> &'static str {
    match version {
        CgroupVersion::V1 => ".limit_in_bytes",
        CgroupVersion::V2 => ".max",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_sys::mounts::parse_mountinfo;
    use std::fs;

    #[test]
    fn sizes_are_those_of_the_group_s_files() {
        let root = tempfile::tempdir().unwrap();
        for (kind, version) in [("cgroup2 cgroup2 rw", CgroupVersion::V2), ("cgroup cgroup rw,hugetlb", CgroupVersion::V1)] {
            let mount = format!("26 23 0:23 / {} rw - {kind}\n", root.path().display());
            let hierarchies = Hierarchies::find(parse_mountinfo(mount.as_bytes())).unwrap();
            assert_eq!(hierarchies.version(), version);
            let pod = root.path().join("pod");
            let (path, none) = (Path::new("/pod"), Vec::<String>::new());
            assert_eq!(hierarchies.huge_page_sizes(path).unwrap(), none, "no such group");
            fs::create_dir_all(&pod).unwrap();
            for size in ["2MB", "1GB", "2MB.rsvd"] {
                fs::write(pod.join(limit_file(version, size)), "max").unwrap();
            }
            assert_eq!(hierarchies.huge_page_sizes(path).unwrap(), ["1GB", "2MB"]);
            let below = |control: &str| {
                fs::write(pod.join("cgroup.subtree_control"), control).unwrap();
                hierarchies.huge_page_sizes_below(path).unwrap()
            };
            assert_eq!(below("cpu hugetlb"), ["1GB", "2MB"]);
            assert_eq!(below("cpu").is_empty(), version == CgroupVersion::V2);
            fs::remove_dir_all(&pod).unwrap();
        }
    }
}
