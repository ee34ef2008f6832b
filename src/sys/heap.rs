//! The memory of this process that nothing uses any more.
//!
//! The allocator of glibc keeps what is freed for later. With an area for each thread, what one thread frees another one cannot use, and a burst of
//! work leaves all of it behind.

/// Has all threads share one area of memory. To be called while there is one thread: those that run keep their areas.
///
/// Threads wait for each other only when their own small stock of chunks is used up.
pub fn share_between_threads() {
    #[cfg(target_env = "gnu")]
    glibc::share_between_threads();
}

/// Gives memory that is not used back to the kernel. It takes some milliseconds, during which threads that need memory wait.
pub fn return_unused() {
    #[cfg(target_env = "gnu")]
    glibc::return_unused();
}

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "no crate wraps mallopt and malloc_trim")]
mod glibc {
    pub(super) fn share_between_threads() {
        // SAFETY: the call takes numbers only. It may be called at any time, and by any thread.
        let is_set = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) } == 1;
        debug_assert!(is_set, "M_ARENA_MAX takes any number");
    }

    pub(super) fn return_unused() {
        const PADDING: libc::size_t = 0;
        // SAFETY: the call takes a number only, and locks the allocator's areas as every allocation does.
        unsafe { libc::malloc_trim(PADDING) };
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_env = "gnu")]
    use super::*;

    /// Memory of this process that belongs to no file, in KiB.
    #[cfg(target_env = "gnu")]
    fn anonymous() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn freed_memory_goes_back_to_the_kernel() {
        share_between_threads();
        const MIB: usize = 64;
        // Below the size that the allocator maps on its own; each second one stays, so that the end of the area does not move.
        let mut blocks: Vec<Option<Vec<u8>>> = (0..MIB * 1024 / 16).map(|_| Some(vec![1_u8; 16 * 1024])).collect();
        let full = anonymous();
        blocks.iter_mut().step_by(2).for_each(|block| *block = None);
        return_unused();
        let less = full - anonymous();
        assert!(less > MIB as u64 * 1024 / 4, "{less} KiB of {full}");
        drop(blocks);
    }
}
