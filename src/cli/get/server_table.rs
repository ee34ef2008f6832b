//! Tables in the columns that the daemon sends, as kubectl prints them.

use crate::client::ClientError;
use crate::object_type::ObjectType;
use crate::table::{Cell, Table};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A `Table` as served.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServedTable {
    /// Metadata with the version from which a watch continues.
    #[serde(default)]
    pub(super) metadata: crate::pods::ServedListMetadata,
    #[serde(default)]
    column_definitions: Vec<ServedColumn>,
    /// A row for each object.
    #[serde(default)]
    pub(super) rows: Vec<ServedRow>,
}

#[derive(Clone, Debug, Deserialize)]
struct ServedColumn {
    name: String,
    #[serde(default)]
    priority: i64,
}

/// A row as served.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ServedRow {
    cells: Vec<Value>,
    #[serde(default)]
    object: Value,
}

impl ServedTable {
    /// From an answer or the object of a watch event.
    pub(super) fn parse(value: Value) -> Result<Self, ClientError> {
        serde_json::from_value(value).map_err(|source| ClientError::NotUnderstood { source })
    }

    /// Adds a column behind another one.
    pub(super) fn insert(&mut self, name: &str, behind: &str, text: impl Fn(&ServedRow) -> String) {
        let Some(position) = self.column_definitions.iter().position(|column| column.name == behind) else { return };
        self.column_definitions.insert(position + 1, ServedColumn { name: name.to_owned(), priority: 0 });
        for row in &mut self.rows {
            let text = Value::String(text(row));
            row.cells.insert((position + 1).min(row.cells.len()), text);
        }
    }

    /// Places of columns in the cells of a row; `None` for a column that this table does not have.
    fn places(&self, names: &[String]) -> Vec<Option<usize>> {
        names.iter().map(|name| self.column_definitions.iter().position(|column| column.name == *name)).collect()
    }
}

impl ServedRow {
    /// The namespace of the object.
    pub(super) fn namespace(&self) -> &str {
        self.object["metadata"]["namespace"].as_str().unwrap_or_default()
    }

    /// The name of the object.
    pub(super) fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The parts of the object that the server sent.
    pub(super) const fn object(&self) -> &Value {
        &self.object
    }

    fn labels(&self) -> String {
        let labels: BTreeMap<String, String> =
            serde_json::from_value(self.object["metadata"]["labels"].clone()).unwrap_or_default();
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if labels.is_empty() { "<none>".to_owned() } else { labels.join(",") }
    }

    fn text(&self, place: Option<usize>) -> String {
        match place.map(|place| self.cells.get(place)) {
            Some(Some(Value::String(text))) => text.clone(),
            Some(Some(Value::Null) | None) => String::new(),
            Some(Some(other)) => other.to_string(),
            None => "<unknown>".to_owned(),
        }
    }
}

/// Columns to print, and their form.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// Type of the objects, for colours.
    pub(super) object_type: ObjectType,
    /// With the columns of `-o wide`.
    pub(super) wide: bool,
    /// With a column NAMESPACE.
    pub(super) with_namespace: bool,
    /// Before the name, with a slash: the type, where several types are listed.
    pub(super) prefix: Option<String>,
    /// With a column LABELS.
    pub(super) labels: bool,
    /// With headings.
    pub(super) headings: bool,
    /// In colour.
    pub(super) color: bool,
}

/// Prints rows of one type; more rows may follow (`-w`) in the same columns.
#[derive(Debug)]
pub(super) struct Printer {
    columns: Columns,
    /// Names of the columns of the daemon that are shown.
    shown: Vec<String>,
    table: Table,
}

impl Printer {
    /// For tables with the columns of `served`.
    pub(super) fn new(served: &ServedTable, columns: Columns) -> Self {
        let shown = served.column_definitions.iter().filter(|column| columns.wide || column.priority == 0);
        let shown: Vec<String> = shown.map(|column| column.name.clone()).collect();
        let namespace = columns.with_namespace.then(|| "NAMESPACE".to_owned());
        let headings = shown.iter().map(|name| name.to_uppercase());
        let labels = columns.labels.then(|| "LABELS".to_owned());
        let table = Table::new(namespace.into_iter().chain(headings).chain(labels).collect(), columns.color);
        let table = if columns.headings { table } else { table.without_headings() };
        Self { columns, shown, table }
    }

