//! Steps of starts, by `podstead trace`.

use crate::figures::{Series, row};
use crate::support::{TestHost, eventually};
use podstead::telemetry::trace::{Step, Trace};
use std::collections::BTreeMap;
use std::time::Duration;

/// Shares of the steps in several starts.
#[derive(Debug, Default)]
pub(crate) struct Steps(BTreeMap<Option<Step>, Series>);

impl Steps {
    /// Adds the start of a pod, until its program was executed.
    pub(crate) fn push(&mut self, host: &TestHost, pod: &str) {
        let trace = eventually("the trace of a start", || {
            let out = host.cli(&["trace", pod, "-o", "jsonpath={.traces[0]}"]);
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            match serde_json::from_str::<Trace>(&text) {
                Ok(trace) if trace.is_complete => Ok(trace),
                Ok(_) | Err(_) => Err(text),
            }
        });
        for share in trace.shares {
            self.0.entry(share.step).or_default().push(Duration::from_micros(share.micros));
        }
    }

    /// Prints the largest shares first.
    pub(crate) fn print(&self) {
        let mut steps: Vec<_> = self.0.iter().collect();
        steps.sort_by_key(|(_, series)| std::cmp::Reverse(series.median()));
        for (step, series) in steps {
            row(&format!("- {}", step.map_or("between steps", Step::words)), &series.text(), "-", "-");
        }
    }
}
