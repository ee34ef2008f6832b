//! Any text is a cron schedule or refused, and any name a time zone or refused. Activations are behind the point that they are looked for from,
//! and the last one before an activation is that activation. The schedule ends at the first NUL; then come eight bytes of time and the zone.
#![no_main]

use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use libfuzzer_sys::fuzz_target;
use podstead_workload::schedule::{Schedule, zone};
use std::sync::LazyLock;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let rest = bytes.get(at + 1..).unwrap_or_default();
    let (time, name) = rest.split_at(rest.len().min(8));
    let name = String::from_utf8_lossy(name);
    let zone = zone((!name.is_empty()).then_some(&*name), &ZONES);
    let Ok(schedule) = Schedule::parse(&String::from_utf8_lossy(&bytes[..at])) else { return };
    let Ok(zone) = zone else { return };
    let seconds = time.iter().fold(0_i64, |seconds, byte| (seconds << 8) | i64::from(*byte));
    let range = Timestamp::MAX.as_second() - Timestamp::MIN.as_second();
    let Ok(from) = Timestamp::from_second(Timestamp::MIN.as_second() + seconds.rem_euclid(range)) else { return };
    let Some(next) = schedule.next(from, from, &zone) else { return };
    assert!(next > from);
    assert_eq!(schedule.latest(from, next, &zone), Some(next));
    assert_eq!(schedule.count(from, next, &zone, 2), 1);
});
