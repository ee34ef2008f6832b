//! The whole way from bytes to objects.

use super::documents::{self, Document};
use super::fault::{Fault, code, quoted};
use super::foreign::{Foreign, Ignored};
use super::kind::Kind;
use super::lines::Lines;
use super::node::{Node, Value};
use super::object::{self, Told};
use super::patch::{self, Patch, PatchFault, Patched};
use super::places::Places;
use super::schema::Extent;
use super::sealed::{self, Opened, Seals};
use super::{Decoded, DecodedObject, Limits, ObjectKey, PatchesByObject, Problem, Touch, encoding, foreign, schema, yaml};
use crate::sops::{self, Opening, Unopened};
use podstead_pod::{DEFAULT_NAMESPACE, Origin, Position, Severity};
use std::collections::HashMap;
use std::sync::Arc;

/// Reads all objects of one file; `file` is its name in problems and origins. Never fails as a whole: what cannot be read is
/// in `problems` and `broken`. Takes time and memory in proportion to the size of `bytes`.
pub fn decode(file: &str, bytes: &[u8], limits: &Limits) -> Decoded {
    decode_sealed(file, bytes, limits, &Opening::default())
}

/// As [`decode`], and opens what SOPS has encrypted.
pub fn decode_sealed(file: &str, bytes: &[u8], limits: &Limits, opening: &Opening) -> Decoded {
    decode_patched(file, bytes, limits, opening, &PatchesByObject::new())
}

/// As [`decode_sealed`], and applies `patches` to the objects that they are for. Costs in proportion to the size of these, too.
pub fn decode_patched(file: &str, bytes: &[u8], limits: &Limits, opening: &Opening, patches: &PatchesByObject) -> Decoded {
    decode_in(DEFAULT_NAMESPACE, file, bytes, limits, opening, patches)
}

/// As [`decode_patched`]; objects that are written without a namespace are in `namespace`.
pub fn decode_in(
    namespace: &str,
    file: &str,
    bytes: &[u8],
    limits: &Limits,
    opening: &Opening,
    patches: &PatchesByObject,
) -> Decoded {
    let mut objects = Vec::new();
    let decoded = decode_each(namespace, file, bytes, limits, opening, patches, &mut |object| objects.push(object));
    Decoded { objects, ..decoded }
}

/// As [`decode_in`], but hands each object on as soon as it is read, in file order, and returns none: of a file with many objects, one at a time is
/// in memory.
pub fn decode_each(
    namespace: &str,
    file: &str,
    bytes: &[u8],
    limits: &Limits,
    opening: &Opening,
    patches: &PatchesByObject,
    take: &mut dyn FnMut(DecodedObject),
) -> Decoded {
    if let Err(fault) = encoding::check_file(bytes, limits) {
        let problem = fault.into_problem(file, &Lines::new(&[]), None);
        return Decoded { problems: vec![problem], broken: vec![None], ..Decoded::default() };
    }
    let lines = Lines::new(bytes);
    let mut reader = Reader {
        file,
        namespace,
        lines: &lines,
        limits,
        patches,
        seals: Seals::new(opening),
        unopened: opening.unopened,
        decoded: Decoded::default(),
        take,
        seen: HashMap::new(),
        untold: 0,
        unreadable: false,
    };
    let documents = documents::cut(bytes, limits.max_documents);
    if sealed::may_be_in(bytes) {
        for document in documents.iter().take(limits.max_documents) {
            // What is wrong with it is told below.
            if let Ok((node, _)) = reader.load(document) {
                reader.seals.look(node);
            }
        }
    }
    for document in documents.iter().take(limits.max_documents) {
        if let Err(fault) = reader.document(document) {
            reader.unreadable(fault);
        }
    }
    if let Some(document) = documents.get(limits.max_documents) {
        let message = format!("the file has more than {} documents", limits.max_documents);
        let fault = Fault::at(code::TOO_COMPLEX, document.start as u32, message);
        reader.unreadable(fault.hint("split it into several files; the documents from here on were not read"));
    }
    reader.finish()
}

/// An identity that a file has.
struct Met {
    /// Its first position.
    position: Position,
    /// An object with it was handed on.
    is_good: bool,
}

/// Collects what a file holds.
struct Reader<'a> {
    file: &'a str,
    /// Of objects that are written without one.
    namespace: &'a str,
    lines: &'a Lines<'a>,
    limits: &'a Limits,
    seals: Seals<'a>,
    unopened: Unopened,
    patches: &'a PatchesByObject,
    /// Findings beside the objects.
    decoded: Decoded,
    /// Receiver of the objects.
    take: &'a mut dyn FnMut(DecodedObject),
    /// Every identity met, good or broken.
    seen: HashMap<ObjectKey, Met>,
    /// Problems above the limit.
    untold: usize,
    /// `broken` has its `None`: once is enough.
    unreadable: bool,
}

