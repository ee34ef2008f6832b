//! Results of a build.

use super::build::Builder;
use super::resource::Resource;
use super::texts::Texts;
use super::tree::{Tree, Value};
use super::{BuildLimits, Files, emit, paths};
use crate::Problem;
use podstead_pod::{Origin, Position, Severity, SmolStr};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A built directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Build {
    /// The objects, in the order in which `kubectl kustomize` prints them.
    pub objects: Vec<BuiltObject>,
    /// Problems. With one of severity error there are no objects.
    pub problems: Vec<Problem>,
    /// Paths of the files that were read.
    pub read: BTreeSet<String>,
    /// Paths that were asked for and are not there: a file there could change the build.
    pub missing: BTreeSet<String>,
}

/// One object of any kind.
#[derive(Clone, PartialEq)]
pub struct BuiltObject {
    /// The object; its places are entries of `places`.
    pub(super) tree: Tree,
    /// Index of the file in `files`, and the position.
    pub(super) places: Vec<(u16, Position)>,
    /// Files that the object was made of; the first one is that of the object itself.
    pub(super) files: Vec<String>,
}

impl fmt::Debug for BuiltObject {
    /// Without its content, which may be that of a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}/{} of {}", self.api_version(), self.kind(), self.namespace(), self.name(), self.origin())
    }
}

pub(super) fn build(files: &dyn Files, directory: &str, limits: &BuildLimits) -> Build {
    let mut texts = Texts::new(files, limits);
    let joined = paths::join("", directory);
    let mut builder = Builder::new(&mut texts, limits);
    let result = match &joined {
        Ok(directory) => builder.build(directory),
        Err(_) => Err(crate::fault::Fault::of_file(super::CODE, "the directory is outside of the source")),
    };
    let warnings = std::mem::take(&mut builder.warnings);
    let shown = texts.shown(directory);
    let mut built = Build { read: texts.paths(), ..Build::default() };
    built.problems.extend(warnings.into_iter().map(|fault| texts.problem(fault, Severity::Warning, &shown)));
    match result {
        Ok(resources) => built.objects = objects(resources, &texts),
        Err(fault) => built.problems.push(texts.problem(fault, Severity::Error, &shown)),
    }
    built.missing = texts.into_missing();
    built
}

/// The objects with their places resolved.
fn objects(resources: Vec<Resource>, texts: &Texts<'_>) -> Vec<BuiltObject> {
    let mut trees: Vec<Tree> = resources.into_iter().map(|resource| resource.tree).collect();
    // All at once: finding a place looks through its file.
    let mut offsets = Vec::new();
    let mut ranges = Vec::new();
    for tree in &mut trees {
        let begin = offsets.len();
        number(tree, begin, &mut offsets);
        ranges.push(begin..offsets.len());
    }
    let places = texts.places(&offsets);
    let object = |(tree, range): (Tree, std::ops::Range<usize>)| {
        let mut files: Vec<String> = Vec::new();
        let mut indices: BTreeMap<usize, u16> = BTreeMap::new();
        let resolved = places[range].iter().map(|(text, position)| {
            let index = *indices.entry(*text).or_insert_with(|| {
                files.push(texts.name(*text).to_owned());
                u16::try_from(files.len() - 1).unwrap_or(u16::MAX)
            });
            (index, *position)
        });
        let resolved = resolved.collect();
        BuiltObject { tree, places: resolved, files }
    };
    trees.into_iter().zip(ranges).map(object).collect()
}

/// Replaces the offsets of a tree by indices from `begin`.
fn number(tree: &mut Tree, begin: usize, offsets: &mut Vec<u32>) {
    let next = |at: &mut u32, offsets: &mut Vec<u32>| {
        offsets.push(*at);
        *at = (offsets.len() - 1 - begin) as u32;
    };
    next(&mut tree.at, offsets);
    match &mut tree.value {
        Value::Scalar(_) => {}
        Value::List(items) => items.iter_mut().for_each(|item| number(item, begin, offsets)),
        Value::Map(fields) => {
            for field in fields {
                next(&mut field.at, offsets);
                number(&mut field.value, begin, offsets);
            }
        }
    }
}

impl Build {
    /// The objects as YAML, byte for byte as `kubectl kustomize` prints them.
    pub fn to_yaml(&self) -> String {
        let documents: Vec<String> = self.objects.iter().map(BuiltObject::to_yaml).collect();
        documents.join("---\n")
    }

    /// Reports whether the directory cannot be built.
    pub fn has_failed(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }
}

impl BuiltObject {
    /// The object as a YAML document.
    pub fn to_yaml(&self) -> String {
        emit::emit(&self.tree)
    }

    fn text(&self, path: &[&str]) -> &str {
        path.iter().try_fold(&self.tree, |tree, key| tree.get(key)).map_or("", Tree::text)
    }

    /// Its group and version.
    pub fn api_version(&self) -> &str {
        self.text(&["apiVersion"])
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        self.text(&["kind"])
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.text(&["metadata", "name"])
    }

    /// Its namespace as written; empty when it has none.
    pub fn namespace(&self) -> &str {
        self.text(&["metadata", "namespace"])
    }

    /// File and position where it begins: those of its manifest, or of its generator.
    pub fn origin(&self) -> Origin {
        self.place(self.tree.at)
    }

    fn place(&self, at: u32) -> Origin {
        let nowhere = (0, Position { line: 1, column: 1 });
        let (file, position) = self.places.get(at as usize).copied().unwrap_or(nowhere);
        Origin { file: self.files.get(usize::from(file)).map(SmolStr::from).unwrap_or_default(), position }
    }

    /// File and position of the value at a path, e.g. `["spec", "containers", "0", "image"]`, or of the nearest value above that is
    /// there.
    pub fn origin_of(&self, path: &[&str]) -> Origin {
        let mut found = &self.tree;
        for step in path {
            let next = match &found.value {
                Value::Map(_) => found.get(step),
                Value::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
                Value::Scalar(_) => None,
            };
            match next {
                Some(next) => found = next,
                None => break,
            }
        }
        self.place(found.at)
    }
}
