//! `images.windows`: times for updates.

use jiff::tz::TimeZoneDatabase;
use podstead_image::{Day, PullWindow, TimeOfDay};
use podstead_settings::ConfigError;
use podstead_settings::check::Check;
use podstead_workload::schedule::zone;
use serde::{Deserialize, Serialize};

/// Most windows.
const WINDOWS_MAX: usize = 64;

/// `images.windows[]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenWindow {
    /// Days on which the window opens: `Mon`, `Tue`, `Wed`, `Thu`, `Fri`, `Sat`, `Sun`. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<String>,
    /// Time of day at which it opens, such as `01:30`.
    pub from: String,
    /// Time of day at which it closes, up to `24:00`; on the next day if it is not later than `from`.
    pub to: String,
    /// Time zone of `days`, `from` and `to`, such as `Europe/Berlin`. Default: UTC, as for a CronJob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

impl WrittenWindow {
    fn resolve(&self, at: &str, zones: &TimeZoneDatabase, check: &Check<'_>) -> Result<PullWindow, ConfigError> {
        let Self { days, from, to, time_zone } = self;
        let day = |written: &String| {
            let found = Day::ALL.iter().find(|(_, name)| name == written).map(|(day, _)| *day);
            let names = Day::ALL.map(|(_, name)| name).join(", ");
            found.ok_or_else(|| check.invalid(&format!("{at}.days"), format!("{written:?} is not one of {names}")))
        };
        let time = |field: &str, text: &str| {
            TimeOfDay::parse(text)
                .ok_or_else(|| check.invalid(&format!("{at}.{field}"), format!("{text:?} is not a time of day such as 01:30")))
        };
        let zone = zone(time_zone.as_deref(), zones)
            .map_err(|error| check.invalid(&format!("{at}.timeZone"), format!("{error}; {}", error.hint())))?;
        let days = days.iter().map(day).collect::<Result<Vec<_>, _>>()?;
        PullWindow::new(days, time("from", from)?, time("to", to)?, time_zone.clone(), zone)
            .map_err(|error| check.invalid(at, error.to_string()))
    }

    /// The window as it is written.
    pub(super) fn of(window: &PullWindow) -> Self {
        Self {
            days: window.days.iter().map(|day| day.name().to_owned()).collect(),
            from: window.from.to_string(),
            to: window.to.to_string(),
            time_zone: window.time_zone.clone(),
        }
    }
}

/// The windows, in the zones that this host knows.
pub(super) fn resolve_windows(windows: &[WrittenWindow], check: &Check<'_>) -> Result<Vec<PullWindow>, ConfigError> {
    if windows.len() > WINDOWS_MAX {
        return Err(check.invalid("images.windows", format!("more than {WINDOWS_MAX} windows")));
    }
    let numbered = windows.iter().enumerate();
    numbered.map(|(number, window)| window.resolve(&format!("images.windows[{number}]"), jiff::tz::db(), check)).collect()
}