impl<'a> Reader<'a> {
    /// A document, and where it begins.
    fn load(&self, document: &Document<'_>) -> Result<(Node, u32), Fault> {
        let text = encoding::check_document(document.bytes, document.start)?;
        documents::check_density(document, self.limits.max_nodes)?;
        let node = yaml::load(text, document.start, self.lines.position(document.start as u32).line, self.limits)?;
        let leading_blanks = text.len() - text.trim_start().len();
        let at = node.at.unwrap_or((document.start + leading_blanks) as u32);
        Ok((node, at))
    }

    fn document(&mut self, document: &Document<'_>) -> Result<(), Fault> {
        let (mut node, at) = self.load(document)?;
        // Encrypted or not, it is not used.
        if let Some(foreign) = foreign::foreign(&node) {
            self.foreign(foreign, &node, "", at);
            return Ok(());
        }
        let is_beside_secrets = sealed::holds_sealed_beside_secrets(&mut node);
        match (self.seals.open(&mut node, at), self.unopened) {
            (Ok(Opened::Plain), _) => {}
            (Ok(Opened::Open), _) if is_beside_secrets => {
                let fault = Fault::at(
                    code::SOPS,
                    at,
                    "encrypted values of this object are stored unencrypted on this host's disk and shown in its API",
                );
                self.note(fault.hint("use a Secret: its data is encrypted on disk and not shown"), &node);
            }
            (Ok(Opened::Open), _) => {}
            (Ok(Opened::Closed(fault)), Unopened::Noted) => {
                let is_told = sealed::conceal(&mut node);
                let what = if is_told { "only its unencrypted values were checked" } else { "it was not checked" };
                self.note(Fault { message: format!("{}: {what}", fault.message), hint: None, ..fault }, &node);
                if !is_told {
                    return Ok(());
                }
            }
            (Ok(Opened::Closed(fault)), Unopened::Refused) => {
                self.refuse_sealed(&node, vec![fault]);
                return Ok(());
            }
            (Err(faults), _) => {
                self.refuse_sealed(&node, faults);
                return Ok(());
            }
        }
        if node.value == Value::Null {
            return Ok(());
        }
        let (told, faults) = object::tell(&node, at, None);
        match told {
            Some(Told::Object(kind)) => self.object(node, kind, "", at, faults),
            Some(Told::Patch) => self.patch(&node, "", at, faults),
            Some(Told::List { of }) => {
                self.all_unreadable(faults);
                self.list(node, at, of);
            }
            Some(Told::Foreign(foreign)) => self.foreign(foreign, &node, "", at),
            None => self.all_unreadable(faults),
        }
        Ok(())
    }

    /// Returns the object key of a document, unless it is a list or its names are encrypted.
    fn key_of(&self, node: &Node) -> Option<ObjectKey> {
        let key = match object::tell(node, 0, None).0? {
            Told::Object(kind) => object::key_of(node, kind, self.namespace)?,
            Told::List { .. } | Told::Patch | Told::Foreign(_) => return None,
        };
        (!sops::is_sealed(&key.name) && !sops::is_sealed(&key.namespace)).then_some(key)
    }

    /// An encrypted document that cannot be used.
    fn refuse_sealed(&mut self, node: &Node, faults: Vec<Fault>) {
        let key = self.key_of(node);
        for fault in faults {
            self.tell(fault, key.as_ref());
        }
        match key {
            Some(key) => self.decoded.broken.push(Some(key)),
            None => self.identity_unknown(),
        }
    }

    /// Reports a warning.
    fn note(&mut self, fault: Fault, node: &Node) {
        let known = self.decoded.problems.len();
        self.tell(fault, self.key_of(node).as_ref());
        self.decoded.problems[known..].iter_mut().for_each(|problem| problem.severity = Severity::Warning);
    }

    fn list(&mut self, list: Node, at: u32, of: Option<Kind>) {
        let (items, items_at) = object::into_items(list);
        for (index, item) in items.into_iter().enumerate() {
            let prefix = format!("items[{index}]");
            let item_at = item.at.or(items_at).unwrap_or(at);
            let (told, faults) = object::tell(&item, item_at, of);
            let mut faults: Vec<Fault> = faults.into_iter().map(|fault| prefixed(fault, &prefix)).collect();
            match told {
                Some(Told::Object(kind)) => {
                    self.object(item, kind, &prefix, item_at, faults);
                    continue;
                }
                Some(Told::Patch) => {
                    self.patch(&item, &prefix, item_at, faults);
                    continue;
                }
                Some(Told::Foreign(foreign)) => {
                    self.foreign(foreign, &item, &prefix, item_at);
                    continue;
                }
                Some(Told::List { .. }) => {
                    let fault = Fault::at(code::UNSUPPORTED_KIND, item_at, "a list cannot be an item of a list").field(prefix);
                    faults = vec![fault.hint("put its items into the outer list")];
                }
                None => {}
            }
            self.all_unreadable(faults);
        }
    }

