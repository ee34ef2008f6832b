//! Tables in the columns that the daemon sends, as kubectl prints them.

use super::pods::labels_column;
use crate::client::ClientError;
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
        labels_column(labels.iter())
    }
}

/// Columns to print, and their form.
#[derive(Clone, Debug)]
pub(super) struct Columns {
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
    shown: Vec<usize>,
    table: Table,
}

impl Printer {
    /// For tables with the columns of `served`.
    pub(super) fn new(served: &ServedTable, columns: Columns) -> Self {
        let all = served.column_definitions.iter().enumerate();
        let shown: Vec<usize> = all.filter(|(_, column)| columns.wide || column.priority == 0).map(|(index, _)| index).collect();
        let namespace = columns.with_namespace.then(|| "NAMESPACE".to_owned());
        let headings = shown.iter().map(|index| served.column_definitions[*index].name.to_uppercase());
        let labels = columns.labels.then(|| "LABELS".to_owned());
        let table = Table::new(namespace.into_iter().chain(headings).chain(labels).collect(), columns.color);
        let table = if columns.headings { table } else { table.without_headings() };
        Self { columns, shown, table }
    }

    /// Prints rows.
    pub(super) fn print(&mut self, out: &mut impl Write, rows: &[ServedRow]) -> io::Result<()> {
        let rows: Vec<Vec<Cell>> = rows.iter().map(|row| self.row(row)).collect();
        self.table.write(out, &rows)
    }

    fn row(&self, row: &ServedRow) -> Vec<Cell> {
        let namespace = self.columns.with_namespace.then(|| row.namespace().into());
        let cells = self.shown.iter().enumerate().map(|(position, index)| {
            let text = match row.cells.get(*index) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            match &self.columns.prefix {
                // The first column is the name.
                Some(prefix) if position == 0 => format!("{prefix}/{text}").into(),
                Some(_) | None => text.into(),
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
        Printer::new(&served, columns).print(&mut out, &served.rows).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_chosen_as_kubectl_does() {
        let plain = Columns { wide: false, with_namespace: false, prefix: None, labels: false, headings: true, color: false };
        assert_eq!(printed(plain.clone()), "NAME   UP-TO-DATE\nweb    3\n");
        let labels = Columns { labels: true, ..plain.clone() };
        assert_eq!(printed(labels), "NAME   UP-TO-DATE   LABELS\nweb    3            app=web,tier=a\n");
        let all = Columns { wide: true, with_namespace: true, prefix: Some("deployment.apps".into()), ..plain };
        let expected = "NAMESPACE   NAME                  UP-TO-DATE   IMAGES\n\
                        shop        deployment.apps/web   3            nginx [2J\n";
        assert_eq!(printed(all), expected);
    }
}
