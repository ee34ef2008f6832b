//! Position of the scalar that the parser has just returned.
//!
//! serde gives values without places. A string without escapes is borrowed and so points into the text. Anything else (numbers,
//! booleans, strings with escapes) stands behind the last scalar that was found, with only separators in between, so walking
//! over those finds it; the text found must mean the value given, else the place stays unknown and the parent's is used. What an alias stands
//! for comes again without a place.

use std::collections::{HashMap, HashSet};

use super::anchors::name_at;
use super::scalar;
use crate::node::Value;

/// Walks through the text of one document in step with the parser.
#[derive(Debug)]
pub(super) struct Place<'a> {
    text: &'a str,
    /// Behind the last scalar that was found.
    next: usize,
    has_aliases: bool,
    /// Lists and mappings inside of each other that come again by an alias, and have no place.
    replayed: u32,
    has_tags: bool,
    /// The next scalar is the key of an entry.
    is_key: bool,
    /// The tags that were found, by the place of their scalar: an alias gives the scalar again.
    tags: HashMap<usize, &'a str>,
}

/// A string that points into the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Borrowed<'a> {
    /// Offset of its first character or quote.
    pub(super) at: Option<usize>,
    /// It is quoted.
    pub(super) quoted: bool,
    /// The `!!tag` before it.
    pub(super) tag: Option<&'a str>,
}

impl<'a> Place<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let begins_word = |sign: char| {
            let before =
                |at: usize| text.as_bytes()[..at].last().is_none_or(|byte| matches!(byte, b' ' | b'\n' | b'[' | b',' | b'{'));
            let behind = |at: usize| text.as_bytes().get(at + 1).is_some_and(|byte| !byte.is_ascii_whitespace());
            text.match_indices(sign).any(|(at, _)| before(at) && behind(at))
        };
        Self {
            text,
            next: 0,
            has_aliases: has_aliases(text),
            replayed: 0,
            has_tags: begins_word('!'),
            is_key: false,
            tags: HashMap::new(),
        }
    }

    /// Notes whether the next scalar is the key of an entry.
    pub(super) fn expect_key(&mut self, is_key: bool) {
        self.is_key = is_key;
    }

    /// The place of a string that the parser borrowed.
    pub(super) fn borrowed(&mut self, value: &str) -> Borrowed<'a> {
        let Some(begin) = (value.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize).filter(|at| *at <= self.text.len())
        else {
            return Borrowed { at: None, quoted: true, tag: None };
        };
        self.pass_alias();
        let end = begin + value.len();
        let bytes = self.text.as_bytes();
        let before = begin.checked_sub(1).map(|at| bytes[at]);
        let quoted = matches!(before, Some(b'"' | b'\'')) && before == bytes.get(end).copied();
        let at = if quoted { begin - 1 } else { begin };
        let tag = if self.has_tags { self.tag_before(at) } else { None };
        self.next = self.next.max(end + usize::from(quoted));
        Borrowed { at: Some(at), quoted, tag }
    }

    /// The place of a number, boolean or null.
    pub(super) fn unquoted(&mut self, value: &Value) -> Option<usize> {
        if self.replayed > 0 || self.pass_alias() {
            return None;
        }
        let begin = self.skip_separators()?;
        let word = self.word_at(begin)?;
        // An empty value and `~` are the same to the parser.
        if word.is_empty() || scalar::plain(word) != *value {
            return None;
        }
        self.next = begin + word.len();
        Some(begin)
    }

    /// The text of the number that stands next, if it names its base, as `0x1F` does.
    pub(super) fn number_with_base(&self) -> Option<&'a str> {
        if self.replayed > 0 {
            return None;
        }
        let word = self.word_at(self.behind_separators())?;
        let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
        matches!(unsigned.as_bytes(), [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B', ..]).then_some(word)
    }

    /// The beginning of what stands there, up to a blank or the end of a list or mapping.
    fn word_at(&self, begin: usize) -> Option<&'a str> {
        const LONGEST: usize = 80;
        let bytes = self.text.as_bytes().get(begin..)?.iter().take(LONGEST);
        let length = bytes.take_while(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b',' | b']' | b'}')).count();
        self.text.get(begin..begin + length)
    }

    /// The place and the tag of a string that the parser could not borrow: with escapes, of several lines, or a block.
    pub(super) fn owned(&mut self, value: &str) -> Option<(usize, Option<&'a str>)> {
        if self.replayed > 0 || self.pass_alias() {
            return None;
        }
        let from = self.next;
        let begin = self.skip_separators()?;
        let rest = &self.text.as_bytes()[begin..];
        let length = match rest.first()? {
            b'"' => quoted_length(rest, b'\\'),
            b'\'' => quoted_length(rest, b'\''),
            b'|' | b'>' => self.block_length(begin),
            first if value.as_bytes().first() == Some(first) => folded_length(rest, value).unwrap_or_else(|| line_length(rest)),
            _ => return None,
        };
        self.next = begin + length;
        let tag = if self.has_tags { self.tag_in(&self.text[from..begin]) } else { None };
        Some((begin, tag))
    }

    /// The tag of the borrowed string at that byte, which has not been passed yet, or was passed before and comes again by an alias.
    fn tag_before(&mut self, at: usize) -> Option<&'a str> {
        if at < self.next {
            return self.tags.get(&at).copied();
        }
        let tag = self.tag_in(&self.text[self.next..at])?;
        self.tags.insert(at, tag);
        Some(tag)
    }

    /// The tag of the next scalar in what stands before it. One in a line before a key is that of the mapping, or the end of a string.
    fn tag_in(&self, between: &'a str) -> Option<&'a str> {
        let begin = if self.is_key { between.rfind('\n').map_or(0, |at| at + 1) } else { 0 };
        properties(&between[begin..])
    }

    /// Offset up to which the text was read.
    pub(super) fn reached(&self) -> usize {
        self.next
    }

    /// A quote stands at that byte.
    pub(super) fn is_quote(&self, at: usize) -> bool {
        matches!(self.text.as_bytes().get(at), Some(b'"' | b'\''))
    }

    /// Moves to the next byte that belongs to a scalar (or to an alias). Never goes back, so that all calls together are linear.
    fn skip_separators(&mut self) -> Option<usize> {
        self.next = self.behind_separators();
        (self.next < self.text.len()).then_some(self.next)
    }

    /// The next byte that belongs to a scalar or an alias.
    fn behind_separators(&self) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = self.next;
        while let Some(byte) = bytes.get(at) {
            let blank_follows = bytes.get(at + 1).is_none_or(u8::is_ascii_whitespace);
            at += match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b',' | b'[' | b']' | b'{' | b'}' | b':' => 1,
                b'-' | b'?' if blank_follows => 1,
                b'#' => line_length(&bytes[at..]),
                b'&' | b'!' => bytes[at..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count(),
                _ => return at,
            };
        }
        at
    }

    /// The end of the alias that stands next.
    fn alias(&self) -> Option<usize> {
        if !self.has_aliases || self.replayed > 0 {
            return None;
        }
        let at = self.behind_separators();
        let is_alias = self.text.as_bytes().get(at) == Some(&b'*');
        if is_alias { name_at(self.text, at).map(|name| at + 1 + name.len()) } else { None }
    }

    /// Moves behind an alias for a scalar, if one stands next.
    fn pass_alias(&mut self) -> bool {
        let end = self.alias();
        self.next = end.unwrap_or(self.next);
        end.is_some()
    }

    /// Notes that a list or a mapping begins, which may come again by an alias.
    pub(super) fn begin_collection(&mut self) {
        if self.replayed > 0 || self.alias().is_some() {
            self.replayed += 1;
        }
    }

    /// Notes that a list or a mapping has ended.
    pub(super) fn end_collection(&mut self) {
        if let Some(left) = self.replayed.checked_sub(1) {
            self.replayed = left;
            self.pass_alias();
        }
    }

    /// A block scalar is its header and all lines that are indented deeper than the line it stands on.
    fn block_length(&self, begin: usize) -> usize {
        let line_begin = self.text[..begin].rfind('\n').map_or(0, |at| at + 1);
        let parent = indentation(&self.text[line_begin..]);
        let mut end = begin + line_length(&self.text.as_bytes()[begin..]);
        while let Some(line) = self.text.get(end + 1..).filter(|rest| !rest.is_empty()) {
            let length = line_length(line.as_bytes());
            if !line[..length].trim().is_empty() && indentation(line) <= parent {
                break;
            }
            end += 1 + length;
        }
        end - begin
    }
}

