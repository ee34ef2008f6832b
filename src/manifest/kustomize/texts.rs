//! The files of a source that a build reads, as one range of offsets, so that a value of any of them is found again by one number.

use super::{BuildLimits, CODE, Files};
use crate::documents::{self, Document};
use crate::fault::{Fault, code, quoted, quoted_path};
use crate::lines::Lines;
use crate::node::{Entry, Node, Value as Plain};
use crate::{Problem, encoding, yaml};
use podstead_pod::{Position, Severity};
use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Field, Scalar, Tag, Tree, Value, tag_of};

/// Reads a document that begins at a byte and in a line.
type Load = fn(&str, usize, u32, &crate::Limits) -> Result<Node, Fault>;

/// One file.
#[derive(Debug)]
pub(super) struct Text {
    /// Name that people see.
    pub(super) name: String,
    /// Offset of its first byte.
    pub(super) base: u32,
    pub(super) bytes: Vec<u8>,
}

/// All files that were read.
pub(super) struct Texts<'f> {
    files: &'f dyn Files,
    limits: &'f BuildLimits,
    texts: Vec<Text>,
    by_path: BTreeMap<String, usize>,
    /// Paths that were asked for and are not there, which a later version may have.
    missing: BTreeSet<String>,
    next: u32,
}

/// A text inside of a file: the file itself, or a string of it that is read as a document of its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// At this offset.
    File(u32),
    /// A block scalar whose lines begin behind this many bytes of the lines from this offset on.
    Block { at: u32, indent: u32 },
    /// A string whose parts have no places of their own.
    String(u32),
}

impl<'f> Texts<'f> {
    pub(super) fn new(files: &'f dyn Files, limits: &'f BuildLimits) -> Self {
        Self { files, limits, texts: Vec::new(), by_path: BTreeMap::new(), missing: BTreeSet::new(), next: 1 }
    }

    /// Paths of all files that were read.
    pub(super) fn paths(&self) -> BTreeSet<String> {
        self.by_path.keys().cloned().collect()
    }

    /// Paths that were asked for in vain.
    pub(super) fn into_missing(self) -> BTreeSet<String> {
        self.missing
    }

    /// Index of the file at a path; `None` when there is none. `at` is the place that names it.
    pub(super) fn read(&mut self, path: &str, at: u32) -> Result<Option<usize>, Fault> {
        if let Some(index) = self.by_path.get(path) {
            return Ok(Some(*index));
        }
        let refused =
            |error: String| Fault::at(CODE, at, format!("{} cannot be read: {error}", quoted_path(&self.files.shown(path))));
        let Some(bytes) = self.files.read(path).map_err(refused)? else {
            self.missing.insert(path.to_owned());
            return Ok(None);
        };
        let too_much = |what: String| Fault::at(code::TOO_COMPLEX, at, what);
        if self.texts.len() >= self.limits.max_files {
            return Err(too_much(format!("the build reads more than {} files", self.limits.max_files)));
        }
        let next = u32::try_from(bytes.len()).ok().and_then(|length| self.next.checked_add(length)?.checked_add(1));
        let Some(next) = next.filter(|next| (*next as usize) <= self.limits.max_bytes) else {
            return Err(too_much(format!("the build reads more than {} bytes", self.limits.max_bytes)));
        };
        self.texts.push(Text { name: self.files.shown(path), base: self.next, bytes });
        self.next = next;
        self.by_path.insert(path.to_owned(), self.texts.len() - 1);
        Ok(Some(self.texts.len() - 1))
    }

    /// Name that people see for a directory.
    pub(super) fn shown(&self, directory: &str) -> String {
        match self.files.shown(directory) {
            root if root.is_empty() => ".".to_owned(),
            name => name,
        }
    }

    /// Reports whether there is a directory at a path.
    pub(super) fn is_directory(&self, path: &str) -> bool {
        self.files.is_directory(path)
    }

    pub(super) fn text(&self, index: usize) -> &Text {
        &self.texts[index]
    }

