//! Messages between the daemon and the job, and the files that the job found.
//!
//! The daemon sends a [`Request`] with a pipe, by which the archive comes, and an empty file in memory. There the job writes a [`Head`] and then for each file
//! an [`Entry`] and its content. Each head and entry is JSON behind its length, four bytes (big endian). The daemon reads them one after the other when the
//! job has ended, so that it never has more in memory than the files and the names of a source.

use crate::tree_rules::{ReadLimits, TreeFiles};
use podstead_artifact::{FileContent, Surroundings};
use podstead_job::confine::Rlimits;
use podstead_job::told::Told;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

/// The longest entry: a path, of which JSON may write each byte as six, or a reason.
const LONGEST: usize = 64 << 10;
/// Bytes of all names and reasons: several times what the 200,000 files of a large repository have.
const TEXT_MAX: usize = 16 << 20;
/// Bytes in the file beside content at most: names and reasons as JSON writes nearly all of them, and the form of entries.
pub(super) const FORM_MAX: u64 = 48 << 20;

/// The only message to the job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// Limits of the process.
    pub(super) rlimits: Rlimits,
    /// The user that it becomes.
    pub(super) uid: u32,
    /// Its group.
    pub(super) gid: u32,
    /// Path of the source in the archive.
    pub(super) path: String,
    /// Limits of the source.
    pub(super) limits: Limits,
}

/// [`ReadLimits`] as they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    max_file_bytes: u64,
    max_total_bytes: u64,
    max_files: usize,
    max_names: usize,
}

impl From<&ReadLimits> for Limits {
    fn from(limits: &ReadLimits) -> Self {
        let ReadLimits { max_file_bytes, max_total_bytes, max_files, max_names } = *limits;
        Self { max_file_bytes, max_total_bytes, max_files, max_names }
    }
}

impl From<Limits> for ReadLimits {
    fn from(limits: Limits) -> Self {
        let Limits { max_file_bytes, max_total_bytes, max_files, max_names } = limits;
        Self { max_file_bytes, max_total_bytes, max_files, max_names }
    }
}

/// The only message of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum Message {
    /// The files are written.
    Read,
    /// They are not.
    Failed(FailedKind, String),
}

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FailedKind {
    /// The job could not give its rights up, and did not begin.
    Confine,
    /// The archive is refused.
    Refused,
    /// The job's own error.
    Panic,
}

/// Number of files, and what belongs to all of them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    files: usize,
    beside: usize,
    around_path: String,
    around: usize,
}

/// A file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    content: Content,
}

/// Content of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Content {
    /// So many bytes, which follow.
    Bytes(u64),
    /// It is not read, for this reason.
    Refused(String),
}

/// Writes files for the daemon.
pub(super) fn write(found: &TreeFiles, mut to: impl Write) -> io::Result<()> {
    let TreeFiles { files, beside, around } = found;
    let text = |files: &BTreeMap<String, FileContent>| -> usize {
        files.iter().map(|(name, content)| name.len() + content.as_ref().err().map_or(0, String::len)).sum()
    };
    if text(files) + text(beside) + text(&around.files) > TEXT_MAX {
        return Err(io::Error::other(format!("it has more than {} MiB of names", TEXT_MAX >> 20)));
    }
    let around_path = around.path.clone();
    json(&Head { files: files.len(), beside: beside.len(), around_path, around: around.files.len() }, &mut to)?;
    for (name, content) in files.iter().chain(beside).chain(&around.files) {
        let name = name.clone();
        match content {
            Ok(bytes) => {
                json(&Entry { name, content: Content::Bytes(bytes.len() as u64) }, &mut to)?;
                to.write_all(&bytes.read())?;
            }
            Err(reason) => json(&Entry { name, content: Content::Refused(reason.clone()) }, &mut to)?,
        }
    }
    to.flush()
}

fn json(value: &impl Serialize, to: &mut impl Write) -> io::Result<()> {
    let json = serde_json::to_vec(value)?;
    if json.len() > LONGEST {
        return Err(io::Error::other("it has a name that is too long"));
    }
    to.write_all(&u32::try_from(json.len()).map_err(io::Error::other)?.to_be_bytes())?;
    to.write_all(&json)
}

