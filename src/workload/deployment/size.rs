//! The number of pods of each revision: the arithmetic of rolling updates (W22 to W26), without names.

use super::limits::Limits;

/// One revision of a Deployment, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// Its number; newer revisions have higher ones.
    pub revision: u64,
    /// Pods that are wanted.
    pub wanted: u32,
    /// Those of them that are available.
    pub available: u32,
}

impl Side {
    fn lose(&mut self, fewer: u32) {
        self.wanted -= fewer;
        // Unavailable pods go first.
        self.available = self.available.min(self.wanted);
    }
}

/// The old revisions, oldest first, and the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sides {
    /// Oldest first.
    pub old: Vec<Side>,
    /// The newest.
    pub new: Side,
    /// Pods that are being stopped, if a new one needs their place: of templates that only one pod at a time can have (W82).
    pub occupied: Option<u32>,
}

impl Sides {
    fn total(&self) -> u32 {
        self.old_total() + self.new.wanted
    }

    /// Pods of the old revisions.
    pub fn old_total(&self) -> u32 {
        self.old.iter().map(|side| side.wanted).sum()
    }

    /// Takes all steps of the strategy Recreate that may be taken now: the new revision starts when no old pod exists any more (W25).
    pub fn recreate(&mut self, replicas: u32, old_exist: bool, may_shrink: bool) {
        let old_exist = old_exist || self.old_total() > 0;
        if may_shrink {
            self.old.iter_mut().for_each(|side| side.lose(side.wanted));
        }
        if self.new.wanted > replicas {
            self.new.lose(self.new.wanted - replicas);
        } else if !old_exist {
            self.new.wanted = replicas;
        }
    }

    fn available(&self) -> u32 {
        self.old.iter().map(|side| side.available).sum::<u32>() + self.new.available
    }

    /// Takes all steps of a rolling update that may be taken now: up first, then down, until nothing changes (W22 to W24). `may_shrink` is false
    /// while no pod may be taken away for its successor (W14, W94).
    pub fn roll(&mut self, replicas: u32, limits: Limits, may_shrink: bool) {
        loop {
            let before = self.clone();
            self.grow_new(replicas, limits);
            if may_shrink {
                let old = self.old_total();
                self.shrink_old(replicas, limits);
                let stopping = old - self.old_total();
                self.occupied = self.occupied.map(|occupied| occupied + stopping);
            }
            if *self == before {
                return;
            }
        }
    }

    fn grow_new(&mut self, replicas: u32, limits: Limits) {
        if self.new.wanted > replicas {
            self.new.lose(self.new.wanted - replicas);
        } else {
            let room = replicas.saturating_add(limits.surge).saturating_sub(self.total() + self.occupied.unwrap_or(0));
            self.new.wanted += room.min(replicas - self.new.wanted);
        }
    }

    fn shrink_old(&mut self, replicas: u32, limits: Limits) {
        let needed = replicas.saturating_sub(limits.unavailable);
        let coming = self.new.wanted - self.new.available;
        let mut may_go = self.total().saturating_sub(needed + coming);
        for side in &mut self.old {
            let broken = (side.wanted - side.available).min(may_go);
            side.lose(broken);
            may_go -= broken;
        }
        let mut may_go = self.available().saturating_sub(needed).min(may_go);
        for side in &mut self.old {
            let fewer = side.wanted.min(may_go);
            side.lose(fewer);
            may_go -= fewer;
        }
    }

