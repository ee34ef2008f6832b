//! Columns of text, as kubectl lays them out, and folded where the output is too narrow for them. **Pure** but for the writing.

use super::fold::{longest_piece, terminal_width, wrap};
use super::printable::printable;
use std::io::{self, Write};

/// Space between columns.
const GAP: usize = 3;
/// Space between columns that fit in no other way.
const NARROW_GAP: usize = 2;

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
    /// Widest cells.
    widths: Vec<usize>,
    /// Widest parts that cannot be broken.
    least: Vec<usize>,
    /// Width of the output, if it has one.
    within: Option<usize>,
    headings_written: bool,
    color: bool,
}

impl Table {
    /// With these headings.
    pub(super) fn new(headings: Vec<impl Into<String>>, color: bool) -> Self {
        let headings: Vec<String> = headings.into_iter().map(Into::into).collect();
        let widths = headings.iter().map(|heading| width_of(heading)).collect();
        let least = headings.iter().map(|heading| longest_piece(heading)).collect();
        Self { headings, widths, least, within: terminal_width(), headings_written: false, color }
    }

    /// For an output of this width.
    #[cfg(test)]
    fn within(self, width: usize) -> Self {
        Self { within: Some(width), ..self }
    }

    /// Without writing the headings; columns are as wide as with them.
    pub(super) fn without_headings(self) -> Self {
        Self { headings_written: true, ..self }
    }

    /// Writes rows; before the first ones, the headings. Columns become wider when they have to, never narrower.
    pub(super) fn write(&mut self, out: &mut impl Write, rows: &[Vec<Cell>]) -> io::Result<()> {
        for row in rows {
            for ((width, least), cell) in self.widths.iter_mut().zip(&mut self.least).zip(row) {
                *width = (*width).max(width_of(&cell.text));
                *least = (*least).max(longest_piece(&cell.text));
            }
        }
        let (widths, gap) = fitted(&self.widths, &self.least, self.within);
        if !self.headings_written {
            self.headings_written = true;
            let headings: Vec<_> = self.headings.iter().map(|heading| Cell::from(heading.as_str())).collect();
            self.write_row(out, &headings, &widths, gap)?;
        }
        rows.iter().try_for_each(|row| self.write_row(out, row, &widths, gap))
    }

    /// Writes a row, in several lines if cells are wider than their columns.
    fn write_row(&self, out: &mut impl Write, row: &[Cell], widths: &[usize], gap: usize) -> io::Result<()> {
        let in_lines = |(cell, width): (&Cell, &usize)| match width_of(&cell.text) <= *width {
            true => vec![cell.text.clone()],
            false => wrap(&cell.text, *width),
        };
        let cells: Vec<Vec<String>> = row.iter().zip(widths).map(in_lines).collect();
        for index in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
            let mut line = String::new();
            let mut padding = 0;
            for ((cell, lines), width) in row.iter().zip(&cells).zip(widths) {
                // Written before the next cell only: no spaces at the end of a line.
                line.extend(std::iter::repeat_n(' ', padding));
                let text = lines.get(index).map_or("", String::as_str);
                line.push_str(&cell.style.paint(text, self.color));
                padding = width.saturating_sub(width_of(text)) + gap;
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Widths of the columns, and the space between them, for an output of a width: the widest columns are narrowed first, and none so far
/// that words are cut.
fn fitted(widths: &[usize], least: &[usize], within: Option<usize>) -> (Vec<usize>, usize) {
    let Some(within) = within else { return (widths.to_vec(), GAP) };
    let total = |widths: &[usize], gap: usize| widths.iter().sum::<usize>() + gap * widths.len().saturating_sub(1);
    if total(widths, GAP) <= within {
        return (widths.to_vec(), GAP);
    }
    let mut fitted = widths.to_vec();
    while total(&fitted, NARROW_GAP) > within {
        let columns = fitted.iter_mut().zip(least);
        let Some((width, _)) = columns.filter(|(width, least)| **width > **least).max_by_key(|(width, _)| **width) else { break };
        *width -= 1;
    }
    (fitted, NARROW_GAP)
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
    fn narrow_output_folds_widest_cells() {
        let mut table = Table::new(vec!["NAME", "STATUS", "MESSAGE"], false).within(42);
        let message = "back-off 40s restarting failed container";
        let rows = [vec!["web-edge01".into(), "Running".into(), message.into()], vec!["x".into(), "".into(), "short".into()]];
        let expected = "NAME        STATUS   MESSAGE\n\
                        web-edge01  Running  back-off 40s\n                     restarting failed\n                     container\n\
                        x                    short\n";
        assert_eq!(written(&mut table, &rows), expected);
    }

    #[test]
    fn wide_output_stays_as_it_is() {
        let mut table = Table::new(vec!["A", "B"], false).within(80);
        assert_eq!(written(&mut table, &[vec!["a b".into(), "c".into()]]), "A     B\na b   c\n");
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
