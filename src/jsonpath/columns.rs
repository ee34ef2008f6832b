//! Custom columns. **Pure**.

use crate::MAX_TEMPLATE_BYTES;
use crate::evaluate::{EvaluateError, Evaluation};
use crate::parse::{self, ParseError, Step};
use crate::text::Text;
use serde_json::Value;
use thiserror::Error;

/// Specification of columns that is not understood.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ColumnsError {
    /// Nothing was written.
    #[error("no columns are given")]
    Empty,
    /// Longer than [`MAX_TEMPLATE_BYTES`].
    #[error("the columns are longer than {MAX_TEMPLATE_BYTES} bytes")]
    TooLong,
    /// A column without a heading or a path.
    #[error("expected HEADING:PATH, such as NAME:.metadata.name, not {0:?}")]
    Column(String),
    /// A file without two lines.
    #[error("expected a line of headings and a line of paths, each separated by spaces")]
    Lines,
    /// A file with lines that do not fit each other.
    #[error("there are {headings} headings and {paths} paths")]
    Count {
        /// Words of the first line.
        headings: usize,
        /// Words of the second line.
        paths: usize,
    },
    /// A path that is none.
    #[error("{path:?}: expected a path, such as .metadata.name or {{.metadata.name}}")]
    Shape {
        /// The path.
        path: String,
    },
    /// A path that is not understood.
    #[error("{path:?}")]
    Path {
        /// The path.
        path: String,
        /// Reason.
        #[source]
        source: ParseError,
    },
}

/// Headings, and the paths of the cells below them.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    columns: Vec<Column>,
}

#[derive(Clone, Debug, PartialEq)]
struct Column {
    heading: String,
    blocks: Vec<Vec<Step>>,
}

impl Columns {
    /// Reads `NAME:.metadata.name,IMAGE:.spec.containers[*].image`.
    pub fn parse(text: &str) -> Result<Self, ColumnsError> {
        check(text)?;
        let column = |written: &str| match written.split_once(':') {
            Some((heading, path)) => Column::parse(heading, path),
            None => Err(ColumnsError::Column(written.to_owned())),
        };
        Ok(Self { columns: text.split(',').map(column).collect::<Result<_, _>>()? })
    }

    /// Reads a file: a line of headings, and a line of paths.
    pub fn parse_file(text: &str) -> Result<Self, ColumnsError> {
        check(text)?;
        let mut lines = text.lines();
        let (Some(headings), Some(paths)) = (lines.next(), lines.next()) else { return Err(ColumnsError::Lines) };
        let headings: Vec<&str> = headings.split_whitespace().collect();
        let paths: Vec<&str> = paths.split_whitespace().collect();
        if headings.is_empty() {
            return Err(ColumnsError::Lines);
        }
        if headings.len() != paths.len() {
            return Err(ColumnsError::Count { headings: headings.len(), paths: paths.len() });
        }
        Ok(Self { columns: headings.into_iter().zip(paths).map(|(h, p)| Column::parse(h, p)).collect::<Result<_, _>>()? })
    }

    /// The headings, in order.
    pub fn headings(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.heading.as_str())
    }

    /// The cells of an object, in order; several values of one cell are joined by commas.
    pub fn row(&self, object: &Value) -> Result<Vec<String>, EvaluateError> {
        self.columns.iter().map(|column| column.cell(object)).collect()
    }
}

impl Column {
    fn parse(heading: &str, path: &str) -> Result<Self, ColumnsError> {
        let shape = || ColumnsError::Shape { path: path.to_owned() };
        let inside = path.strip_prefix('{').and_then(|path| path.strip_suffix('}')).unwrap_or(path);
        let inside = inside.strip_prefix('.').unwrap_or(inside);
        if path.is_empty() {
            return Ok(Self { heading: heading.to_owned(), blocks: Vec::new() });
        }
        if inside.is_empty() || inside.contains(['{', '}']) {
            return Err(shape());
        }
        let blocks = parse::blocks(&format!("{{.{inside}}}"));
        let blocks = blocks.map_err(|source| ColumnsError::Path { path: path.to_owned(), source })?;
        Ok(Self { heading: heading.to_owned(), blocks })
    }

    fn cell(&self, object: &Value) -> Result<String, EvaluateError> {
        let results = Evaluation::default().run(&self.blocks, object)?;
        if results.first().is_none_or(Vec::is_empty) {
            return Ok("<none>".to_owned());
        }
        let mut text = Text::default();
        for (index, value) in results.into_iter().flatten().enumerate() {
            text.push(if index > 0 { "," } else { "" })?;
            text.push_plain(value)?;
        }
        Ok(text.into_string())
    }
}

fn check(text: &str) -> Result<(), ColumnsError> {
    match text.len() {
        0 => Err(ColumnsError::Empty),
        1..=MAX_TEMPLATE_BYTES => Ok(()),
        _ => Err(ColumnsError::TooLong),
    }
}
