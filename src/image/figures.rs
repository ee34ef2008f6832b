//! Figures of pulls since the start, for metrics.

use podstead_runtime::{HostFigures, PullFigures};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The figures, which all pulls and transfers share.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures(Arc<Mutex<PullFigures>>);

impl Figures {
    fn figures(&self) -> MutexGuard<'_, PullFigures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn host(&self, host: &str, change: impl FnOnce(&mut HostFigures)) {
        let mut figures = self.figures();
        match figures.hosts.get_mut(host) {
            Some(known) => change(known),
            None => change(figures.hosts.entry(host.to_owned()).or_default()),
        }
    }

    /// Bytes of a layer came from a host: new ones, and such that were here.
    pub(super) fn came(&self, host: &str, new: u64, repeated: u64) {
        self.host(host, |figures| {
            figures.new_bytes = figures.new_bytes.saturating_add(new);
            figures.repeated_bytes = figures.repeated_bytes.saturating_add(repeated);
        });
    }

    /// A host broke off.
    pub(super) fn interrupted(&self, host: &str) {
        self.host(host, |figures| figures.interruptions += 1);
    }

    /// A pull has ended.
    pub(super) fn ended(&self, is_well: bool, took: Duration) {
        let mut figures = self.figures();
        *(if is_well { &mut figures.succeeded } else { &mut figures.failed }) += 1;
        figures.time = figures.time.saturating_add(took);
    }

    pub(super) fn get(&self) -> PullFigures {
        self.figures().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_add_up() {
        let figures = Figures::default();
        figures.came("r.lan", 5, 0);
        figures.came("r.lan", 1, 2);
        figures.interrupted("r.lan");
        figures.ended(true, Duration::from_secs(2));
        figures.ended(false, Duration::from_secs(3));
        let PullFigures { hosts, succeeded, failed, time } = figures.get();
        assert_eq!(hosts["r.lan"], HostFigures { new_bytes: 6, repeated_bytes: 2, interruptions: 1 });
        assert_eq!((succeeded, failed, time), (1, 1, Duration::from_secs(5)));
    }
}
