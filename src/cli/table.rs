//! Columns of text, as kubectl lays them out. **Pure** but for the writing.

use super::printable::printable;
use std::io::{self, Write};

/// Space between columns.
const GAP: usize = 3;

/// Colour of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Style {
    /// Not at all.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// On its way.
    Pending,
    /// Wrong.
    Bad,
    /// One of several.
    Blue,
    /// One of several.
    Magenta,
    /// One of several.
    Cyan,
    /// More important.
    Bold,
}

impl Style {
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Good => Some("32"),
            Self::Pending => Some("33"),
            Self::Bad => Some("31"),
            Self::Blue => Some("34"),
            Self::Magenta => Some("35"),
            Self::Cyan => Some("36"),
            Self::Bold => Some("1"),
        }
    }

    /// `text` in this style, if colours are wanted.
    pub(super) fn paint(self, text: &str, color: bool) -> String {
        match self.code().filter(|_| color && !text.is_empty()) {
            Some(code) => format!("\x1b[{code}m{text}\x1b[0m"),
            None => text.to_owned(),
        }
    }
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A coloured cell.
    pub(super) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: printable(&text.into()), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::Plain)
    }
}

/// Lays rows out below headings; more rows may follow later (`-w`) in the same columns.
#[derive(Debug)]
pub(super) struct Table {
    headings: Vec<String>,
    widths: Vec<usize>,
    headings_written: bool,
    color: bool,
}

impl Table {
    /// With these headings.
    pub(super) fn new(headings: Vec<impl Into<String>>, color: bool) -> Self {
        let headings: Vec<String> = headings.into_iter().map(Into::into).collect();
        let widths = headings.iter().map(|heading| width_of(heading)).collect();
        Self { headings, widths, headings_written: false, color }
    }

    /// Without writing the headings; columns are as wide as with them.
    pub(super) fn without_headings(self) -> Self {
        Self { headings_written: true, ..self }
    }

    /// Writes rows; before the first ones, the headings. Columns become wider when they have to, never narrower.
    pub(super) fn write(&mut self, out: &mut impl Write, rows: &[Vec<Cell>]) -> io::Result<()> {
        for row in rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(width_of(&cell.text));
            }
        }
        if !self.headings_written {
            self.headings_written = true;
            let headings: Vec<_> = self.headings.iter().map(|heading| Cell::from(heading.as_str())).collect();
            self.write_row(out, &headings)?;
        }
        rows.iter().try_for_each(|row| self.write_row(out, row))
    }

    fn write_row(&self, out: &mut impl Write, row: &[Cell]) -> io::Result<()> {
        let mut line = String::new();
        let mut padding = 0;
        for (cell, width) in row.iter().zip(&self.widths) {
            // Written before the next cell only: no spaces at the end of a line.
            line.extend(std::iter::repeat_n(' ', padding));
            line.push_str(&cell.style.paint(&cell.text, self.color));
            padding = width - width_of(&cell.text) + GAP;
        }
        writeln!(out, "{}", line.trim_end())
    }
}

fn width_of(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &mut Table, rows: &[Vec<Cell>]) -> String {
        let mut out = Vec::new();
        table.write(&mut out, rows).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(vec!["NAME", "READY", "AGE"], false);
        let rows = [vec!["web-edge01".into(), "1/1".into(), "5s".into()], vec!["x".into(), "".into(), "".into()]];
        assert_eq!(written(&mut table, &rows), "NAME         READY   AGE\nweb-edge01   1/1     5s\nx\n");
        assert_eq!(written(&mut table, &[vec!["y".into(), "0/1".into(), "1m".into()]]), "y            0/1     1m\n");
    }

    #[test]
    fn colour_does_not_count_as_width() {
        let mut table = Table::new(vec!["A", "B"], true);
        let rows = [vec![Cell::styled("ok", Style::Good), "1".into()]];
        assert_eq!(written(&mut table, &rows), "A    B\n\x1b[32mok\x1b[0m   1\n");
    }

    #[test]
    fn a_cell_cannot_steer_the_terminal() {
        let mut table = Table::new(vec!["A"], false);
        assert_eq!(written(&mut table, &[vec!["a\x1b[2J\nb".into()]]), "A\na [2J b\n");
    }
}
