//! Rate of requests per user: a bucket that refills. **Pure**.

use std::collections::HashMap;
use tokio::time::Instant;

/// Requests that may come at once; discovery of an old client and a screen full of lists fit in.
const BURST: f64 = 400.0;
/// Requests per second in the long run.
const PER_SECOND: f64 = 50.0;
/// Users that are remembered. Of more, those whose bucket is fullest are forgotten, which only helps them.
const MOST_USERS: usize = 64;

/// Buckets by user id.
#[derive(Debug, Default)]
pub(super) struct Rate(HashMap<u32, Bucket>);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rate {
    /// Takes one request from the bucket of a user; false if it is empty.
    pub(super) fn take(&mut self, uid: u32, now: Instant) -> bool {
        if self.0.len() >= MOST_USERS && !self.0.contains_key(&uid) {
            let fullest = self.0.iter().max_by(|(_, a), (_, b)| a.left.total_cmp(&b.left)).map(|(uid, _)| *uid);
            fullest.and_then(|uid| self.0.remove(&uid));
        }
        let bucket = self.0.entry(uid).or_insert(Bucket { left: BURST, at: now });
        let seconds = now.saturating_duration_since(bucket.at).as_secs_f64();
        *bucket = Bucket { left: (bucket.left + seconds * PER_SECOND).min(BURST), at: now };
        let has_one = bucket.left >= 1.0;
        if has_one {
            bucket.left -= 1.0;
        }
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn burst_is_followed_by_steady_rate() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        assert_eq!((0..1000).filter(|_| rate.take(1, start)).count(), 400);
        assert!(rate.take(2, start), "another user has a bucket of its own");
        let later = start + Duration::from_secs(2);
        assert_eq!((0..1000).filter(|_| rate.take(1, later)).count(), 100);
    }

    #[test]
    fn number_of_buckets_is_bounded() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        while rate.take(7, start) {}
        for uid in 1000..2000 {
            rate.take(uid, start);
        }
        assert_eq!(rate.0.len(), MOST_USERS);
        assert!(!rate.take(7, start), "the empty bucket is kept");
    }
}
