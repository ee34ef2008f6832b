//! Objects of one file.

use super::{Judge, KeptFile};
use crate::check::{Accepted, Checked};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use podstead_artifact::FileContent;
use podstead_manifest::{Ignored, ObjectKey, Patch, PatchesByObject, Problem, Target, Touch};
use podstead_pod::Severity;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Readability of a file.
#[derive(Clone, Debug, PartialEq)]
enum Clarity {
    /// Every object in it is known by its key.
    Clear,
    /// It cannot be read, or a part of it cannot be parsed: it may contain any object.
    Unclear,
}

/// Objects of one file: the good ones, and kept versions of those that are not.
///
/// One type because it is plain data of one file: a list for each kind of object.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// Content that was checked; `None` when it is known from disk only.
    content: Option<FileContent>,
    objects: Vec<Accepted>,
    /// Number of objects that are good in `content`; they come first.
    good: usize,
    problems: Vec<Problem>,
    /// Keys of objects in it that are refused.
    broken: BTreeSet<ObjectKey>,
    clarity: Clarity,
    /// See [`KeptFile::layer`].
    layer: usize,
    /// Patches that it was checked with.
    patches: PatchesByObject,
    /// The patches in it.
    pub(super) given_patches: Vec<Arc<Patch>>,
    /// Targets of the refused patches in it.
    pub(super) broken_patches: Vec<Target>,
    /// Keys of objects in it that a patch takes away.
    removed: Vec<ObjectKey>,
    /// Pairs of patches and objects that they are for.
    pub(super) touched: Vec<Touch>,
    /// Objects in it of kinds that are not read.
    pub(super) ignored: Vec<Ignored>,
    /// See [`KeptFile::changes`].
    pub(super) changes: BTreeSet<ObjectKey>,
    /// Some of what it gives is not what was read, because of a patch of another file: it has to be checked again in any case.
    is_overridden: bool,
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
            patches: PatchesByObject::new(),
            given_patches: Vec::new(),
            broken_patches: Vec::new(),
            removed: Vec::new(),
            touched: Vec::new(),
            ignored: Vec::new(),
            changes: file.changes,
            is_overridden: false,
        }
    }

    /// The share of the file with this content and these patches, after `before`. Without `patches`, those that it was checked with before
    /// are good enough.
    pub(super) fn next(
        before: Option<&Arc<Share>>,
        name: &str,
        layer: usize,
        content: &FileContent,
        patches: Option<&PatchesByObject>,
        judge: Judge<'_>,
    ) -> Arc<Self> {
        let is_the_same = |before: &&Arc<Share>| {
            before.was_judged_on(content) && before.layer == layer && patches.is_none_or(|patches| *patches == before.patches)
        };
        if let Some(before) = before.filter(is_the_same) {
            return before.clone();
        }
        let nothing = PatchesByObject::new();
        let patches = patches.unwrap_or(&nothing);
        let kept = before.map_or(&[][..], |before| &before.objects);
        let gave_something = !kept.is_empty() || before.is_some_and(|before| !before.changes.is_empty());
        let judged = match content {
            Ok(bytes) => match bytes.read() {
                bytes if is_blank(&bytes) && gave_something => unclear("empty-file", name, "the file is empty", EMPTY_HINT),
                bytes => judge(name, &bytes, patches),
            },
            Err(reason) => unclear("unreadable-file", name, reason, UNREADABLE_HINT),
        };
        let changes = before.map_or_else(BTreeSet::new, |before| before.changes.clone());
        Arc::new(Self { layer, patches: patches.clone(), changes, ..Self::judged(content.clone(), judged, kept) })
    }

    fn judged(content: FileContent, judged: Checked, kept: &[Accepted]) -> Self {
        let Checked { accepted: mut objects, problems, broken, patches: given_patches, broken_patches, removed, touched, ignored } =
            judged;
        let clarity = if broken.contains(&None) { Clarity::Unclear } else { Clarity::Clear };
        let broken: BTreeSet<ObjectKey> = broken.into_iter().flatten().collect();
        let good: BTreeSet<Arc<ObjectKey>> = objects.iter().map(|object| object.key.clone()).collect();
        let stays = |object: &&Accepted| {
            !good.contains(&object.key)
                && !removed.contains(&object.key)
                && (clarity == Clarity::Unclear || broken.contains(&object.key))
        };
        objects.extend(kept.iter().filter(stays).cloned());
        // It is kept for long.
        objects.shrink_to_fit();
        Self {
            content: Some(content),
            objects,
            good: good.len(),
            problems,
            broken,
            clarity,
            layer: 0,
            patches: PatchesByObject::new(),
            given_patches,
            broken_patches,
            removed,
            touched,
            ignored,
            changes: BTreeSet::new(),
            is_overridden: false,
        }
    }

    pub(super) fn was_judged_with(&self, patches: &PatchesByObject) -> bool {
        self.patches == *patches
    }

    fn was_judged_on(&self, content: &FileContent) -> bool {
        match (&self.content, content) {
            _ if self.is_overridden => false,
            (Some(Ok(before)), Ok(now)) => before.is_shared_with(now) || before == now,
            (Some(Err(before)), Err(now)) => before == now,
            (None, _) | (Some(Ok(_)), Err(_)) | (Some(Err(_)), Ok(_)) => false,
        }
    }

    /// Marks the same content of the file to be checked again.
    pub(super) fn forget_judgement(&mut self) {
        self.content = None;
    }

    /// Returns its state for the disk.
    pub(super) fn kept(&self) -> KeptFile {
        KeptFile { objects: self.objects.clone(), unclear: self.is_unclear(), layer: self.layer, changes: self.changes.clone() }
    }

    /// See [`KeptFile::layer`].
    pub(super) fn layer(&self) -> usize {
        self.layer
    }

    /// Returns its objects, good ones first.
    pub(super) fn objects(&self) -> &[Accepted] {
        &self.objects
    }

    /// Removes objects, as if they had never been accepted.
    pub(super) fn take_out(&mut self, is_refused: &dyn Fn(&Accepted) -> bool) -> Vec<Accepted> {
        self.good = self.objects.iter().take(self.good).filter(|object| !is_refused(object)).count();
        let (refused, stays) = std::mem::take(&mut self.objects).into_iter().partition(|object| is_refused(object));
        self.objects = stays;
        refused
    }

    /// Reports whether any object comes from the present file.
    pub(super) fn gives_anew(&self) -> bool {
        self.good > 0
    }

    /// Every object that is written in it as it is now, used or not.
    pub(super) fn names(&self) -> BTreeSet<&ObjectKey> {
        let good = self.objects.iter().take(self.good).map(|object| &*object.key);
        good.chain(&self.broken).chain(&self.removed).collect()
    }

    /// Gives this object instead of what was read, or none: a patch of another file is not known as it should be.
    pub(super) fn hold(&mut self, key: &ObjectKey, last_good: Option<Accepted>) {
        self.is_overridden = true;
        if let Some(at) = self.objects.iter().position(|object| *object.key == *key) {
            self.objects.remove(at);
            if at < self.good {
                self.good -= 1;
            }
        }
        self.objects.extend(last_good);
        // It stays one of the file's objects.
        self.broken.insert(key.clone());
    }

    pub(super) fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Reports whether this object is refused in it.
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
        let ObjectKey { kind, namespace, name: object_name } = &*object.key;
        self.problems.push(Problem {
            severity: Severity::Warning,
            code: "kept-object".to_owned(),
            file: name.to_owned(),
            position: None,
            field: String::new(),
            message: format!(
                "{kind} {namespace}/{object_name} is gone from {} and may have moved into this file, which has errors: keeping it",
                object.origin.file
            ),
            hint: Some("fix or remove this file".to_owned()),
            object: Some(ObjectKey::clone(&object.key)),
        });
        self.objects.push(object);
    }
}

