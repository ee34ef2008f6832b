//! One pass over all directories of a source with layers or kustomizations.

use super::file::{self, Seen};
use super::listing::{self, Cache, Pass, Witness};
use super::names::is_hidden;
use super::place;
use super::scope::{Scope, Spot};
use super::{DirectoryError, DirectoryOptions};
use crate::revision::{ContentHash, revision_of};
use podstead_artifact::{Artifact, FileContent, Surroundings};
use rustix::fs::{CWD, Mode, OFlags};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

/// Known files of each directory, by its prefix.
pub(super) type Caches = BTreeMap<PathBuf, Cache>;

/// Reads the directories of `scope`, which are now `spots`. A missing layer is empty, one that cannot be read is a failure.
pub(super) fn pass(
    scope: &Scope,
    spots: &[Spot],
    options: &DirectoryOptions,
    caches: &mut Caches,
    witness: &Witness,
) -> Result<Pass, DirectoryError> {
    let whole_tree = spots.first().is_some_and(|spot| spot.whole);
    if scope.layers.is_empty() && !whole_tree {
        return listing::pass(&scope.root, options, caches.entry(PathBuf::new()).or_default(), witness);
    }
    let root = &scope.root;
    let fail = |errno| DirectoryError::List { path: root.clone(), source: io::Error::from(errno) };
    match file::look(CWD, root) {
        Seen::Directory => {}
        Seen::File(_) => return Err(unusable(root, "is a file; a source with layers needs a directory".to_owned())),
        Seen::Absent => return Err(DirectoryError::Absent(root.clone())),
        Seen::Unusable(reason) => return Err(unusable(root, reason)),
    }
    let directory = rustix::fs::open(root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(fail)?;
    let identity = place::Identity::of(directory.as_fd()).map_err(fail)?;
    let place = place::place_of(directory.as_fd()).map_err(fail)?;
    let mut whole = Whole {
        moved: spots.first().is_none_or(|spot| spot.identity != Some(identity)),
        unstable: false,
        incomplete: false,
        inconclusive: false,
        read: 0,
        bytes: 0,
    };
    let (mut files, mut beside, mut parts) = (BTreeMap::<String, FileContent>::new(), BTreeMap::new(), Vec::new());
    caches.retain(|prefix, _| spots.iter().any(|spot| spot.prefix == *prefix));
    for spot in spots {
        match file::look(CWD, &spot.path) {
            Seen::Directory => {}
            Seen::Absent | Seen::File(_) => continue,
            Seen::Unusable(reason) => return Err(unusable(&spot.path, reason)),
        }
        let name_of = |name: &str| spot.prefix.join(name).display().to_string();
        let is_of_source = |name: &str| scope.is_of_source(&spot.prefix, OsStr::new(name));
        let counts = |name: &OsStr, key: &str| if spot.whole { !is_hidden(name) } else { is_of_source(key) };
        let options = DirectoryOptions { max_total_bytes: options.max_total_bytes.saturating_sub(whole.bytes), ..options.clone() };
        let cache = caches.entry(spot.prefix.clone()).or_default();
        cache.forget_reported();
        let part = listing::pass_directory(&spot.path, &options, cache, &witness.below(&spot.prefix), &counts)?;
        whole.add(&part, spot);
        // An empty directory in which a kustomization may look for files is none that it finds.
        if !spot.whole || !part.artifact.files.is_empty() {
            parts.push((spot.prefix.display().to_string(), ContentHash::of_bytes(part.artifact.revision.0.as_bytes())));
        }
        for (name, content) in part.artifact.files {
            let all = if is_of_source(&name) { &mut files } else { &mut beside };
            all.insert(name_of(&name), content);
        }
    }
    let revision = revision_of(parts.iter().map(|(prefix, hash)| (prefix.as_str(), *hash)));
    let Whole { moved, unstable, mut incomplete, inconclusive, read, bytes: _ } = whole;
    // What was read may be of two checkouts.
    incomplete |= moved;
    let artifact = Artifact { revision, place: Some(place), commit: None, files, beside, around: Surroundings::default() };
    Ok(Pass { artifact, identity, moved, unstable: unstable || incomplete, incomplete, inconclusive, read })
}

fn unusable(path: &Path, reason: String) -> DirectoryError {
    DirectoryError::Unusable { path: path.to_owned(), reason }
}

/// Combined result of all directories.
struct Whole {
    moved: bool,
    unstable: bool,
    incomplete: bool,
    inconclusive: bool,
    read: usize,
    bytes: u64,
}

impl Whole {
    fn add(&mut self, part: &Pass, spot: &Spot) {
        self.moved |= spot.identity != Some(part.identity);
        self.unstable |= part.unstable;
        self.incomplete |= part.incomplete;
        self.inconclusive |= part.inconclusive;
        self.read += part.read;
        let sizes = part.artifact.files.values().filter_map(|content| content.as_ref().ok()).map(|bytes| bytes.len() as u64);
        self.bytes += sizes.sum::<u64>();
    }
}