    fn holder(&self, at: u32) -> Option<&Text> {
        let index = self.texts.partition_point(|text| text.base <= at).checked_sub(1)?;
        self.texts.get(index).filter(|_| at > 0)
    }

    /// Positions of many offsets, with the index of their file.
    pub(super) fn places(&self, offsets: &[u32]) -> Vec<(usize, Position)> {
        let mut lines: BTreeMap<usize, Lines<'_>> = BTreeMap::new();
        let nowhere = Position { line: 1, column: 1 };
        let mut place = |at: u32| {
            let index = self.texts.partition_point(|text| text.base <= at).saturating_sub(1);
            let Some(text) = self.texts.get(index).filter(|_| at > 0) else { return (index, nowhere) };
            let lines = lines.entry(index).or_insert_with(|| Lines::new(&text.bytes));
            (index, lines.position(at - text.base))
        };
        offsets.iter().map(|at| place(*at)).collect()
    }

    pub(super) fn name(&self, index: usize) -> &str {
        self.texts.get(index).map_or("", |text| &text.name)
    }

    /// The problem that a fault is; `directory` stands for a file that is not known.
    pub(super) fn problem(&self, fault: Fault, severity: Severity, directory: &str) -> Problem {
        let place = fault.at.and_then(|at| Some((at - self.holder(at)?.base, self.holder(at)?)));
        let file = place.map_or(directory, |(_, text)| &text.name);
        let lines = Lines::new(place.map_or(&[], |(_, text)| &text.bytes));
        let fault = Fault { at: place.map(|(at, _)| at), ..fault };
        Problem { severity, ..fault.into_problem(file, &lines, None) }
    }

    /// The place of a string for [`Texts::documents`]: a literal block scalar keeps its lines.
    pub(super) fn place_of_string(&self, at: u32, length: usize) -> Place {
        // Each value of a block is found by counting its lines.
        const LONGEST_BLOCK: usize = 8 << 10;
        if length > LONGEST_BLOCK {
            return Place::String(at);
        }
        let Some(text) = self.holder(at) else { return Place::String(at) };
        let rest = &text.bytes[(at - text.base) as usize..];
        let Some(line) = rest.iter().position(|byte| *byte == b'\n').filter(|_| rest.starts_with(b"|")) else {
            return Place::String(at);
        };
        let body = &rest[line + 1..];
        let first = body.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
        let indent = first.iter().take_while(|byte| **byte == b' ').count() as u32;
        Place::Block { at: at + line as u32 + 1, indent }
    }

    /// The offset of a byte of a text.
    fn offset(&self, place: Place, text: &str, at: u32) -> u32 {
        match place {
            Place::File(base) => base + at,
            Place::String(at) => at,
            Place::Block { at: start, indent } => {
                let before = text.get(..at as usize).unwrap_or(text);
                let lines = before.bytes().filter(|byte| *byte == b'\n').count();
                let column = before.len() - before.rfind('\n').map_or(0, |line| line + 1);
                let Some(holder) = self.holder(start) else { return start };
                let body = &holder.bytes[(start - holder.base) as usize..];
                let skipped: usize = body.split_inclusive(|byte| *byte == b'\n').take(lines).map(<[u8]>::len).sum();
                start + skipped as u32 + indent + column as u32
            }
        }
    }

    /// The documents of a file as objects.
    pub(super) fn trees(&self, index: usize) -> Result<Vec<Tree>, Fault> {
        let text = &self.texts[index];
        self.documents(&text.bytes, Place::File(text.base))
    }

