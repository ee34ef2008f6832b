//! Objects of one kind as rows of a table, or in a form for programs; with `--watch`, what changes.

use super::OutputArgs;
use crate::client::{Client, ClientError, Target};
use crate::output::{ObjectWriter, say_nothing_found};
use crate::pods::ServedList;
use crate::table::{Cell, Table};
use crate::watch::{WatchEvent, watch};
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;

/// Objects to list.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'a> {
    /// All of them.
    pub(super) collection: Target,
    /// Only this one, and where it is.
    pub(super) named: Option<(&'a str, Target)>,
    /// Watch for changes after listing.
    pub(super) watch: bool,
}

/// Objects that were listed.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    /// The objects.
    pub(super) items: Vec<Value>,
    /// Version after which a watch goes on.
    version: String,
}

impl Wanted<'_> {
    /// Asks for the objects. One that is named has to exist.
    pub(super) async fn list(&self, client: &Client) -> Result<Listed, ClientError> {
        match &self.named {
            Some((_, target)) if !self.watch => {
                Ok(Listed { items: vec![client.get(target.clone()).await?], version: String::new() })
            }
            Some((_, target)) => {
                let list: ServedList = client.get(self.selected()).await?;
                if list.items.is_empty() {
                    // For the reason.
                    client.get::<Value>(target.clone()).await?;
                }
                Ok(Listed { items: list.items, version: list.metadata.resource_version })
            }
            None => {
                let list: ServedList = client.get(self.selected()).await?;
                Ok(Listed { items: list.items, version: list.metadata.resource_version })
            }
        }
    }

    fn selected(&self) -> Target {
        let name = self.named.as_ref().map(|(name, _)| format!("metadata.name={name}"));
        self.collection.clone().with_some("fieldSelector", name)
    }
}

/// Makes rows of an object, and says what is below the table.
pub(super) trait Rows {
    /// Word before the name with `-o name`.
    fn kind(&self) -> &'static str;

    /// Rows of an object.
    fn rows(&self, object: &Value) -> Result<Vec<Vec<Cell>>, ClientError>;

    /// Writes what is too long for a row.
    fn write_below(&self, out: &mut impl Write, object: &Value) -> anyhow::Result<()> {
        let _nothing = (out, object);
        Ok(())
    }
}

/// Prints objects of one kind; more may follow.
#[derive(Debug)]
pub(super) struct RowPrinter<R> {
    rows: R,
    is_table: bool,
    table: Table,
    writer: ObjectWriter,
    output: OutputArgs,
}

impl<R: Rows> RowPrinter<R> {
    /// With the headings of the table.
    pub(super) fn new(rows: R, headings: Vec<&str>, output: &OutputArgs, color: bool) -> Self {
        let table = Table::new(headings, color);
        let table = if output.no_headers { table.without_headings() } else { table };
        Self { rows, is_table: output.output.is_table(), table, writer: output.writer(), output: output.clone() }
    }

    /// Prints what was listed, and changes if they are wanted; then it ends with an error only.
    pub(super) async fn run(
        mut self,
        wanted: &Wanted<'_>,
        mut listed: Listed,
        namespace: Option<&str>,
        client: &Client,
    ) -> anyhow::Result<ExitCode> {
        self.output.sort(&mut listed.items, |item| item)?;
        if listed.items.is_empty() && self.is_table && !wanted.watch {
            say_nothing_found(namespace)?;
            return Ok(ExitCode::SUCCESS);
        }
        self.print(&listed.items, wanted.named.is_some())?;
        if !wanted.watch {
            return Ok(ExitCode::SUCCESS);
        }
        let mut events = watch(client, wanted.selected(), &listed.version).await?;
        loop {
            match events.next().await? {
                WatchEvent::Changed(object) | WatchEvent::Deleted(object) => self.print(&[object], true)?,
            }
        }
    }

    fn print(&mut self, objects: &[Value], single: bool) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if self.is_table {
            let rows: Result<Vec<_>, ClientError> = objects.iter().map(|object| self.rows.rows(object)).collect();
            let rows: Vec<Vec<Cell>> = rows?.into_iter().flatten().collect();
            if !rows.is_empty() {
                self.table.write(&mut out, &rows)?;
            }
            for object in objects {
                self.rows.write_below(&mut out, object)?;
            }
        } else {
            self.writer.write(&mut out, self.rows.kind(), objects, single)?;
        }
        Ok(out.flush()?)
    }
}
