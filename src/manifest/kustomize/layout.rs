//! YAML that is the text of a field, e.g. of a ConfigMap, written again as go-yaml 3 writes it: indented by two, with its comments and quotes, and
//! without most of its blank lines. What is written here is what people write by hand; anything else is refused ([`Refusal`]), so that
//! nothing comes out differently from upstream.

use super::emit::{fits_a_block, fits_plain, fits_single};
use super::tree::{Field, Scalar, Tag, Tree, Value, tag_of};
use std::collections::BTreeMap;

/// Reason why a text cannot be written again.
pub(super) type Refusal = &'static str;

const UNSUPPORTED_COMMENT: Refusal = "a comment is not supported where it stands";

/// Lists and mappings inside of each other.
const MAX_DEPTH: usize = 64;

/// A text.
pub(super) struct Layout {
    /// Comments at the beginning, with a blank line behind them.
    opening: Vec<String>,
    root: Part,
    /// Comments at the end, and the blank lines above and between them.
    closing: Vec<String>,
}

enum Part {
    /// Number, style and value of a scalar.
    Scalar {
        number: u32,
        style: Style,
        text: String,
        source: String,
    },
    Block {
        is_list: bool,
        entries: Vec<Entry>,
        /// Comments behind the last entry, in its column.
        tail: Vec<String>,
    },
    Flow {
        is_list: bool,
        entries: Vec<(Option<Key>, Part)>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    /// With a line break at its end, or without.
    Literal {
        ends: bool,
    },
}

struct Key {
    text: String,
    source: String,
}

struct Entry {
    /// Comments above, and the blank lines between them; of those of a mapping the first may be about the entry before.
    head: Vec<String>,
    /// `None` for the item of a list.
    key: Option<Key>,
    value: Part,
    /// Comment in the same line.
    comment: Option<String>,
}

#[derive(Clone, Copy)]
struct Line<'t> {
    indent: usize,
    /// From the indentation on, without space at the end.
    text: &'t str,
    raw: &'t str,
}

/// Comments without a blank line between them.
struct Run {
    column: usize,
    is_below_blank: bool,
    lines: Vec<String>,
}

/// Comments and blank lines between two lines with content.
#[derive(Default)]
struct Between {
    runs: Vec<Run>,
    blank_last: bool,
    /// Comments before these are those of an inner block.
    is_below_tail: bool,
}

struct Parser<'t> {
    lines: Vec<Line<'t>>,
    at: usize,
    between: Between,
    opening: Vec<String>,
    /// The first line is `---`.
    is_marked: bool,
    scalars: u32,
    depth: usize,
}

impl Layout {
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let mut lines: Vec<Line<'_>> = text.split('\n').map(line_of).collect();
        let is_marked = lines.first().is_some_and(|line| line.indent == 0 && line.text == "---");
        if is_marked {
            lines.remove(0);
        }
        let is_marker = |line: &Line<'_>| line.indent == 0 && (line.text.starts_with("---") || line.text.starts_with("..."));
        if lines.iter().any(is_marker) {
            return Err("documents with --- are not supported");
        }
        if text.chars().any(|character| character.is_control() && character != '\n' || character == '\u{feff}') {
            return Err("control characters are not supported");
        }
        let mut parser = Parser { lines, at: 0, between: Between::default(), opening: Vec::new(), is_marked, scalars: 0, depth: 0 };
        parser.skip();
        let Some(first) = parser.content() else { return Err("the text is empty") };
        if !is_item(first.text) && key_of(first.text)?.is_none() {
            return Err("a list or a mapping is needed");
        }
        let root = parser.block(first.indent)?;
        if parser.content().is_some() {
            return Err("a line is not indented like the others");
        }
        let closing = parser.closing(&root)?;
        Ok(Self { opening: parser.opening, root, closing })
    }

    /// The values; the places of scalars are their numbers, from 1.
    pub(super) fn tree(&self) -> Tree {
        self.root.tree()
    }

    /// The text with other values for some scalars.
    pub(super) fn write(&self, changes: &BTreeMap<u32, String>) -> Result<String, Refusal> {
        let mut text = String::new();
        for line in &self.opening {
            text.extend([line, "\n"]);
        }
        if !self.opening.is_empty() {
            text.push('\n');
        }
        write_block(&mut text, &self.root, 0, false, changes)?;
        for line in &self.closing {
            text.extend([line, "\n"]);
        }
        Ok(text)
    }
}