    /// Prints the rows of a table, in the columns of the first one.
    pub(super) fn print(&mut self, out: &mut impl Write, served: &ServedTable) -> io::Result<()> {
        if served.rows.is_empty() {
            return Ok(());
        }
        let places = served.places(&self.shown);
        let rows: Vec<Vec<Cell>> = served.rows.iter().map(|row| self.row(row, &places)).collect();
        self.table.write(out, &rows)
    }

    fn row(&self, row: &ServedRow, places: &[Option<usize>]) -> Vec<Cell> {
        let namespace = self.columns.with_namespace.then(|| row.namespace().into());
        let texts: Vec<(String, String)> =
            self.shown.iter().zip(places).map(|(name, place)| (name.to_uppercase(), row.text(*place))).collect();
        let below = |heading: &str| texts.iter().find(|(other, _)| other == heading).map_or("", |(_, text)| text.as_str());
        let cells = texts.iter().map(|(heading, text)| {
            let style = self.columns.object_type.style(heading, text, below);
            match &self.columns.prefix {
                Some(prefix) if heading == "NAME" => Cell::styled(format!("{prefix}/{text}"), style),
                Some(_) | None => Cell::styled(text, style),
            }
        });
        let labels = self.columns.labels.then(|| row.labels().into());
        namespace.into_iter().chain(cells).chain(labels).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn printed(columns: Columns) -> String {
        let served = ServedTable::parse(json!({
            "metadata": {"resourceVersion": "7"},
            "columnDefinitions": [
                {"name": "Name", "priority": 0}, {"name": "Up-to-date", "priority": 0}, {"name": "Images", "priority": 1},
            ],
            "rows": [{"cells": ["web", 3, "nginx\u{1b}[2J"], "object": {
                "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web", "tier": "a"}},
            }}],
        }));
        let served = served.unwrap();
        let mut out = Vec::new();
        Printer::new(&served, columns).print(&mut out, &served).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_chosen_as_kubectl_does() {
        let object_type = ObjectType::Pod;
        let plain =
            Columns { object_type, wide: false, with_namespace: false, prefix: None, labels: false, headings: true, color: false };
        assert_eq!(printed(plain.clone()), "NAME   UP-TO-DATE\nweb    3\n");
        let labels = Columns { labels: true, ..plain.clone() };
        assert_eq!(printed(labels), "NAME   UP-TO-DATE   LABELS\nweb    3            app=web,tier=a\n");
        let all = Columns { wide: true, with_namespace: true, prefix: Some("deployment.apps".into()), ..plain };
        let expected = "NAMESPACE   NAME                  UP-TO-DATE   IMAGES\n\
                        shop        deployment.apps/web   3            nginx [2J\n";
        assert_eq!(printed(all), expected);
    }

    #[test]
    fn later_tables_are_printed_in_the_columns_of_the_first() {
        let table = |names: &[&str], cells: Value| {
            let columns: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            ServedTable::parse(json!({"columnDefinitions": columns, "rows": [{"cells": cells}]})).unwrap()
        };
        let mut first = table(&["Name", "Capacity", "Age"], json!(["data", "1Gi", "5d"]));
        first.insert("Used", "Capacity", |_| "12.0KiB".to_owned());
        let object_type = ObjectType::PersistentVolumeClaim;
        let columns =
            Columns { object_type, wide: false, with_namespace: false, prefix: None, labels: false, headings: true, color: false };
        let mut out = Vec::new();
        let mut printer = Printer::new(&first, columns);
        printer.print(&mut out, &first).unwrap();
        printer.print(&mut out, &table(&["Name", "Age", "Capacity"], json!(["logs", "1d", "2Gi"]))).unwrap();
        let expected = "NAME   CAPACITY   USED        AGE
                        data   1Gi        12.0KiB     5d
                        logs   2Gi        <unknown>   1d
";
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), expected.split_whitespace().collect::<Vec<_>>());
    }
}
