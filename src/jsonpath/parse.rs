//! Templates as written, and the steps that they are. **Pure**.

use crate::quote::unquote;
use serde_json::{Number, Value};
use thiserror::Error;

/// Bytes that a template, or a specification of columns, may have.
pub const MAX_TEMPLATE_BYTES: usize = 64 << 10;

/// Depth of paths in filters and unions.
const MAX_DEPTH: usize = 8;

/// Template that is not understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ParseError {
    /// Nothing was written.
    #[error("the template is empty")]
    Empty,
    /// Longer than [`MAX_TEMPLATE_BYTES`].
    #[error("the template is longer than {MAX_TEMPLATE_BYTES} bytes")]
    TooLong,
    /// Filters in filters.
    #[error("paths are nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    /// `{.a` without `}`.
    #[error("a brace is not closed")]
    UnclosedBrace,
    /// `[1` without `]`.
    #[error("a bracket is not closed")]
    UnclosedBracket,
    /// `[?(@.a` without `)]`.
    #[error("a filter is not closed by )]")]
    UnclosedFilter,
    /// `"a` without `"`.
    #[error("a quoted string is not closed")]
    UnclosedQuote,
    /// `"\q"`.
    #[error("a quoted string has an escape that is not understood")]
    Escape,
    /// `....`.
    #[error("a recursive descent (..) follows another one")]
    RepeatedDescent,
    /// `{1.2.3}`.
    #[error("{0:?} is not a number")]
    Number(String),
    /// `[a]`.
    #[error("{0:?} is not an index: expected [0], [1:3], [*], ['key'] or [?(@.field == \"value\")]")]
    Index(String),
    /// `{%}`.
    #[error("unexpected character {0:?} in braces")]
    Character(char),
    /// `?(@.a =< 1)`.
    #[error("unknown operator {0:?} of a filter")]
    Operator(String),
    /// `{if}`.
    #[error("unknown word {0:?} in braces")]
    Word(String),
}

/// One step from values to values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Text or a boolean word, a number: the same for all values.
    Literal(Value),
    /// A number: once for each value.
    Constant(Value),
    /// `.name`.
    Field(String),
    /// `.*`, `[*]` of a map.
    Wildcard,
    /// `..`.
    Descent,
    /// `[1]`, `[1:3]`, `[0:6:2]`.
    Slice(Slice),
    /// `['a','b']`, `[0,2]`.
    Union(Vec<Vec<Step>>),
    /// `[?(@.a)]`.
    Exists(Vec<Step>),
    /// `[?(@.a == 1)]`.
    Compare(Comparison),
    /// `range`: the steps before `}` select what is repeated.
    Range,
    /// `end`.
    End,
}

/// `[from:to:step]`; each may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Index of the first element.
    pub(crate) from: Option<i64>,
    /// Index behind the last element.
    pub(crate) to: End,
    /// Distance of elements.
    pub(crate) step: Option<i64>,
}

/// End of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// `[1]`: behind the first.
    Single,
    /// `[1:]`.
    Open,
    /// `[1:3]`.
    At(i64),
}

/// `left operator right`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comparison {
    /// Path on the left.
    pub(crate) left: Vec<Step>,
    /// Comparison of the two.
    pub(crate) operator: Operator,
    /// Path or literal on the right.
    pub(crate) right: Vec<Step>,
}

/// Operator of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
    /// `==`.
    Equal,
    /// `!=`.
    NotEqual,
}

/// The blocks of a template: text, or the steps between two braces.
pub(crate) fn blocks(text: &str) -> Result<Vec<Vec<Step>>, ParseError> {
    if text.is_empty() {
        return Err(ParseError::Empty);
    }
    if text.len() > MAX_TEMPLATE_BYTES {
        return Err(ParseError::TooLong);
    }
    blocks_at(text, 0)
}

