//! Prometheus' text format, version 0.0.4. **Pure**.
//!
//! Written here because the official client library writes OpenMetrics, whose names of counters `promtool check metrics` and older scrapers
//! take for others.

use std::fmt::{self, Write as _};

/// Type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Goes up only.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// A text being written.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

/// Labels of a sample.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

impl Exposition {
    /// Begins a family: all its samples follow. `help` is one line.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let _infallible = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text: &mut self.text, name }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// One family.
#[derive(Debug)]
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    /// Adds a sample.
    pub(super) fn sample(&mut self, labels: Labels<'_>, value: f64) -> &mut Self {
        let _infallible = writeln!(self.text, "{}{} {value}", self.name, Written(labels));
        self
    }
}

struct Written<'a>(Labels<'a>);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, value)) in self.0.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let value = value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
            write!(f, "{before}{name}=\"{value}\"")?;
        }
        if self.0.is_empty() { Ok(()) } else { f.write_char('}') }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_its_description_and_its_samples() {
        let mut exposition = Exposition::default();
        exposition.family("a_total", Kind::Counter, "Things.").sample(&[], 3.0).sample(&[("x", "1"), ("y", "a\"b\\c\nd")], 0.25);
        exposition.family("b", Kind::Gauge, "Others.");
        let expected = "# HELP a_total Things.\n# TYPE a_total counter\na_total 3\na_total{x=\"1\",y=\"a\\\"b\\\\c\\nd\"} 0.25\n\
                        # HELP b Others.\n# TYPE b gauge\n";
        assert_eq!(exposition.finish(), expected);
    }
}
