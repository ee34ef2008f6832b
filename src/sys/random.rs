//! Chance, where nothing depends on its quality: what several hosts or pods would do at the same moment is spread by it.

use ring::rand::{SecureRandom, SystemRandom};

/// Any number; where the system gives none, one in the middle.
pub fn any_number() -> u32 {
    let mut bytes = [0; 4];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => u32::from_ne_bytes(bytes),
        Err(_) => u32::MAX / 2,
    }
}