/// Text of the rule that is broken by files that end early.
const CUT: &str = "less than it tells of";

/// Reads what a job wrote for the source at `path`. The error is the rule that it broke.
pub(super) fn read(from: impl Read, path: &str, limits: &ReadLimits) -> Result<TreeFiles, &'static str> {
    let mut reading = Reading { from, limits, bytes: limits.max_total_bytes, text: TEXT_MAX };
    let head: Head = reading.json()?;
    if head.around_path != path && !head.around_path.is_empty() {
        return Err("the files of another path");
    }
    if head.files > limits.max_files || head.beside > limits.max_names || head.around > limits.max_names {
        return Err("more files than a source has");
    }
    let (files, beside) = (reading.files(head.files)?, reading.files(head.beside)?);
    let around = Surroundings { path: head.around_path, files: reading.files(head.around)? };
    Ok(TreeFiles { files, beside, around })
}

/// Output of a job, and how much more of it may come.
struct Reading<'a, R> {
    from: R,
    limits: &'a ReadLimits,
    bytes: u64,
    text: usize,
}

impl<R: Read> Reading<'_, R> {
    fn json<T: DeserializeOwned>(&mut self) -> Result<T, &'static str> {
        let mut length = [0; 4];
        self.from.read_exact(&mut length).map_err(|_| CUT)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > LONGEST {
            return Err("a longer name than any");
        }
        let mut json = vec![0; length];
        self.from.read_exact(&mut json).map_err(|_| CUT)?;
        serde_json::from_slice(&json).map_err(|_| "an entry that is none")
    }

    fn files(&mut self, count: usize) -> Result<BTreeMap<String, FileContent>, &'static str> {
        let mut files = BTreeMap::new();
        for _ in 0..count {
            let Entry { name, content } = self.json()?;
            if !is_name(&name) {
                return Err("a name that is no path");
            }
            let content = match content {
                Content::Refused(reason) => Err(Told::cleaned(&reason)),
                Content::Bytes(size) => Ok(self.content(size)?.into()),
            };
            let text = name.len() + content.as_ref().err().map_or(0, String::len);
            self.text = self.text.checked_sub(text).ok_or("more names than any source has")?;
            if files.insert(name, content).is_some() {
                return Err("a name twice");
            }
        }
        Ok(files)
    }

    fn content(&mut self, size: u64) -> Result<Vec<u8>, &'static str> {
        self.bytes = self.bytes.checked_sub(size).ok_or("more bytes than a source has")?;
        if size > self.limits.max_file_bytes {
            return Err("a larger file than a source has");
        }
        let mut bytes = vec![0; usize::try_from(size).map_err(|_| CUT)?];
        self.from.read_exact(&mut bytes).map_err(|_| CUT)?;
        Ok(bytes)
    }
}

