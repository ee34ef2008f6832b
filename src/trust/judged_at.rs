//! The time for checking the validity of keys.

use jiff::Timestamp;

/// The latest of: the host's clock, the time that the last accepted revision was signed at, and the time that the revision in question
/// says it was signed at. The last two are what allowed signers themselves said; `None` where nothing was accepted yet, or where the
/// signature carries no time (a detached one).
///
/// Edge hosts boot with clocks in the past. By the clock alone, a key whose time is over would be valid again on such a host, and one
/// whose time began yesterday would be refused. A time that an allowed signer stated is a lower bound of the present: time passed at
/// least that far. Unlike git, which judges by the stated time alone, a key whose time is over cannot sign anything new by stating an
/// earlier time, on a host whose clock is right or that has accepted something newer.
///
/// A signer who states a time in the far future makes keys with an end unusable from then on; that harms only the source that trusted
/// the signer, which keeps its last good set, and the remedy is to sign with a key that does not expire.
pub fn judged_at(now: Timestamp, last_accepted: Option<Timestamp>, stated: Option<Timestamp>) -> Timestamp {
    [last_accepted, stated].into_iter().flatten().fold(now, Timestamp::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_latest_of_what_is_known_counts() {
        let [past, signed, now] = ["1970-01-01T00:00:00Z", "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"].map(time);
        assert_eq!(judged_at(now, None, None), now);
        assert_eq!(judged_at(past, None, Some(signed)), signed, "a clock that boots in 1970");
        assert_eq!(judged_at(past, Some(now), Some(signed)), now, "a stated time before what was accepted already");
        assert_eq!(judged_at(now, Some(past), Some(signed)), now, "a stated time in the past does not bring a key back");
    }
}
