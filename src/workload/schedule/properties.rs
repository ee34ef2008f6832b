//! Activations against a walk by minutes, and against another implementation (W99 (7)).

use super::fields::CronFields;
use super::{Kind, Schedule};
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::str::FromStr;

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// Zones with changes of an hour, half an hour, two hours and a day, at and around midnight, several times a year, and never.
const ZONES: [&str; 20] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Havana",
    "America/Asuncion",
    "America/Scoresbysund",
    "America/Caracas",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Asia/Beirut",
    "Asia/Pyongyang",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Pacific/Apia",
    "Pacific/Chatham",
];

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

fn fields(schedule: &Schedule) -> &CronFields {
    match &schedule.0 {
        Kind::Fields(fields) => fields,
        Kind::Every(interval) => panic!("{interval:?}"),
    }
}

/// A point in time, mostly near a change of the clock.
fn instants(zone: &TimeZone) -> impl Strategy<Value = Timestamp> + use<> {
    let start: Timestamp = "2000-01-01T00:00:00Z".parse().unwrap();
    let changes: Vec<Timestamp> =
        zone.following(start).map(|change| change.timestamp()).take_while(|change| change.as_second() < 2_200_000_000).collect();
    (any::<prop::sample::Index>(), -180_000_i64..180_000, 0_i64..1_200_000_000, prop::bool::weighted(0.1)).prop_map(
        move |(index, near, anywhere, is_anywhere)| {
            let base =
                if changes.is_empty() || is_anywhere { start.as_second() + anywhere } else { index.get(&changes).as_second() };
            Timestamp::from_second(base + near).unwrap()
        },
    )
}

/// One field: stars, steps, ranges, values and lists.
fn field(minimum: u32, maximum: u32) -> impl Strategy<Value = String> {
    let value = minimum..=maximum;
    let item = prop_oneof![
        3 => Just("*".to_owned()),
        1 => Just("?".to_owned()),
        3 => value.clone().prop_map(|value| value.to_string()),
        1 => (1..=maximum).prop_map(|step| format!("*/{step}")),
        1 => (value.clone(), 1..=maximum).prop_map(|(value, step)| format!("{value}/{step}")),
        1 => (value.clone(), value).prop_map(|(one, other)| format!("{}-{}", one.min(other), one.max(other))),
    ];
    prop::collection::vec(item, 1..=2).prop_map(|items| items.join(","))
}

/// Schedules that have activations on most days, so that a walk of some days sees them.
fn schedules() -> impl Strategy<Value = Schedule> {
    let days = prop_oneof![6 => Just("*".to_owned()), 1 => field(1, 28), 1 => Just("*/2".to_owned())];
    let weekdays = prop_oneof![6 => Just("*".to_owned()), 1 => field(0, 6)];
    let hours = prop_oneof![2 => field(0, 23), 2 => field(0, 3), 1 => (21_u32..=23).prop_map(|hour| hour.to_string())];
    (field(0, 59), hours, days, weekdays)
        .prop_map(|(minute, hour, day, weekday)| Schedule::parse(&format!("{minute} {hour} {day} * {weekday}")).unwrap())
}

/// Activations after `after` and not after `until`, found by looking at each minute.
fn walk(fields: &CronFields, after: Timestamp, until: Timestamp, zone: &TimeZone) -> Vec<Timestamp> {
    // No change of the clock is longer than a day and a bit: the walk starts early enough to know the calendar times that have passed.
    let start = Timestamp::from_second((after.as_second() / 60 - 60 * 50) * 60).unwrap();
    let mut passed = zone.to_datetime(start);
    let mut found = Vec::new();
    let mut instant = start;
    while instant <= until {
        let calendar = zone.to_datetime(instant);
        let is_due = if fields.follows_elapsed_time { fields.matches(calendar) } else { any_match(fields, passed, calendar) };
        if is_due && instant > after {
            found.push(instant);
        }
        passed = passed.max(calendar);
        instant += MINUTE;
    }
    found
}

