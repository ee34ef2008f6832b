//! Options of the output of a table.

use crate::output::{ObjectWriter, OutputFormat};
use clap::Args;

/// `-o`.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct OutputArgs {
    /// Output format
    #[arg(short, long, default_value = "table")]
    pub(in super::super) output: OutputFormat,
    /// Do not print the headings
    #[arg(long)]
    pub(in super::super) no_headers: bool,
}

impl OutputArgs {
    /// Writes what is no table.
    pub(in super::super) fn writer(&self) -> ObjectWriter {
        ObjectWriter::new(&self.output, !self.no_headers)
    }
}