fn line_of(raw: &str) -> Line<'_> {
    let text = raw.trim_start_matches(' ');
    Line { indent: raw.len() - text.len(), text: text.trim_end(), raw }
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

impl<'t> Parser<'t> {
    fn content(&self) -> Option<Line<'t>> {
        self.lines.get(self.at).copied()
    }

    /// Goes to the next line with content, and keeps what is between.
    fn skip(&mut self) {
        let mut between = Between::default();
        let mut is_open = false;
        while let Some(line) = self.content() {
            if line.text.is_empty() {
                between.blank_last = true;
                is_open = false;
            } else if line.text.starts_with('#') {
                let comment = line.raw.trim_start().to_owned();
                match between.runs.last_mut().filter(|run| is_open && run.column == line.indent) {
                    Some(run) => run.lines.push(comment),
                    None => {
                        let is_below_blank = between.blank_last;
                        between.runs.push(Run { column: line.indent, is_below_blank, lines: vec![comment] });
                    }
                }
                between.blank_last = false;
                is_open = true;
            } else {
                break;
            }
            self.at += 1;
        }
        self.between = between;
    }

    /// The comments above an entry, of a list or a mapping. Where it is not known how upstream places them, they are refused.
    fn comments(&mut self, column: usize, before: Option<&Entry>, is_list: bool) -> Result<Vec<String>, Refusal> {
        let Between { mut runs, blank_last, is_below_tail } = std::mem::take(&mut self.between);
        let Some(first) = runs.first() else { return Ok(Vec::new()) };
        if runs.iter().any(|run| run.column != column) {
            return Err(UNSUPPORTED_COMMENT);
        }
        let (is_one, is_below_blank) = (runs.len() == 1, first.is_below_blank);
        if is_one && !blank_last && (before.is_some() || self.depth > 1) {
            return Ok(joined(runs));
        }
        let Some(before) = before else {
            if self.depth == 1 && column == 0 && !self.is_marked && !is_below_blank {
                let head = if blank_last { None } else { runs.pop() };
                self.opening = joined(runs);
                return Ok(head.map_or_else(Vec::new, |run| run.lines));
            }
            let is_known = if self.depth > 1 || self.is_marked { !is_list } else { is_one && !blank_last };
            return if is_known { Ok(joined(runs)) } else { Err(UNSUPPORTED_COMMENT) };
        };
        if is_one && is_below_blank {
            return Ok(joined(runs));
        }
        if is_below_tail && !is_one {
            return Err(UNSUPPORTED_COMMENT);
        }
        let is_scalar = matches!(before.value, Part::Scalar { .. }) && ends_simply(before);
        if is_one && (is_scalar || is_below_tail) {
            // About the entry before.
            let mut head = joined(runs);
            head.push(String::new());
            return Ok(head);
        }
        let is_known = !is_one && (is_scalar || !is_list && ends_simply(before));
        if is_known { Ok(joined(runs)) } else { Err(UNSUPPORTED_COMMENT) }
    }

    /// The comments behind the last entry of an inner mapping, in its column.
    fn tail(&mut self, column: usize, is_list: bool, entries: &[Entry]) -> Vec<String> {
        let is_end = self.content().is_none();
        let is_here = |run: &Run| run.column == column && column > 0 && !(is_end && run.is_below_blank);
        let is_simple = !is_list && entries.last().is_some_and(ends_simply);
        if !is_simple || !self.between.runs.first().is_some_and(is_here) {
            return Vec::new();
        }
        self.between.is_below_tail = true;
        self.between.runs.remove(0).lines
    }

    /// The comments behind everything.
    fn closing(&mut self, root: &Part) -> Result<Vec<String>, Refusal> {
        let Between { runs, is_below_tail, .. } = std::mem::take(&mut self.between);
        let Some(first) = runs.first() else { return Ok(Vec::new()) };
        let is_below_blank = first.is_below_blank;
        let Part::Block { is_list: false, entries, .. } = root else { return Err(UNSUPPORTED_COMMENT) };
        let is_simple = is_below_blank || entries.last().is_some_and(ends_simply);
        if is_below_tail || !is_simple || runs.iter().any(|run| run.column > 0) {
            return Err(UNSUPPORTED_COMMENT);
        }
        let mut closing = if is_below_blank { vec![String::new()] } else { Vec::new() };
        closing.extend(joined(runs));
        Ok(closing)
    }

    /// The entries that begin in a column.
    fn block(&mut self, column: usize) -> Result<Part, Refusal> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("lists and mappings are too deep");
        }
        let is_list = self.content().is_some_and(|line| is_item(line.text));
        let mut entries: Vec<Entry> = Vec::new();
        while let Some(line) = self.content().filter(|line| line.indent >= column) {
            if line.indent > column {
                return Err("a text over several lines is not supported");
            }
            if is_item(line.text) != is_list {
                if is_list {
                    break;
                }
                return Err("a list is not indented like its mapping");
            }
            let head = self.comments(column, entries.last(), is_list)?;
            let mut entry = if is_list { self.item(line)? } else { self.pair(line)? };
            entry.head = head;
            entries.push(entry);
        }
        self.depth -= 1;
        let tail = self.tail(column, is_list, &entries);
        Ok(Part::Block { is_list, entries, tail })
    }

    fn item(&mut self, line: Line<'t>) -> Result<Entry, Refusal> {
        let rest = line.text[1..].trim_start();
        let mut entry = Entry { head: Vec::new(), key: None, value: self.nothing(), comment: None };
        if rest.is_empty() {
            self.at += 1;
            self.skip();
            if self.content().is_some_and(|next| next.indent > line.indent) {
                if !self.between.runs.is_empty() {
                    return Err(UNSUPPORTED_COMMENT);
                }
                let next = self.content().map_or(0, |next| next.indent);
                entry.value = self.block(next)?;
            }
            return Ok(entry);
        }
        if rest.starts_with('#') {
            return Err(UNSUPPORTED_COMMENT);
        }
        if is_item(rest) || key_of(rest)?.is_some() {
            let indent = line.indent + line.text.len() - rest.len();
            self.lines[self.at] = Line { indent, text: rest, raw: line.raw };
            entry.value = self.block(indent)?;
            return Ok(entry);
        }
        (entry.value, entry.comment) = self.inline(rest, line.indent)?;
        Ok(entry)
    }

    fn pair(&mut self, line: Line<'t>) -> Result<Entry, Refusal> {
        let Some((key, rest)) = key_of(line.text)? else { return Err("a text over several lines is not supported") };
        let mut entry = Entry { head: Vec::new(), key: Some(key), value: self.nothing(), comment: None };
        if !rest.is_empty() && !rest.starts_with('#') {
            (entry.value, entry.comment) = self.inline(rest, line.indent)?;
            return Ok(entry);
        }
        entry.comment = Some(rest).filter(|rest| !rest.is_empty()).map(|rest| self.with_blanks(rest));
        self.at += 1;
        self.skip();
        let Some(next) = self.content() else { return Ok(entry) };
        if next.indent > line.indent || next.indent == line.indent && is_item(next.text) {
            if self.between.runs.is_empty() || !self.between.blank_last || !is_item(next.text) {
                if !is_item(next.text) && key_of(next.text)?.is_none() {
                    return Err("a text over several lines is not supported");
                }
                entry.value = self.block(next.indent)?;
            } else {
                return Err(UNSUPPORTED_COMMENT);
            }
        }
        Ok(entry)
    }

    /// A comment at the end of this line, with the blanks behind it.
    fn with_blanks(&self, comment: &str) -> String {
        let raw = self.content().map_or("", |line| line.raw);
        format!("{comment}{}", &raw[raw.trim_end().len()..])
    }

    fn nothing(&mut self) -> Part {
        self.scalars += 1;
        Part::Scalar { number: self.scalars, style: Style::Plain, text: String::new(), source: String::new() }
    }

    /// A value in the line of its key, and the comment behind it.
    fn inline(&mut self, rest: &'t str, column: usize) -> Result<(Part, Option<String>), Refusal> {
        if rest.starts_with('|') {
            return Ok((self.literal(rest, column)?, None));
        }
        let (value, rest) = self.value(rest, false)?;
        let comment = match rest.trim_start() {
            "" => None,
            comment if comment.starts_with('#') && comment.len() < rest.len() => Some(self.with_blanks(comment)),
            _ => return Err("a text over several lines is not supported"),
        };
        self.at += 1;
        self.skip();
        if self.content().is_some_and(|next| next.indent > column) {
            return Err("a text over several lines is not supported");
        }
        Ok((value, comment))
    }

    /// A value at the beginning of a text, and what is behind it.
    fn value(&mut self, text: &'t str, in_flow: bool) -> Result<(Part, &'t str), Refusal> {
        self.scalars += 1;
        let number = self.scalars;
        match text.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let (inner, rest) = quoted(text, quote)?;
                let style = if quote == '"' { Style::Double } else { Style::Single };
                let source = text[..text.len() - rest.len()].to_owned();
                Ok((Part::Scalar { number, style, text: inner, source }, rest))
            }
            Some('[' | '{') => self.flow(text),
            Some('&' | '*' | '!') => Err("anchors, aliases and tags are not supported"),
            Some('>') => Err("folded texts are not supported"),
            None | Some('%' | '@' | '`' | '|' | ']' | '}' | ',' | '#') => Err("a value cannot be read"),
            Some(_) => {
                let end = match in_flow {
                    true => text.find([',', ']', '}', '[', '{']).unwrap_or(text.len()),
                    false => text.find(" #").unwrap_or(text.len()),
                };
                let source = text[..end].trim_end();
                if source.contains(": ") || source.ends_with(':') || is_item(source) || source.starts_with('?') {
                    return Err("a value cannot be read");
                }
                let part = Part::Scalar { number, style: Style::Plain, text: source.to_owned(), source: source.to_owned() };
                Ok((part, &text[source.len()..]))
            }
        }
    }

    fn flow(&mut self, text: &'t str) -> Result<(Part, &'t str), Refusal> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("lists and mappings are too deep");
        }
        let is_list = text.starts_with('[');
        let end = if is_list { ']' } else { '}' };
        let mut entries = Vec::new();
        let mut rest = text[1..].trim_start();
        while !rest.starts_with(end) {
            let mut key = None;
            if !is_list {
                let Some((found, behind)) = key_of(rest)? else { return Err("braces must hold keys with values in one line") };
                (key, rest) = (Some(found), behind);
            }
            let (value, behind) = self.value(rest, true)?;
            entries.push((key, value));
            rest = behind.trim_start();
            match rest.strip_prefix(',') {
                Some(behind) if !behind.trim_start().starts_with(end) => rest = behind.trim_start(),
                None if rest.starts_with(end) => {}
                Some(_) | None => return Err("brackets and braces must be closed in the same line"),
            }
        }
        self.depth -= 1;
        Ok((Part::Flow { is_list, entries }, &rest[1..]))
    }

    fn literal(&mut self, header: &str, column: usize) -> Result<Part, Refusal> {
        let mut ends = match header {
            "|" => true,
            "|-" => false,
            _ => return Err("blocks with + or an indentation are not supported"),
        };
        self.scalars += 1;
        let number = self.scalars;
        self.at += 1;
        let indent = self.content().map_or(0, |line| line.indent);
        if indent <= column || self.content().is_none_or(|line| line.text.is_empty()) {
            return Err("a block that begins with an empty line is not supported");
        }
        let mut body = Vec::new();
        while let Some(line) = self.content().filter(|line| line.text.is_empty() || line.indent > column) {
            if line.raw.ends_with(' ') || !line.text.is_empty() && line.indent < indent {
                return Err("a block with spaces at the end of a line is not supported");
            }
            body.push(line.raw.get(indent..).unwrap_or_default());
            self.at += 1;
        }
        // Blank lines behind it are between it and what follows.
        while body.last().is_some_and(|line| line.is_empty()) {
            body.pop();
            self.at -= 1;
        }
        // The text of the last line, without a line break behind it.
        ends &= self.at < self.lines.len();
        self.skip();
        let mut text = body.join("\n");
        if ends {
            text.push('\n');
        }
        Ok(Part::Scalar { number, style: Style::Literal { ends }, source: String::new(), text })
    }
}

