//! What one file gives.

use super::{Judge, KeptFile};
use crate::manifest::{ObjectKey, Problem, Severity};
use crate::source::FileContent;
use crate::store::check::{Accepted, Checked};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Whether the file says all that it says.
#[derive(Clone, Debug, PartialEq)]
enum Clarity {
    /// Every object in it can be told by its key.
    Clear,
    /// It cannot be read, or something in it cannot be told: any object may be meant.
    Unclear,
}

/// What one file gives: what is good in it, and what is kept because it is not.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// The content that was judged; `None` when it is known from disk only.
    content: Option<FileContent>,
    objects: Vec<Accepted>,
    /// How many of them are good in `content`.
    good: usize,
    problems: Vec<Problem>,
    /// Keys of objects in it that are refused.
    broken: BTreeSet<ObjectKey>,
    clarity: Clarity,
    /// See [`KeptFile::layer`].
    layer: usize,
}

impl Share {
    /// As it was accepted before a restart.
    pub(super) fn restored(file: KeptFile) -> Self {
        let clarity = if file.unclear { Clarity::Unclear } else { Clarity::Clear };
        Self {
            content: None,
            objects: file.objects,
            good: 0,
            problems: Vec::new(),
            broken: BTreeSet::new(),
            clarity,
            layer: file.layer,
        }
    }

    /// The share of the file with this content, after `before`.
    pub(super) fn next(
        before: Option<&Arc<Share>>,
        name: &str,
        layer: usize,
        content: &FileContent,
        judge: Judge<'_>,
    ) -> Arc<Self> {
        if let Some(before) = before.filter(|before| before.was_judged_on(content) && before.layer == layer) {
            return before.clone();
        }
        let kept = before.map_or(&[][..], |before| &before.objects);
        let judged = match content {
            Ok(bytes) if is_blank(bytes) && !kept.is_empty() => unclear("empty-file", name, "the file is empty", EMPTY_HINT),
            Ok(bytes) => judge(name, bytes),
            Err(reason) => unclear("unreadable-file", name, reason, UNREADABLE_HINT),
        };
        Arc::new(Self { layer, ..Self::judged(content.clone(), judged, kept) })
    }

    fn judged(content: FileContent, judged: Checked, kept: &[Accepted]) -> Self {
        let Checked { accepted: mut objects, problems, broken } = judged;
        let clarity = if broken.contains(&None) { Clarity::Unclear } else { Clarity::Clear };
        let broken: BTreeSet<ObjectKey> = broken.into_iter().flatten().collect();
        let good: BTreeSet<ObjectKey> = objects.iter().map(|object| object.key.clone()).collect();
        let stays =
            |object: &&Accepted| !good.contains(&object.key) && (clarity == Clarity::Unclear || broken.contains(&object.key));
        objects.extend(kept.iter().filter(stays).cloned());
        Self { content: Some(content), objects, good: good.len(), problems, broken, clarity, layer: 0 }
    }

    fn was_judged_on(&self, content: &FileContent) -> bool {
        match (&self.content, content) {
            (Some(Ok(before)), Ok(now)) => Arc::ptr_eq(before, now) || before == now,
            (Some(Err(before)), Err(now)) => before == now,
            (None, _) | (Some(Ok(_)), Err(_)) | (Some(Err(_)), Ok(_)) => false,
        }
    }

    /// The same content of the file will be judged again.
    pub(super) fn forget_judgement(&mut self) {
        self.content = None;
    }

    /// What is kept of it on disk.
    pub(super) fn kept(&self) -> KeptFile {
        KeptFile { objects: self.objects.clone(), unclear: self.is_unclear(), layer: self.layer }
    }

    /// See [`KeptFile::layer`].
    pub(super) fn layer(&self) -> usize {
        self.layer
    }

    /// What it gives, good objects first.
    pub(super) fn objects(&self) -> &[Accepted] {
        &self.objects
    }

    /// Takes objects out, as if they had never been accepted.
    pub(super) fn take_out(&mut self, is_refused: &dyn Fn(&Accepted) -> bool) -> Vec<Accepted> {
        self.good = self.objects.iter().take(self.good).filter(|object| !is_refused(object)).count();
        let (refused, stays) = std::mem::take(&mut self.objects).into_iter().partition(|object| is_refused(object));
        self.objects = stays;
        refused
    }

    /// Whether anything that it gives is read from the file as it is now.
    pub(super) fn gives_anew(&self) -> bool {
        self.good > 0
    }

    pub(super) fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Whether it holds this object, refused.
    pub(super) fn names_broken(&self, key: &ObjectKey) -> bool {
        self.broken.contains(key)
    }

    pub(super) fn is_unclear(&self) -> bool {
        match self.clarity {
            Clarity::Clear => false,
            Clarity::Unclear => true,
        }
    }

    /// Keeps an object that another file gave before, as part of this file, whose name is `name`.
    pub(super) fn adopt(&mut self, name: &str, object: Accepted) {
        let ObjectKey { kind, namespace, name: object_name } = &object.key;
        self.problems.push(Problem {
            severity: Severity::Warning,
            code: "kept-object".to_owned(),
            file: name.to_owned(),
            position: None,
            field: String::new(),
            message: format!(
                "{kind} {namespace}/{object_name} is gone from {} and may have moved here: it stays",
                object.origin.file
            ),
            hint: Some("mend this file, or remove it".to_owned()),
            object: Some(object.key.clone()),
        });
        self.objects.push(object);
    }
}

impl Share {
    /// Takes the change of an immutable object back: `fixed` is what it was.
    pub(super) fn keep_immutable(&mut self, fixed: Accepted) {
        let Some(object) = self.objects.iter_mut().find(|object| object.key == fixed.key) else { return };
        let ObjectKey { kind, namespace, name } = &object.key;
        self.problems.push(Problem {
            severity: Severity::Error,
            code: "immutable-object".to_owned(),
            file: object.origin.file.clone(),
            position: Some(object.origin.position),
            field: String::new(),
            message: format!("{kind} {namespace}/{name} is immutable and its data differ: the earlier version stays"),
            hint: Some("give the new version another name".to_owned()),
            object: Some(object.key.clone()),
        });
        object.object = fixed.object;
    }
}

const EMPTY_HINT: &str = "what it held stays; remove the file, or leave a comment in it, to remove its pods";
const UNREADABLE_HINT: &str = "what it held stays until it can be read or is removed";

/// Nothing at all: what a truncated file, or one that a power cut emptied, looks like.
fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

fn unclear(code: &str, file: &str, message: &str, hint: &str) -> Checked {
    let problem = Problem {
        severity: Severity::Error,
        code: code.to_owned(),
        file: file.to_owned(),
        position: None,
        field: String::new(),
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        object: None,
    };
    Checked { accepted: Vec::new(), problems: vec![problem], broken: vec![None] }
}
