//! Pulls under way, as the API and pods show them.

use jiff::Timestamp;
use podstead_settings::size::human as human_size;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Stage of a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PullPhase {
    /// Its manifest and configuration are asked for.
    Resolving,
    /// It waits before its layers are fetched.
    Waiting,
    /// Layers are fetched and unpacked.
    Downloading,
    /// All layers are here, and the image is made durable.
    Storing,
}

impl PullPhase {
    /// The word for people and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resolving => "Resolving",
            Self::Waiting => "Waiting",
            Self::Downloading => "Downloading",
            Self::Storing => "Storing",
        }
    }
}

/// Cause for which nothing comes to a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WaitCause {
    /// The next window for updates has not begun.
    Window,
    /// Other downloads come first.
    Queue,
    /// The host of a layer cannot be reached, or the link to it is broken or too slow.
    Network,
    /// The host has answered, and is asked again after a pause.
    Registry,
}

impl WaitCause {
    /// All of them, in their order.
    pub const ALL: [Self; 4] = [Self::Window, Self::Queue, Self::Network, Self::Registry];

    /// The word in JSON and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::Queue => "queue",
            Self::Network => "network",
            Self::Registry => "registry",
        }
    }
}

/// A layer that a pull fetches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PulledLayer {
    /// Its digest.
    pub digest: String,
    /// Bytes of the layer as it is fetched.
    pub size_bytes: u64,
    /// Bytes of it that are here.
    pub present_bytes: u64,
    /// Bytes that were here before this download, from an interrupted one.
    pub resumed_bytes: u64,
    /// Bytes that came over the network.
    pub fetched_bytes: u64,
    /// Bytes of these that came a second time.
    pub repeated_bytes: u64,
    /// Bytes per second, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// The host that delivers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The reason why nothing comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// The kind of this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<WaitCause>,
    /// It is unpacked and verified.
    pub complete: bool,
}

/// The wait of a pull for a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PullHold {
    /// The time at which the next window opens, by the clock of this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl fmt::Display for PullHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("outside the windows for updates")?;
        // To the minute, as windows are.
        match self.until {
            Some(until) => write!(f, ", until {}", until.strftime("%Y-%m-%dT%H:%MZ")),
            None => Ok(()),
        }
    }
}

/// A pull under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PullState {
    /// Tells it from other pulls since the start of the daemon.
    pub number: u64,
    /// The image, fully qualified.
    pub reference: String,
    /// Time of its begin.
    pub began_at: Timestamp,
    /// Its stage.
    pub phase: PullPhase,
    /// The layers that were not here when it began, from the lowest.
    pub layers: Vec<PulledLayer>,
    /// Its wait for a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<PullHold>,
}

impl PullState {
    fn sum(&self, bytes: impl Fn(&PulledLayer) -> u64) -> u64 {
        self.layers.iter().fold(0, |sum: u64, layer| sum.saturating_add(bytes(layer)))
    }

    /// Bytes of all its layers.
    pub fn size(&self) -> u64 {
        self.sum(|layer| layer.size_bytes)
    }

    /// Bytes of them that are here.
    pub fn present(&self) -> u64 {
        self.sum(|layer| layer.present_bytes)
    }

    /// Percentage of the bytes that are here; `None` before its layers are known.
    pub fn percent(&self) -> Option<u64> {
        let size = u128::from(self.size());
        (size > 0).then(|| u64::try_from(u128::from(self.present()) * 100 / size).unwrap_or(100).min(100))
    }

    /// Bytes per second of the layers that are being fetched; 0 if nothing comes.
    pub fn rate(&self) -> u64 {
        let flows = |layer: &PulledLayer| layer.present_bytes < layer.size_bytes && layer.waiting.is_none();
        self.sum(|layer| layer.bytes_per_second.filter(|_| flows(layer)).unwrap_or_default())
    }

    /// Time until all bytes are here at the present rate.
    pub fn left(&self) -> Option<Duration> {
        let rest = self.size().saturating_sub(self.present());
        rest.checked_div(self.rate()).filter(|_| rest > 0).map(Duration::from_secs)
    }

    /// The progress in words: `41% of 298.0MiB, 230.4KiB/s, 13m left`, and the reason why nothing comes. `None` before its layers are known.
    pub fn summary(&self) -> Option<String> {
        let mut words = format!("{}% of {}", self.percent()?, human_size(self.size()));
        if self.rate() > 0 {
            words += &format!(", {}/s", human_size(self.rate()));
        }
        if let Some(left) = self.left() {
            words += &format!(", {} left", human_time(left));
        }
        if let Some(waiting) = self.waiting() {
            words += &format!(", waiting: {waiting}");
        }
        Some(words)
    }

