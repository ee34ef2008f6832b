//! The kustomizations of a source, built before its files are checked. **Pure**.
//!
//! In: the [`Artifact`] of a source. Out: [`Prepared`]: the files of its layers, where one virtual file takes the place of all files that
//! a kustomization was built of. The virtual file has the name of the kustomization file (`overlays/a/kustomization.yaml`), so that its
//! objects have a layer and a last good version as those of any file. Its content is the built YAML, which is only compared with that of
//! the revision before; [`Prepared::check`] checks the built objects, whose problems are at their places in the files that they are of.
//!
//! * Roots are built (see [`roots`]): with layers, what a layer names; without layers, what no other kustomization refers to.
//! * Files that a build read are no manifests of their own. Other manifests of the tree are.
//! * A build that fails says nothing about what is in its directories: its virtual file is as a file that cannot be read, and files there
//!   that were no manifests before do not become manifests. Nor is a kustomization built that was no root before while another one, which
//!   may refer to it, cannot be read.
//! * A kustomization may refer to directories around the source (see [`Surroundings`]): what is there is read by builds only. In here
//!   paths are those of the whole tree, and names are those of the source; where it reads the whole tree they are the same.
//! * Variables of the source are replaced in files with a name of manifests or kustomizations, before the build.
//! * A `Patch` cannot change built objects: kustomize's `patches` can.

mod check;
mod roots;

#[cfg(test)]
mod tests;

use crate::{CheckContext, Checked, UndeltaStore};
use podstead_artifact::layers::NoLayer;
use podstead_artifact::{Artifact, FileContent, Surroundings, is_kustomization};
use podstead_manifest::kustomize::{self, Build, BuildLimits, Files};
use podstead_manifest::{Limits, PatchesByObject, Problem, Substitution};
use podstead_pod::Severity;
use roots::Kustomizations;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The class of problems of kustomizations as a whole.
const CODE: &str = "kustomization";

/// Kustomizations of one source that are built.
const MAX_ROOTS: usize = 1000;

/// Bytes of all built objects of one source, as YAML.
const MAX_BYTES: usize = 64 << 20;

/// Files of a source that are ready to be checked.
#[derive(Debug)]
pub struct Prepared {
    /// The files of the layers, with virtual files for kustomizations. Nothing is beside them.
    pub artifact: Artifact,
    /// By name of the virtual file.
    outcomes: BTreeMap<String, Outcome>,
}

/// Result for one kustomization.
#[derive(Debug)]
enum Outcome {
    /// Its objects, and warnings.
    Built(Build),
    /// Nothing is known of its objects.
    NotBuilt(Vec<Problem>),
    /// A component that nothing lists: it has no objects.
    Unused(Problem),
}

