//! Repository on this host that podstead does not own: read, never written to.
//!
//! Its references are files, which are read here; its objects are read by a job, as those of a copy are.

use super::{Objects, damage};
use crate::git::error::{DamageError, GitError};
use crate::git::job::{ObjectJobs, Owner};
use crate::git::protocol::{ObjectId, Reference};
use rustix::fs::OFlags;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// References that a repository may have.
const MAX_REFERENCES: usize = 200_000;
/// Size of the list of packed references, and of other files of git.
const MAX_FILE: u64 = 64 << 20;
/// Directories of references in each other.
const MAX_DEPTH: usize = 32;
/// References to references that are followed.
const MAX_LINKS: usize = 5;

/// Opens the objects of the repository at `path`, bare or with a work tree.
pub(in crate::git) fn open_repository(path: &Path, jobs: &Arc<ObjectJobs>) -> Result<Objects, GitError> {
    let directory = git_directory(path)?;
    let shallow = shallow(&directory).map_err(|source| damage(path, source))?;
    Objects::open(&objects_of(&directory, path)?, path, Owner::Foreign, jobs, shallow)
}

/// The directory of objects, which has to hold all of them: a job sees one directory.
fn objects_of(directory: &Path, path: &Path) -> Result<PathBuf, GitError> {
    let objects = directory.join("objects");
    if objects.join("info/alternates").try_exists().unwrap_or(false) {
        let reason =
            "it borrows objects of another repository (objects/info/alternates); run git repack -a -d in it and remove that file";
        return Err(damage(path, DamageError::State(reason.to_owned())));
    }
    Ok(objects)
}

/// All references of the repository at `path`.
pub(in crate::git) fn references(path: &Path) -> Result<Vec<Reference>, GitError> {
    let directory = git_directory(path)?;
    let found = Written::read(&directory).map_err(|source| damage(path, source))?;
    let resolved = found.0.keys().filter_map(|name| {
        let id = found.resolved(name)?;
        Some(Reference { name: name.clone(), id, peeled: None })
    });
    Ok(resolved.collect())
}

/// The directory of git itself.
fn git_directory(path: &Path) -> Result<PathBuf, GitError> {
    let missing = |reason: &str| GitError::NotFound { location: path.display().to_string(), reason: reason.to_owned() };
    fs::metadata(path).map_err(|error| missing(&error.to_string()))?;
    let is_repository = |directory: &PathBuf| directory.join("HEAD").is_file() && directory.join("objects").is_dir();
    let directory = [path.join(".git"), path.to_owned()].into_iter().find(is_repository);
    let directory = directory.ok_or_else(|| match path.join(".git").is_file() {
        true => missing("a linked work tree or a submodule (.git is a file); name the repository that it belongs to"),
        false => missing("not a git repository"),
    })?;
    let config = text(&directory.join("config")).map_err(|source| damage(path, source))?.unwrap_or_default();
    let settings = config.lines().filter_map(|line| line.split_once('='));
    for (name, value) in settings.map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_lowercase())) {
        if name == "objectformat" && value != "sha1" {
            return Err(missing("its object format is not SHA-1; only SHA-1 is supported"));
        }
        if name == "refstorage" && value != "files" {
            return Err(missing("its references are not in files; only references in files are supported"));
        }
    }
    Ok(directory)
}

/// Content of a file of references.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Id(ObjectId),
    /// The name of another one.
    Link(String),
}

struct Written(BTreeMap<String, Value>);

impl Written {
    /// A reference that is packed meanwhile is in its file, or it is in the list, which is read later.
    fn read(directory: &Path) -> Result<Self, DamageError> {
        let mut found = BTreeMap::new();
        loose(&directory.join("refs"), "refs", 0, &mut found)?;
        if let Some(value) = text(&directory.join("HEAD"))?.as_deref().and_then(value_of) {
            found.insert("HEAD".to_owned(), value);
        }
        for (name, id) in packed(&text(&directory.join("packed-refs"))?.unwrap_or_default()) {
            found.entry(name).or_insert(Value::Id(id));
            check_count(&found)?;
        }
        Ok(Self(found))
    }

    /// The object that a reference leads to; `None` where it leads nowhere, as that of an empty repository does.
    fn resolved(&self, name: &str) -> Option<ObjectId> {
        let mut name = name;
        for _ in 0..MAX_LINKS {
            match self.0.get(name)? {
                Value::Id(id) => return Some(*id),
                Value::Link(next) => name = next,
            }
        }
        None
    }
}

fn loose(directory: &Path, prefix: &str, depth: usize, found: &mut BTreeMap<String, Value>) -> Result<(), DamageError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        // It was the last one in it, and was removed meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(DamageError::Read(error)),
    };
    for entry in entries {
        let entry = entry.map_err(DamageError::Read)?;
        let (Some(name), Ok(kind)) = (entry.file_name().to_str().map(str::to_owned), entry.file_type()) else { continue };
        let name = format!("{prefix}/{name}");
        if kind.is_dir() && depth < MAX_DEPTH {
            loose(&entry.path(), &name, depth + 1, found)?;
        } else if kind.is_file()
            && let Some(value) = text(&entry.path())?.as_deref().and_then(value_of)
        {
            found.insert(name, value);
            check_count(found)?;
        }
    }
    Ok(())
}

