//! Decides which images go, and in which order. **Pure**.
//!
//! An image with a mark is never in a plan. Of the others those go first that their registry can deliver again, and of these the one that was unused
//! for the longest time. What frees nothing stays.

use podstead_container::digest::Digest;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Space on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    /// Bytes.
    pub(crate) bytes: u64,
    /// Inodes.
    pub(crate) inodes: u64,
}

impl Amount {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), inodes: self.inodes.saturating_add(other.inodes) }
    }

    pub(crate) fn covers(self, other: Self) -> bool {
        self.bytes >= other.bytes && self.inodes >= other.inodes
    }

    /// The smaller of each.
    fn least(self, other: Self) -> Self {
        Self { bytes: self.bytes.min(other.bytes), inodes: self.inodes.min(other.inodes) }
    }

    /// The larger of each.
    pub(crate) fn most(self, other: Self) -> Self {
        Self { bytes: self.bytes.max(other.bytes), inodes: self.inodes.max(other.inodes) }
    }
}

/// An image of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Of its manifest.
    pub(crate) digest: Digest,
    /// Its names.
    pub(crate) references: Vec<String>,
    /// Its layers.
    pub(crate) chains: Vec<Digest>,
    /// Time since it was used or became whole.
    pub(crate) idle: Duration,
    /// Its registry answered lately: it could be had again.
    pub(crate) replaceable: bool,
    /// Its only mark is that it was fetched by hand lately.
    pub(crate) by_hand: bool,
    /// The reason for which it stays.
    pub(crate) mark: Option<String>,
}

/// Content of the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    /// All images.
    pub(crate) images: Vec<Candidate>,
    /// All layers on disk with their size, also those that no image needs.
    pub(crate) layers: BTreeMap<Digest, Amount>,
    /// Layers that stay whatever happens to their images: mounted, given out, or of a pull under way.
    pub(crate) held: BTreeSet<Digest>,
}

/// Space to be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// So much, if possible.
    Free(Amount),
    /// As much as possible.
    All,
}

/// The images to be removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// In this order.
    pub(crate) images: Vec<Candidate>,
    /// Layers that no image needs.
    pub(crate) loose: Vec<Digest>,
    /// Space that all this takes.
    pub(crate) frees: Amount,
}

/// Decides. Layers that no image needs go in any case.
pub(crate) fn plan(content: &Content, goal: Goal, minimum_age: Duration) -> Plan {
    let mut users: BTreeMap<Digest, usize> = BTreeMap::new();
    for image in &content.images {
        for chain in unique(image) {
            *users.entry(chain).or_default() += 1;
        }
    }
    let is_loose = |chain: &&Digest| !users.contains_key(*chain) && !content.held.contains(*chain);
    let loose: Vec<Digest> = content.layers.keys().filter(is_loose).copied().collect();
    let size = |chain: &Digest| content.layers.get(chain).copied().unwrap_or_default();
    let mut frees = loose.iter().map(size).fold(Amount::default(), Amount::plus);
    let mut order: Vec<&Candidate> =
        content.images.iter().filter(|image| image.mark.is_none() && image.idle >= minimum_age).collect();
    order.sort_by_key(|image| (!image.replaceable, Reverse(image.idle), image.digest));
    let mut images: Vec<&Candidate> = Vec::new();
    let wanted = match goal {
        Goal::Free(wanted) => wanted,
        Goal::All => Amount { bytes: u64::MAX, inodes: u64::MAX },
    };
    let enough = |frees: Amount| goal != Goal::All && frees.covers(wanted);
    for image in order {
        if enough(frees) {
            break;
        }
        frees = frees.plus(take(image, &mut users, content));
        images.push(image);
    }
    // Of what went for nothing, the most valuable comes back first.
    let mut kept = BTreeSet::new();
    for image in images.iter().rev().filter(|_| goal != Goal::All) {
        let mut back = users.clone();
        unique(image).into_iter().for_each(|chain| *back.entry(chain).or_default() += 1);
        let less = freed(content, &back, &loose);
        if less.least(wanted) == frees.least(wanted) {
            (users, frees) = (back, less);
            kept.insert(image.digest);
        }
    }
    images.retain(|image| !kept.contains(&image.digest));
    Plan { images: images.into_iter().cloned().collect(), loose, frees }
}

fn unique(image: &Candidate) -> BTreeSet<Digest> {
    image.chains.iter().copied().collect()
}

/// Takes an image away; returns the space of the layers that nobody uses any more.
fn take(image: &Candidate, users: &mut BTreeMap<Digest, usize>, content: &Content) -> Amount {
    let mut freed = Amount::default();
    for chain in unique(image) {
        let Some(count) = users.get_mut(&chain) else { continue };
        *count = count.saturating_sub(1);
        if *count == 0 && !content.held.contains(&chain) {
            freed = freed.plus(content.layers.get(&chain).copied().unwrap_or_default());
        }
    }
    freed
}

