//! Progress of a pull: a bar per layer on a terminal, else a line per layer.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use podstead_api::show::{human_size, short_digest};
use podstead_runtime::PullProgress;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};

/// Output of progress.
#[derive(Debug)]
pub(super) enum Progress {
    /// Bars, redrawn in place.
    Bars { all: MultiProgress, layers: BTreeMap<String, ProgressBar> },
    /// A line when a layer is complete.
    Lines,
}

impl Progress {
    /// On stderr, by what it is.
    pub(super) fn on_stderr() -> Self {
        if io::stderr().is_terminal() { Self::Bars { all: MultiProgress::new(), layers: BTreeMap::new() } } else { Self::Lines }
    }

    /// Shows how far a layer is.
    pub(super) fn show(&mut self, layer: &PullProgress) {
        match self {
            Self::Bars { all, layers } => {
                let bar = layers.entry(layer.layer.clone()).or_insert_with(|| new_bar(all, layer));
                if let Some(total) = layer.total {
                    bar.set_length(total);
                }
                bar.set_position(layer.fetched);
                if layer.complete {
                    bar.finish_with_message("complete");
                }
            }
            Self::Lines if layer.complete => {
                // A closed stderr is not an error.
                writeln!(io::stderr(), "{}: complete, {}", short_digest(&layer.layer), human_size(layer.fetched)).ok();
            }
            Self::Lines => {}
        }
    }

    /// Leaves the bars as they are.
    pub(super) fn finish(&self) {
        if let Self::Bars { layers, .. } = self {
            layers.values().filter(|bar| !bar.is_finished()).for_each(ProgressBar::abandon);
        }
    }
}

fn new_bar(all: &MultiProgress, layer: &PullProgress) -> ProgressBar {
    let bar = all.add(ProgressBar::new(layer.total.unwrap_or(0)));
    if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {bytes:>10}/{total_bytes:10} {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(short_digest(&layer.layer).to_owned());
    bar
}
