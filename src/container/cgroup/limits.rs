//! Conversion of limits to values of cgroup files. **Pure**.

use super::CgroupVersion;
use super::huge_pages::{CONTROLLER, limit_file};
use podstead_pod::resources::CgroupResources;

/// One value for one file of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// The controller that has the file.
    pub(super) controller: &'static str,
    /// Name of the file.
    pub(super) file: String,
    /// The value.
    pub(super) value: String,
    /// Not requested by the manifest: a missing file does no harm, nor a higher usage.
    pub(super) resets: bool,
    /// The kernel gives a new group this value.
    pub(super) is_default: bool,
}

const DEFAULT_PERIOD_US: u64 = 100_000;
const DEFAULT_SHARES: u64 = 1024;

/// The settings to write for `resources`, in order. What is not limited is reset to the kernel's default; of huge pages, those that are not
/// named are not available, as on a kubelet. `page_sizes` are all that the group can be limited in.
pub(super) fn settings(version: CgroupVersion, resources: &CgroupResources, page_sizes: &[String]) -> Vec<Setting> {
    let CgroupResources { cpu_shares, cpu_quota_us, cpu_period_us, memory_limit, pids_limit, hugepages } = resources;
    let shares = cpu_shares.unwrap_or(DEFAULT_SHARES);
    let period = cpu_period_us.unwrap_or(DEFAULT_PERIOD_US);
    let quota = cpu_quota_us.filter(|quota| *quota > 0);
    let or_max = |limit: &Option<i64>| limit.filter(|limit| *limit > 0).map_or("max".to_owned(), |limit| limit.to_string());
    let setting = |controller, file: &str, value: String, resets| Setting {
        controller,
        file: file.to_owned(),
        value,
        resets,
        is_default: resets,
    };
    let mut settings = match version {
        CgroupVersion::V1 => {
            let memory = memory_limit.filter(|limit| *limit > 0).unwrap_or(-1);
            vec![
                setting("cpu", "cpu.shares", shares.to_string(), cpu_shares.is_none()),
                // The period first: the kernel checks the quota against it.
                Setting {
                    is_default: period == DEFAULT_PERIOD_US,
                    ..setting("cpu", "cpu.cfs_period_us", period.to_string(), cpu_period_us.is_none())
                },
                setting("cpu", "cpu.cfs_quota_us", quota.unwrap_or(-1).to_string(), quota.is_none()),
                setting("memory", "memory.limit_in_bytes", memory.to_string(), memory_limit.is_none()),
            ]
        }
        CgroupVersion::V2 => {
            let max = quota.map_or("max".to_owned(), |quota| quota.to_string());
            vec![
                setting("cpu", "cpu.weight", cpu_weight(shares).to_string(), cpu_shares.is_none()),
                setting("cpu", "cpu.max", format!("{max} {period}"), quota.is_none()),
                setting("memory", "memory.max", or_max(memory_limit), memory_limit.is_none()),
            ]
        }
    };
    settings.push(setting("pids", "pids.max", or_max(pids_limit), pids_limit.is_none()));
    let named = hugepages.iter().map(|(size, bytes)| (size, *bytes, false));
    let others = page_sizes.iter().filter(|size| hugepages.iter().all(|(named, _)| named != *size)).map(|size| (size, 0, true));
    settings.extend(named.chain(others).map(|(size, bytes, resets)| {
        let file = limit_file(version, size);
        // A new group has as many huge pages as there are.
        Setting { controller: CONTROLLER, file, value: bytes.to_string(), resets, is_default: false }
    }));
    settings
}

/// `cpu.weight` (1 to 10000) for v1's `cpu.shares` (2 to 262144): the curve that runc 1.3.2, crun and libcontainer use, which maps the
/// smallest, the default (1024 to 100) and the largest onto each other.
pub fn cpu_weight(shares: u64) -> u64 {
    match shares {
        0..=2 => 1,
        262_144.. => 10_000,
        _ => {
            // No precision is lost below 2^53.
            let log = (shares as f64).log2();
            let exponent = (log * log + 125.0 * log) / 612.0 - 7.0 / 34.0;
            (10_f64.powf(exponent).ceil() as u64).clamp(1, 10_000)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_become_weights_on_runcs_curve() {
        for (shares, weight) in [(0, 1), (2, 1), (3, 2), (10, 4), (102, 17), (512, 59), (1024, 100), (2048, 174), (262_144, 10_000)]
        {
            assert_eq!(cpu_weight(shares), weight, "{shares} shares");
        }
        assert_eq!(cpu_weight(u64::MAX), 10_000);
    }

    fn written(version: CgroupVersion, resources: &CgroupResources) -> Vec<String> {
        let page_sizes = ["1GB", "2MB"].map(str::to_owned);
        settings(version, resources, if resources.hugepages.is_empty() { &[] } else { &page_sizes })
            .into_iter()
            .map(|s| format!("{}={}{}", s.file, s.value, if s.resets { "?" } else { "" }))
            .collect()
    }

    #[test]
    fn limits_are_written_as_each_version_spells_them() {
        let resources = CgroupResources {
            cpu_shares: Some(512),
            cpu_quota_us: Some(50_000),
            cpu_period_us: Some(100_000),
            memory_limit: Some(64 << 20),
            pids_limit: Some(100),
            hugepages: vec![("2MB".into(), 4 << 20)],
        };
        assert_eq!(
            written(CgroupVersion::V2, &resources),
            [
                "cpu.weight=59",
                "cpu.max=50000 100000",
                "memory.max=67108864",
                "pids.max=100",
                "hugetlb.2MB.max=4194304",
                "hugetlb.1GB.max=0?"
            ]
        );
        assert_eq!(
            written(CgroupVersion::V1, &resources),
            [
                "cpu.shares=512",
                "cpu.cfs_period_us=100000",
                "cpu.cfs_quota_us=50000",
                "memory.limit_in_bytes=67108864",
                "pids.max=100",
                "hugetlb.2MB.limit_in_bytes=4194304",
                "hugetlb.1GB.limit_in_bytes=0?"
            ]
        );
    }

    #[test]
    fn no_limit_is_a_reset() {
        let none = CgroupResources::default();
        assert_eq!(
            written(CgroupVersion::V2, &none),
            ["cpu.weight=100?", "cpu.max=max 100000?", "memory.max=max?", "pids.max=max?"]
        );
        assert_eq!(
            written(CgroupVersion::V1, &none),
            ["cpu.shares=1024?", "cpu.cfs_period_us=100000?", "cpu.cfs_quota_us=-1?", "memory.limit_in_bytes=-1?", "pids.max=max?"]
        );
    }
}