/// Space of all layers that nobody uses.
fn freed(content: &Content, users: &BTreeMap<Digest, usize>, loose: &[Digest]) -> Amount {
    let unused = users.iter().filter(|(chain, count)| **count == 0 && !content.held.contains(*chain)).map(|(chain, _)| chain);
    unused.chain(loose).filter_map(|chain| content.layers.get(chain)).copied().fold(Amount::default(), Amount::plus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chain(number: u8) -> Digest {
        Digest::of(&[number])
    }

    fn image(name: &str, layers: &[u8], idle: u64) -> Candidate {
        Candidate {
            digest: Digest::of(name.as_bytes()),
            references: vec![name.to_owned()],
            chains: layers.iter().map(|layer| chain(*layer)).collect(),
            idle: Duration::from_secs(idle),
            replaceable: false,
            by_hand: false,
            mark: None,
        }
    }

    fn content(images: Vec<Candidate>, layers: impl IntoIterator<Item = u8>) -> Content {
        let layers = layers.into_iter().map(|layer| (chain(layer), Amount { bytes: 10, inodes: 1 })).collect();
        Content { images, layers, held: BTreeSet::new() }
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.images.iter().map(|image| image.references[0].as_str()).collect()
    }

    fn bytes(bytes: u64) -> Goal {
        Goal::Free(Amount { bytes, inodes: 0 })
    }

    #[test]
    fn longest_unused_image_goes_first() {
        let content = content(vec![image("new", &[1], 200), image("old", &[2], 900), image("young", &[3], 5)], 1..=3);
        let age = Duration::from_secs(120);
        assert_eq!(names(&plan(&content, bytes(10), age)), ["old"]);
        assert_eq!(names(&plan(&content, bytes(11), age)), ["old", "new"]);
        assert_eq!(names(&plan(&content, Goal::All, Duration::ZERO)), ["old", "new", "young"]);
    }

    #[test]
    fn replaceable_images_go_before_others() {
        let mut pulled = image("pulled", &[1], 5);
        pulled.replaceable = true;
        let content = content(vec![image("imported", &[2], 900), pulled], 1..=2);
        assert_eq!(names(&plan(&content, bytes(1), Duration::ZERO)), ["pulled"]);
    }

    #[test]
    fn image_that_frees_nothing_stays() {
        let mut running = image("running", &[1, 2], 0);
        running.mark = Some("pod".into());
        let content = content(vec![running, image("part", &[1], 900), image("other", &[3], 100)], 1..=3);
        assert_eq!(names(&plan(&content, bytes(1), Duration::ZERO)), ["other"]);
        assert_eq!(names(&plan(&content, Goal::All, Duration::ZERO)), ["part", "other"], "prune removes also names");
    }

    #[test]
    fn unneeded_layers_go_before_images() {
        let mut content = content(vec![image("a", &[1], 900)], 1..=3);
        content.held.insert(chain(3));
        let plan = plan(&content, bytes(10), Duration::ZERO);
        assert_eq!((names(&plan), &plan.loose[..], plan.frees.bytes), (vec![], &[chain(2)][..], 10));
    }

    fn any_content() -> impl Strategy<Value = Content> {
        let layers = prop::collection::btree_map(0_u8..12, (0_u64..100, 0_u64..5), 0..12);
        let one = (prop::collection::vec(0_u8..12, 0..5), 0_u64..1000, any::<bool>(), prop::bool::weighted(0.3));
        let held = prop::collection::btree_set(0_u8..12, 0..4);
        (layers, prop::collection::vec(one, 0..10), held).prop_map(|(layers, images, held)| Content {
            images: images
                .into_iter()
                .enumerate()
                .map(|(number, (layers, idle, replaceable, marked))| Candidate {
                    replaceable,
                    mark: marked.then(|| "wanted".to_owned()),
                    ..image(&number.to_string(), &layers, idle)
                })
                .collect(),
            layers: layers.into_iter().map(|(layer, (bytes, inodes))| (chain(layer), Amount { bytes, inodes })).collect(),
            held: held.into_iter().map(chain).collect(),
        })
    }

    proptest! {
        #[test]
        fn nothing_marked_young_or_held_goes(content in any_content(), wanted in 0_u64..500, age in 0_u64..500) {
            let age = Duration::from_secs(age);
            for goal in [bytes(wanted), Goal::All] {
                let plan = plan(&content, goal, age);
                prop_assert!(plan.images.iter().all(|image| image.mark.is_none() && image.idle >= age));
                let staying = content.images.iter().filter(|image| !plan.images.contains(image));
                let needed: BTreeSet<Digest> = staying.flat_map(|image| image.chains.clone()).collect();
                prop_assert!(plan.loose.iter().all(|layer| !content.held.contains(layer) && !needed.contains(layer)));
            }
        }

        #[test]
        fn goal_is_reached_when_possible(content in any_content(), wanted in 0_u64..500) {
            let all = plan(&content, Goal::All, Duration::ZERO);
            let some = plan(&content, bytes(wanted), Duration::ZERO);
            prop_assert!(some.frees.bytes >= wanted.min(all.frees.bytes));
            prop_assert!(some.images.len() <= all.images.len());
            // No image of it is superfluous.
            for spared in &some.images {
                let mut without = content.clone();
                without.images.iter_mut().filter(|image| !some.images.contains(image) || *image == spared)
                    .for_each(|image| image.mark = Some("spared".into()));
                prop_assert!(plan(&without, Goal::All, Duration::ZERO).frees.bytes < wanted.min(some.frees.bytes) );
            }
        }

        #[test]
        fn plan_is_the_same_whatever_the_order(content in any_content(), wanted in 0_u64..500) {
            let mut turned = content.clone();
            turned.images.reverse();
            prop_assert_eq!(plan(&content, bytes(wanted), Duration::ZERO), plan(&turned, bytes(wanted), Duration::ZERO));
        }

        #[test]
        fn space_told_is_space_of_what_goes(content in any_content()) {
            let plan = plan(&content, Goal::All, Duration::ZERO);
            let staying = content.images.iter().filter(|image| !plan.images.contains(image));
            let needed: BTreeSet<Digest> = staying.flat_map(|image| image.chains.clone()).collect();
            let gone = content.layers.iter().filter(|(layer, _)| !needed.contains(*layer) && !content.held.contains(*layer));
            prop_assert_eq!(plan.frees, gone.map(|(_, amount)| *amount).fold(Amount::default(), Amount::plus));
        }
    }
}
