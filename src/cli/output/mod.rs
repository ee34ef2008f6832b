//! `-o`: the forms that objects and states are written in.

mod format;

pub(super) use format::{Form, OutputFormat, Structured};

use super::table::{Cell, Table};
use podstead_jsonpath::{Columns, Template};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};

/// Writes objects in a form for programs; more may follow (`-w`).
#[derive(Debug)]
pub(super) struct ObjectWriter {
    format: OutputFormat,
    /// Of custom columns.
    table: Option<Table>,
}

impl ObjectWriter {
    /// Writes nothing for a table: that is the caller's.
    pub(super) fn new(format: &OutputFormat, headings: bool) -> Self {
        let table = match format {
            OutputFormat::Structured(Structured::Columns(columns)) => Some(table_of(columns, headings)),
            OutputFormat::Structured(Structured::Json | Structured::Yaml | Structured::Template(_))
            | OutputFormat::Table
            | OutputFormat::Wide
            | OutputFormat::Name => None,
        };
        Self { format: format.clone(), table }
    }

    /// Writes one object, or several as a `List`. `kind` is the word before the name with `-o name`.
    pub(super) fn write(&mut self, out: &mut impl Write, kind: &str, objects: &[Value], single: bool) -> anyhow::Result<()> {
        let whole = || match objects {
            [object] if single => object.clone(),
            objects => json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": objects}),
        };
        match &self.format {
            OutputFormat::Name => {
                for object in objects {
                    writeln!(out, "{kind}/{}", object["metadata"]["name"].as_str().unwrap_or_default())?;
                }
            }
            OutputFormat::Structured(Structured::Json) => write_json(out, &whole())?,
            OutputFormat::Structured(Structured::Yaml) => write!(out, "{}", podstead_manifest::to_yaml(&whole()))?,
            OutputFormat::Structured(Structured::Template(template)) => write_template(out, template, &whole())?,
            OutputFormat::Structured(Structured::Columns(columns)) => {
                if let Some(table) = &mut self.table {
                    write_columns(out, columns, table, objects)?;
                }
            }
            OutputFormat::Table | OutputFormat::Wide => {}
        }
        Ok(())
    }
}

impl Structured {
    /// Writes a state that is not a list of objects. `rows` is its field with what custom columns have a row for; empty: for the state itself.
    pub(super) fn write(&self, out: &mut impl Write, document: &Value, rows: &str) -> anyhow::Result<()> {
        match self {
            Self::Json => write_json(out, document),
            Self::Yaml => Ok(write!(out, "{}", podstead_manifest::to_yaml(document))?),
            Self::Template(template) => write_template(out, template, document),
            Self::Columns(columns) => {
                let objects = match &document[rows] {
                    Value::Array(objects) => objects.as_slice(),
                    _ => std::slice::from_ref(document),
                };
                write_columns(out, columns, &mut table_of(columns, true), objects)
            }
        }
    }
}

fn write_json(out: &mut impl Write, value: &Value) -> anyhow::Result<()> {
    Ok(writeln!(out, "{}", serde_json::to_string_pretty(value)?)?)
}

/// Text goes to programs as it is; a terminal is not steered by what objects hold.
fn write_template(out: &mut impl Write, template: &Template, value: &Value) -> anyhow::Result<()> {
    let text = template.render(value)?;
    if io::stdout().is_terminal() {
        let is_safe = |character: char| !character.is_control() || matches!(character, '\n' | '\t');
        let safe: String = text.chars().map(|character| if is_safe(character) { character } else { ' ' }).collect();
        return Ok(out.write_all(safe.as_bytes())?);
    }
    Ok(out.write_all(text.as_bytes())?)
}

fn table_of(columns: &Columns, headings: bool) -> Table {
    let table = Table::new(columns.headings().collect(), false);
    if headings { table } else { table.without_headings() }
}

fn write_columns(out: &mut impl Write, columns: &Columns, table: &mut Table, objects: &[Value]) -> anyhow::Result<()> {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for object in objects {
        rows.push(columns.row(object)?.into_iter().map(Cell::from).collect());
    }
    Ok(table.write(out, &rows)?)
}

/// Says on stderr that there is nothing, as kubectl does.
pub(super) fn say_nothing_found(namespace: Option<&str>) -> io::Result<()> {
    match namespace {
        Some(namespace) => writeln!(io::stderr(), "No resources found in {namespace} namespace."),
        None => writeln!(io::stderr(), "No resources found."),
    }
}