/// Reports whether a name leads downwards.
fn is_name(name: &str) -> bool {
    !name.contains('\0') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> ReadLimits {
        ReadLimits { max_file_bytes: 18, max_total_bytes: 20, max_files: 5, max_names: 30 }
    }

    fn found() -> TreeFiles {
        let file = |text: &str| -> FileContent { Ok(text.as_bytes().into()) };
        let files = BTreeMap::from([("a/web.yaml".to_owned(), file("kind: Pod")), ("b.yaml".to_owned(), Err("is odd".to_owned()))]);
        let beside = BTreeMap::from([("values".to_owned(), file("1"))]);
        let around =
            Surroundings { path: "site".into(), files: BTreeMap::from([("base/kustomization.yaml".to_owned(), file(""))]) };
        TreeFiles { files, beside, around }
    }

    /// Heads and entries, each with what follows it.
    fn written(pieces: &[(&str, &[u8])]) -> Vec<u8> {
        let piece = |(json, content): &(&str, &[u8])| {
            [&u32::try_from(json.len()).unwrap().to_be_bytes(), json.as_bytes(), content].concat()
        };
        pieces.iter().flat_map(piece).collect()
    }

    fn head(files: usize) -> String {
        format!(r#"{{"files":{files},"beside":0,"around_path":"","around":0}}"#)
    }

    fn bytes(name: &str, size: u64) -> String {
        format!(r#"{{"name":"{name}","content":{{"bytes":{size}}}}}"#)
    }

    #[test]
    fn files_come_back() {
        let mut bytes = Vec::new();
        write(&found(), &mut bytes).unwrap();
        assert_eq!(read(&bytes[..], "site", &limits()).unwrap(), found());
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end], "site", &limits()).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn files_that_no_archive_gives_are_refused() {
        let refused = |files: &[(&str, &[u8])]| {
            let head = head(files.len());
            let pieces = [&[(head.as_str(), &b""[..])][..], files].concat();
            read(&written(&pieces)[..], "site", &limits()).unwrap_err()
        };
        for name in ["../a", "/etc/passwd", "a//b", "", "a/."] {
            assert_eq!(refused(&[(&bytes(name, 0), b"")]), "a name that is no path", "{name}");
        }
        assert_eq!(refused(&[(&bytes("a", 21), &[0; 21])]), "more bytes than a source has");
        assert_eq!(refused(&[(&bytes("a", 15), &[0; 15]), (&bytes("b", 15), &[0; 15])]), "more bytes than a source has");
        assert_eq!(refused(&[(&bytes("a", 19), &[0; 19])]), "a larger file than a source has");
        assert_eq!(refused(&[(&bytes("a", 9), &[0; 8])]), "less than it tells of");
        assert_eq!(refused(&[(&bytes("a", 0), b""), (&bytes("a", 0), b"")]), "a name twice");
        assert_eq!(refused(&[("[]", b"")]), "an entry that is none");
        let told = |head: &str| read(&written(&[(head, b"")])[..], "site", &limits()).unwrap_err();
        assert_eq!(told("[]"), "an entry that is none");
        assert_eq!(told(&head(0).replace(r#""around_path":"""#, r#""around_path":"other""#)), "the files of another path");
        assert_eq!(told(&head(6)), "more files than a source has");
        assert_eq!(told(&head(1)), "less than it tells of");
        for list in ["beside", "around"] {
            let many = head(0).replace(&format!(r#""{list}":0"#), &format!(r#""{list}":31"#));
            assert_eq!(told(&many), "more files than a source has", "{list}");
        }
        let long = [&u32::MAX.to_be_bytes(), &[0_u8; 8][..]].concat();
        assert_eq!(read(&long[..], "", &limits()).unwrap_err(), "a longer name than any");
        let red = r#"{"name":"a","content":{"refused":"\u001b[31mred"}}"#;
        let told = read(&written(&[(&head(1), b""), (red, b"")])[..], "", &limits()).unwrap();
        assert_eq!(told.files["a"], Err("\u{fffd}[31mred".to_owned()));
    }

    #[test]
    fn names_have_a_limit_on_both_sides() {
        let limits = ReadLimits::default();
        let name = |number: usize| format!("{number:04000}");
        let count = TEXT_MAX / 4000 + 1;
        let text = (0..count).map(|number| bytes(&name(number), 0)).collect::<Vec<_>>();
        let head = head(count);
        let pieces: Vec<(&str, &[u8])> =
            [head.as_str()].into_iter().chain(text.iter().map(String::as_str)).map(|text| (text, &b""[..])).collect();
        assert_eq!(read(&written(&pieces)[..], "", &limits).unwrap_err(), "more names than any source has");
        let files = (0..count).map(|number| (name(number), Ok(b"".as_slice().into()))).collect();
        let error = write(&TreeFiles { files, ..TreeFiles::default() }, io::sink()).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 16 MiB of names");
    }

    #[test]
    fn limits_arrive() {
        let limits = ReadLimits { max_file_bytes: 1, max_total_bytes: 2, max_files: 3, max_names: 4 };
        assert_eq!(ReadLimits::from(Limits::from(&limits)), limits);
    }
}