/// The key at the beginning of a text, and what follows its colon.
fn key_of(text: &str) -> Result<Option<(Key, &str)>, Refusal> {
    let (key, source, rest) = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let (inner, rest) = quoted(text, quote)?;
            (inner, &text[..text.len() - rest.len()], rest.trim_start())
        }
        Some('[' | '{' | '|' | '>' | '#' | '%' | '@' | '`') | None => return Ok(None),
        Some('&' | '*' | '!') => return Err("anchors, aliases and tags are not supported"),
        Some('?') => return Err("keys with ? are not supported"),
        Some(_) => {
            let written = text.find(" #").map_or(text, |comment| text[..comment].trim_end());
            let Some(end) = written.find(": ").or_else(|| written.ends_with(':').then(|| written.len() - 1)) else {
                return Ok(None);
            };
            let key = text[..end].trim_end();
            if key.contains([',', '[', ']', '{', '}', '"', '\'']) || key == "<<" {
                return Err("a key cannot be read");
            }
            (key.to_owned(), key, &text[end..])
        }
    };
    let Some(rest) = rest.strip_prefix(':').filter(|rest| rest.is_empty() || rest.starts_with(' ')) else { return Ok(None) };
    Ok(Some((Key { text: key, source: source.to_owned() }, rest.trim_start())))
}

