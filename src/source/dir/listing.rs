//! One pass over the directory: the listing is the truth, and files that did not change are not read again.

use super::file::{self, Reading, Seen, Stamp};
use super::names::is_manifest;
use super::place::{self, Identity};
use super::{DirectoryError, DirectoryOptions};
use crate::revision::{ContentHash, revision_of};
use podstead_artifact::{Artifact, FileBytes, FileContent, Place, Surroundings};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// Stamps have the resolution of the kernel's tick or, on old file systems, of two seconds: until a file is that much older than its
/// last change, another change may bear the same stamp, so the file is read again although its stamp did not change.
pub(super) const STAMP_RESOLUTION: Duration = Duration::from_secs(2);

/// Approximate memory of one file in addition to its content.
const FILE_OVERHEAD: u64 = 512;

/// State of one file from earlier passes.
#[derive(Clone, Debug)]
struct Known {
    /// Stamp of the content that was read, `None` if it was not a readable file.
    stamp: Option<Stamp>,
    /// The stamp would be another one if the content had changed since.
    conclusive: bool,
    hash: ContentHash,
    content: FileContent,
}

impl Known {
    fn read(content: FileBytes, stamp: Stamp, conclusive: bool) -> Self {
        Self { stamp: Some(stamp), conclusive, hash: ContentHash::of_bytes(&content.read()), content: Ok(content) }
    }

    /// Without a stamp, so that every pass tries to read the file again.
    fn unusable(reason: String) -> Self {
        Self { stamp: None, conclusive: true, hash: ContentHash::of_failure(&reason), content: Err(reason) }
    }
}

/// Files that were read so far, by name.
#[derive(Debug, Default)]
pub(super) struct Cache {
    files: BTreeMap<String, Known>,
    /// Files that were being changed in the last pass, and since when.
    left: BTreeMap<String, Instant>,
    /// The names that were reported last; `None` before the first report.
    reported: Option<BTreeSet<String>>,
}

impl Cache {
    /// Records that an artifact was reported.
    pub(super) fn note_reported(&mut self, artifact: &Artifact) {
        self.reported = Some(artifact.files.keys().cloned().collect());
    }

    /// Records that what was reported does not say which files are new.
    pub(super) fn forget_reported(&mut self) {
        self.reported = None;
    }
}

/// Coverage by inotify events: a covered file may be read right after an event, any other one only when it was not changed for a while.
#[derive(Clone, Debug, Default)]
pub(super) struct Witness {
    /// Events of the directory are received.
    pub(super) watching: bool,
    /// Names that are open for writing, as far as events tell.
    pub(super) being_written: BTreeSet<OsString>,
}

impl Witness {
    /// Restricts it to the directory with this prefix.
    pub(super) fn below(&self, prefix: &Path) -> Self {
        let name = |name: &OsString| {
            let name = Path::new(name);
            (name.parent() == Some(prefix)).then(|| name.file_name().map(OsStr::to_owned)).flatten()
        };
        Self { watching: self.watching, being_written: self.being_written.iter().filter_map(name).collect() }
    }
}

/// Result of a pass.
#[derive(Debug)]
pub(super) struct Pass {
    /// The whole content.
    pub(super) artifact: Artifact,
    /// Identity of the directory or file that was opened.
    pub(super) identity: Identity,
    /// Something else was opened than was there when the paths were looked at.
    pub(super) moved: bool,
    /// A file was left as it was before because it is being changed: another pass is due soon.
    pub(super) unstable: bool,
    /// Something may be missing that a moment later is there: not to be reported yet.
    pub(super) incomplete: bool,
    /// A stamp is younger than its resolution: another pass is due when it is not.
    pub(super) inconclusive: bool,
    /// Number of files whose content was read.
    pub(super) read: usize,
}

/// Reads the directory or file at `path`.
pub(super) fn pass(path: &Path, options: &DirectoryOptions, cache: &mut Cache, witness: &Witness) -> Result<Pass, DirectoryError> {
    match file::look(CWD, path) {
        Seen::Directory => pass_directory(path, options, cache, witness, &|name, _| is_manifest(name)),
        Seen::File(_) => pass_file(path, options, cache, witness),
        Seen::Absent => Err(DirectoryError::Absent(path.to_owned())),
        Seen::Unusable(reason) => Err(DirectoryError::Unusable { path: path.to_owned(), reason }),
    }
}

