//! The reference to follow: a branch, a tag, the highest version, one commit. [pure]

use super::error::GitError;
use super::protocol::{ObjectId, Reference};
use semver::{Version, VersionReq};
use std::fmt;

/// Reference to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    /// The branch that the repository calls its own (`HEAD`).
    DefaultBranch,
    /// A branch.
    Branch(String),
    /// A tag, wherever it points.
    Tag(String),
    /// The tag with the highest version in a range; `v` before the version is allowed.
    Semver(VersionReq),
    /// One commit, for ever.
    Commit(ObjectId),
}

/// Object that the reference points at now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The full name of the reference; `None` for a commit that is named itself.
    pub(super) reference: Option<String>,
    /// The commit, or the object of an annotated tag.
    pub(super) id: ObjectId,
    /// The version, where versions are followed.
    pub(super) version: Option<Version>,
}

impl Follow {
    /// The beginnings of the references that matter.
    pub(super) fn prefixes(&self) -> Vec<String> {
        match self {
            Self::DefaultBranch => vec!["HEAD".to_owned()],
            Self::Branch(name) => vec![format!("refs/heads/{name}")],
            Self::Tag(name) => vec![format!("refs/tags/{name}")],
            Self::Semver(_) => vec!["refs/tags/".to_owned()],
            Self::Commit(_) => Vec::new(),
        }
    }

    /// Chooses among the references of the server.
    pub(super) fn choose(&self, references: &[Reference]) -> Result<Target, GitError> {
        let named = |name: String| {
            let found = references.iter().find(|reference| reference.name == name);
            found.map(|reference| Target { reference: Some(name), id: reference.id, version: None })
        };
        let found = match self {
            Self::DefaultBranch => named("HEAD".to_owned()),
            Self::Branch(name) => named(format!("refs/heads/{name}")),
            Self::Tag(name) => named(format!("refs/tags/{name}")),
            Self::Semver(range) => highest(references, range),
            Self::Commit(id) => Some(Target { reference: None, id: *id, version: None }),
        };
        found.ok_or_else(|| GitError::NoReference(self.to_string()))
    }
}

/// Among equal versions (`v1.0.0` and `1.0.0`) the one whose name comes last, so that the choice does not depend on the order.
fn highest(references: &[Reference], range: &VersionReq) -> Option<Target> {
    let candidates = references.iter().filter_map(|reference| {
        let version = version_of(&reference.name)?;
        range.matches(&version).then_some((version, reference))
    });
    let (version, reference) = candidates.max_by(|(one, a), (two, b)| one.cmp(two).then_with(|| a.name.cmp(&b.name)))?;
    Some(Target { reference: Some(reference.name.clone()), id: reference.id, version: Some(version) })
}

/// The version that a tag names.
pub(super) fn version_of(reference: &str) -> Option<Version> {
    let name = reference.strip_prefix("refs/tags/")?;
    Version::parse(name.strip_prefix('v').unwrap_or(name)).ok()
}

impl fmt::Display for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DefaultBranch => f.write_str("default branch"),
            Self::Branch(name) => write!(f, "branch {name}"),
            Self::Tag(name) => write!(f, "tag {name}"),
            Self::Semver(range) => write!(f, "tag with a version in {range}"),
            Self::Commit(id) => write!(f, "commit {id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(names: &[&str]) -> Vec<Reference> {
        let id = |index: usize| format!("{index:040x}").parse().unwrap();
        names.iter().enumerate().map(|(index, name)| Reference { name: (*name).to_owned(), id: id(index), peeled: None }).collect()
    }

    fn chosen(follow: &Follow, names: &[&str]) -> Option<String> {
        follow.choose(&references(names)).ok().and_then(|target| target.reference)
    }

    #[test]
    fn a_name_is_meant_wholly() {
        let names = ["HEAD", "refs/heads/main2", "refs/heads/main", "refs/tags/main"];
        assert_eq!(chosen(&Follow::Branch("main".into()), &names).unwrap(), "refs/heads/main");
        assert_eq!(chosen(&Follow::Tag("main".into()), &names).unwrap(), "refs/tags/main");
        assert_eq!(chosen(&Follow::DefaultBranch, &names).unwrap(), "HEAD");
        assert_eq!(chosen(&Follow::Branch("mai".into()), &names), None);
    }

    #[test]
    fn the_highest_version_in_the_range_is_followed() {
        let names = [
            "refs/tags/v1.2.0",
            "refs/tags/v1.10.0",
            "refs/tags/1.9.9",
            "refs/tags/v2.0.0",
            "refs/tags/v1.11.0-rc.1",
            "refs/tags/latest",
        ];
        let follow = |range: &str| chosen(&Follow::Semver(range.parse().unwrap()), &names);
        assert_eq!(follow("^1").unwrap(), "refs/tags/v1.10.0");
        assert_eq!(follow("~1.9").unwrap(), "refs/tags/1.9.9");
        assert_eq!(follow(">=1").unwrap(), "refs/tags/v2.0.0");
        assert_eq!(follow(">=1.11.0-rc, <2").unwrap(), "refs/tags/v1.11.0-rc.1");
        assert_eq!(follow("^3"), None);
    }

    #[test]
    fn of_two_names_for_one_version_always_the_same_is_taken() {
        let follow = Follow::Semver("1".parse().unwrap());
        assert_eq!(
            chosen(&follow, &["refs/tags/v1.0.0", "refs/tags/1.0.0"]),
            chosen(&follow, &["refs/tags/1.0.0", "refs/tags/v1.0.0"])
        );
    }
}