/// True if a minute after `passed` and not after `calendar` matches.
fn any_match(fields: &CronFields, passed: DateTime, calendar: DateTime) -> bool {
    let minutes = std::iter::successors(Some(calendar), |minute| Some(*minute - MINUTE));
    minutes.take_while(|minute| *minute > passed).any(|minute| fields.matches(minute))
}

fn cases() -> impl Strategy<Value = (&'static str, Schedule, Timestamp, SignedDuration)> {
    (prop::sample::select(&ZONES), schedules()).prop_flat_map(|(name, schedule)| {
        let length = (0_i64..4 * 24 * 3600).prop_map(SignedDuration::from_secs);
        (Just(name), Just(schedule), instants(&zone(name)), length)
    })
}

proptest! {
    #![proptest_config(Config { cases: 100, failure_persistence: None, ..Config::default() })]

    // W99 (7)
    #[test]
    fn activations_are_those_of_walk((name, schedule, after, length) in cases()) {
        let zone = zone(name);
        let until = after + length;
        let expected = walk(fields(&schedule), after, until, &zone);
        let mut forwards = Vec::new();
        let mut last = after;
        while let Some(next) = schedule.next(after, last, &zone).filter(|next| *next <= until) {
            forwards.push(next);
            last = next;
        }
        prop_assert_eq!(&forwards, &expected);
        let mut backwards = Vec::new();
        let mut last = until;
        while let Some(latest) = schedule.latest(after, last, &zone) {
            backwards.insert(0, latest);
            last = latest - SignedDuration::from_nanos(1);
        }
        prop_assert_eq!(&backwards, &expected);
        prop_assert_eq!(schedule.count(after, until, &zone, 5), expected.len().min(5) as u32);
    }

}

proptest! {
    #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

    // W99 (7)
    #[test]
    fn next_agrees_with_croner((name, text, after) in croner_cases()) {
        let zone = zone(name);
        let schedule = Schedule::parse(&text).unwrap();
        let theirs = croner::Cron::from_str(&text).unwrap();
        let expected = theirs.find_next_occurrence(&after.to_zoned(zone.clone()), false).unwrap();
        prop_assert_eq!(schedule.next(after, after, &zone), Some(expected.timestamp()), "{} in {} after {}", text, name, after);
    }

    #[test]
    fn found_times_are_apart_from_anchor((name, schedule, after, length) in cases()) {
        let zone = zone(name);
        let until = after + length;
        let next = schedule.next(after, after, &zone);
        prop_assert!(next.is_some_and(|next| next > after));
        let latest = schedule.latest(after, until, &zone);
        prop_assert!(latest.is_none_or(|latest| latest > after && latest <= until));
        prop_assert_eq!(latest.is_some(), next.is_some_and(|next| next <= until));
    }

    #[test]
    fn parser_survives_any_text(text in "[-*?/,0-9A-Za-z@ ]{0,30}") {
        if let Ok(schedule) = Schedule::parse(&text) {
            let now = Timestamp::UNIX_EPOCH;
            prop_assert!(schedule.next(now, now, &TimeZone::UTC).is_some_and(|next| next > now));
        }
    }
}

