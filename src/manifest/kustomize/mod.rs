//! Directories with a `kustomization.yaml`, built as `kubectl kustomize` of Kubernetes 1.36 builds them (kustomize 5.8.1). **Pure**.
//!
//! In: a view of the files of one source ([`Files`]) and a directory of it. Out: [`Build`]: the objects in order, each as a tree whose
//! values know file and line, the problems, and the files that were read. Nothing outside of the view is read, and nothing is run:
//! remote resources, charts and plugins are refused.
//!
//! The contract for callers:
//! - The view names files by their path from the root of the source, with `/`. It follows symbolic links or not as its source does; a
//!   path that leaves the root is refused here.
//! - A directory is built when [`is_kustomization`] holds for the name of one of its files. What the build has read
//!   ([`Build::read`]) must not be read as manifests of their own, and what it has asked for in vain ([`Build::missing`]) matters, too,
//!   when a source decides whether it has changed.
//! - A build has objects, or problems with severity error. It is never a part of the whole.
//! - [`BuiltObject::decode`] makes of an object what [`crate::decode`] makes of one in a file.

mod build;
mod built;
mod builtin;
mod config;
mod crds;
mod decode;
mod emit;
mod field_path;
mod folded;
mod generate;
mod id;
mod kustomization;
mod layout;
mod limits;
mod merge;
mod merge_keys;
mod name_reference;
mod name_reference_table;
mod origin;
mod patch;
mod paths;
mod plugins;
mod reader;
mod references;
mod replacement;
mod resource;
mod resources;
mod schema;
mod select;
mod sort;
mod structured;
mod texts;
mod time;
mod transform;
mod tree;
mod value_add;
mod var_reference_table;
mod variable;

#[cfg(test)]
mod tests;

pub use built::{Build, BuiltObject};
pub(super) use limits::CODE;
pub use limits::{BuildLimits, Files};
pub use references::{References, references};

/// Reports whether a file of that name makes its directory one that is built.
pub fn is_kustomization(file_name: &str) -> bool {
    kustomization::FILE_NAMES.contains(&file_name)
}

/// Builds a directory; the empty path is the root of the source.
pub fn build(files: &dyn Files, directory: &str, limits: &BuildLimits) -> Build {
    built::build(files, directory, limits)
}