    /// Counts or refuses objects that are not read. They are no part of the content of the file.
    fn foreign(&mut self, foreign: Foreign, node: &Node, prefix: &str, at: u32) {
        let kind_at = node.entry("kind").and_then(|entry| entry.value.at.or(entry.key_at)).unwrap_or(at);
        if let Some((message, hint)) = foreign.refusal() {
            let fault = Fault::at(code::UNSUPPORTED_KIND, kind_at, message).field("kind").hint(hint);
            self.tell(if prefix.is_empty() { fault } else { prefixed(fault, prefix) }, None);
            return;
        }
        let first = Origin { file: self.file.into(), position: self.lines.position(kind_at) };
        let Some(ignored) = Ignored::of(foreign, first) else { return };
        if self.decoded.ignored.iter_mut().any(|known| known.absorbs(&ignored)) {
            return;
        }
        if self.decoded.ignored.len() < self.limits.max_problems {
            self.decoded.ignored.push(ignored);
        } else {
            self.untold += 1;
        }
    }

    /// Reads one object, with the problems that are known already.
    fn object(&mut self, node: Node, kind: Kind, prefix: &str, at: u32, mut faults: Vec<Fault>) {
        let key = object::key_of(&node, kind, self.namespace);
        let position = self.lines.position(at);
        let checked =
            schema::check(&node, kind.structure, Extent::Whole, prefix, at, Places::Text(self.lines), self.limits.max_problems);
        // The walk tells a wrong type of apiVersion and kind as well.
        faults.retain(|fault| fault.code != code::WRONG_TYPE);
        faults.extend(object::required_faults(&node, kind, prefix, at));
        faults.extend(checked.faults);
        if let Some(key) = &key {
            match self.seen.get(key) {
                Some(first) => faults.push(self.duplicate(key, first.position, prefix, at)),
                None => {
                    self.seen.insert(key.clone(), Met { position, is_good: false });
                }
            }
        }
        if faults.is_empty() {
            let origin = Origin { file: self.file.into(), position };
            let patches = key.as_ref().map_or_else(Vec::new, |key| Self::patches_of(self.patches, key, &node));
            let typed = match (&key, patches.is_empty()) {
                (Some(key), false) => return self.patched(node, kind, prefix, at, key, origin, &patches),
                (key, _) => key.clone().zip(kind.typed(node).ok()),
            };
            match typed {
                Some((key, mut object)) => {
                    object.place_in(self.namespace);
                    let positions = checked.positions.build(position, prefix);
                    self.give(DecodedObject { key, object, origin, positions, patched_by: Vec::new() });
                    return;
                }
                None => faults.push(Fault::at(code::INVALID_VALUE, at, format!("cannot decode this {}", kind.name)).field(prefix)),
            }
        }
        self.refuse(faults, key);
    }

    /// Reports the problems of a refused object.
    fn refuse(&mut self, mut faults: Vec<Fault>, key: Option<ObjectKey>) {
        faults.sort_by_key(|fault| fault.at);
        for fault in faults {
            self.tell(fault, key.as_ref());
        }
        match key {
            Some(key) => self.decoded.broken.push(Some(key)),
            None => self.identity_unknown(),
        }
    }