/// Builds the kustomizations of `artifact` and selects the files of the layers; `before` is the content that is replaced.
///
/// # Errors
/// When there are layers and none of them has a file.
pub fn prepare(artifact: &Artifact, before: &UndeltaStore, context: &CheckContext) -> Result<Prepared, NoLayer> {
    if !artifact.files.keys().any(|name| is_kustomization_file(name)) {
        return Ok(Prepared::without_kustomizations(context.layers.select(artifact)?));
    }
    let view = View::new(artifact, context);
    let kustomizations = Kustomizations::find(&view);
    let candidates: Vec<String> = artifact.files.keys().filter(|name| is_kustomization_file(name)).cloned().collect();
    let roots = kustomizations.roots(&candidates, &view, &context.layers);
    let mut files = artifact.files.clone();
    files.retain(|name, _| !is_kustomization_file(name));
    let (mut virtual_files, mut outcomes, mut bytes) = (BTreeMap::new(), BTreeMap::new(), 0);
    for directory in &roots.directories {
        let Some(path) = kustomizations.file(directory) else { continue };
        let file = &view.around.name_of(path);
        let reached = kustomizations.reached_from(directory);
        let (mut outcome, read) = if kustomizations.is_component(directory) && !roots.named.contains(directory) {
            (Outcome::Unused(unused(file)), BTreeSet::new())
        } else if outcomes.len() >= MAX_ROOTS {
            (Outcome::NotBuilt(vec![too_much(file, format!("more than {MAX_ROOTS} kustomizations"))]), BTreeSet::new())
        } else {
            view.build(directory, &context.limits)
        };
        let may_be_a_base = !roots.named.contains(directory) && !before.has_objects_of(file);
        let doubt = roots.unreadable.iter().find(|unreadable| may_be_a_base && !reached.contains(parent(unreadable)));
        if let (Outcome::Built(_), Some(unreadable)) = (&outcome, doubt) {
            outcome = Outcome::NotBuilt(vec![waits_for(file, &view.around.name_of(unreadable))]);
        }
        let mut content = content(parent(file), &outcome);
        if bytes + content.len() > MAX_BYTES {
            outcome = Outcome::NotBuilt(vec![too_much(file, format!("more than {} MiB of built objects", MAX_BYTES >> 20))]);
            content = self::content(parent(file), &outcome);
        }
        bytes += content.len();
        match &outcome {
            Outcome::Built(_) => files.retain(|name, _| !read.contains(&view.around.path_of(name))),
            Outcome::NotBuilt(_) | Outcome::Unused(_) => {
                let is_of_build = |name: &str| {
                    let path = view.around.path_of(name);
                    read.contains(&path) || ancestors(&path).any(|above| reached.contains(above))
                };
                files.retain(|name, _| before.has_file(name) || !is_of_build(name));
            }
        }
        virtual_files.insert(file.to_owned(), Ok(content.into_bytes().into()));
        outcomes.insert(file.to_owned(), outcome);
    }
    files.extend(virtual_files);
    let whole = Artifact { files, beside: BTreeMap::new(), around: Surroundings::default(), ..artifact.clone() };
    Ok(Prepared { artifact: context.layers.select(&whole)?, outcomes })
}

impl Prepared {
    /// Files that are checked as they are, kustomizations included.
    pub fn without_kustomizations(artifact: Artifact) -> Self {
        Self {
            artifact: Artifact { beside: BTreeMap::new(), around: Surroundings::default(), ..artifact },
            outcomes: BTreeMap::new(),
        }
    }

    /// Checks one file of the artifact, as [`crate::check()`] checks one that is not virtual.
    pub fn check(&self, file: &str, bytes: &[u8], context: &CheckContext, patches: &PatchesByObject) -> Checked {
        match self.outcomes.get(file) {
            Some(Outcome::Built(build)) => check::built(file, build, context, patches),
            Some(Outcome::NotBuilt(problems)) => Checked { problems: problems.clone(), broken: vec![None], ..Checked::default() },
            Some(Outcome::Unused(problem)) => Checked { problems: vec![problem.clone()], ..Checked::default() },
            None => crate::check(file, bytes, context, patches),
        }
    }
}

/// All files of a source and around it, with their variables replaced.
struct View<'a> {
    files: &'a BTreeMap<String, FileContent>,
    beside: &'a BTreeMap<String, FileContent>,
    around: &'a Surroundings,
    substitution: Option<&'a Substitution>,
    limits: &'a Limits,
    /// Variables without a value in files that were read.
    faults: RefCell<Vec<Problem>>,
}

impl<'a> View<'a> {
    fn new(artifact: &'a Artifact, context: &'a CheckContext) -> Self {
        let Artifact { files, beside, around, .. } = artifact;
        let substitution = context.substitute.as_deref();
        Self { files, beside, around, substitution, limits: &context.limits, faults: RefCell::default() }
    }

    /// The paths of all files.
    fn paths(&self) -> impl Iterator<Item = String> {
        let of_source = self.files.keys().chain(self.beside.keys()).map(|name| self.around.path_of(name));
        of_source.chain(self.around.files.keys().cloned())
    }