fn blocks_at(text: &str, depth: usize) -> Result<Vec<Vec<Step>>, ParseError> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        if !before.is_empty() {
            blocks.push(vec![Step::Literal(before.into())]);
        }
        let mut block = Block { rest: after, steps: Vec::new(), depth };
        while block.step()? {}
        rest = block.rest;
        blocks.push(block.steps);
    }
    if !rest.is_empty() {
        blocks.push(vec![Step::Literal(rest.into())]);
    }
    Ok(blocks)
}

/// The steps of a path that stands in a filter or a union.
fn inner(path: &str, depth: usize) -> Result<Vec<Step>, ParseError> {
    if depth >= MAX_DEPTH {
        return Err(ParseError::TooDeep);
    }
    Ok(blocks_at(&format!("{{{path}}}"), depth + 1)?.into_iter().next().unwrap_or_default())
}

/// A block that is being read.
struct Block<'a> {
    rest: &'a str,
    steps: Vec<Step>,
    depth: usize,
}

fn is_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// True for characters behind the end of a name.
fn ends_name(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

impl<'a> Block<'a> {
    /// Reads one step. `false`: the block is closed.
    fn step(&mut self) -> Result<bool, ParseError> {
        if let Some(rest) = self.rest.strip_prefix("[?(") {
            self.filter(rest)?;
            return Ok(true);
        }
        if let Some(rest) = self.rest.strip_prefix("..") {
            self.rest = rest;
            self.descent()?;
            return Ok(true);
        }
        let mut characters = self.rest.chars();
        let first = characters.next().ok_or(ParseError::UnclosedBrace)?;
        let rest = characters.as_str();
        match first {
            '}' => {
                self.rest = rest;
                return Ok(false);
            }
            '\r' | '\n' => return Err(ParseError::UnclosedBrace),
            ' ' | '@' | '$' => self.rest = rest,
            '[' => self.brackets(rest)?,
            '"' | '\'' => self.quoted(rest, first)?,
            '.' => {
                self.rest = rest;
                self.field();
            }
            '+' | '-' | '0'..='9' => self.number()?,
            _ if is_word(first) => self.word()?,
            _ => return Err(ParseError::Character(first)),
        }
        Ok(true)
    }

    /// Takes `length` bytes.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn descent(&mut self) -> Result<(), ParseError> {
        if self.steps.last() == Some(&Step::Descent) {
            return Err(ParseError::RepeatedDescent);
        }
        self.steps.push(Step::Descent);
        if self.rest.starts_with(is_word) {
            self.field();
        }
        Ok(())
    }

    /// A name up to a character that ends it and is not escaped.
    fn field(&mut self) {
        let mut is_escaped = false;
        let end = self.rest.find(|character| {
            let ends = !is_escaped && ends_name(character);
            is_escaped = !is_escaped && character == '\\';
            ends
        });
        let name = self.take(end.unwrap_or(self.rest.len()));
        self.steps.push(if name == "*" { Step::Wildcard } else { Step::Field(name.replace('\\', "")) });
    }

    fn number(&mut self) -> Result<(), ParseError> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[sign..].find(|character: char| character != '.' && !character.is_ascii_digit());
        let text = self.take(digits.map_or(self.rest.len(), |digits| digits + sign));
        let plain = text.strip_prefix('+').unwrap_or(text);
        let float = || plain.parse::<f64>().ok().and_then(Number::from_f64);
        let number = plain.parse::<i64>().ok().map(Number::from).or_else(float);
        self.steps.push(Step::Constant(Value::Number(number.ok_or_else(|| ParseError::Number(text.to_owned()))?)));
        Ok(())
    }

    fn word(&mut self) -> Result<(), ParseError> {
        let word = self.take(self.rest.find(ends_name).unwrap_or(self.rest.len()));
        self.steps.push(match word {
            "true" | "false" => Step::Constant(Value::Bool(word == "true")),
            "range" => Step::Range,
            "end" => Step::End,
            _ => return Err(ParseError::Word(word.to_owned())),
        });
        Ok(())
    }

    fn quoted(&mut self, rest: &'a str, quote: char) -> Result<(), ParseError> {
        let mut before = quote;
        let mut end = None;
        for (at, character) in rest.char_indices() {
            if character == '\n' {
                break;
            }
            if character == quote && before != '\\' {
                end = Some(at);
                break;
            }
            before = character;
        }
        let end = end.ok_or(ParseError::UnclosedQuote)?;
        self.steps.push(Step::Literal(unquote(&rest[..end], quote)?.into()));
        self.rest = &rest[end + 1..];
        Ok(())
    }

    fn brackets(&mut self, rest: &'a str) -> Result<(), ParseError> {
        let end = rest.find([']', '\n']).filter(|end| rest[*end..].starts_with(']')).ok_or(ParseError::UnclosedBracket)?;
        self.rest = &rest[end + 1..];
        let text = &rest[..end];
        if text.contains(',') {
            let parts = text.split(',').map(|part| inner(&format!("[{}]", part.trim_matches(' ')), self.depth));
            self.steps.push(Step::Union(parts.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let quoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).filter(|key| !key.contains('\''));
        if let Some(key) = quoted {
            self.steps.extend(inner(&format!(".{key}"), self.depth)?);
            return Ok(());
        }
        let slice = slice(if text == "*" { ":" } else { text }).ok_or_else(|| ParseError::Index(text.to_owned()))?;
        self.steps.push(Step::Slice(slice));
        Ok(())
    }

    fn filter(&mut self, rest: &'a str) -> Result<(), ParseError> {
        let end = end_of_filter(rest).ok_or(ParseError::UnclosedFilter)?;
        let text = &rest[..end];
        self.rest = rest[end + 1..].strip_prefix(']').ok_or(ParseError::UnclosedFilter)?;
        self.steps.push(match split_comparison(text) {
            None => Step::Exists(inner(text, self.depth)?),
            Some((left, operator, right)) => {
                let (left, right) = (inner(left, self.depth)?, inner(right, self.depth)?);
                Step::Compare(Comparison { left, operator: parse_operator(operator)?, right })
            }
        });
        Ok(())
    }
}

/// The place of the parenthesis that closes a filter: outside of the one quoted string that it may have.
fn end_of_filter(text: &str) -> Option<usize> {
    let mut opened: Option<char> = None;
    let mut is_closed = false;
    let mut before = '(';
    for (at, character) in text.char_indices() {
        match (character, opened) {
            ('\n', _) => return None,
            ('"' | '\'', None) => opened = Some(character),
            ('"' | '\'', Some(quote)) if character == quote && before != '\\' => is_closed = true,
            (')', _) if opened.is_some() == is_closed => return Some(at),
            _ => {}
        }
        before = character;
    }
    None
}

/// Left side, operator and right side; none of them is empty.
fn split_comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_sign = |character: char| matches!(character, '!' | '<' | '>' | '=');
    let start = text.find(is_sign).filter(|start| *start > 0)?;
    let (left, rest) = text.split_at(start);
    let signs = rest.find(|character| !is_sign(character)).unwrap_or(rest.len());
    // The right side has at least one character, if need be the last of the signs.
    let end = if signs == rest.len() { signs - 1 } else { signs };
    (end > 0).then(|| (left, &rest[..end], &rest[end..]))
}

fn parse_operator(text: &str) -> Result<Operator, ParseError> {
    Ok(match text {
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        _ => return Err(ParseError::Operator(text.to_owned())),
    })
}

/// Reads `1`, `1:3`, `-1:`, `0:6:2`.
fn slice(text: &str) -> Option<Slice> {
    let mut parts = text.split(':').map(|part| match part {
        "" => Some(None),
        // The parser of numbers takes more than digits.
        _ if part.trim_start_matches('-').chars().all(|digit| digit.is_ascii_digit()) => part.parse().ok().map(Some),
        _ => None,
    });
    let from = parts.next()??;
    let to = match parts.next() {
        None => End::Single,
        Some(to) => to?.map_or(End::Open, End::At),
    };
    let step = parts.next().unwrap_or(Some(None))?;
    parts.next().is_none().then_some(Slice { from, to, step })
}