    /// The patches that are for an object with these labels.
    fn patches_of(patches: &'a PatchesByObject, key: &ObjectKey, node: &Node) -> Vec<&'a Patch> {
        let Some(patches) = patches.get(key) else { return Vec::new() };
        let labels = object::labels_of(node);
        patches.iter().map(|patch| &**patch).filter(|patch| patch.target().selects_labels(Some(&labels))).collect()
    }

    /// Applies patches to an object without problems.
    #[expect(clippy::too_many_arguments, reason = "everything that is known of the object")]
    fn patched(&mut self, node: Node, kind: Kind, prefix: &str, at: u32, key: &ObjectKey, origin: Origin, patches: &[&Patch]) {
        let touch = |patch: &&Patch| Touch { patch: patch.origin().clone(), object: key.clone() };
        let touched: Vec<Touch> = patches.iter().map(touch).collect();
        let outcome = patch::apply(node, at, kind, patches, Places::Text(self.lines), self.limits);
        self.decoded.touched.extend(touched);
        let Patched { node, table, at } = match outcome {
            Ok(patched) => patched,
            Err(faults) => {
                for PatchFault { patch, mut fault, position } in faults {
                    let ObjectKey { kind, namespace, name } = key;
                    fault.message = format!("{}, in {kind} {namespace}/{name} of {origin}", fault.message);
                    let problem = fault.into_problem(&patches[patch].origin().file, self.lines, Some(key));
                    self.push(Problem { position: Some(position), ..problem });
                }
                self.decoded.broken.push(Some(key.clone()));
                return;
            }
        };
        let Some(node) = node else {
            self.decoded.removed.push(key.clone());
            return;
        };
        let checked = schema::check(&node, kind.structure, Extent::Whole, "", at, Places::Table(&table), self.limits.max_problems);
        match kind.typed(node) {
            Ok(mut object) => {
                object.place_in(self.namespace);
                let positions = checked.positions.build(origin.position, prefix);
                let patched_by = patches.iter().map(|patch| patch.origin().clone()).collect();
                self.give(DecodedObject { key: key.clone(), object, origin, positions, patched_by });
            }
            // The walk found nothing wrong.
            Err(_) => {
                let message = format!("cannot decode this {} after patching", kind.name);
                self.tell(Fault::at(code::INVALID_VALUE, at, message).field(prefix), Some(key));
                self.decoded.broken.push(Some(key.clone()));
            }
        }
    }

    /// A document that changes objects.
    fn patch(&mut self, node: &Node, prefix: &str, at: u32, mut faults: Vec<Fault>) {
        let places = Places::Text(self.lines);
        let mut reading = patch::read(node, prefix, at, places, self.limits);
        let (key, target, position) = (reading.key.clone(), reading.target.clone(), self.lines.position(at));
        if let Some(key) = &key {
            match self.seen.get(key) {
                Some(first) => faults.push(self.duplicate(key, first.position, prefix, at)),
                None => {
                    self.seen.insert(key.clone(), Met { position, is_good: false });
                }
            }
        }
        reading.faults.extend(faults);
        let faults = reading.faults.clone();
        match reading.into_patch(Origin { file: self.file.into(), position }, places) {
            Some(patch) => self.decoded.patches.push(Arc::new(patch)),
            None => {
                // What it was for can be told: the other objects of the host are safe from it.
                match target {
                    Some(target) => self.decoded.broken_patches.push(target),
                    None => self.identity_unknown(),
                }
                let mut faults = faults;
                faults.sort_by_key(|fault| fault.at);
                for fault in faults {
                    self.tell(fault, key.as_ref());
                }
            }
        }
    }

    fn duplicate(&self, key: &ObjectKey, first: Position, prefix: &str, at: u32) -> Fault {
        let ObjectKey { kind, namespace, name } = key;
        let message =
            format!("duplicate {kind} {} in namespace {namespace}; the first one is in line {}", quoted(name), first.line);
        let field = if prefix.is_empty() { "metadata.name".to_owned() } else { format!("{prefix}.metadata.name") };
        Fault::at(code::DUPLICATE_NAME, at, message).field(field).hint("rename or remove one of the two")
    }

    /// A part of the file that gives no object that could be named.
    fn unreadable(&mut self, fault: Fault) {
        self.tell(fault, None);
        self.identity_unknown();
    }

    fn all_unreadable(&mut self, faults: Vec<Fault>) {
        for fault in faults {
            self.unreadable(fault);
        }
    }

    fn identity_unknown(&mut self) {
        if !self.unreadable {
            self.unreadable = true;
            self.decoded.broken.push(None);
        }
    }

    fn tell(&mut self, fault: Fault, key: Option<&ObjectKey>) {
        self.push(fault.into_problem(self.file, self.lines, key));
    }

    fn push(&mut self, problem: Problem) {
        if self.decoded.problems.len() < self.limits.max_problems {
            self.decoded.problems.push(problem);
        } else {
            self.untold += 1;
        }
    }

    /// Hands a good object on.
    fn give(&mut self, object: DecodedObject) {
        if let Some(met) = self.seen.get_mut(&object.key) {
            met.is_good = true;
        }
        (self.take)(object);
    }

    fn finish(mut self) -> Decoded {
        if self.untold > 0 {
            let fault = Fault::of_file(code::TOO_MANY_PROBLEMS, format!("{} more problems are not shown", self.untold));
            self.decoded.problems.push(fault.into_problem(self.file, self.lines, None));
        }
        let is_good = |key: &ObjectKey| self.seen.get(key).is_some_and(|met| met.is_good);
        self.decoded.broken.retain(|key| key.as_ref().is_none_or(|key| !is_good(key)));
        self.decoded
    }
}

fn prefixed(mut fault: Fault, prefix: &str) -> Fault {
    fault.field = if fault.field.is_empty() { prefix.to_owned() } else { format!("{prefix}.{}", fault.field) };
    fault
}
