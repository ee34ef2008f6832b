//! Offset of a probe within its period. **Pure**.
//!
//! Pods that were started together, as all are after a boot, would be asked together for ever: with hundreds of probes a burst in each
//! period. The kubelet spreads by chance, and only those that it finds when it starts itself (rule D15). Here the pause between the first
//! success and the check after it is shorter than a period, by how much depends on who is asked; from then on each has its own place.

use crate::spec::ProbeKind;
use podstead_pod::{ContainerId, PodUid};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// The pause is at least one part of so many of the period.
const LEAST_PART: u32 = 10;

/// The pause after the first success: at most the period, at least a tenth of it, and always the same for one probe of one run.
pub(super) fn first_pause(uid: &PodUid, container: &ContainerId, kind: ProbeKind, period: Duration) -> Duration {
    // Begun without chance: the same for the same names.
    let mut hasher = DefaultHasher::new();
    (uid.as_str(), container.as_str(), kind).hash(&mut hasher);
    let share = hasher.finish() >> 32;
    let least = period / LEAST_PART;
    let room = (period - least).as_nanos();
    // Of 32 bits each: far below the range.
    let more = room * u128::from(share) / u128::from(u32::MAX);
    least + Duration::from_nanos(u64::try_from(more).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_pause_is_never_longer_than_a_period_and_always_the_same(uid in ".{0,40}", container in ".{0,40}", millis in 1_u64..400_000_000) {
            let period = Duration::from_millis(millis);
            let pause = || first_pause(&PodUid::new(uid.as_str()), &ContainerId::new(container.as_str()), ProbeKind::Liveness, period);
            prop_assert!(pause() <= period && pause() >= period / LEAST_PART);
            prop_assert_eq!(pause(), pause());
        }

        #[test]
        fn checks_of_many_pods_are_spread_over_the_period(seed in any::<u32>()) {
            let period = Duration::from_secs(10);
            let mut of_second = [0_u32; 11];
            for pod in 0..250 {
                for kind in ProbeKind::ALL {
                    let (uid, container) = (PodUid::new(format!("{seed:08x}-{pod}")), ContainerId::new(format!("{pod}")));
                    of_second[usize::try_from(first_pause(&uid, &container, kind, period).as_secs()).unwrap()] += 1;
                }
            }
            // 750 checks in 9 s are 83 in each; without a spread all are in one.
            prop_assert!(of_second.iter().all(|checks| *checks < 140), "{:?}", of_second);
        }
    }
}