    /// The hosts that deliver layers, each once.
    pub fn hosts(&self) -> Vec<&str> {
        let mut hosts: Vec<&str> = self.layers.iter().filter_map(|layer| layer.host.as_deref()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    /// The reason why nothing comes: that of its first layer, if all that are missing wait.
    pub fn waiting(&self) -> Option<Cow<'_, str>> {
        if let Some(hold) = &self.hold {
            return Some(hold.to_string().into());
        }
        self.waiting_layer()?.waiting.as_deref().map(Cow::Borrowed)
    }

    /// The kind of this reason.
    pub fn cause(&self) -> Option<WaitCause> {
        if self.hold.is_some() { Some(WaitCause::Window) } else { self.waiting_layer()?.cause }
    }

    /// The first layer that is missing, if all that are missing wait.
    fn waiting_layer(&self) -> Option<&PulledLayer> {
        let mut missing = self.layers.iter().filter(|layer| layer.present_bytes < layer.size_bytes).peekable();
        let first = *missing.peek()?;
        missing.all(|layer| layer.waiting.is_some()).then_some(first)
    }
}

/// Figures of pulls since the start of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullFigures {
    /// By host that layers were asked of: a registry or a mirror.
    pub hosts: BTreeMap<String, HostFigures>,
    /// Pulls that ended well.
    pub succeeded: u64,
    /// Pulls that failed.
    pub failed: u64,
    /// Time that all of them took.
    pub time: Duration,
}

/// Figures of layers from one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostFigures {
    /// Bytes that came, each counted once.
    pub new_bytes: u64,
    /// Bytes that came once more, and were discarded.
    pub repeated_bytes: u64,
    /// Connections that ended before the last byte.
    pub interruptions: u64,
}

/// `40s`, `13m`, `5h`.
fn human_time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..10_800 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(size_bytes: u64, present_bytes: u64, rate: Option<u64>) -> PulledLayer {
        PulledLayer { size_bytes, present_bytes, bytes_per_second: rate, host: Some("r.lan".into()), ..PulledLayer::default() }
    }

    fn pull(layers: Vec<PulledLayer>) -> PullState {
        let reference = "r.lan/app:1".to_owned();
        PullState { number: 1, reference, began_at: Timestamp::UNIX_EPOCH, phase: PullPhase::Downloading, layers, hold: None }
    }

    #[test]
    fn layers_are_added_up() {
        let state = pull(vec![layer(100, 100, Some(50)), layer(300, 60, Some(20)), layer(u64::MAX, 0, None)]);
        assert_eq!((state.size(), state.present(), state.percent()), (u64::MAX, 160, Some(0)));
        let state = pull(vec![layer(100, 100, Some(50)), layer(300, 60, Some(20))]);
        assert_eq!((state.percent(), state.rate(), state.left()), (Some(40), 20, Some(Duration::from_secs(12))));
        assert_eq!(state.hosts(), ["r.lan"]);
        assert_eq!(state.summary().unwrap(), "40% of 400B, 20B/s, 12s left");
        let empty = pull(Vec::new());
        assert_eq!((empty.percent(), empty.left(), empty.waiting()), (None, None, None));
    }

    #[test]
    fn pull_waits_when_all_missing_layers_wait() {
        let waiting = |present| PulledLayer {
            waiting: Some("no route".into()),
            cause: Some(WaitCause::Network),
            ..layer(100, present, Some(9))
        };
        let state = pull(vec![layer(100, 100, None), waiting(10), waiting(20)]);
        assert_eq!(state.cause(), Some(WaitCause::Network));
        assert_eq!((state.waiting().as_deref(), state.rate(), state.left()), (Some("no route"), 0, None));
        assert_eq!(state.summary().unwrap(), "43% of 300B, waiting: no route");
        let state = pull(vec![waiting(10), layer(100, 10, Some(9))]);
        assert_eq!((state.waiting(), state.cause(), state.rate()), (None, None, 9));
    }

    #[test]
    fn pull_that_is_held_says_until_when() {
        let until = Some("2026-11-30T01:00:00Z".parse().unwrap());
        let state = PullState { phase: PullPhase::Waiting, hold: Some(PullHold { until }), ..pull(vec![layer(300, 0, None)]) };
        let words = "0% of 300B, waiting: outside the windows for updates, until 2026-11-30T01:00Z";
        assert_eq!((state.summary().as_deref(), state.cause()), (Some(words), Some(WaitCause::Window)));
        assert_eq!(PullHold { until: None }.to_string(), "outside the windows for updates");
    }
}