    /// Gives every revision its share of a changed number of replicas (W26). `before` is the maximum that the sizes were made for.
    pub fn share(&mut self, replicas: u32, limits: Limits, before: u32) {
        if self.new.wanted == replicas && self.new.available == replicas {
            self.old.iter_mut().for_each(|side| side.lose(side.wanted));
            return;
        }
        let allowed = if replicas == 0 { 0 } else { replicas.saturating_add(limits.surge) };
        let difference = i64::from(allowed) - i64::from(self.total());
        let mut active: Vec<&mut Side> = self.old.iter_mut().chain([&mut self.new]).filter(|side| side.wanted > 0).collect();
        match active.as_mut_slice() {
            [] => {}
            [only] => resize(only, replicas.into()),
            _ => {
                let growing = difference > 0;
                active.sort_by_key(|side| {
                    (std::cmp::Reverse(side.wanted), if growing { u64::MAX - side.revision } else { side.revision })
                });
                share_out(&mut active, replicas, allowed, difference, before);
            }
        }
    }
}

fn resize(side: &mut Side, wanted: i64) {
    let wanted = u32::try_from(wanted.max(0)).unwrap_or(u32::MAX);
    if wanted < side.wanted { side.lose(side.wanted - wanted) } else { side.wanted = wanted }
}

/// Rounded to the nearest; what is left over is for the first.
fn share_out(active: &mut [&mut Side], replicas: u32, allowed: u32, difference: i64, before: u32) {
    let mut given = 0;
    let mut sizes = Vec::with_capacity(active.len());
    for side in active.iter() {
        let left = difference - given;
        let fraction = fraction(side.wanted, replicas, allowed, before);
        let part = if difference > 0 { fraction.min(left) } else { fraction.max(left) };
        sizes.push(i64::from(side.wanted) + part);
        given += part;
    }
    sizes[0] += difference - given;
    for (side, size) in active.iter_mut().zip(sizes) {
        resize(side, size);
    }
}

