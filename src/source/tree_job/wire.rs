//! Messages between the daemon and the job, and the files that the job found.
//!
//! The daemon sends a [`Request`] with a pipe, by which the archive comes, and an empty file in memory. There the job writes the length of a [`Head`], four
//! bytes (big endian), the head as JSON, and the contents of the files in the order of the head. The daemon reads it when the job has ended.

use crate::tree_rules::{ReadLimits, TreeFiles};
use podstead_artifact::{FileContent, Surroundings};
use podstead_job::confine::Rlimits;
use podstead_job::told::Told;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

/// The longest head: names, and reasons why files are not read.
pub(super) const HEAD_MAX: usize = 48 << 20;

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

/// Files by name.
type Listed = BTreeMap<String, Content>;

/// Names and sizes of all files.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    files: Listed,
    beside: Listed,
    around_path: String,
    around: Listed,
}

/// Content of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Content {
    /// So many bytes.
    Bytes(u64),
    /// It is not read, for this reason.
    Refused(String),
}

fn listed(files: &BTreeMap<String, FileContent>) -> Listed {
    let content = |content: &FileContent| match content {
        Ok(bytes) => Content::Bytes(bytes.len() as u64),
        Err(reason) => Content::Refused(reason.clone()),
    };
    files.iter().map(|(name, found)| (name.clone(), content(found))).collect()
}

/// Writes files for the daemon.
pub(super) fn write(found: &TreeFiles, mut to: impl Write) -> io::Result<()> {
    let TreeFiles { files, beside, around } = found;
    let head =
        Head { files: listed(files), beside: listed(beside), around_path: around.path.clone(), around: listed(&around.files) };
    let head = serde_json::to_vec(&head)?;
    if head.len() > HEAD_MAX {
        return Err(io::Error::other(format!("it has more than {} MiB of names", HEAD_MAX >> 20)));
    }
    to.write_all(&u32::try_from(head.len()).map_err(io::Error::other)?.to_be_bytes())?;
    to.write_all(&head)?;
    for bytes in [files, beside, &around.files].into_iter().flat_map(BTreeMap::values).flatten() {
        to.write_all(&bytes.read())?;
    }
    to.flush()
}

/// Reads what a job wrote for the source at `path`. The error is the rule that it broke.
pub(super) fn read(mut from: impl Read, path: &str, limits: &ReadLimits) -> Result<TreeFiles, &'static str> {
    const CUT: &str = "less than it tells of";
    let mut length = [0; 4];
    from.read_exact(&mut length).map_err(|_| CUT)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > HEAD_MAX {
        return Err("more names than any source has");
    }
    let mut head = vec![0; length];
    from.read_exact(&mut head).map_err(|_| CUT)?;
    let head: Head = serde_json::from_slice(&head).map_err(|_| "a list that is none")?;
    if head.around_path != path && !head.around_path.is_empty() {
        return Err("the files of another path");
    }
    let mut left = limits.max_total_bytes;
    let mut contents = |listed: Listed| -> Result<BTreeMap<String, FileContent>, &'static str> {
        let mut files = BTreeMap::new();
        for (name, content) in listed {
            if !is_name(&name) {
                return Err("a name that is no path");
            }
            let content = match content {
                Content::Refused(reason) => Err(Told::cleaned(&reason)),
                Content::Bytes(size) => {
                    left = left.checked_sub(size).ok_or("more bytes than a source has")?;
                    let mut bytes = vec![0; usize::try_from(size).map_err(|_| CUT)?];
                    from.read_exact(&mut bytes).map_err(|_| CUT)?;
                    Ok(bytes.into())
                }
            };
            files.insert(name, content);
        }
        Ok(files)
    };
    let (files, beside) = (contents(head.files)?, contents(head.beside)?);
    let around = Surroundings { path: head.around_path, files: contents(head.around)? };
    Ok(TreeFiles { files, beside, around })
}

/// Reports whether a name leads downwards.
fn is_name(name: &str) -> bool {
    !name.contains('\0') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> ReadLimits {
        ReadLimits { max_total_bytes: 20, ..ReadLimits::default() }
    }

    fn found() -> TreeFiles {
        let file = |text: &str| -> FileContent { Ok(text.as_bytes().into()) };
        let files = BTreeMap::from([("a/web.yaml".to_owned(), file("kind: Pod")), ("b.yaml".to_owned(), Err("is odd".to_owned()))]);
        let beside = BTreeMap::from([("values".to_owned(), file("1"))]);
        let around =
            Surroundings { path: "site".into(), files: BTreeMap::from([("base/kustomization.yaml".to_owned(), file(""))]) };
        TreeFiles { files, beside, around }
    }

    fn written(head: &str, contents: &[u8]) -> Vec<u8> {
        [&u32::try_from(head.len()).unwrap().to_be_bytes(), head.as_bytes(), contents].concat()
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
        let head = |files: &str| format!(r#"{{"files":{{{files}}},"beside":{{}},"around_path":"","around":{{}}}}"#);
        let refused = |head: &str, contents: &[u8]| read(&written(head, contents)[..], "site", &limits()).unwrap_err();
        for name in ["../a", "/etc/passwd", "a//b", "", "a/."] {
            assert_eq!(refused(&head(&format!(r#""{name}":{{"bytes":0}}"#)), b""), "a name that is no path", "{name}");
        }
        assert_eq!(refused(&head(r#""a":{"bytes":21}"#), &[0; 21]), "more bytes than a source has");
        assert_eq!(refused(&head(r#""a":{"bytes":15},"b":{"bytes":15}"#), &[0; 30]), "more bytes than a source has");
        assert_eq!(refused(&head(r#""a":{"bytes":9}"#), &[0; 8]), "less than it tells of");
        assert_eq!(refused("[]", b""), "a list that is none");
        let other = head("").replace(r#""around_path":"""#, r#""around_path":"other""#);
        assert_eq!(refused(&other, b""), "the files of another path");
        let long = [&u32::MAX.to_be_bytes(), &[0_u8; 8][..]].concat();
        assert_eq!(read(&long[..], "", &limits()).unwrap_err(), "more names than any source has");
        let told = read(&written(&head(r#""a":{"refused":"\u001b[31mred"}"#), b"")[..], "", &limits()).unwrap();
        assert_eq!(told.files["a"], Err("\u{fffd}[31mred".to_owned()));
    }

    #[test]
    fn limits_arrive() {
        let limits = ReadLimits { max_file_bytes: 1, max_total_bytes: 2, max_files: 3, max_names: 4 };
        assert_eq!(ReadLimits::from(Limits::from(&limits)), limits);
    }
}