/// Reads the files directly in a directory for whose name, as it is and as in reports, `counts` returns true.
pub(super) fn pass_directory(
    path: &Path,
    options: &DirectoryOptions,
    cache: &mut Cache,
    witness: &Witness,
    counts: &dyn Fn(&OsStr, &str) -> bool,
) -> Result<Pass, DirectoryError> {
    let fail = |source: rustix::io::Errno| DirectoryError::List { path: path.to_owned(), source: io::Error::from(source) };
    // Everything below goes through this descriptor: what takes the directory's place meanwhile cannot mix with it.
    let directory = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(fail)?;
    let identity = Identity::of(directory.as_fd()).map_err(fail)?;
    let place = place::place_of(directory.as_fd()).map_err(fail)?;
    let before = Stamp::of(&rustix::fs::fstat(&directory).map_err(fail)?);
    let mut turn = Turn::new(directory.as_fd(), options, cache, witness);
    for entry in Dir::read_from(&directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if counts(name, &key(name)) && entry.file_type() != FileType::Directory {
            let witnessed = witness.watching && entry.file_type() == FileType::RegularFile;
            turn.take(Path::new(name), witnessed);
            turn.check_size(path)?;
        }
    }
    // A file that is renamed meanwhile may be met under neither name.
    let after = Stamp::of(&rustix::fs::fstat(&directory).map_err(fail)?);
    let settled = witness.watching || after.age(turn.now).is_none_or(|age| age >= options.settle);
    Ok(turn.finish(identity, Some(place), before != after || !settled))
}

fn pass_file(path: &Path, options: &DirectoryOptions, cache: &mut Cache, witness: &Witness) -> Result<Pass, DirectoryError> {
    let fail = |source: rustix::io::Errno| DirectoryError::List { path: path.to_owned(), source: io::Error::from(source) };
    let identity = Identity::at(path).ok_or_else(|| DirectoryError::Absent(path.to_owned()))?;
    let link = rustix::fs::lstat(path).map_err(fail)?;
    let witnessed = witness.watching && FileType::from_raw_mode(link.st_mode) == FileType::RegularFile;
    let mut turn = Turn::new(CWD, options, cache, witness);
    turn.take(path, witnessed);
    let pass = turn.finish(identity, None, false);
    if pass.artifact.files.is_empty() {
        return Err(DirectoryError::Absent(path.to_owned()));
    }
    Ok(pass)
}

/// The name in reports. Bytes that are not UTF-8 are escaped, so that two such names stay two.
fn key(name: &OsStr) -> String {
    name.to_str().map_or_else(|| name.as_bytes().escape_ascii().to_string(), str::to_owned)
}

/// State of a running pass.
struct Turn<'a> {
    directory: BorrowedFd<'a>,
    options: &'a DirectoryOptions,
    cache: &'a mut Cache,
    witness: &'a Witness,
    now: SystemTime,
    files: BTreeMap<String, Known>,
    left: BTreeMap<String, Instant>,
    /// Files that are being written and of which nothing is known yet.
    awaited: Vec<String>,
    bytes: u64,
    read: usize,
}

impl<'a> Turn<'a> {
    fn new(directory: BorrowedFd<'a>, options: &'a DirectoryOptions, cache: &'a mut Cache, witness: &'a Witness) -> Self {
        // The wall clock, because it is compared with what the file system says.
        let now = SystemTime::now();
        let (files, left, awaited) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { directory, options, cache, witness, now, files, left, awaited, bytes: 0, read: 0 }
    }

    /// Reads one file. `witnessed`: inotify events report writes to it.
    fn take(&mut self, name: &Path, witnessed: bool) {
        let file_name = name.file_name().unwrap_or(name.as_os_str());
        let key = key(name.as_os_str());
        let stamp = match file::look(self.directory, name) {
            Seen::File(stamp) => stamp,
            Seen::Directory | Seen::Absent => return,
            Seen::Unusable(reason) => return self.keep(key, Known::unusable(reason)),
        };
        if let Some(known) = self.cache.files.get(&key).filter(|known| known.conclusive && known.stamp == Some(stamp)) {
            return self.keep(key, known.clone());
        }
        let settled = if witnessed {
            !self.witness.being_written.contains(file_name)
        } else {
            // Clocks that disagree say nothing about how long the file was left alone.
            stamp.age(self.now).is_none_or(|age| age >= self.options.settle)
        };
        if !settled {
            return self.leave(key);
        }
        self.read += 1;
        match file::read(self.directory, name, self.options.max_file_bytes) {
            Reading::Whole(content, stamp) => {
                let conclusive = stamp.age(self.now).is_some_and(|age| age > STAMP_RESOLUTION);
                self.keep(key, Known::read(content, stamp, conclusive));
            }
            Reading::Unstable => self.leave(key),
            Reading::Absent => {}
            Reading::Unusable(reason) => self.keep(key, Known::unusable(reason)),
        }
    }

