//! Objects as YAML text, byte for byte as `kubectl kustomize` prints them: keys in natural order, lines folded at 80 columns, styles as
//! go-yaml 2 chooses them.

use super::tree::{Field, Scalar, Tag, Tree, Value};
use crate::node::Value as Plain;
use crate::yaml::plain;
use std::cmp::Ordering;

/// Column behind which a text is folded at its next space.
const WIDTH: usize = 80;

/// Writes an object as a YAML document.
pub(super) fn emit(tree: &Tree) -> String {
    let mut emitter = Emitter { text: String::new(), column: 0, whitespace: true, indention: true };
    emitter.node(tree, None, Parent::Root);
    if emitter.column > 0 {
        emitter.text.push('\n');
    }
    emitter.text
}

/// The place of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parent {
    Root,
    List,
    Map,
}

struct Emitter {
    text: String,
    column: usize,
    /// The last character was a space, an indicator's or an indentation.
    whitespace: bool,
    /// Only indentation and indicators stand on the line.
    indention: bool,
}

impl Emitter {
    fn node(&mut self, tree: &Tree, indent: Option<usize>, parent: Parent) {
        match &tree.value {
            Value::Map(fields) if fields.is_empty() => self.indicator("{}", true, false),
            Value::List(items) if items.is_empty() => self.indicator("[]", true, false),
            Value::Map(fields) => self.mapping(fields, indent.map_or(0, |indent| indent + 2)),
            Value::List(items) => {
                // A list in a mapping stands below its key.
                let indentless = parent == Parent::Map && !self.indention;
                let indent = match indent {
                    None => 0,
                    Some(indent) if indentless => indent,
                    Some(indent) => indent + 2,
                };
                for item in items {
                    self.indent(indent);
                    self.indicator("-", true, true);
                    self.node(item, Some(indent), Parent::List);
                }
            }
            Value::Scalar(scalar) => self.scalar(scalar, indent.map_or(0, |indent| indent + 2)),
        }
    }

    fn mapping(&mut self, fields: &[Field], indent: usize) {
        let mut sorted: Vec<&Field> = fields.iter().collect();
        sorted.sort_by(|one, other| natural(&one.key, &other.key));
        for field in sorted {
            self.indent(indent);
            let shape = Shape::of(&field.key);
            if field.key.len() <= 128 && !shape.multiline {
                self.styled(&field.key, Shape::key_style(&field.key, shape), indent + 2, false);
                self.indicator(":", false, false);
            } else {
                self.indicator("?", true, true);
                self.string(&field.key, indent + 2);
                self.indent(indent);
                self.indicator(":", true, true);
            }
            self.node(&field.value, Some(indent), Parent::Map);
        }
    }

    fn scalar(&mut self, scalar: &Scalar, indent: usize) {
        match scalar.tag {
            Tag::String => self.string(&scalar.text, indent),
            Tag::Time => {
                let text = super::time::parse(&scalar.text).unwrap_or_else(|| scalar.text.clone());
                self.string(&text, indent);
            }
            Tag::Null if scalar.is_blank() => self.string("", indent),
            Tag::Null => self.plain("null", indent, true),
            Tag::Bool => self.plain(if scalar.text.starts_with(['t', 'T']) { "true" } else { "false" }, indent, true),
            Tag::Int | Tag::Float => self.plain(&number(&scalar.text), indent, true),
        }
    }

    fn string(&mut self, text: &str, indent: usize) {
        let shape = Shape::of(text);
        self.styled(text, Shape::value_style(text, shape), indent, true);
    }

    fn styled(&mut self, text: &str, style: Style, indent: usize, fold: bool) {
        match style {
            Style::Plain => self.plain(text, indent, fold),
            Style::Single => self.single(text, indent, fold),
            Style::Double => self.double(text, indent, fold),
            Style::Literal => self.literal(text, indent),
        }
    }

    fn put(&mut self, character: char) {
        self.text.push(character);
        self.column += 1;
    }

    fn line_break(&mut self, character: char) {
        self.text.push(character);
        self.column = 0;
    }

