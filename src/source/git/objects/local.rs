//! Repository on this host that podstead does not own: read, never written to.

use super::{Objects, damage, object_id};
use crate::git::error::{DamageError, GitError};
use crate::git::protocol::{ObjectId, Reference};
use git2::{ErrorCode, ObjectType, Repository};
use std::collections::BTreeSet;
use std::path::Path;

impl Objects {
    /// Opens the repository at `path`, bare or with a work tree.
    pub(in crate::git) fn open_repository(path: &Path) -> Result<Self, GitError> {
        podstead_libgit2::initialise();
        let missing = |reason: String| GitError::NotFound { location: path.display().to_string(), reason };
        if let Err(error) = std::fs::metadata(path) {
            return Err(missing(error.to_string()));
        }
        let opened = Repository::open_bare(path.join(".git")).or_else(|_| Repository::open_bare(path));
        let repository = opened.map_err(|error| match error.code() {
            ErrorCode::NotFound => missing("not a git repository".to_owned()),
            _ if error.message().contains("object format") || error.message().contains("objectformat") => {
                missing("its object format is not SHA-1; only SHA-1 is supported".to_owned())
            }
            _ => damage(path, error.into()),
        })?;
        let shallow = shallow(repository.commondir()).map_err(|source| damage(path, source))?;
        Ok(Self { repository, path: path.to_owned(), shallow })
    }

    /// All its references.
    pub(in crate::git) fn references(&self) -> Result<Vec<Reference>, GitError> {
        let read = || -> Result<Vec<Reference>, git2::Error> {
            let mut references = Vec::new();
            for reference in self.repository.references()? {
                let reference = reference?;
                let (Ok(name), Ok(resolved)) = (reference.name(), reference.resolve()) else { continue };
                let Some(id) = resolved.target() else { continue };
                let peeled = match resolved.peel(ObjectType::Any) {
                    Ok(object) if object.id() != id => Some(object_id(object.id())),
                    Ok(_) | Err(_) => None,
                };
                references.push(Reference { name: name.to_owned(), id: object_id(id), peeled });
            }
            match self.repository.refname_to_id("HEAD") {
                Ok(id) => references.push(Reference { name: "HEAD".to_owned(), id: object_id(id), peeled: None }),
                // It may name a branch that does not exist (yet).
                Err(error) if error.code() == ErrorCode::NotFound => {}
                Err(error) => return Err(error),
            }
            Ok(references)
        };
        read().map_err(|error| self.damaged(error))
    }
}

/// Git's own record of commits without their parents.
fn shallow(directory: &Path) -> Result<BTreeSet<ObjectId>, DamageError> {
    match std::fs::read_to_string(directory.join("shallow")) {
        Ok(text) => {
            let ids: Result<_, _> = text.lines().map(str::parse).collect();
            ids.map_err(|_| DamageError::State("its shallow file is not valid".to_owned()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(DamageError::Read(error)),
    }
}