/// The text in quotes at the beginning of a text, and what is behind it. Only plain escapes are read.
fn quoted(text: &str, quote: char) -> Result<(String, &str), Refusal> {
    let mut inner = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' if quote == '\'' && characters.next_if(|(_, next)| *next == '\'').is_some() => inner.push('\''),
            '\\' if quote == '"' => match characters.next() {
                Some((_, escaped @ ('\\' | '"'))) => inner.push(escaped),
                Some((_, 'n')) => inner.push('\n'),
                Some((_, 't')) => inner.push('\t'),
                Some(_) | None => return Err("only \\\\, \\\", \\n and \\t are supported in quotes"),
            },
            _ if character == quote => return Ok((inner, &text[at + 1..])),
            _ => inner.push(character),
        }
    }
    Err("a text over several lines is not supported")
}

impl Part {
    fn tree(&self) -> Tree {
        let field = |key: &Key, value: &Part| Field { key: key.text.clone(), at: 0, value: value.tree() };
        match self {
            Part::Scalar { number, style: Style::Plain, text, .. } => Tree::scalar(*number, Scalar::plain(&**text)),
            Part::Scalar { number, text, .. } => Tree::string(*number, &**text),
            Part::Block { is_list: true, entries, .. } => {
                Tree { at: 0, value: Value::List(entries.iter().map(|entry| entry.value.tree()).collect()) }
            }
            Part::Block { entries, .. } => {
                let field = |entry: &Entry| entry.key.as_ref().map(|key| field(key, &entry.value));
                Tree { at: 0, value: Value::Map(entries.iter().filter_map(field).collect()) }
            }
            Part::Flow { is_list: true, entries } => {
                Tree { at: 0, value: Value::List(entries.iter().map(|(_, value)| value.tree()).collect()) }
            }
            Part::Flow { entries, .. } => {
                let field = |(key, value): &(Option<Key>, Part)| key.as_ref().map(|key| field(key, value));
                Tree { at: 0, value: Value::Map(entries.iter().filter_map(field).collect()) }
            }
        }
    }
}