    fn keep(&mut self, key: String, mut known: Known) {
        self.bytes += FILE_OVERHEAD + known.content.as_ref().map_or(0, |content| content.len() as u64);
        // Equal content stays one allocation, which the store has too.
        if let Some(before) = self.cache.files.get(&key).filter(|before| before.hash == known.hash) {
            known.content = before.content.clone();
        }
        self.files.insert(key, known);
    }

    /// Keeps the earlier content of a file that is being changed, for a limited time.
    fn leave(&mut self, key: String) {
        let since = self.cache.left.get(&key).copied().unwrap_or_else(Instant::now);
        self.left.insert(key.clone(), since);
        if since.elapsed() > self.options.patience {
            let seconds = self.options.patience.as_secs();
            self.keep(key, Known::unusable(format!("has been written to continuously for more than {seconds} s")));
        } else if let Some(known) = self.cache.files.get(&key).cloned() {
            self.keep(key, Known { conclusive: false, ..known });
        } else {
            self.awaited.push(key);
        }
    }

    fn check_size(&self, path: &Path) -> Result<(), DirectoryError> {
        if self.bytes <= self.options.max_total_bytes {
            return Ok(());
        }
        Err(DirectoryError::TooMuch { path: path.to_owned(), max_bytes: self.options.max_total_bytes })
    }

    /// `moving`: names may have been missed.
    fn finish(self, identity: Identity, place: Option<Place>, moving: bool) -> Pass {
        // A file of which nothing is known yet is left out while it is written, unless what it holds may have been in a file that is
        // gone, or that was read before a restart: leaving it out would then remove what is only on its way.
        let vanished = |reported: &BTreeSet<String>| reported.iter().any(|name| !self.files.contains_key(name));
        let suspect = self.cache.reported.as_ref().is_none_or(vanished);
        let awaited = if suspect { self.awaited } else { Vec::new() };
        let incomplete = moving || !awaited.is_empty();
        let on_its_way = Known::unusable("is being written".to_owned());

        let mut files: BTreeMap<&str, &Known> = self.files.iter().map(|(name, known)| (name.as_str(), known)).collect();
        files.extend(awaited.iter().map(|name| (name.as_str(), &on_its_way)));
        let revision = revision_of(files.iter().map(|(name, known)| (*name, known.hash)));
        let files = files.into_iter().map(|(name, known)| (name.to_owned(), known.content.clone())).collect();
        let unstable = incomplete || !self.left.is_empty();
        let inconclusive = self.files.values().any(|known| !known.conclusive);
        (self.cache.files, self.cache.left) = (self.files, self.left);
        let artifact = Artifact { revision, place, commit: None, files, beside: BTreeMap::new(), around: Surroundings::default() };
        Pass { artifact, identity, moved: false, unstable, incomplete, inconclusive, read: self.read }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Passes over one directory.
    struct Bench {
        directory: tempfile::TempDir,
        options: DirectoryOptions,
        cache: Cache,
        witness: Witness,
    }

    impl Bench {
        fn new(files: &[&str]) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let bench = Self {
                directory,
                options: DirectoryOptions::default(),
                cache: Cache::default(),
                witness: Witness { watching: true, being_written: BTreeSet::new() },
            };
            files.iter().for_each(|name| bench.write(name));
            bench
        }

        fn write(&self, name: &str) {
            fs::write(self.directory.path().join(name), name).unwrap();
        }

        fn pass(&mut self) -> Pass {
            pass(self.directory.path(), &self.options, &mut self.cache, &self.witness).unwrap()
        }

        fn reported(&mut self) {
            let artifact = self.pass().artifact;
            self.cache.note_reported(&artifact);
        }

        /// Marks these files as being written.
        fn writing(&mut self, names: &[&str]) {
            self.witness.being_written = names.iter().map(|name| OsString::from(*name)).collect();
        }
    }

