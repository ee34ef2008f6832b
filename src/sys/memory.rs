//! The host's memory.

/// All of this host's memory in bytes, as the kernel counts it (`MemTotal`); 0 when it does not say.
pub fn memory_bytes() -> u64 {
    let usage = rustix::system::sysinfo();
    usage.totalram.saturating_mul(usage.mem_unit.into())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_s_table_says_the_same() {
        let table = std::fs::read_to_string("/proc/meminfo").unwrap();
        let line = table.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
        let kib: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
        assert_eq!(super::memory_bytes() / 1024, kib);
    }
}