    /// The documents of a text as objects, read as kyaml reads them.
    pub(super) fn documents(&self, bytes: &[u8], place: Place) -> Result<Vec<Tree>, Fault> {
        let mut trees = Vec::new();
        let whole = std::str::from_utf8(bytes).unwrap_or_default();
        for (node, text, start) in self.nodes(bytes, place, yaml::load_kyaml)? {
            let annotations = annotations_of(&node);
            let reader = Reader { texts: self, place, whole, text, start };
            let mut tree = reader.tree(node)?;
            // Upstream writes annotations anew, without a style, before it prints an object.
            if let Some(known) = tree.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations")) {
                for (key, text) in annotations {
                    if let Some(Tree { value: Value::Scalar(scalar), .. }) = known.get_mut(&key) {
                        scalar.text = text;
                    }
                }
            }
            if !tree.is_null() {
                trees.push(tree);
            }
        }
        Ok(trees)
    }

    /// The documents of a text with their texts; offsets are those of the whole text.
    fn nodes<'t>(&self, bytes: &'t [u8], place: Place, read: Load) -> Result<Vec<(Node, &'t str, usize)>, Fault> {
        let limits = &self.limits.manifest;
        let whole = std::str::from_utf8(bytes).unwrap_or_default();
        let placed = |fault: Fault| Fault { at: Some(self.offset(place, whole, fault.at.unwrap_or_default())), ..fault };
        encoding::check_file(bytes, limits).map_err(placed)?;
        let documents = documents::cut(bytes, limits.max_documents);
        if documents.len() > limits.max_documents {
            let fault = Fault::at(code::TOO_COMPLEX, 0, format!("the file has more than {} documents", limits.max_documents));
            return Err(placed(fault));
        }
        let load = |document: &Document<'t>| {
            let text = encoding::check_document(document.bytes, document.start)?;
            documents::check_density(document, limits.max_nodes)?;
            let line = 1 + bytes[..document.start].iter().filter(|byte| **byte == b'\n').count() as u32;
            Ok((read(text, document.start, line, limits)?, text, document.start))
        };
        documents.iter().map(|document| load(document).map_err(placed)).collect()
    }

    /// The first document of a text with the semantics of sigs.k8s.io/yaml, as a kustomization and a JSON patch have them; further
    /// documents are not read, as upstream has it.
    pub(super) fn plain(&self, bytes: &[u8], place: Place) -> Result<Node, Fault> {
        let whole = std::str::from_utf8(bytes).unwrap_or_default();
        let mut nodes = self.nodes(bytes, place, yaml::load)?;
        let nothing = Node { at: None, value: Plain::Null };
        let node = if nodes.is_empty() { nothing } else { nodes.swap_remove(0).0 };
        Ok(self.moved(node, place, whole))
    }

    fn moved(&self, node: Node, place: Place, text: &str) -> Node {
        let at = |at: Option<u32>| at.map(|at| self.offset(place, text, at));
        let value = match node.value {
            Plain::List(items) => Plain::List(items.into_iter().map(|item| self.moved(item, place, text)).collect()),
            Plain::Map(entries) => {
                let moved = |entry: Entry| Entry {
                    key: entry.key,
                    key_at: at(entry.key_at),
                    value: self.moved(entry.value, place, text),
                    duplicate_of: entry.duplicate_of,
                };
                Plain::Map(entries.into_iter().map(moved).collect())
            }
            value @ (Plain::Null | Plain::Bool(_) | Plain::Number(_) | Plain::String(_) | Plain::Unsupported(_)) => value,
        };
        Node { at: at(node.at), value }
    }
}

/// Makes trees of the nodes of one document.
struct Reader<'r, 'f> {
    texts: &'r Texts<'f>,
    place: Place,
    whole: &'r str,
    /// The document, which begins at byte `start` of the whole.
    text: &'r str,
    start: usize,
}

impl Reader<'_, '_> {
    fn at(&self, at: Option<u32>) -> u32 {
        at.map_or(0, |at| self.texts.offset(self.place, self.whole, at))
    }

    /// The unquoted word at an offset, and what stands there.
    fn written(&self, at: Option<u32>) -> Option<(char, &str)> {
        let rest = self.text.get((at? as usize).checked_sub(self.start)?..)?;
        let end = rest.find(|end: char| end.is_ascii_whitespace() || matches!(end, ',' | ']' | '}')).unwrap_or(rest.len());
        Some((rest.chars().next()?, &rest[..end]))
    }

