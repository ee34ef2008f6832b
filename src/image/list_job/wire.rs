//! Messages between the daemon and the job.
//!
//! The daemon sends a [`Request`] with the archive and a socket. By the socket the job writes for each entry the length of a [`Listed`], four bytes (big
//! endian), the entry as JSON and, of a [compressed](Form::Compressed) archive, the content of the file. When it has closed the socket, it sends its
//! [`Message`].

use super::super::limits::{Exceeded, Limits};
use super::super::tar::PATH_MAX;
use podstead_job::confine::Rlimits;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// The longest entry: two paths, of which JSON may write each byte as six.
const LONGEST: usize = 64 << 10;
/// The longest path: three bytes stand for one that is not UTF-8.
const PATH: usize = PATH_MAX as usize * 3;

/// Form of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A tar archive: content is read where it lies.
    Plain,
    /// Compressed as a whole.
    Compressed,
}

/// The only message to the job. With it come the archive and a socket for entries.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// Form of the archive.
    pub(super) form: Form,
    /// Limits of images.
    pub(super) limits: Limits,
    /// Limits of the process.
    pub(super) rlimits: Rlimits,
    /// The user that it becomes.
    pub(super) uid: u32,
    /// Its group.
    pub(super) gid: u32,
}

/// Type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListedKind {
    /// Regular file; the only kind with content.
    File,
    /// Symbolic link.
    Symlink,
    /// A further name of another entry.
    HardLink,
    /// A directory, a device or a named pipe.
    Other,
}

/// An entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Its type.
    pub kind: ListedKind,
    /// Its path as in the archive; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Target of a link.
    pub link: String,
    /// Bytes of content in the archive.
    pub size: u64,
    /// Offset of the content in a [plain](Form::Plain) archive.
    pub at: u64,
    /// True if the content is that of a sparse file, without its holes.
    pub is_sparse: bool,
}

/// The only message of the job, after all entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum Message {
    /// These were all entries.
    Listed,
    /// There is no more, for this reason.
    Failed(FailedKind, String),
}

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FailedKind {
    /// The job could not give its rights up, and did not begin.
    Confine,
    /// The file cannot be read, or not be decompressed.
    Read,
    /// It is beyond a limit.
    Limit(Exceeded),
    /// It is no archive.
    Archive,
    /// The job's own error.
    Panic,
}

/// Writes an entry for the daemon.
pub(super) fn write(entry: &Listed, mut to: impl Write) -> io::Result<()> {
    let json = serde_json::to_vec(entry)?;
    to.write_all(&u32::try_from(json.len()).map_err(io::Error::other)?.to_be_bytes())?;
    to.write_all(&json)
}

/// Reason why there is no next entry.
#[derive(Debug)]
pub(super) enum Unread {
    /// The socket: cut off, or the job takes its time.
    Io(io::Error),
    /// The job broke this rule.
    Rule(&'static str),
}

/// Reads the next entry; `None` when the socket was closed in front of it.
pub(super) fn read(mut from: impl Read) -> Result<Option<Listed>, Unread> {
    let mut length = [0; 4];
    let mut count = 0;
    while count < length.len() {
        match from.read(&mut length[count..]) {
            Ok(0) if count == 0 => return Ok(None),
            Ok(0) => return Err(Unread::Io(io::ErrorKind::UnexpectedEof.into())),
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Unread::Io(error)),
        }
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > LONGEST {
        return Err(Unread::Rule("a longer entry than any"));
    }
    let mut json = vec![0; length];
    from.read_exact(&mut json).map_err(Unread::Io)?;
    let entry: Listed = serde_json::from_slice(&json).map_err(|_| Unread::Rule("an entry that is none"))?;
    if entry.path.len() > PATH || entry.link.len() > PATH {
        return Err(Unread::Rule("a longer path than any"));
    }
    if entry.kind != ListedKind::File && entry.size != 0 {
        return Err(Unread::Rule("content of something that is no file"));
    }
    Ok(Some(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Listed {
        let (path, link) = ("blobs/sha256/0".to_owned(), String::new());
        Listed { kind: ListedKind::File, path, link, size: 7, at: 512, is_sparse: false }
    }

    fn told(entry: &Listed) -> Result<Option<Listed>, Unread> {
        let mut bytes = Vec::new();
        write(entry, &mut bytes).unwrap();
        read(&bytes[..])
    }

    #[test]
    fn entries_come_back_and_are_not_cut() {
        let mut bytes = Vec::new();
        write(&entry(), &mut bytes).unwrap();
        assert_eq!(read(&bytes[..]).unwrap(), Some(entry()));
        assert_eq!(read(&b""[..]).unwrap(), None);
        for end in 1..bytes.len() {
            assert!(matches!(read(&bytes[..end]), Err(Unread::Io(_))), "cut at {end}");
        }
        // The longest that an archive can have: each byte is one that JSON writes as six.
        let control = "\u{1}".repeat(PATH_MAX as usize);
        let longest = Listed { kind: ListedKind::Symlink, path: control.clone(), link: control, size: 0, ..entry() };
        assert_eq!(told(&longest).unwrap(), Some(longest));
    }

    #[test]
    fn entries_that_no_archive_has_are_refused() {
        let rule = |result: Result<Option<Listed>, Unread>| match result {
            Err(Unread::Rule(rule)) => rule,
            other => panic!("{other:?}"),
        };
        assert_eq!(rule(read(&u32::MAX.to_be_bytes()[..])), "a longer entry than any");
        assert_eq!(rule(read(&[&2_u32.to_be_bytes()[..], b"{}"].concat()[..])), "an entry that is none");
        assert_eq!(rule(told(&Listed { path: "a".repeat(PATH + 1), ..entry() })), "a longer path than any");
        assert_eq!(rule(told(&Listed { link: "a".repeat(PATH + 1), ..entry() })), "a longer path than any");
        assert_eq!(rule(told(&Listed { kind: ListedKind::Other, ..entry() })), "content of something that is no file");
    }
}
