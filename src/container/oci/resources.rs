//! Limits of the container's cgroup.

use super::{BuildExt, OciError, SandboxView, devices};
use crate::cgroup::CgroupVersion;
use crate::{CgroupResources, ContainerSpec};
use oci_spec::runtime::{
    LinuxCpu, LinuxCpuBuilder, LinuxDeviceCgroup, LinuxDeviceCgroupBuilder, LinuxHugepageLimit, LinuxHugepageLimitBuilder,
    LinuxMemory, LinuxMemoryBuilder, LinuxPidsBuilder, LinuxResources, LinuxResourcesBuilder,
};

/// The `resources` section. What is not limited is left out, so that libcontainer does not touch the controller.
pub(super) fn resources(spec: &ContainerSpec, sandbox: &SandboxView) -> Result<LinuxResources, OciError> {
    let CgroupResources { cpu_shares, cpu_quota_us, cpu_period_us, memory_limit, pids_limit, hugepages } = &spec.resources;
    let mut rules = vec![all_devices(spec.security.privileged)?];
    rules.extend(devices::rules(spec)?);
    let mut builder = LinuxResourcesBuilder::default().devices(rules);
    if cpu_shares.is_some() || cpu_quota_us.is_some() {
        builder = builder.cpu(cpu(*cpu_shares, *cpu_quota_us, *cpu_period_us)?);
    }
    if let Some(limit) = memory_limit {
        builder = builder.memory(memory(*limit, sandbox.facts.swap_accounting)?);
    }
    if let Some(limit) = pids_limit {
        builder = builder.pids(LinuxPidsBuilder::default().limit(*limit).build().part("pids limit")?);
    }
    if sandbox.facts.cgroup == CgroupVersion::V2 {
        // As the kubelet: what runs out of memory dies whole, so that no container goes on without half of its processes.
        builder = builder.unified([("memory.oom.group".to_owned(), "1".to_owned())]);
    }
    // As the kubelet: sizes without a limit are not available.
    let others = sandbox.huge_page_sizes.iter().filter(|size| hugepages.iter().all(|(named, _)| named != *size));
    let hugepages = hugepages.iter().map(|(size, bytes)| (size, *bytes)).chain(others.map(|size| (size, 0)));
    let hugepages = hugepages.map(|(size, bytes)| hugepage(size, bytes)).collect::<Result<Vec<_>, _>>()?;
    if !hugepages.is_empty() {
        builder = builder.hugepage_limits(hugepages);
    }
    builder.build().part("resources")
}

/// Everything or, to begin with, nothing: libcontainer adds the devices that it makes itself, and the right to make (not open) nodes.
fn all_devices(allow: bool) -> Result<LinuxDeviceCgroup, OciError> {
    LinuxDeviceCgroupBuilder::default().allow(allow).access("rwm").build().part("device rule")
}

fn cpu(shares: Option<u64>, quota: Option<i64>, period: Option<u64>) -> Result<LinuxCpu, OciError> {
    let mut builder = LinuxCpuBuilder::default();
    if let Some(shares) = shares {
        builder = builder.shares(shares);
    }
    if let Some(quota) = quota {
        builder = builder.quota(quota).period(period.unwrap_or(100_000));
    }
    builder.build().part("cpu limits")
}

/// As the kubelet without swap: memory and swap together are the limit, so that nothing can be swapped out.
fn memory(limit: i64, swap_accounting: bool) -> Result<LinuxMemory, OciError> {
    let builder = LinuxMemoryBuilder::default().limit(limit);
    if swap_accounting { builder.swap(limit) } else { builder }.build().part("memory limit")
}

fn hugepage(size: &str, bytes: u64) -> Result<LinuxHugepageLimit, OciError> {
    let limit = i64::try_from(bytes).unwrap_or(i64::MAX);
    LinuxHugepageLimitBuilder::default().page_size(size).limit(limit).build().part("hugepage limit")
}
