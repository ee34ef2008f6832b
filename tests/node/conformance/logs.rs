//! Output of containers.

use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A line: when it was written, and what.
type Line = (Timestamp, String);

/// Output of a container, by run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Logs(BTreeMap<u32, Vec<Line>>);

impl Logs {
    /// Those in a container's log directory.
    pub(super) fn read(directory: &Path) -> Self {
        let mut runs = BTreeMap::new();
        for path in fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            if let Some(number) = number.filter(|_| path.extension().is_some_and(|end| end == "log")) {
                let text = fs::read_to_string(&path).unwrap_or_default();
                runs.insert(number, text.lines().filter_map(line).collect());
            }
        }
        Self(runs)
    }

    /// Those in a container's log directory, and in another one what is not there any more.
    pub(super) fn read_with_kept(directory: &Path, kept: &Path) -> Self {
        let mut logs = Self::read(kept);
        logs.0.extend(Self::read(directory).0);
        logs
    }

    /// Number of the last run.
    pub(super) fn last(&self) -> Option<u32> {
        self.0.keys().next_back().copied()
    }

    /// The words of a run, of those that `before` does not have.
    pub(super) fn words(&self, run: u32, before: &Logs) -> Vec<&str> {
        self.of(run).iter().skip(before.of(run).len()).map(|(_, word)| word.as_str()).collect()
    }

    /// True if the last run has said that it runs.
    pub(super) fn runs(&self) -> bool {
        self.last().is_some_and(|last| self.of(last).iter().any(|(_, word)| word == "run"))
    }

    /// The time of the run's first line.
    pub(super) fn start(&self, run: u32) -> Option<Timestamp> {
        self.of(run).first().map(|(stamp, _)| *stamp)
    }

    /// The time of the run's last line.
    pub(super) fn end(&self, run: u32) -> Option<Timestamp> {
        self.of(run).last().map(|(stamp, _)| *stamp)
    }

    /// The time at which the run was asked to end.
    pub(super) fn asked(&self, run: u32) -> Option<Timestamp> {
        self.of(run).iter().find(|(_, word)| word == "asked").map(|(stamp, _)| *stamp)
    }

    fn of(&self, run: u32) -> &[Line] {
        self.0.get(&run).map_or(&[], Vec::as_slice)
    }
}

/// Has the logs in a container's directory outlive their containers, with what is written into them from now on, too.
pub(super) fn keep(directory: &Path, kept: &Path) {
    fs::create_dir_all(kept).unwrap();
    for file in fs::read_dir(directory).into_iter().flatten().flatten() {
        fs::hard_link(file.path(), kept.join(file.file_name())).unwrap();
    }
}

fn line(line: &str) -> Option<Line> {
    let mut parts = line.splitn(4, ' ');
    let stamp = parts.next()?.parse().ok()?;
    Some((stamp, parts.nth(2)?.to_owned()))
}