impl Share {
    /// Sets the times of creation.
    pub(super) fn note_creation(&mut self, created: &dyn Fn(&ObjectKey) -> Option<Time>) {
        for Accepted { key, object, .. } in &mut self.objects {
            let time = created(key);
            if object.created_at() != time.as_ref() {
                object.set_created_at(time);
            }
        }
    }

    /// Reverts the change of an immutable object: `fixed` is its accepted version.
    pub(super) fn keep_immutable(&mut self, fixed: Accepted) {
        let Some(object) = self.objects.iter_mut().find(|object| object.key == fixed.key) else { return };
        let ObjectKey { kind, namespace, name } = &*object.key;
        self.problems.push(Problem {
            severity: Severity::Error,
            code: "immutable-object".to_owned(),
            file: object.origin.file.to_string(),
            position: Some(object.origin.position),
            field: String::new(),
            message: format!("{kind} {namespace}/{name} is immutable, but its data changed: keeping the earlier version"),
            hint: Some("give the new version another name".to_owned()),
            object: Some(ObjectKey::clone(&object.key)),
        });
        object.object = fixed.object;
    }
}

const EMPTY_HINT: &str = "keeping its objects; to remove them, remove the file or leave only a comment in it";
const UNREADABLE_HINT: &str = "keeping its objects until the file can be read or is removed";

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
    Checked { problems: vec![problem], broken: vec![None], ..Checked::default() }
}