fn check_count(found: &BTreeMap<String, Value>) -> Result<(), DamageError> {
    if found.len() > MAX_REFERENCES {
        return Err(DamageError::State(format!("it has more than {MAX_REFERENCES} references")));
    }
    Ok(())
}

/// The value in the file of a reference; `None` for one that is being written, or for another file.
fn value_of(text: &str) -> Option<Value> {
    let text = text.trim();
    match text.strip_prefix("ref:") {
        Some(name) => Some(Value::Link(name.trim().to_owned())),
        None => text.parse().ok().map(Value::Id),
    }
}

/// The list of packed references. Lines of comments and of what tags lead to are left out.
fn packed(text: &str) -> impl Iterator<Item = (String, ObjectId)> {
    text.lines().filter_map(|line| {
        let (id, name) = line.split_once(' ')?;
        Some((name.to_owned(), id.parse().ok()?))
    })
}

/// Git's own record of commits without their parents.
fn shallow(directory: &Path) -> Result<BTreeSet<ObjectId>, DamageError> {
    let text = text(&directory.join("shallow"))?.unwrap_or_default();
    let ids: Result<_, _> = text.lines().map(str::parse).collect();
    ids.map_err(|_| DamageError::State("its shallow file is not valid".to_owned()))
}

/// A file of text; `None` if it is not there.
fn text(path: &Path) -> Result<Option<String>, DamageError> {
    let mut bytes = Vec::new();
    let mut read = || {
        // Whoever owns the repository may put a FIFO there, which would hold the source up for ever.
        let file = fs::File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other(format!("{} is no file", path.display())));
        }
        file.take(MAX_FILE).read_to_end(&mut bytes)
    };
    match read() {
        Ok(_) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DamageError::Read(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    fn id(digit: char) -> String {
        digit.to_string().repeat(40)
    }

    #[test]
    fn references_are_read_from_files_and_the_list() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("objects/x", "");
        put("HEAD", "ref: refs/heads/main\n");
        put("refs/heads/main", &format!("{}\n", id('a')));
        put("refs/heads/deep/er", &id('b'));
        put("refs/heads/half", "");
        put("refs/remotes/origin/HEAD", "ref: refs/heads/nowhere\n");
        put("packed-refs", &format!("# pack-refs with: peeled\n{ID} refs/tags/v1\n^{}\n{ID} refs/heads/main\n", id('c')));
        let found: Vec<_> = references(directory.path()).unwrap().into_iter().map(|r| (r.name, r.id.to_string())).collect();
        let expected =
            [("HEAD", id('a')), ("refs/heads/deep/er", id('b')), ("refs/heads/main", id('a')), ("refs/tags/v1", ID.to_owned())];
        assert_eq!(found, expected.map(|(name, id)| (name.to_owned(), id)));
        put("refs/heads/main", "ref: HEAD");
        assert!(references(directory.path()).unwrap().iter().all(|reference| reference.name != "HEAD"), "a circle leads nowhere");
    }

    #[test]
    fn borrowed_objects_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let objects = directory.path().join("objects");
        fs::create_dir_all(objects.join("info")).unwrap();
        assert_eq!(objects_of(directory.path(), directory.path()).unwrap(), objects);
        fs::write(objects.join("info/alternates"), "/srv/other/objects").unwrap();
        let refused = objects_of(directory.path(), directory.path()).unwrap_err();
        assert!(podstead_telemetry::error_chain(&refused).to_string().contains("git repack -a -d"));
    }

    #[test]
    fn other_formats_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let refused = || references(directory.path()).unwrap_err().to_string();
        assert!(refused().contains("not a git repository"));
        fs::write(directory.path().join(".git"), "gitdir: /srv/fleet.git/worktrees/x").unwrap();
        assert!(refused().contains("name the repository that it belongs to"));
        fs::create_dir(directory.path().join("objects")).unwrap();
        fs::write(directory.path().join("HEAD"), "ref: refs/heads/main").unwrap();
        for (setting, expected) in [("objectFormat = sha256", "object format"), ("refStorage = reftable", "in files")] {
            fs::write(directory.path().join("config"), format!("[extensions]\n\t{setting}\n")).unwrap();
            assert!(refused().contains(expected), "{setting}");
        }
        fs::write(directory.path().join("config"), "[core]\n\tbare = true\n").unwrap();
        assert_eq!(references(directory.path()).unwrap(), []);
        let fifo = directory.path().join("packed-refs");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        assert!(references(directory.path()).is_err(), "nothing waits for a FIFO");
    }
}
