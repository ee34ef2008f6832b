//! The memory of this process that nothing uses any more.
//!
//! The allocator of glibc keeps what is freed for later. With an area for each thread, what one thread frees another one cannot use, and a burst of
//! work leaves all of it behind. The pages of the program that the work needed stay mapped, too: the kernel maps sixteen at once.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Time after memory was given back during which nobody looks for more.
const REST: Duration = Duration::from_secs(3);

/// Has all threads share one area of memory. To be called while there is one thread: those that run keep their areas.
///
/// Threads wait for each other only when their own small stock of chunks is used up.
pub fn share_between_threads() {
    #[cfg(target_env = "gnu")]
    glibc::share_between_threads();
}

/// Gives memory that is not used back to the kernel. It takes some milliseconds, during which threads that need memory wait.
///
/// To be called when work is done. What several threads did together often ends together: a call soon after another one does nothing.
pub fn return_unused() {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    // Whoever has the lock does it for all.
    let Ok(mut last) = LAST.try_lock() else { return };
    if last.is_none_or(|last| last.elapsed() >= REST) {
        #[cfg(target_env = "gnu")]
        glibc::return_unused();
        program::unmap();
        *last = Some(Instant::now());
    }
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

/// The pages of the program: code and constants, which nobody writes.
#[expect(unsafe_code, reason = "symbols of the linker, and advice for addresses")]
mod program {
    use rustix::mm::{Advice, madvise};
    use std::ffi::c_void;

    unsafe extern "C" {
        /// First byte of the program in memory, by ld and lld.
        #[link_name = "__executable_start"]
        static START: u8;
        /// First byte after its code. Data that is written comes later.
        #[link_name = "etext"]
        static END: u8;
    }

    /// First address and number of bytes, in whole pages.
    pub(super) fn range() -> (usize, usize) {
        let page = rustix::param::page_size();
        let (start, end) = ((&raw const START).addr(), (&raw const END).addr());
        let start = start.next_multiple_of(page);
        (start, (end / page * page).saturating_sub(start))
    }

    /// Unmaps all of them. They stay in the page cache, from which the next access maps them again, and which the kernel can shrink without asking
    /// whose they are.
    ///
    /// Breakpoints that a debugger or a uprobe has set are copies of pages, and go with them.
    pub(super) fn unmap() {
        let (start, length) = range();
        // SAFETY: the range is a private mapping of a file that this process never writes: whatever it reads there afterwards is read from the same
        // file. No reference is made from the pointer.
        let advised = unsafe { madvise(std::ptr::with_exposed_provenance_mut::<c_void>(start), length, Advice::LinuxDontNeed) };
        // A process whose memory is locked keeps its pages.
        advised.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory of this process in KiB, from a line of its status.
    fn resident(what: &str) -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn freed_memory_goes_back_to_the_kernel() {
        share_between_threads();
        const MIB: usize = 64;
        // Below the size that the allocator maps on its own; each second one stays, so that the end of the area does not move.
        let mut blocks: Vec<Option<Vec<u8>>> = (0..MIB * 1024 / 16).map(|_| Some(vec![1_u8; 16 * 1024])).collect();
        let full = resident("RssAnon:");
        blocks.iter_mut().step_by(2).for_each(|block| *block = None);
        return_unused();
        let less = full - resident("RssAnon:");
        assert!(less > MIB as u64 * 1024 / 4, "{less} KiB of {full}");
        drop(blocks);
    }

    /// Mapped memory in KiB of the code of this program.
    fn mapped_code() -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (start, length) = program::range();
        let address = |word: &str| usize::from_str_radix(word, 16).ok();
        let mut is_code = false;
        let mut kib = 0;
        for line in maps.lines() {
            if let Some((from, to)) = line.split_whitespace().next().and_then(|range| range.split_once('-')) {
                is_code = line.contains("r-xp")
                    && address(from).zip(address(to)).is_some_and(|(from, to)| from < start + length && to > start);
            } else if let Some(resident) = line.strip_prefix("Rss:").filter(|_| is_code) {
                kib += resident.split_whitespace().next().unwrap().parse::<u64>().unwrap();
            }
        }
        kib
    }

    #[test]
    fn code_that_ran_is_unmapped() {
        let before = mapped_code();
        program::unmap();
        let after = mapped_code();
        assert!(after < before, "{before} KiB before, {after} KiB after");
    }
}
