//! Numbers as they are printed.

use std::time::Duration;

/// Durations of one kind.
#[derive(Debug, Default)]
pub(crate) struct Series(Vec<Duration>);

impl Series {
    pub(crate) fn push(&mut self, value: Duration) {
        self.0.push(value);
    }

    pub(crate) fn median(&self) -> Option<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort();
        sorted.get(sorted.len() / 2).copied()
    }

    /// `12.3 ms (11.0 to 20.1)`, or a dash without values.
    pub(crate) fn text(&self) -> String {
        let ms = |value: &Duration| value.as_secs_f64() * 1e3;
        match (self.median(), self.0.iter().min(), self.0.iter().max()) {
            (Some(median), Some(min), Some(max)) => format!("{:.1} ms ({:.1} to {:.1})", ms(&median), ms(min), ms(max)),
            _ => "-".to_owned(),
        }
    }

    /// This median divided by the other's.
    pub(crate) fn ratio_to(&self, other: &Self) -> String {
        match (self.median(), other.median()) {
            (Some(own), Some(other)) => format!("{:.3}", own.as_secs_f64() / other.as_secs_f64()),
            _ => "-".to_owned(),
        }
    }
}

/// One row of the table.
pub(crate) fn row(what: &str, own: &str, peer: &str, ratio: &str) {
    println!("| {what} | {own} | {peer} | {ratio} |");
}