    fn content(&self, path: &str) -> Option<&'a FileContent> {
        match self.around.name_below(path) {
            Some(name) => self.files.get(name).or_else(|| self.beside.get(name)),
            None => self.around.files.get(path),
        }
    }

    /// Builds a directory; returns also the files that were read.
    fn build(&self, directory: &str, limits: &Limits) -> (Outcome, BTreeSet<String>) {
        self.faults.borrow_mut().clear();
        let limits = BuildLimits { manifest: *limits, ..BuildLimits::default() };
        let mut build = kustomize::build(self, directory, &limits);
        let read = std::mem::take(&mut build.read);
        let faults = self.faults.take();
        let outcome = match (build.has_failed(), faults.is_empty()) {
            (false, _) => Outcome::Built(build),
            (true, true) => Outcome::NotBuilt(build.problems),
            (true, false) => Outcome::NotBuilt(faults),
        };
        (outcome, read)
    }
}

impl Files for View<'_> {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        let Some(content) = self.content(path) else { return Ok(None) };
        let bytes = content.as_ref().map_err(Clone::clone)?.read();
        let Some(substitution) = self.substitution.filter(|_| has_variables(path)) else { return Ok(Some(bytes)) };
        match podstead_manifest::substitute(&self.shown(path), &bytes, substitution, self.limits) {
            Ok(replaced) => Ok(Some(replaced.into_owned())),
            Err(problems) => {
                let first = problems.first().map_or_else(String::new, |problem| problem.message.clone());
                self.faults.borrow_mut().extend(problems);
                Err(first)
            }
        }
    }

    fn is_directory(&self, path: &str) -> bool {
        let has = |files: &BTreeMap<String, FileContent>, path: &str| {
            let prefix = format!("{path}/");
            path.is_empty() && !files.is_empty()
                || files.range(prefix.clone()..).next().is_some_and(|(name, _)| name.starts_with(&prefix))
        };
        let root = &self.around.path;
        match self.around.name_below(path) {
            Some(name) => name.is_empty() || has(self.files, name) || has(self.beside, name),
            None => {
                has(&self.around.files, path)
                    || path.is_empty()
                    || root.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
            }
        }
    }

    fn shown(&self, path: &str) -> String {
        self.around.name_of(path)
    }
}

/// Reports whether variables are replaced in a file of this name: one of a manifest or a kustomization.
fn has_variables(path: &str) -> bool {
    let extension = Path::new(path).extension().unwrap_or_default();
    is_kustomization(file_name(path)) || ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Reports whether a file makes its directory a kustomization. A source that is a single file has its whole path as name, and no directory.
fn is_kustomization_file(path: &str) -> bool {
    is_kustomization(file_name(path)) && !path.starts_with('/')
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The directory of a file; empty for the root.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The directories that a file is in or below, the root included.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(parent(path)), |directory| (!directory.is_empty()).then(|| parent(directory)))
}

/// Content of a virtual file: never blank, and another one when an object, its place or a problem is another one.
fn content(directory: &str, outcome: &Outcome) -> String {
    let (objects, problems) = match outcome {
        Outcome::Built(build) => (build.objects.as_slice(), build.problems.as_slice()),
        Outcome::NotBuilt(problems) => (&[][..], problems.as_slice()),
        Outcome::Unused(problem) => (&[][..], std::slice::from_ref(problem)),
    };
    let objects = objects.iter().map(|object| format!("---\n# {}\n{}", object.origin(), object.to_yaml()));
    let problems = problems.iter().map(|problem| format!("# {problem}\n"));
    [format!("# {directory}\n")].into_iter().chain(objects).chain(problems).collect()
}

fn problem(file: &str, severity: Severity, message: String, hint: &str) -> Problem {
    Problem {
        severity,
        code: CODE.to_owned(),
        file: file.to_owned(),
        position: None,
        field: String::new(),
        message,
        hint: Some(hint.to_owned()),
        object: None,
    }
}

fn waits_for(file: &str, unreadable: &str) -> Problem {
    let message = format!("is not built, because {unreadable} cannot be read and may refer to this directory");
    problem(file, Severity::Warning, message, &format!("correct {unreadable}"))
}

fn unused(file: &str) -> Problem {
    problem(file, Severity::Warning, "no kustomization uses this component".to_owned(), "list it under components")
}

fn too_much(file: &str, what: String) -> Problem {
    let message = format!("is not built, because the source would have {what}");
    problem(file, Severity::Error, message, "name the directories of this host in the layers of the source")
}