    /// Names, with a `!` before those that count as unreadable.
    fn names(pass: &Pass) -> Vec<String> {
        let short = |(name, content): (&String, &FileContent)| format!("{}{name}", if content.is_ok() { "" } else { "!" });
        pass.artifact.files.iter().map(short).collect()
    }

    #[test]
    fn files_that_did_not_change_are_not_read_again() {
        let mut bench = Bench::new(&["a.yaml", "b.yaml"]);
        assert_eq!(bench.pass().read, 2);
        let deadline = Instant::now() + Duration::from_secs(30);
        while bench.pass().inconclusive {
            assert!(Instant::now() < deadline, "never conclusive");
            std::thread::yield_now();
        }
        assert_eq!(bench.pass().read, 0);
        bench.write("b.yaml");
        assert_eq!(bench.pass().read, 1);
    }

    #[test]
    fn equal_content_stays_one_allocation() {
        let mut bench = Bench::new(&["a.yaml"]);
        let (one, two) = (bench.pass(), bench.pass());
        assert_eq!((one.read, two.read), (1, 1), "a young stamp says nothing");
        let content = |pass: &Pass| pass.artifact.files["a.yaml"].clone().unwrap();
        assert!(content(&one).is_shared_with(&content(&two)));
    }

    #[test]
    fn a_new_file_is_left_out_while_it_is_written() {
        let mut bench = Bench::new(&["a.yaml"]);
        bench.reported();
        bench.write("b.yaml");
        bench.writing(&["b.yaml"]);
        let pass = bench.pass();
        assert_eq!((names(&pass), pass.unstable, pass.incomplete), (vec!["a.yaml".to_owned()], true, false));
    }

    #[test]
    fn a_file_that_is_written_at_the_start_is_there_and_not_readable() {
        let mut bench = Bench::new(&["a.yaml", "b.yaml"]);
        bench.writing(&["b.yaml"]);
        let pass = bench.pass();
        assert_eq!((names(&pass), pass.incomplete), (vec!["a.yaml".to_owned(), "!b.yaml".to_owned()], true));
    }

    #[test]
    fn a_new_file_is_not_left_out_when_another_vanished_whose_content_it_may_get() {
        let mut bench = Bench::new(&["a.yaml"]);
        bench.reported();
        fs::remove_file(bench.directory.path().join("a.yaml")).unwrap();
        bench.write("b.yaml");
        bench.writing(&["b.yaml"]);
        for _ in 0..2 {
            let pass = bench.pass();
            assert_eq!((names(&pass), pass.incomplete), (vec!["!b.yaml".to_owned()], true));
        }
        bench.writing(&[]);
        let pass = bench.pass();
        assert_eq!((names(&pass), pass.incomplete), (vec!["b.yaml".to_owned()], false));
    }

    #[test]
    fn without_events_a_young_file_is_left_alone() {
        let mut bench = Bench::new(&["a.yaml"]);
        (bench.witness.watching, bench.options.settle) = (false, Duration::from_secs(3600));
        let pass = bench.pass();
        assert_eq!((names(&pass), pass.read, pass.incomplete), (vec!["!a.yaml".to_owned()], 0, true));
        bench.options.settle = Duration::ZERO;
        assert_eq!(names(&bench.pass()), ["a.yaml"]);
    }

    #[test]
    fn a_file_that_is_written_for_ever_becomes_a_failure() {
        let mut bench = Bench::new(&["a.yaml"]);
        bench.reported();
        bench.writing(&["a.yaml"]);
        assert_eq!(names(&bench.pass()), ["a.yaml"]);
        bench.options.patience = Duration::ZERO;
        assert_eq!(names(&bench.pass()), ["!a.yaml"]);
        bench.writing(&[]);
        assert_eq!(names(&bench.pass()), ["a.yaml"]);
    }

    #[test]
    fn manifests_are_told_by_their_names() {
        for name in ["a.yaml", "a.yml", "a.json", "A.YAML", "a b.yaml"] {
            assert!(is_manifest(OsStr::new(name)), "{name}");
        }
        for name in ["a", ".a.yaml", "a.yaml~", "a.yaml.bak", "..data", "yaml", ".yaml", "a.txt"] {
            assert!(!is_manifest(OsStr::new(name)), "{name}");
        }
    }
}
