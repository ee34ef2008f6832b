//! Options of the output of a table.

use super::sort::SortArgs;
use crate::output::{ObjectWriter, OutputFormat};
use clap::Args;
use serde_json::Value;

/// `-o`.
#[derive(Clone, Debug, Default, Args)]
pub(in super::super) struct OutputArgs {
    /// Output format
    #[arg(short, long, default_value = "table")]
    pub(in super::super) output: OutputFormat,
    /// Do not print the headings
    #[arg(long)]
    pub(in super::super) no_headers: bool,
    #[command(flatten)]
    sort: SortArgs,
}

impl OutputArgs {
    /// Reports whether the user names an order.
    pub(super) fn is_sorted(&self) -> bool {
        self.sort.is_given()
    }

    /// Puts items in the order that the user names.
    pub(in super::super) fn sort<T>(&self, items: &mut Vec<T>, object: impl Fn(&T) -> &Value) -> anyhow::Result<()> {
        self.sort.sort(items, object)
    }

    /// Writes what is no table.
    pub(in super::super) fn writer(&self) -> ObjectWriter {
        ObjectWriter::new(&self.output, !self.no_headers)
    }
}
