//! Changing the limits of a container that runs.

use super::control::number;
use super::limits::Setting;
use super::tree::below;
use super::{CgroupError, CgroupVersion, Cgroups};
use podstead_pod::resources::CgroupResources;
use std::path::Path;

const V1_WITH_SWAP: &str = "memory.memsw.limit_in_bytes";

impl Cgroups {
    /// Gives the group of a running container other limits. Memory with swap follows the limit of memory, as at the start: nothing is
    /// swapped out. A limit that the kernel cannot reach by reclaiming is an error on v1, and kills on v2: look at the usage before.
    pub fn resize_container(&self, path: &Path, resources: &CgroupResources) -> Result<(), CgroupError> {
        let limit = resources.memory_limit.filter(|limit| *limit > 0);
        let setting = |file: &str, value: String| Setting {
            controller: "memory",
            file: file.to_owned(),
            value,
            resets: true,
            is_default: false,
        };
        match self.version() {
            CgroupVersion::V2 => {
                self.update(path, resources)?;
                let swap = if limit.is_some() { "0" } else { "max" };
                self.apply(path, [setting("memory.swap.max", swap.to_owned())].into_iter())
            }
            CgroupVersion::V1 => {
                let with_swap = setting(V1_WITH_SWAP, limit.unwrap_or(-1).to_string());
                // The kernel refuses a limit above that of memory with swap, at every moment.
                let raises =
                    match (self.memory_number(path, "memory.limit_in_bytes")?, limit.and_then(|limit| u64::try_from(limit).ok())) {
                        (Some(before), Some(after)) => after > before,
                        (_, None) | (None, _) => true,
                    };
                if raises {
                    self.apply(path, [with_swap].into_iter())?;
                    self.update(path, resources)
                } else {
                    self.update(path, resources)?;
                    self.apply(path, [with_swap].into_iter())
                }
            }
        }
    }

    fn memory_number(&self, path: &Path, file: &str) -> Result<Option<u64>, CgroupError> {
        match self.hierarchies.controller("memory") {
            Some(root) => number(&below(root, path).join(file)),
            None => Ok(None),
        }
    }
}