/// The change of one revision's size that keeps its share.
fn fraction(wanted: u32, replicas: u32, allowed: u32, before: u32) -> i64 {
    if replicas == 0 {
        return -i64::from(wanted);
    }
    let (wanted, before) = (u64::from(wanted), u64::from(before.max(1)));
    let rounded = (2 * wanted * u64::from(allowed) + before) / (2 * before);
    rounded.cast_signed() - wanted.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn side(revision: u64, wanted: u32, available: u32) -> Side {
        Side { revision, wanted, available }
    }

    fn limits(surge: u32, unavailable: u32) -> Limits {
        Limits { surge, unavailable }
    }

    fn roll(old: (u32, u32), new: (u32, u32), replicas: u32, limits: Limits) -> (u32, u32) {
        let mut sides = Sides { old: vec![side(1, old.0, old.1)], new: side(2, new.0, new.1), occupied: None };
        sides.roll(replicas, limits, true);
        (sides.old[0].wanted, sides.new.wanted)
    }

    /// TD2, TD4.
    #[test]
    fn update_without_surge_replaces_one() {
        assert_eq!(roll((10, 10), (0, 0), 10, limits(0, 1)), (9, 1));
        assert_eq!(roll((10, 10), (0, 0), 10, limits(0, 2)), (8, 2));
    }

    /// TD3.
    #[test]
    fn surge_limits_new_pods() {
        assert_eq!(roll((10, 10), (0, 0), 10, limits(2, 0)), (10, 2));
        assert_eq!(roll((5, 5), (0, 0), 10, limits(2, 0)), (5, 7));
        assert_eq!(roll((10, 10), (2, 0), 10, limits(2, 0)), (10, 2));
        assert_eq!(roll((2, 2), (11, 0), 10, limits(2, 0)), (2, 10));
    }

    /// TD5.
    #[test]
    fn unavailable_old_pods_go_first() {
        let mut sides = Sides { old: vec![side(1, 10, 8)], new: side(2, 0, 0), occupied: None };
        sides.shrink_old(10, limits(0, 2));
        assert_eq!(sides.old[0], side(1, 8, 8));
        let mut sides = Sides { old: vec![side(1, 10, 9)], new: side(2, 0, 0), occupied: None };
        sides.shrink_old(10, limits(0, 2));
        assert_eq!(sides.old[0], side(1, 8, 8));
    }

    /// TD6, TD11.
    #[test]
    fn broken_new_pods_cost_no_old_ones() {
        assert_eq!(roll((8, 8), (2, 0), 10, limits(0, 2)), (8, 2));
        assert_eq!(roll((1, 1), (2, 0), 2, limits(1, 1)), (1, 2));
    }

    /// TD19.
    #[test]
    fn nothing_goes_while_images_are_missing() {
        let mut sides = Sides { old: vec![side(1, 3, 3)], new: side(2, 0, 0), occupied: None };
        sides.roll(3, limits(0, 1), false);
        assert_eq!((sides.old[0].wanted, sides.new.wanted), (3, 0));
        sides.roll(3, limits(1, 0), false);
        assert_eq!((sides.old[0].wanted, sides.new.wanted), (3, 1));
    }

    fn share(old: &[u32], new: u32, from: u32, to: u32, surge: u32) -> (Vec<u32>, u32) {
        let old = (1..).zip(old).map(|(revision, wanted)| side(revision, *wanted, 0)).collect();
        let mut sides = Sides { old, new: side(9, new, 0), occupied: None };
        sides.share(to, limits(surge, 1), from + surge);
        (sides.old.iter().map(|side| side.wanted).collect(), sides.new.wanted)
    }

    /// TD8, TD9, TD10.
    #[test]
    fn changed_replicas_are_shared_by_size() {
        assert_eq!(share(&[3], 2, 5, 10, 0), (vec![6], 4));
        assert_eq!(share(&[1], 8, 9, 4, 0), (vec![0], 4));
        assert_eq!(share(&[1, 1], 1, 3, 4, 0), (vec![1, 1], 2));
        assert_eq!(share(&[1, 1], 1, 3, 2, 0), (vec![0, 1], 1));
        assert_eq!(share(&[6], 6, 10, 20, 2), (vec![11], 11));
        assert_eq!(share(&[3], 2, 5, 0, 0), (vec![0], 0));
    }

    #[test]
    fn only_revision_with_pods_gets_all() {
        assert_eq!(share(&[3], 0, 3, 7, 0), (vec![7], 0));
    }

    proptest! {
        /// W99 (3): while no pod ends, enough are available and not too many exist.
        #[test]
        fn rolling_update_stays_within_limits(
            old in proptest::collection::vec((0_u32..8, 0_u32..8), 1..4), new in (0_u32..8, 0_u32..8),
            replicas in 1_u32..12, surge in 0_u32..4, unavailable in 0_u32..4,
        ) {
            let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable }.min(replicas);
            let of = |revision, (wanted, available): (u32, u32)| side(revision, wanted, available.min(wanted));
            let mut sides = Sides { old: (1..).zip(old).map(|(revision, pair)| of(revision, pair)).collect(), new: of(99, new), occupied: None };
            sides.new = of(99, (sides.new.wanted.min(replicas), sides.new.available));
            let before = sides.clone();
            sides.roll(replicas, limits(surge, unavailable), true);
            prop_assert!(sides.available() >= before.available().min(replicas - unavailable));
            prop_assert!(sides.total() <= before.total().max(replicas + surge));
            let once = sides.clone();
            sides.roll(replicas, limits(surge, unavailable), true);
            prop_assert_eq!(sides, once);
        }

        /// W99 (2): pods that become available lead to the new template.
        #[test]
        fn rolling_update_comes_to_its_end(replicas in 1_u32..20, surge in 0_u32..4, unavailable in 0_u32..4) {
            let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable }.min(replicas);
            let mut sides = Sides { old: vec![side(1, replicas, replicas)], new: side(2, 0, 0), occupied: None };
            for _ in 0..=2 * replicas {
                sides.roll(replicas, limits(surge, unavailable), true);
                sides.new.available = sides.new.wanted;
            }
            prop_assert_eq!((sides.old_total(), sides.new.wanted), (0, replicas));
        }
    }
}