/// Schedules that mean the same to both: croner takes a fixed time for one only if it is a single minute of a single hour, and everything else for
/// a repetition; and it looks for the end of a gap for two hours.
fn croner_cases() -> impl Strategy<Value = (&'static str, String, Timestamp)> {
    let fixed = (0_u32..60, 0_u32..24).prop_map(|(minute, hour)| format!("{minute} {hour}"));
    let minutes = prop_oneof![
        Just("*".to_owned()),
        (2_u32..30).prop_map(|step| format!("*/{step}")),
        (0_u32..60).prop_map(|m| m.to_string())
    ];
    let hours = prop_oneof![Just("*".to_owned()), (2_u32..12).prop_map(|step| format!("*/{step}"))];
    let repeated = (minutes, hours).prop_map(|(minute, hour)| format!("{minute} {hour}"));
    let days = prop_oneof![
        4 => Just("* * *".to_owned()),
        1 => (1_u32..29).prop_map(|day| format!("{day} * *")),
        1 => (0_u32..7).prop_map(|day| format!("* * {day}")),
        1 => (2_u32..9, 0_u32..7).prop_map(|(step, weekday)| format!("*/{step} * {weekday}")),
        1 => (1_u32..29, 2_u32..5).prop_map(|(day, step)| format!("{day}-30 1-6 */{step}")),
        1 => (1_u32..29, 1_u32..13, 0_u32..7).prop_map(|(day, month, weekday)| format!("{day} {month} {weekday}")),
    ];
    let texts = (prop_oneof![fixed, repeated], days).prop_map(|(time, days)| format!("{time} {days}"));
    let with_short_gaps: Vec<&'static str> = ZONES.into_iter().filter(|name| *name != "Pacific/Apia").collect();
    (prop::sample::select(with_short_gaps), texts).prop_flat_map(|(name, text)| (Just(name), Just(text), instants(&zone(name))))
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The next activations, in the zone.
fn following(text: &str, name: &str, after: &str, number: usize) -> Vec<String> {
    let schedule = Schedule::parse(text).unwrap();
    let zone = zone(name);
    let mut last = at(after);
    let next = std::iter::from_fn(|| {
        last = schedule.next(last, last, &zone)?;
        Some(last.to_zoned(zone.clone()).strftime("%m-%d %H:%M %:z").to_string())
    });
    next.take(number).collect()
}

// TC9
#[test]
fn fixed_time_runs_once_on_changes() {
    let spring = following("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
    assert_eq!(spring, ["03-29 03:00 +02:00", "03-30 02:30 +02:00"]);
    let autumn = following("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
    assert_eq!(autumn, ["10-25 02:30 +02:00", "10-26 02:30 +01:00"]);
}

// TC9
#[test]
fn half_hours_follow_elapsed_time() {
    let schedule = Schedule::parse("*/30 * * * *").unwrap();
    let zone = zone("Europe/Berlin");
    for start in ["2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z"] {
        let mut last = at(start);
        for _ in 0..24 {
            let next = schedule.next(last, last, &zone).unwrap();
            assert_eq!(next - last, jiff::Span::new().seconds(1800).fieldwise());
            last = next;
        }
    }
}

#[test]
fn skipped_day_runs_at_its_end() {
    // Samoa had no 30 December 2011.
    let days = following("30 2 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", 3);
    assert_eq!(days, ["12-29 02:30 -10:00", "12-31 00:00 +14:00", "12-31 02:30 +14:00"]);
}

#[test]
fn rare_days_are_found_both_ways() {
    let schedule = Schedule::parse("0 12 29 2 *").unwrap();
    let (before, after) = (at("2097-01-01T00:00:00Z"), at("2104-02-29T12:00:00Z"));
    assert_eq!(schedule.next(before, before, &TimeZone::UTC), Some(after));
    assert_eq!(schedule.latest(before, at("2110-01-01T00:00:00Z"), &TimeZone::UTC), Some(at("2108-02-29T12:00:00Z")));
    assert_eq!(schedule.latest(before, at("2104-02-29T11:59:59Z"), &TimeZone::UTC), None);
}

// TC1
#[test]
fn latest_is_found_backwards_from_now() {
    let schedule = Schedule::parse("30 10,11,12 * * 1-5").unwrap();
    let latest = schedule.latest(at("2026-03-05T10:30:00Z"), at("2026-03-06T16:30:00Z"), &TimeZone::UTC);
    assert_eq!(latest, Some(at("2026-03-06T12:30:00Z")));
}

#[test]
fn search_ends_at_range_of_time() {
    let schedule = Schedule::parse("0 0 1 1 *").unwrap();
    for name in ["UTC", "Europe/Berlin"] {
        let zone = zone(name);
        assert_eq!(schedule.next(Timestamp::MAX, Timestamp::MAX, &zone), None);
        assert_eq!(schedule.latest(Timestamp::MIN, Timestamp::MIN, &zone), None);
        assert!(schedule.latest(Timestamp::MIN, Timestamp::MAX, &zone).is_some());
        assert!(schedule.next(Timestamp::MIN, Timestamp::MIN, &zone).is_some());
    }
}