    fn indent(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.line_break('\n');
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    /// Writes an indicator: with a space before it where one is needed; one that begins a block keeps the line's indentation.
    fn indicator(&mut self, text: &str, need_space: bool, indents: bool) {
        if need_space && !self.whitespace {
            self.put(' ');
        }
        text.chars().for_each(|character| self.put(character));
        self.whitespace = false;
        self.indention = self.indention && indents;
    }

    fn plain(&mut self, text: &str, indent: usize, fold: bool) {
        if !text.is_empty() && !self.whitespace {
            self.put(' ');
        }
        let mut spaces = false;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            if character == ' ' {
                if fold && !spaces && self.column > WIDTH && characters.peek() != Some(&' ') {
                    self.indent(indent);
                } else {
                    self.put(' ');
                }
                spaces = true;
            } else {
                self.put(character);
                self.indention = false;
                spaces = false;
            }
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn single(&mut self, text: &str, indent: usize, fold: bool) {
        self.indicator("'", true, false);
        let (mut spaces, mut breaks) = (false, false);
        let characters: Vec<char> = text.chars().collect();
        for (index, character) in characters.iter().copied().enumerate() {
            let (first, last) = (index == 0, index + 1 == characters.len());
            if character == ' ' {
                let folds = fold && !spaces && self.column > WIDTH && !first && !last;
                if folds && characters[index + 1] != ' ' {
                    self.indent(indent);
                } else {
                    self.put(' ');
                }
                spaces = true;
            } else if is_break(character) {
                if !breaks && character == '\n' {
                    self.line_break('\n');
                }
                self.line_break(character);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.indent(indent);
                }
                if character == '\'' {
                    self.put('\'');
                }
                self.put(character);
                self.indention = false;
                (spaces, breaks) = (false, false);
            }
        }
        self.indicator("'", false, false);
    }

    fn double(&mut self, text: &str, indent: usize, fold: bool) {
        self.indicator("\"", true, false);
        let mut spaces = false;
        let characters: Vec<char> = text.chars().collect();
        // go-yaml looks for the mark at the beginning of the text, whichever character it writes.
        let has_mark = text.starts_with('\u{feff}');
        for (index, character) in characters.iter().copied().enumerate() {
            let (first, last) = (index == 0, index + 1 == characters.len());
            if has_mark || !is_printable(character) || is_break(character) || matches!(character, '"' | '\\') {
                escape(character).chars().for_each(|character| self.put(character));
                spaces = false;
            } else if character == ' ' {
                if fold && !spaces && self.column > WIDTH && !first && !last {
                    self.indent(indent);
                    if characters[index + 1] == ' ' {
                        self.put('\\');
                    }
                } else {
                    self.put(' ');
                }
                spaces = true;
            } else {
                self.put(character);
                spaces = false;
            }
        }
        self.indicator("\"", false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.indicator("|", true, false);
        if text.starts_with(' ') || text.starts_with(is_break) {
            self.indicator("2", false, false);
        }
        let mut ending = text.chars().rev();
        match (ending.next(), ending.next()) {
            (Some(last), _) if !is_break(last) => self.indicator("-", false, false),
            (None, _) => self.indicator("-", false, false),
            (Some(_), None) => self.indicator("+", false, false),
            (Some(_), Some(before)) if is_break(before) => self.indicator("+", false, false),
            (Some(_), Some(_)) => {}
        }
        self.line_break('\n');
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for character in text.chars() {
            if is_break(character) {
                self.line_break(character);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.indent(indent);
                }
                self.put(character);
                self.indention = false;
                breaks = false;
            }
        }
    }
}

fn escape(character: char) -> String {
    let short = match character {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            return match u32::from(character) {
                code @ 0..=0xff => format!("\\x{code:02X}"),
                code @ 0x100..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}

/// Style of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// Properties of a text that decide which styles can carry it.
#[derive(Clone, Copy, Debug)]
struct Shape {
    multiline: bool,
    plain_allowed: bool,
    single_allowed: bool,
    block_allowed: bool,
}

impl Shape {
    /// libyaml's analysis of a scalar.
    fn of(text: &str) -> Self {
        if text.is_empty() {
            return Self { multiline: false, plain_allowed: true, single_allowed: true, block_allowed: false };
        }
        let characters: Vec<char> = text.chars().collect();
        let is_blank = |at: usize| characters.get(at).is_none_or(|next| matches!(next, ' ' | '\t' | '\0') || is_break(*next));
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut line_breaks, mut break_space, mut space_break) = (false, false, false, false);
        let (mut previous_space, mut previous_break, mut preceded) = (false, false, true);
        for (index, character) in characters.iter().copied().enumerate() {
            let followed = is_blank(index + 1);
            indicators |= match character {
                '#' if index > 0 => preceded,
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => index == 0,
                '?' | '-' => index == 0 && followed,
                ':' => followed,
                _ => false,
            };
            special |= !is_printable(character);
            if character == ' ' {
                break_space |= previous_break;
                (previous_space, previous_break) = (true, false);
            } else if is_break(character) {
                line_breaks = true;
                space_break |= previous_space;
                (previous_space, previous_break) = (false, true);
            } else {
                (previous_space, previous_break) = (false, false);
            }
            preceded = is_blank(index);
        }
        let ends = [characters.first(), characters.last()];
        let padded = ends.into_iter().flatten().any(|end| *end == ' ' || is_break(*end));
        let odd = space_break || special;
        Self {
            multiline: line_breaks,
            plain_allowed: !(indicators || padded || break_space || odd || line_breaks),
            single_allowed: !(break_space || odd),
            block_allowed: characters.last() != Some(&' ') && !odd,
        }
    }

    fn value_style(text: &str, shape: Self) -> Style {
        match (text.contains('\n'), stays_a_string(text)) {
            (true, _) if shape.block_allowed => Style::Literal,
            (true, _) | (false, false) => Style::Double,
            (false, true) => shape.best(),
        }
    }

    fn key_style(text: &str, shape: Self) -> Style {
        if shape.multiline || text.contains('\n') || !stays_a_string(text) { Style::Double } else { shape.best() }
    }

    fn best(self) -> Style {
        match (self.plain_allowed, self.single_allowed) {
            (true, _) => Style::Plain,
            (false, true) => Style::Single,
            (false, false) => Style::Double,
        }
    }
}

/// Reports whether a text can be written as a block.
pub(super) fn fits_a_block(text: &str) -> bool {
    Shape::of(text).block_allowed
}

/// Reports whether a text can be written without quotes.
pub(super) fn fits_plain(text: &str) -> bool {
    Shape::of(text).plain_allowed
}

/// Reports whether a text can be written in single quotes.
pub(super) fn fits_single(text: &str) -> bool {
    Shape::of(text).single_allowed
}

/// Reports whether go-yaml 2 reads the text without quotes as a string.
fn stays_a_string(text: &str) -> bool {
    matches!(plain(text), Plain::String(_)) && super::time::parse(text).is_none() && !is_sexagesimal(text)
}

/// `1:30`, which YAML 1.1 reads as 90: `^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$`.
fn is_sexagesimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let sixtieth = |part: &str| match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => matches!(ten, b'0'..=b'5') && one.is_ascii_digit(),
        _ => false,
    };
    whole.contains(':')
        && first.starts_with(|first: char| first.is_ascii_digit())
        && digits(first)
        && parts.all(sixtieth)
        && digits(fraction)
}

fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// A number as it comes out of JSON and Go's `%g`.
pub(super) fn number(text: &str) -> String {
    let Plain::Number(number) = plain(text) else { return text.to_owned() };
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(integer), _, _) => integer.to_string(),
        (None, Some(integer), _) => integer.to_string(),
        (None, None, Some(float)) => go_float(float),
        (None, None, None) => text.to_owned(),
    }
}

/// Go's `strconv.FormatFloat(float, 'g', -1, 64)`, of what JSON carried: whole numbers that fit 64 bits are integers there.
fn go_float(float: f64) -> String {
    let digits = format!("{float}");
    if digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok() {
        return digits;
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return digits;
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// go-yaml's order of keys: letters behind everything else, runs of digits by their value.
pub(super) fn natural(one: &str, other: &str) -> Ordering {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    for index in 0..one.len().min(other.len()) {
        let (a, b) = (one[index], other[index]);
        if a == b {
            continue;
        }
        match (a.is_alphabetic(), b.is_alphabetic()) {
            (true, true) => return a.cmp(&b),
            (true, false) => return Ordering::Greater,
            (false, true) => return Ordering::Less,
            (false, false) => {}
        }
        let behind_digits = (a == '0' || b == '0')
            && one[..index].iter().rev().take_while(|digit| digit.is_ascii_digit()).any(|digit| *digit != '0');
        let value = |text: &[char]| {
            let digits = text[index..].iter().take_while(|digit| digit.is_ascii_digit());
            digits.fold((i64::from(behind_digits), 0_usize), |(value, count), digit| {
                let digit = i64::from(u32::from(*digit) - u32::from('0'));
                (value.wrapping_mul(10).wrapping_add(digit), count + 1)
            })
        };
        return value(&one).cmp(&value(&other)).then(a.cmp(&b));
    }
    one.len().cmp(&other.len())
}
