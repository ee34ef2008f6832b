//! Addresses of this host, for Services. To ask for them, the kernel lists all links: with hundreds of pods it is not asked at each change of one.

use podstead_network::{host_ips, reachable_ips};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::Instant;

/// Time for which an answer of the kernel counts.
const FRESH: Duration = Duration::from_secs(2);

/// The addresses as of a moment ago.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    /// Those that machines beside this host can connect to.
    pub(super) reachable: BTreeSet<IpAddr>,
    /// The primary one of each family.
    pub(super) primary: Vec<IpAddr>,
    asked: Option<Instant>,
    /// They were used again without a question.
    is_kept: bool,
}

impl Addresses {
    /// Brings them up to date, unless they have just been.
    pub(super) fn renew(&mut self, now: Instant) {
        self.is_kept = self.asked.is_some_and(|asked| now < asked + FRESH);
        if !self.is_kept {
            let reachable = reachable_ips().unwrap_or_default().into_iter().collect();
            *self = Self { reachable, primary: host_ips().unwrap_or_default(), asked: Some(now), is_kept: false };
        }
    }

    /// The time at which they are to be looked at again, since they may have changed before they were used.
    pub(super) fn look_again(&self) -> Option<Instant> {
        self.asked.filter(|_| self.is_kept).map(|asked| asked + FRESH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_question_within_a_moment_is_put_off() {
        let (mut addresses, begin) = (Addresses::default(), Instant::now());
        addresses.renew(begin);
        assert_eq!(addresses.look_again(), None);
        addresses.renew(begin + FRESH / 2);
        assert_eq!(addresses.look_again(), Some(begin + FRESH));
        addresses.renew(begin + FRESH);
        assert_eq!(addresses.look_again(), None);
    }
}
