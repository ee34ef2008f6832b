//! State of the clock's synchronisation.

#![expect(unsafe_code, reason = "adjtimex has no safe wrapper")]

/// Returns true if a time service keeps the clock right, according to the kernel; `None` if the kernel does not report it.
pub fn is_synchronised() -> Option<bool> {
    // SAFETY: all of `timex` may be zero, and modes of zero only ask.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes into the structure, which lives through the call.
    let clock = unsafe { libc::adjtimex(&raw mut state) };
    (clock >= 0).then_some(clock != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_of_this_host_says() {
        assert!(super::is_synchronised().is_some());
    }
}
