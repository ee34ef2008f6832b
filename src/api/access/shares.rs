//! Connections of each user: one user cannot keep the others away (Q11). **Pure** but for the lock.
//!
//! A user other than root gets a connection while it has fewer than are free: the first may have half of all, the next one half of what is left, and
//! so on. Some are kept for root.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The connections of one door.
#[derive(Clone, Debug)]
pub(crate) struct Shares(Arc<Mutex<Counts>>);

#[derive(Debug)]
struct Counts {
    free: usize,
    /// Of those that are free, only root gets the last ones.
    for_root: usize,
    held: HashMap<u32, usize>,
}

/// A connection of a user; free again when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Shares,
    uid: u32,
}

/// Error for a user that gets no further connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoShare {
    /// Connections that the user has.
    pub(crate) held: usize,
}

impl Shares {
    /// All are free.
    pub(crate) fn new(connections: usize, for_root: usize) -> Self {
        Self(Arc::new(Mutex::new(Counts { free: connections, for_root, held: HashMap::new() })))
    }

    /// A further connection of a user.
    pub(crate) fn take(&self, uid: u32) -> Result<Share, NoShare> {
        let mut counts = self.counts();
        let held = counts.held.get(&uid).copied().unwrap_or_default();
        let may_have = if uid == 0 { counts.free > 0 } else { held < counts.free.saturating_sub(counts.for_root) };
        if !may_have {
            return Err(NoShare { held });
        }
        counts.free -= 1;
        counts.held.insert(uid, held + 1);
        Ok(Share { shares: self.clone(), uid })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // The counts are whole between statements: a panic elsewhere does not spoil them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut counts = self.shares.counts();
        counts.free += 1;
        if let Some(held) = counts.held.get_mut(&self.uid) {
            *held -= 1;
            if *held == 0 {
                counts.held.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_of(shares: &Shares, uid: u32) -> Vec<Share> {
        std::iter::from_fn(|| shares.take(uid).ok()).collect()
    }

    #[test]
    fn each_user_leaves_room_for_next() {
        let shares = Shares::new(72, 8);
        let taken: Vec<Vec<Share>> = (1..8).map(|uid| all_of(&shares, uid)).collect();
        assert_eq!(taken.iter().map(Vec::len).collect::<Vec<_>>(), [32, 16, 8, 4, 2, 1, 1]);
        assert_eq!(shares.take(1).unwrap_err(), NoShare { held: 32 });
        assert_eq!(shares.take(9).unwrap_err(), NoShare { held: 0 }, "seven users together");
        let of_root = all_of(&shares, 0);
        assert_eq!(of_root.len(), 8, "root has its own");
        drop(of_root);
        drop(taken);
        assert_eq!(all_of(&shares, 0).len(), 72, "root may have all");
        let counts = shares.counts();
        assert!(counts.held.is_empty() && counts.free == 72, "{counts:?}");
    }

    #[test]
    fn ended_connection_makes_room() {
        let shares = Shares::new(6, 2);
        let mut taken = all_of(&shares, 7);
        assert_eq!(taken.len(), 2);
        taken.pop();
        assert!(shares.take(7).is_ok());
    }
}
