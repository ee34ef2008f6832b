//! Random moments and bytes, the same in each run.

use std::time::Duration;

/// xorshift64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count / 8).flat_map(|_| self.next().to_le_bytes()).collect()
    }

    /// A part of `whole`, or up to `beyond` thousandths more than all of it.
    pub(crate) fn part(&mut self, whole: Duration, beyond: u64) -> Duration {
        whole.mul_f64((self.next() % (1000 + beyond)) as f64 / 1000.0)
    }
}