/// Reports whether a word may be an alias: an anchor of its name is defined.
fn has_aliases(text: &str) -> bool {
    let names = |sign: char| text.match_indices(sign).filter_map(|(at, _)| name_at(text, at));
    let anchors: HashSet<&str> = names('&').collect();
    !anchors.is_empty() && names('*').any(|name| anchors.contains(name))
}

/// The tag at the end of what stands between two scalars. Comments and scalars that were not recognised in between have none.
fn properties(between: &str) -> Option<&str> {
    let bytes = between.as_bytes();
    let (mut at, mut tag) = (0, None);
    while let Some(byte) = bytes.get(at) {
        let begins_word = at.checked_sub(1).is_none_or(|before| bytes[before].is_ascii_whitespace());
        let rest = &bytes[at..];
        at += match byte {
            byte if byte.is_ascii_whitespace() => 1,
            b',' | b'[' | b']' | b'{' | b'}' | b':' => {
                tag = None;
                1
            }
            b'#' if begins_word => line_length(rest),
            b'"' => quoted_length(rest, b'\\'),
            b'\'' => quoted_length(rest, b'\''),
            b'&' => word_length(rest),
            b'!' => {
                let length = word_length(rest);
                // A tag in full may contain a comma, and means nothing to podstead.
                tag = (!rest.starts_with(b"!<")).then(|| &between[at..at + length]);
                length
            }
            _ => {
                tag = None;
                word_length(rest)
            }
        };
    }
    tag
}

/// The length of an unquoted string of several lines, whose words stand in the text with other blanks between them.
fn folded_length(rest: &[u8], value: &str) -> Option<usize> {
    let mut at = 0;
    for word in value.split_ascii_whitespace() {
        at += rest[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        at += rest[at..].starts_with(word.as_bytes()).then_some(word.len())?;
    }
    Some(at)
}

fn indentation(line: &str) -> usize {
    line.bytes().take_while(|byte| *byte == b' ').count()
}

/// Up to a blank or a sign of a list or mapping; at least one byte.
fn word_length(rest: &[u8]) -> usize {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'[' | b']' | b'{' | b'}');
    rest.iter().position(ends).unwrap_or(rest.len()).max(1)
}

/// Up to the line break.
fn line_length(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

/// Up to and with the closing quote; `escape` takes the byte behind it along.
fn quoted_length(rest: &[u8], escape: u8) -> usize {
    let quote = rest[0];
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match *byte {
            byte if byte == escape && (escape != quote || rest.get(at + 1) == Some(&quote)) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}
