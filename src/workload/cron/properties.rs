//! CronJobs under random restarts, clock changes and lost steps (W99 (1), (6)).

use super::tests::{Host, at, names};
use super::*;
use jiff::SignedDuration;
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::time::Duration;

/// Something that happens to the host between two looks.
#[derive(Clone, Debug)]
enum Happening {
    /// Time passes on both clocks.
    Seconds(u32),
    /// The wall clock is set, by that many seconds from the latest time that it has shown; up to three hours back.
    ClockSet(i64),
    /// The wall clock shows 1970.
    ClockLost,
    /// Power cut, maybe after a step whose memory reached the disk and whose Jobs did not start.
    PowerCut { is_after_write: bool },
    /// The kernel says that the clock is synchronised.
    Synchronised,
    /// A Job ends.
    Ends { index: prop::sample::Index, is_success: bool },
    /// The remains of a Job that is to go are gone.
    Gone(prop::sample::Index),
    /// All pods were observed.
    Observed,
    /// suspend is edited.
    Suspend(bool),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        8 => (1_u32..5000).prop_map(Happening::Seconds),
        2 => (-10_800_i64..=0).prop_map(Happening::ClockSet),
        1 => (0_i64..1_000_000).prop_map(Happening::ClockSet),
        1 => Just(Happening::ClockLost),
        2 => any::<bool>().prop_map(|is_after_write| Happening::PowerCut { is_after_write }),
        3 => Just(Happening::Synchronised),
        3 => Just(Happening::Observed),
        4 => (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(index, is_success)| Happening::Ends { index, is_success }),
        3 => any::<prop::sample::Index>().prop_map(Happening::Gone),
        1 => any::<bool>().prop_map(Happening::Suspend),
    ];
    prop::collection::vec(one, 1..60)
}

/// A host, and everything that it ever did.
struct Story {
    host: Host,
    latest_wall: Timestamp,
    /// UIDs of all Jobs that were ever wanted, by name.
    started: BTreeMap<String, String>,
    /// Jobs that exist and that this boot has not observed yet.
    unobserved: BTreeMap<String, ObservedRun>,
}

impl Story {
    fn new(schedule: &str, policy: &str, deadline: Option<i64>) -> Self {
        let mut host = Host::new(schedule, "2026-03-27T22:00:00Z");
        host.spec().concurrency_policy = Some(policy.to_owned());
        host.spec().starting_deadline_seconds = deadline;
        host.spec().time_zone = Some("Europe/Berlin".to_owned());
        Story { latest_wall: host.clocks.wall, host, started: BTreeMap::new(), unobserved: BTreeMap::new() }
    }

    fn happens(&mut self, happening: Happening) {
        let clocks = &mut self.host.clocks;
        match happening {
            Happening::Seconds(seconds) => {
                clocks.wall += SignedDuration::from_secs(seconds.into());
                clocks.moment = clocks.moment + Duration::from_secs(seconds.into());
            }
            Happening::ClockSet(by) => clocks.wall = self.latest_wall + SignedDuration::from_secs(by),
            Happening::ClockLost => clocks.wall = at("1970-01-01T00:00:00Z"),
            Happening::PowerCut { is_after_write } => self.power_cut(is_after_write),
            Happening::Observed => {
                self.host.runs.append(&mut self.unobserved);
                self.host.all_observed = true;
            }
            Happening::Synchronised => clocks.synchronised = Some(true),
            Happening::Ends { index, is_success } => self.ends(index, is_success),
            Happening::Gone(index) => self.gone(index),
            Happening::Suspend(suspend) => self.host.spec().suspend = Some(suspend),
        }
        self.latest_wall = self.latest_wall.max(self.host.clocks.wall);
    }

    fn power_cut(&mut self, is_after_write: bool) {
        if is_after_write {
            let step = self.host.consider();
            for job in &step.jobs {
                let (name, uid) = (job.metadata.name.clone().unwrap(), job.metadata.uid.clone().unwrap());
                self.started.entry(name).or_insert(uid);
            }
            self.host.memory = Some(step.memory);
        }
        let wall = self.host.clocks.wall.max(self.latest_wall - SignedDuration::from_hours(3));
        self.host.boot(&wall.to_string());
        let mut remains = std::mem::take(&mut self.host.runs);
        remains.append(&mut self.unobserved);
        self.unobserved = remains;
        self.host.all_observed = false;
    }

    fn ends(&mut self, index: prop::sample::Index, is_success: bool) {
        let is_active = |(name, run): (&String, &ObservedRun)| (*run == ObservedRun::Active).then(|| name.clone());
        let active: Vec<String> = self.host.runs.iter().filter_map(is_active).collect();
        if !active.is_empty() {
            let name = index.get(&active);
            self.unobserved.remove(name);
            let end = if is_success { ObservedRun::Complete { at: None } } else { ObservedRun::Failed };
            self.host.runs.insert(name.clone(), end);
        }
    }

    fn gone(&mut self, index: prop::sample::Index) {
        let ending: Vec<String> = self.host.consider().ending.into_iter().collect();
        if !ending.is_empty() {
            self.host.runs.remove(index.get(&ending));
        }
    }

    /// Looks, and checks what holds after every look.
    fn look(&mut self, policy: &str) -> Result<(), TestCaseError> {
        let step = self.host.look();
        for job in &step.jobs {
            let (name, uid) = (job.metadata.name.clone().unwrap(), job.metadata.uid.clone().unwrap());
            let first = self.started.entry(name).or_insert_with(|| uid.clone());
            prop_assert_eq!(&*first, &uid, "a minute was started twice");
        }
        let existing: BTreeMap<_, _> = self.host.runs.iter().chain(&self.unobserved).collect();
        let unfinished = existing.values().filter(|run| ***run == ObservedRun::Active).count();
        prop_assert!(policy == "Allow" || unfinished <= 1, "runs overlap");
        let ended = step.memory.runs.values();
        let (complete, failed) = (
            ended.clone().filter(|run| run.stage == RunStage::Complete).count(),
            ended.filter(|run| run.stage == RunStage::Failed).count(),
        );
        prop_assert!(complete <= 3 && failed <= 1, "history is over its limits");
        let again = self.host.look();
        prop_assert!(again.events.is_empty(), "told again: {:?}", again.events);
        prop_assert_eq!(names(&again), names(&step));
        prop_assert_eq!(again.memory, step.memory);
        prop_assert_eq!(again.wake, step.wake);
        prop_assert!(again.wake.wall.is_none_or(|wake| wake > self.host.clocks.wall));
        Ok(())
    }
}

proptest! {
    #![proptest_config(Config { cases: 200, failure_persistence: None, ..Config::default() })]

    // W99 (1), (6)
    #[test]
    fn no_minute_runs_twice(
        schedule in prop::sample::select(&["*/10 * * * *", "0 * * * *", "30 2 * * *", "@every 17m", "@every 25s", "0 3,4 * * 1-5"]),
        policy in prop::sample::select(&ConcurrencyPolicy::NAMES),
        deadline in prop::sample::select(&[None, Some(0), Some(60), Some(7200)]),
        happenings in happenings(),
    ) {
        let mut story = Story::new(schedule, policy, deadline);
        story.look(policy)?;
        for happening in happenings {
            story.happens(happening);
            story.look(policy)?;
        }
    }
}
