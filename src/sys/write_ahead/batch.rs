//! Batches of changes as bytes of the log, and back.

use ring::digest;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

/// A batch is a number of these, so that none shares a block with one that is durable already.
pub(super) const BLOCK: usize = 4096;

/// Begins each batch; the digit is the version of the format.
const MAGIC: [u8; 8] = *b"podsWAL1";
/// Bytes of magic, generation, sequence and length; the hash comes after them.
const FIELDS: usize = 32;
const HEAD: usize = FIELDS + digest::SHA256_OUTPUT_LEN;

pub(super) type Sha256 = [u8; digest::SHA256_OUTPUT_LEN];

/// A change in the log. Paths are relative to the directory of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logged<'a> {
    Directory {
        path: &'a Path,
        mode: u32,
    },
    /// The hash is that of the file which has the other name.
    Link {
        from: &'a Path,
        to: &'a Path,
        sha256: Sha256,
    },
    Write {
        path: &'a Path,
        content: &'a [u8],
        mode: u32,
    },
    Remove {
        path: &'a Path,
    },
}

impl<'a> Logged<'a> {
    /// The file that it makes, replaces or removes.
    pub(super) const fn path(&self) -> &'a Path {
        match *self {
            Self::Link { to: path, .. } | Self::Directory { path, .. } | Self::Write { path, .. } | Self::Remove { path } => path,
        }
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        match *self {
            Self::Directory { path, mode } => {
                bytes.push(1);
                bytes.extend(mode.to_le_bytes());
                put(bytes, path.as_os_str().as_bytes());
            }
            Self::Link { from, to, sha256 } => {
                bytes.push(2);
                bytes.extend(sha256);
                put(bytes, from.as_os_str().as_bytes());
                put(bytes, to.as_os_str().as_bytes());
            }
            Self::Write { path, content, mode } => {
                bytes.push(3);
                bytes.extend(mode.to_le_bytes());
                put(bytes, path.as_os_str().as_bytes());
                put(bytes, content);
            }
            Self::Remove { path } => {
                bytes.push(4);
                put(bytes, path.as_os_str().as_bytes());
            }
        }
    }
}

fn put(bytes: &mut Vec<u8>, value: &[u8]) {
    let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
    bytes.extend(length.to_le_bytes());
    bytes.extend(value);
}

/// Changes as bytes.
pub(super) fn payload(changes: &[Logged<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    changes.iter().for_each(|change| change.encode(&mut bytes));
    bytes
}

/// Bytes that a batch takes in the log.
pub(super) const fn size(payload: usize) -> usize {
    (HEAD + payload).next_multiple_of(BLOCK)
}

/// A batch of two payloads, one after the other.
pub(super) fn encode(generation: u64, sequence: u64, first: &[u8], second: &[u8]) -> Vec<u8> {
    let length = first.len() + second.len();
    let mut bytes = Vec::with_capacity(size(length));
    bytes.extend(MAGIC);
    bytes.extend(generation.to_le_bytes());
    bytes.extend(sequence.to_le_bytes());
    bytes.extend((length as u64).to_le_bytes());
    bytes.extend(hash(&bytes, &[first, second]));
    bytes.extend(first);
    bytes.extend(second);
    bytes.resize(size(length), 0);
    bytes
}

fn hash(fields: &[u8], payload: &[&[u8]]) -> Sha256 {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(fields);
    payload.iter().for_each(|part| context.update(part));
    array(context.finish().as_ref())
}

/// SHA-256 of a file's content.
pub(super) fn sha256(content: &[u8]) -> Sha256 {
    hash(content, &[])
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

/// A batch in the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch<'a> {
    pub(super) generation: u64,
    /// Its number in its half.
    sequence: u64,
    pub(super) changes: Vec<Logged<'a>>,
}

/// The batches of a half, in their order. What comes after the last whole one is of an earlier generation, or was being written when the power failed.
pub(super) fn read_half(half: &[u8]) -> Vec<Batch<'_>> {
    let (mut batches, mut rest): (Vec<Batch<'_>>, _) = (Vec::new(), half);
    while let Some((batch, after)) = read(rest)
        && batch.sequence == batches.len() as u64
        && batches.first().is_none_or(|first| first.generation == batch.generation)
    {
        batches.push(batch);
        rest = after;
    }
    batches
}

/// The batch that the bytes begin with, and what comes after it.
fn read(bytes: &[u8]) -> Option<(Batch<'_>, &[u8])> {
    let (head, after) = bytes.split_at_checked(HEAD)?;
    let (fields, sha256) = head.split_at(FIELDS);
    let number = |at: usize| u64::from_le_bytes(array(&fields[at..at + 8]));
    let length = usize::try_from(number(24)).ok()?;
    let payload = after.get(..length)?;
    if !fields.starts_with(&MAGIC) || hash(fields, &[payload]) != sha256 {
        return None;
    }
    let batch = Batch { generation: number(8), sequence: number(16), changes: decode(payload)? };
    Some((batch, bytes.get(size(length)..).unwrap_or_default()))
}

/// The changes of a payload; `None` if it has others than these.
fn decode(mut payload: &[u8]) -> Option<Vec<Logged<'_>>> {
    let mut changes = Vec::new();
    while let Some((tag, rest)) = payload.split_first() {
        payload = rest;
        changes.push(match tag {
            1 => Logged::Directory { mode: take_number(&mut payload)?, path: take_path(&mut payload)? },
            2 => {
                let sha256 = array(take(&mut payload, digest::SHA256_OUTPUT_LEN)?);
                Logged::Link { sha256, from: take_path(&mut payload)?, to: take_path(&mut payload)? }
            }
            3 => {
                let mode = take_number(&mut payload)?;
                Logged::Write { mode, path: take_path(&mut payload)?, content: take_bytes(&mut payload)? }
            }
            4 => Logged::Remove { path: take_path(&mut payload)? },
            _ => return None,
        });
    }
    Some(changes)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn take_number(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes, 4).map(|bytes| u32::from_le_bytes(array(bytes)))
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_number(bytes)?;
    take(bytes, usize::try_from(length).ok()?)
}