/// Runs with a blank line between them.
fn joined(runs: Vec<Run>) -> Vec<String> {
    let mut lines = Vec::new();
    for run in runs {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(run.lines);
    }
    lines
}

/// Reports whether the last line of an entry is a scalar without quotes and comment, and no comment is behind it.
fn ends_simply(entry: &Entry) -> bool {
    match &entry.value {
        Part::Scalar { style: Style::Plain, source, .. } => !source.is_empty() && entry.comment.is_none(),
        Part::Scalar { .. } | Part::Flow { .. } | Part::Block { is_list: true, .. } => false,
        Part::Block { entries, tail, .. } => tail.is_empty() && entries.last().is_some_and(ends_simply),
    }
}

fn write_block(
    text: &mut String,
    block: &Part,
    indent: usize,
    is_inline: bool,
    changes: &BTreeMap<u32, String>,
) -> Result<(), Refusal> {
    let Part::Block { is_list, entries, tail } = block else { return Ok(()) };
    let is_list = *is_list;
    let lines = |text: &mut String, lines: &[String]| {
        for line in lines {
            if !line.is_empty() {
                text.extend(std::iter::repeat_n(' ', indent));
            }
            text.extend([line, "\n"]);
        }
    };
    for (index, entry) in entries.iter().enumerate() {
        let continues = is_inline && index == 0;
        if continues && !entry.head.is_empty() {
            return Err(UNSUPPORTED_COMMENT);
        }
        lines(text, &entry.head);
        if !continues {
            text.extend(std::iter::repeat_n(' ', indent));
        }
        let comment = |text: &mut String| {
            if let Some(comment) = &entry.comment {
                text.extend([" ", comment]);
            }
            text.push('\n');
        };
        match &entry.key {
            Some(key) => text.extend([&key.source, ":"]),
            None => text.push('-'),
        }
        match &entry.value {
            block @ Part::Block { .. } if is_list => {
                text.push(' ');
                write_block(text, block, indent + 2, true, changes)?;
            }
            block @ Part::Block { is_list: is_inner_list, .. } => {
                comment(text);
                write_block(text, block, if *is_inner_list { indent } else { indent + 2 }, false, changes)?;
            }
            value @ (Part::Scalar { .. } | Part::Flow { .. }) => {
                let written = written(value, indent + 2, false, changes)?;
                if !written.is_empty() {
                    text.extend([" ", &written]);
                }
                comment(text);
            }
        }
    }
    lines(text, tail);
    Ok(())
}

