//! Ancestor check: a compromised server or a mistaken force push cannot bring an older revision back.
//!
//! The last delivered revision is recorded with the reference that was followed. When the configuration follows another one, that is a
//! decision of whoever wrote it, and what it names may be anything.

use super::error::GitError;
use super::protocol::ObjectId;
use super::select::Follow;
use jiff::Timestamp;
use podstead_sys::atomic_file::{make_directories, write_durable};
use semver::Version;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

const FILE: &str = "followed.json";
const VERSION: u32 = 1;

/// Record of the last delivered revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Followed {
    version: u32,
    /// Repository and reference, in words.
    pub(super) what: String,
    /// The commit.
    pub(super) commit: ObjectId,
    /// Its version, where versions are followed.
    pub(super) semver: Option<String>,
    /// Time of signature that it states; only of verified signatures.
    pub(super) signed_at: Option<Timestamp>,
}

impl Followed {
    pub(super) fn new(what: String, commit: ObjectId, semver: Option<&Version>, signed_at: Option<Timestamp>) -> Self {
        Self { version: VERSION, what, commit, semver: semver.map(Version::to_string), signed_at }
    }

    /// Reads the record; one that cannot be read is as good as none, and then the last good set counts.
    pub(super) fn load(directory: &Path) -> Option<Self> {
        let path = directory.join(FILE);
        let read = std::fs::read(&path).and_then(|bytes| Ok(serde_json::from_slice::<Self>(&bytes)?));
        match read {
            Ok(followed) if followed.version == VERSION => Some(followed),
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "ignoring the record of the last fetched revision: it cannot be read");
                None
            }
        }
    }

    /// Writes the record durably. Blocks.
    pub(super) fn save(&self, directory: &Path) -> Result<(), GitError> {
        let path = directory.join(FILE);
        let written = serde_json::to_vec(self).map_err(io::Error::from).and_then(|bytes| {
            if !path.try_exists()? {
                make_directories(directory, 0o700)?;
            }
            write_durable(&path, &bytes, 0o600)
        });
        written.map_err(|source| GitError::Disk { what: "write", path, source })
    }
}

/// Requirement for the next revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Floor {
    /// Anything.
    None,
    /// This commit or a descendant of it. Also `again`, which was delivered before and not accepted for some reason.
    Descendant {
        /// The last accepted commit.
        of: ObjectId,
        /// The last delivered one.
        again: Option<ObjectId>,
    },
    /// This version or a higher one; for whoever does not trust the name of a tag, as for `otherwise`.
    Version {
        /// The version.
        lowest: Version,
        /// The last accepted commit.
        otherwise: ObjectId,
    },
}

/// The rule for what `follow` leads to. `accepted` is the commit that is in force.
pub(super) fn floor(follow: &Follow, what: &str, allowed: bool, accepted: Option<ObjectId>, followed: Option<&Followed>) -> Floor {
    let elsewhere = followed.is_some_and(|followed| followed.what != what);
    let Some(of) = accepted.or(followed.map(|followed| followed.commit)) else { return Floor::None };
    match follow {
        // The configuration names it.
        Follow::Commit(_) => Floor::None,
        _ if allowed || elsewhere => Floor::None,
        Follow::Semver(_) => match followed.and_then(|followed| Version::parse(followed.semver.as_ref()?).ok()) {
            Some(lowest) => Floor::Version { lowest, otherwise: of },
            None => Floor::Descendant { of, again: None },
        },
        Follow::DefaultBranch | Follow::Branch(_) | Follow::Tag(_) => {
            let again = followed.map(|followed| followed.commit).filter(|commit| *commit != of);
            Floor::Descendant { of, again }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> ObjectId {
        digit.to_string().repeat(40).parse().unwrap()
    }

    fn followed(what: &str, commit: char, semver: Option<&str>) -> Followed {
        Followed::new(what.to_owned(), id(commit), semver.map(|text| text.parse().unwrap()).as_ref(), None)
    }

    #[test]
    fn what_is_in_force_is_the_floor() {
        let main = Follow::Branch("main".into());
        let record = followed("main", 'a', None);
        let descendant = |of, again: Option<char>| Floor::Descendant { of: id(of), again: again.map(id) };
        assert_eq!(floor(&main, "main", false, None, None), Floor::None, "the first revision is free");
        assert_eq!(floor(&main, "main", false, Some(id('a')), Some(&record)), descendant('a', None));
        assert_eq!(floor(&main, "main", false, Some(id('a')), None), descendant('a', None), "without a record");
        assert_eq!(floor(&main, "main", false, None, Some(&record)), descendant('a', None), "without a last good set");
        assert_eq!(floor(&main, "main", false, Some(id('b')), Some(&record)), descendant('b', Some('a')));
    }

    #[test]
    fn the_configuration_may_go_anywhere() {
        let record = followed("main", 'a', None);
        for (follow, what, allowed) in [
            (Follow::Branch("main".into()), "main", true),
            (Follow::Branch("next".into()), "next", false),
            (Follow::Commit(id('c')), "main", false),
        ] {
            assert_eq!(floor(&follow, what, allowed, Some(id('a')), Some(&record)), Floor::None, "{follow}");
        }
    }

    #[test]
    fn versions_are_compared_where_versions_are_followed() {
        let follow = Follow::Semver("1".parse().unwrap());
        let record = followed("1", 'a', Some("1.2.0"));
        let expected = Floor::Version { lowest: "1.2.0".parse().unwrap(), otherwise: id('a') };
        assert_eq!(floor(&follow, "1", false, Some(id('a')), Some(&record)), expected);
        let record = followed("1", 'a', None);
        assert_eq!(floor(&follow, "1", false, Some(id('a')), Some(&record)), Floor::Descendant { of: id('a'), again: None });
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_damaged_one_is_none() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Followed::load(directory.path()), None);
        let record = followed("main", 'a', Some("1.0.0"));
        record.save(directory.path()).unwrap();
        assert_eq!(Followed::load(directory.path()), Some(record));
        std::fs::write(directory.path().join(FILE), "{").unwrap();
        assert_eq!(Followed::load(directory.path()), None);
    }
}
