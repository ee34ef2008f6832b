//! Random numbers of low quality, for spreading actions of several hosts or pods over time.

use ring::rand::{SecureRandom, SystemRandom};

/// Any number; where the system gives none, one in the middle.
pub fn any_number() -> u32 {
    let mut bytes = [0; 4];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => u32::from_ne_bytes(bytes),
        Err(_) => u32::MAX / 2,
    }
}