/// A value in the line of its key.
fn written(part: &Part, indent: usize, in_flow: bool, changes: &BTreeMap<u32, String>) -> Result<String, Refusal> {
    match part {
        Part::Scalar { number, style: Style::Literal { ends }, text, .. } => {
            let text = changes.get(number).map_or(text.as_str(), String::as_str);
            let (ends, body) = match text.strip_suffix('\n') {
                Some(body) => (true, body),
                None => (*ends && !changes.contains_key(number), text),
            };
            if body.is_empty() || body.ends_with('\n') || body.starts_with([' ', '\n']) || !fits_a_block(body) {
                return Err("the new value does not fit into the block");
            }
            let mut block = if ends { "|".to_owned() } else { "|-".to_owned() };
            for line in body.split('\n') {
                block.push('\n');
                if !line.is_empty() {
                    block.extend(std::iter::repeat_n(' ', indent));
                    block.push_str(line);
                }
            }
            Ok(block)
        }
        Part::Scalar { number, style, text, source } => match changes.get(number) {
            Some(new) => changed(*style, text, new, in_flow),
            None => Ok(source.clone()),
        },
        Part::Flow { is_list, entries } => {
            let entry = |(key, value): &(Option<Key>, Part)| {
                let value = written(value, indent, true, changes)?;
                Ok(key.as_ref().map_or(value.clone(), |key| format!("{}: {value}", key.source)))
            };
            let entries: Vec<String> = entries.iter().map(entry).collect::<Result<_, Refusal>>()?;
            Ok(if *is_list { format!("[{}]", entries.join(", ")) } else { format!("{{{}}}", entries.join(", ")) })
        }
        Part::Block { .. } => Err("a block inside of brackets is not supported"),
    }
}

/// A new value in the style and with the type of the old one.
fn changed(style: Style, old: &str, new: &str, in_flow: bool) -> Result<String, Refusal> {
    if new.chars().any(|character| character.is_control() && !matches!(character, '\n' | '\t')) {
        return Err("control characters are not supported");
    }
    let double = || {
        let escaped = new.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
        format!("\"{escaped}\"")
    };
    let single = || if fits_single(new) { format!("'{}'", new.replace('\'', "''")) } else { double() };
    if style == Style::Double {
        return Ok(double());
    }
    if new.contains('\n') {
        return Err("a value of several lines is not supported here");
    }
    if style == Style::Single {
        return Ok(single());
    }
    let (was, is) = (tag_of(old), tag_of(new));
    let tag = match was {
        _ if was == is => "",
        Tag::String => return Ok(double()),
        Tag::Null => "!!null ",
        Tag::Bool => "!!bool ",
        Tag::Int => "!!int ",
        Tag::Float => "!!float ",
        Tag::Time => "!!timestamp ",
    };
    if new.is_empty() && !in_flow {
        return Ok(tag.trim_end().to_owned());
    }
    let is_plain = !new.is_empty() && fits_plain(new) && !(in_flow && new.contains([',', '?', '[', ']', '{', '}', ':']));
    Ok(if is_plain { format!("{tag}{new}") } else { format!("{tag}{}", single()) })
}