/// A path that stays below the directory of the log.
fn take_path<'a>(bytes: &mut &'a [u8]) -> Option<&'a Path> {
    let path = Path::new(OsStr::from_bytes(take_bytes(bytes)?));
    path.components().all(|component| matches!(component, Component::Normal(_))).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn some_changes() -> [Logged<'static>; 4] {
        [
            Logged::Directory { path: Path::new("pods/1"), mode: 0o755 },
            Logged::Link { from: Path::new("a"), to: Path::new("b/1"), sha256: sha256(b"x") },
            Logged::Write { path: Path::new("a"), content: b"content", mode: 0o600 },
            Logged::Remove { path: Path::new("b/0") },
        ]
    }

    fn half_of(batches: &[(u64, u64, &[Logged<'_>])]) -> Vec<u8> {
        batches.iter().flat_map(|(generation, sequence, changes)| encode(*generation, *sequence, &[], &payload(changes))).collect()
    }

    #[test]
    fn batches_are_read_as_they_were_written() {
        let changes = some_changes();
        let half = half_of(&[(7, 0, &changes), (7, 1, &changes[..1])]);
        assert_eq!(half.len(), 2 * BLOCK);
        let read = read_half(&half);
        assert_eq!(read.iter().map(|batch| batch.changes.as_slice()).collect::<Vec<_>>(), [&changes[..], &changes[..1]]);
        let joined = encode(1, 0, &payload(&changes[..2]), &payload(&changes[2..]));
        assert_eq!(read_half(&joined)[0].changes, changes);
    }

    #[test]
    fn batches_of_earlier_generation_and_damaged_ones_end_the_half() {
        let changes = some_changes();
        assert_eq!(read_half(&half_of(&[(7, 0, &changes), (6, 1, &changes)])).len(), 1, "an earlier generation");
        assert_eq!(read_half(&half_of(&[(7, 0, &changes), (7, 2, &changes)])).len(), 1, "one is missing");
        assert_eq!(read_half(&half_of(&[(7, 1, &changes)])).len(), 0, "the first is missing");
        let mut half = half_of(&[(7, 0, &changes), (7, 1, &changes), (7, 2, &changes)]);
        half[BLOCK + HEAD + 3] ^= 1;
        assert_eq!(read_half(&half).len(), 1, "a flipped bit");
        half.truncate(BLOCK - 1);
        assert_eq!(read_half(&half).len(), 1, "the end of a block is not part of the batch");
        half.truncate(HEAD + 10);
        assert_eq!(read_half(&half).len(), 0, "cut short");
        assert_eq!(read_half(&[0; 3 * BLOCK]).len(), 0);
    }

    #[test]
    fn paths_that_leave_the_directory_are_no_changes() {
        for path in ["/etc/passwd", "a/../../b", "../b", ".."] {
            assert_eq!(read_half(&half_of(&[(1, 0, &[Logged::Remove { path: Path::new(path) }])])).len(), 0, "{path}");
        }
    }

    proptest! {
        #[test]
        fn bytes_of_any_kind_are_read_without_fault(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            decode(&bytes);
            read_half(&bytes);
            read_half(&encode(1, 0, &bytes, &[]));
        }
    }
}
