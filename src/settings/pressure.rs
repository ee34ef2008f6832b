//! `upstream.pressure`: thresholds of the Node's pressure conditions. Pure.

use super::ConfigError;
use super::check::Check;
use super::size;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Threshold of free resources, below which there is pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// So many bytes, inodes or process ids.
    Amount(u64),
    /// Such a part of all.
    Percent(u8),
}

impl Threshold {
    /// Reports whether `free` of `all` is below the threshold. Never if the total is unknown (`all` is 0).
    pub fn is_short(self, free: u64, all: u64) -> bool {
        match self {
            Self::Amount(least) => all > 0 && free < least,
            Self::Percent(least) => all > 0 && u128::from(free) * 100 < u128::from(all) * u128::from(least),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => percent.parse().ok().filter(|percent| *percent <= 100).map(Self::Percent),
            None => size::parse(text).map(Self::Amount),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amount(amount) => f.write_str(&size::format(*amount)),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// The thresholds, resolved. The defaults are the kubelet's of `evictionHard`; it has none for process ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PressureThresholds {
    /// Of memory that is available.
    pub memory: Threshold,
    /// Of space on the file system of the durable state.
    pub storage: Threshold,
    /// Of inodes there.
    pub inodes: Threshold,
    /// Of process ids.
    pub pids: Threshold,
}

impl Default for PressureThresholds {
    fn default() -> Self {
        Self {
            memory: Threshold::Amount(100 << 20),
            storage: Threshold::Percent(10),
            inodes: Threshold::Percent(5),
            pids: Threshold::Percent(10),
        }
    }
}

/// `upstream.pressure` as written. Each is an amount or a percentage; `0` disables it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenPressure {
    /// Available memory below which the Node has MemoryPressure. Default: 100Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_available: Option<String>,
    /// Free space on the file system of `paths.state` below which the Node has DiskPressure. Default: 10%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_available: Option<String>,
    /// Free inodes there below which the Node has DiskPressure. Default: 5%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inodes_available: Option<String>,
    /// Free process ids below which the Node has PIDPressure. Default: 10%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids_available: Option<String>,
}

impl WrittenPressure {
    /// Checks what is written and fills in the defaults.
    pub fn resolve(&self, check: &Check<'_>) -> Result<PressureThresholds, ConfigError> {
        let threshold = |field: &str, text: &Option<String>, default: Threshold| match text {
            None => Ok(default),
            Some(text) => Threshold::parse(text).ok_or_else(|| {
                let message = format!("is {text:?}, must be an amount such as 100Mi or a percentage such as 10%");
                check.invalid(&format!("upstream.pressure.{field}"), message)
            }),
        };
        let default = PressureThresholds::default();
        Ok(PressureThresholds {
            memory: threshold("memoryAvailable", &self.memory_available, default.memory)?,
            storage: threshold("storageAvailable", &self.storage_available, default.storage)?,
            inodes: threshold("inodesAvailable", &self.inodes_available, default.inodes)?,
            pids: threshold("pidsAvailable", &self.pids_available, default.pids)?,
        })
    }

    /// As it is written.
    pub fn of(thresholds: PressureThresholds) -> Self {
        let PressureThresholds { memory, storage, inodes, pids } = thresholds;
        let text = |threshold: Threshold| Some(threshold.to_string());
        Self {
            memory_available: text(memory),
            storage_available: text(storage),
            inodes_available: text(inodes),
            pids_available: text(pids),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_an_amount_or_a_part() {
        assert!(Threshold::Percent(10).is_short(9, 100) && !Threshold::Percent(10).is_short(10, 100));
        assert!(Threshold::Amount(10).is_short(9, 100) && !Threshold::Amount(10).is_short(10, 100));
        assert!(!Threshold::Percent(10).is_short(0, 0) && !Threshold::Amount(1).is_short(0, 0), "what is not counted is not short");
        assert!(!Threshold::Percent(0).is_short(0, 9) && !Threshold::Amount(0).is_short(0, 9), "never");
        assert!(Threshold::Percent(100).is_short(u64::MAX - 1, u64::MAX));
        for (text, expected) in [
            ("100Mi", Some(Threshold::Amount(100 << 20))),
            ("5%", Some(Threshold::Percent(5))),
            ("0", Some(Threshold::Amount(0))),
            ("101%", None),
            ("%", None),
            ("-1%", None),
            ("much", None),
        ] {
            assert_eq!(Threshold::parse(text), expected, "{text}");
            assert!(expected.is_none_or(|threshold| Threshold::parse(&threshold.to_string()) == expected));
        }
    }
}