    /// Reports whether a key stands behind a brace or a comma.
    fn is_in_flow(&self, key_at: Option<u32>) -> bool {
        let before = key_at.and_then(|at| self.text.get(..(at as usize).checked_sub(self.start)?));
        before.is_some_and(|before| {
            let text = before.trim_end();
            // A comma at the end of a line may belong to a text.
            text.ends_with('{') || text.ends_with(',') && !before[text.len()..].contains('\n')
        })
    }

    fn tree(&self, node: Node) -> Result<Tree, Fault> {
        let at = self.at(node.at);
        let written = self.written(node.at);
        let unquoted = |value: String| {
            let text = written.map_or(value.clone(), |(_, word)| word.to_owned());
            // A key of JSON, or a word that was not found again, has the value that the parser gave.
            let text = if plain_matches(&text, &value) { text } else { value };
            Value::Scalar(Scalar::plain(text))
        };
        let value = match node.value {
            Plain::Null => {
                let text = written.map_or("", |(_, word)| word);
                let text = if matches!(text, "null" | "Null" | "NULL" | "~") { text } else { "" };
                Value::Scalar(Scalar::tagged(text, Tag::Null))
            }
            Plain::Bool(value) => unquoted(value.to_string()),
            Plain::Number(number) => unquoted(number.to_string()),
            Plain::String(text) => {
                let styled = written.is_none_or(|(first, _)| matches!(first, '"' | '\'' | '|' | '>' | '!' | '&'));
                let tag = if styled { Tag::String } else { tag_of(&text) };
                let is_folded = written.is_some_and(|(first, _)| first == '>') && super::emit::fits_a_block(&text);
                let text = if is_folded { super::folded::again(&text) } else { text };
                let tag = if matches!(tag, Tag::Time) { Tag::Time } else { Tag::String };
                Value::Scalar(Scalar { styled, ..Scalar::tagged(text, tag) })
            }
            Plain::List(items) => Value::List(items.into_iter().map(|item| self.tree(item)).collect::<Result<_, _>>()?),
            Plain::Map(entries) => Value::Map(entries.into_iter().map(|entry| self.field(entry)).collect::<Result<_, _>>()?),
            Plain::Unsupported(what) => return Err(Fault::at(code::UNSUPPORTED_YAML, at, format!("{what} is not supported"))),
        };
        Ok(Tree { at, value })
    }

    fn field(&self, entry: Entry) -> Result<Field, Fault> {
        let at = self.at(entry.key_at);
        if entry.duplicate_of.is_some() {
            return Err(Fault::at(code::DUPLICATE_KEY, at, format!("the key {} is repeated", quoted(&entry.key))));
        }
        let mut value = self.tree(entry.value)?;
        let is_in_flow = self.is_in_flow(entry.key_at);
        if let Value::Scalar(scalar) = &mut value.value
            && scalar.tag == Tag::Null
            && scalar.text.is_empty()
        {
            scalar.styled = is_in_flow;
        }
        Ok(Field { key: entry.key, at, value })
    }
}

/// The annotations of an object that have several lines, as they were read.
fn annotations_of(node: &Node) -> Vec<(String, String)> {
    let annotations = node.entry("metadata").and_then(|metadata| metadata.value.entry("annotations"));
    let Some(Plain::Map(entries)) = annotations.map(|annotations| &annotations.value.value) else { return Vec::new() };
    let text = |entry: &Entry| match &entry.value.value {
        Plain::String(text) if text.contains('\n') => Some((entry.key.clone(), text.clone())),
        _ => None,
    };
    entries.iter().filter_map(text).collect()
}

/// Reports whether a word means this value.
fn plain_matches(word: &str, value: &str) -> bool {
    match yaml::plain(word) {
        Plain::Bool(found) => found.to_string() == value,
        Plain::Number(found) => found.to_string() == value,
        Plain::Null | Plain::String(_) | Plain::List(_) | Plain::Map(_) | Plain::Unsupported(_) => false,
    }
}
