//! The clock.

use super::finding::Finding;
use super::host::Host;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use podstead_sys::time_sync::is_synchronised;

/// No clock that is right shows an earlier day to this version.
const NOT_BEFORE: Date = Date::constant(2026, 1, 1);

/// Observed state.
#[derive(Debug)]
struct Observed {
    now: Timestamp,
    /// True if the clock is synchronised; unknown if the kernel does not report it.
    is_synchronised: Option<bool>,
    has_hardware_clock: bool,
}

pub(super) fn check(host: &Host) -> Vec<Finding> {
    judge(&Observed {
        now: Timestamp::now(),
        is_synchronised: is_synchronised(),
        has_hardware_clock: host.files.has("/dev/rtc0") || host.files.has("/dev/rtc"),
    })
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let date = observed.now.to_zoned(TimeZone::UTC).date();
    let sync = "enable time synchronisation (timedatectl set-ntp true), or set the clock";
    if date < NOT_BEFORE {
        let why = "with a wrong clock, TLS certificates and commit signatures may be rejected; revisions that are already accepted \
                   keep running";
        return vec![Finding::problem(format!("the clock shows {date}, which is before this version was released"), why, sync)];
    }
    let mut findings = Vec::new();
    if observed.is_synchronised == Some(false) {
        let why = if observed.has_hardware_clock {
            "the clock drifts; TLS certificates and commit signatures are checked against it"
        } else {
            "there is no hardware clock: after a power cut the clock starts at the time of the last shutdown or earlier, and TLS \
             certificates and commit signatures are checked against it"
        };
        findings.push(Finding::warning("the clock is not synchronised", why, sync));
    } else if !observed.has_hardware_clock {
        let why = "after a power cut the clock is wrong until it is synchronised over the network";
        findings.push(Finding::note("there is no hardware clock", why, ""));
    }
    if findings.is_empty() {
        let state = if observed.is_synchronised == Some(true) { ", synchronised" } else { "" };
        findings.push(Finding::ok(format!("{date} (UTC){state}")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, Note, Ok, Problem, Warning};
    use super::*;

    #[test]
    fn a_clock_before_the_version_is_wrong_and_one_that_nobody_sets_will_be() {
        let severities = |now: &str, is_synchronised, has_hardware_clock| {
            let observed = Observed { now: now.parse().unwrap(), is_synchronised, has_hardware_clock };
            judge(&observed).iter().map(|finding| finding.severity).collect::<Vec<Severity>>()
        };
        assert_eq!(severities("1970-01-01T00:00:09Z", Some(true), true), [Problem]);
        assert_eq!(severities("2027-01-01T00:00:00Z", Some(true), true), [Ok]);
        assert_eq!(severities("2027-01-01T00:00:00Z", None, true), [Ok]);
        assert_eq!(severities("2027-01-01T00:00:00Z", Some(false), true), [Warning]);
        assert_eq!(severities("2027-01-01T00:00:00Z", Some(true), false), [Note]);
    }
}
