//! A look at a pack while it comes, before libgit2 takes it apart: what each object says that it unpacks to.
//!
//! libgit2 allocates what an object says, and a few bytes may say gigabytes. So sizes are held to a limit here, and what is unpacked is
//! held to its size.

use super::ProtocolError;
use flate2::{Decompress, FlushDecompress, Status};

/// Size of one object. Manifests are far smaller; what else is in the repository has to pass too.
pub(super) const MAX_OBJECT: u64 = 256 << 20;

/// Size of one commit, tree or tag.
const MAX_STRUCTURE: u64 = 32 << 20;

const HEAD: usize = 12;
const ID: usize = 20;
/// Unpacked bytes are thrown away in pieces of this size.
const SCRAP: usize = 16 << 10;

/// Scanner of a pack while it is received.
#[derive(Debug)]
pub(in crate::git) struct PackScan {
    state: State,
    /// Objects that the pack has.
    announced: u32,
    /// Objects that are still to begin.
    left: u32,
    limit: u64,
}

#[derive(Debug)]
enum State {
    /// Signature, version, number of objects.
    Head { seen: usize, objects: [u8; 4] },
    /// Kind and size of an object.
    Size { kind: u8, size: u64, shift: u32 },
    /// Offset of the base of a delta.
    Offset { size: u64, digits: u32 },
    /// The id of the base of a delta.
    Base { size: u64, left: usize },
    /// Compressed content.
    Content { size: u64, inflate: Box<Decompress> },
    /// The pack's own hash.
    Trailer { left: usize },
}

impl PackScan {
    pub(in crate::git) fn new() -> Self {
        Self::with_limit(MAX_OBJECT)
    }

    pub(super) fn with_limit(limit: u64) -> Self {
        Self { state: State::Head { seen: 0, objects: [0; 4] }, announced: 0, left: 0, limit }
    }

    /// Looks at the next bytes.
    pub(in crate::git) fn push(&mut self, mut bytes: &[u8]) -> Result<(), ProtocolError> {
        while let Some((&byte, rest)) = bytes.split_first() {
            bytes = match &mut self.state {
                State::Content { size, inflate } => {
                    let (used, ended) = unpack(inflate, *size, bytes)?;
                    if ended {
                        self.state = self.next_object();
                    }
                    &bytes[used..]
                }
                State::Head { .. } | State::Size { .. } | State::Offset { .. } | State::Base { .. } | State::Trailer { .. } => {
                    self.take(byte)?;
                    rest
                }
            };
        }
        Ok(())
    }

    /// Reports whether the announced pack was received completely.
    pub(in crate::git) fn is_whole(&self) -> bool {
        matches!(self.state, State::Trailer { left: 0 })
    }

    /// Reports whether the received part of the pack announces no objects.
    pub(in crate::git) fn is_empty(&self) -> bool {
        self.announced == 0
    }

    fn take(&mut self, byte: u8) -> Result<(), ProtocolError> {
        match &mut self.state {
            State::Head { seen, objects } => {
                match *seen {
                    0..4 if byte != b"PACK"[*seen] => return Err(bad("it does not start with PACK")),
                    4..7 if byte != 0 => return Err(bad("it has an unknown version")),
                    7 if byte != 2 => return Err(bad("it has an unknown version")),
                    0..8 => {}
                    at => objects[at - 8] = byte,
                }
                *seen += 1;
                if *seen == HEAD {
                    self.announced = u32::from_be_bytes(*objects);
                    self.left = self.announced;
                    self.state = self.next_object();
                }
            }
            State::Size { kind, size, shift } => {
                if *shift == 0 {
                    *kind = byte >> 4 & 7;
                    *size = u64::from(byte & 15);
                    *shift = 4;
                } else {
                    if *shift > 53 {
                        return Err(bad("an object's size is out of range"));
                    }
                    *size |= u64::from(byte & 127) << *shift;
                    *shift += 7;
                }
                if byte & 128 == 0 {
                    let (kind, size) = (*kind, *size);
                    self.state = self.content_of(kind, size)?;
                }
            }
            State::Offset { size, digits } => {
                *digits += 1;
                if *digits > 10 {
                    return Err(bad("a delta's base offset is out of range"));
                }
                if byte & 128 == 0 {
                    self.state = content(*size);
                }
            }
            State::Base { size, left } => {
                *left -= 1;
                if *left == 0 {
                    self.state = content(*size);
                }
            }
            State::Trailer { left: 0 } => return Err(bad("it has data after its end")),
            State::Trailer { left } => *left -= 1,
            State::Content { .. } => {}
        }
        Ok(())
    }

    fn next_object(&mut self) -> State {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                State::Size { kind: 0, size: 0, shift: 0 }
            }
            None => State::Trailer { left: ID },
        }
    }

    fn content_of(&self, kind: u8, size: u64) -> Result<State, ProtocolError> {
        // Commits, trees and tags are taken apart as a whole; what a delta makes is held to its limit by libgit2.
        let limit = if matches!(kind, 1 | 2 | 4) { self.limit.min(MAX_STRUCTURE) } else { self.limit };
        if size > limit {
            return Err(ProtocolError::TooMuch(format!("the pack has an object of {size} bytes; the limit is {limit}")));
        }
        match kind {
            1..=4 => Ok(content(size)),
            6 => Ok(State::Offset { size, digits: 0 }),
            7 => Ok(State::Base { size, left: ID }),
            _ => Err(bad("it has an object of an unknown type")),
        }
    }
}

fn content(size: u64) -> State {
    State::Content { size, inflate: Box::new(Decompress::new(true)) }
}

/// Unpacks as much as `bytes` give; how many of them that took, and whether the object ended.
fn unpack(inflate: &mut Decompress, size: u64, bytes: &[u8]) -> Result<(usize, bool), ProtocolError> {
    let mut scrap = [0; SCRAP];
    let mut used = 0;
    loop {
        let (taken, made) = (inflate.total_in(), inflate.total_out());
        let status = inflate.decompress(&bytes[used..], &mut scrap, FlushDecompress::None);
        let status = status.map_err(|_| bad("an object cannot be decompressed"))?;
        used += usize::try_from(inflate.total_in() - taken).unwrap_or(0);
        if inflate.total_out() > size {
            return Err(bad("an object is larger than its declared size"));
        }
        match status {
            Status::StreamEnd if inflate.total_out() == size => return Ok((used, true)),
            Status::StreamEnd => return Err(bad("an object is smaller than its declared size")),
            // Nothing moves any more: the rest has yet to come.
            Status::Ok | Status::BufError if inflate.total_in() == taken && inflate.total_out() == made => {
                return Ok((used, false));
            }
            Status::Ok | Status::BufError => {}
        }
    }
}

fn bad(what: &str) -> ProtocolError {
    ProtocolError::NotGit(format!("received a damaged pack: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    fn packed(content: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    /// Kind and size as they stand before an object.
    fn size(kind: u8, mut size: u64) -> Vec<u8> {
        let mut bytes = vec![kind << 4 | (size & 15) as u8];
        size >>= 4;
        while size > 0 {
            *bytes.last_mut().unwrap() |= 128;
            bytes.push((size & 127) as u8);
            size >>= 7;
        }
        bytes
    }

    fn pack(objects: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = b"PACK\0\0\0\x02".to_vec();
        bytes.extend((objects.len() as u32).to_be_bytes());
        bytes.extend(objects.concat());
        bytes.extend([7; ID]);
        bytes
    }

    fn sample() -> Vec<u8> {
        let blob = b"kind: Pod\n".repeat(1000);
        let one = [size(3, blob.len() as u64), packed(&blob)].concat();
        let offset = [size(6, 5), vec![0x81, 0x02], packed(b"delta")].concat();
        let base = [size(7, 0), vec![9; ID], packed(b"")].concat();
        pack(&[one, offset, base])
    }

    #[test]
    fn a_pack_is_whole_when_all_of_it_came_in_pieces_of_any_size() {
        let bytes = sample();
        for piece in [1, 2, 7, 4096, bytes.len()] {
            let mut scan = PackScan::new();
            for piece in bytes.chunks(piece) {
                assert!(!scan.is_whole());
                scan.push(piece).unwrap();
            }
            assert!(scan.is_whole());
            assert!(scan.push(b"x").is_err(), "after its end");
        }
        let mut scan = PackScan::new();
        scan.push(&pack(&[])).unwrap();
        assert!(scan.is_whole(), "without objects");
    }

    #[test]
    fn a_size_above_the_limit_is_refused_before_anything_is_unpacked() {
        let bomb = pack(&[size(3, 1 << 40)]);
        let error = PackScan::new().push(&bomb[..HEAD + size(3, 1 << 40).len()]).unwrap_err();
        assert!(matches!(error, ProtocolError::TooMuch(_)), "{error}");
        let bytes = pack(&[[size(1, 11), packed(&[0; 11])].concat()]);
        assert!(PackScan::with_limit(11).push(&bytes).is_ok());
        assert!(PackScan::with_limit(10).push(&bytes).is_err());
    }

    #[test]
    fn objects_that_are_not_what_they_say_are_refused() {
        let object = |kind, said, content: &[u8]| pack(&[[size(kind, said), packed(content)].concat()]);
        for (bytes, word) in [
            (object(3, 4, b"12345"), "larger"),
            (object(3, 6, b"12345"), "smaller"),
            (object(5, 5, b"12345"), "unknown type"),
            (object(3, 3, &[0; 100_000]), "larger"),
            (pack(&[[size(3, 4), b"nonsense".to_vec()].concat()]), "cannot be decompressed"),
            (pack(&[vec![0xff; 12]]), "size is out of range"),
            (b"PACK\0\0\0\x03".to_vec(), "version"),
            (b"<html>".to_vec(), "does not start"),
        ] {
            let error = PackScan::new().push(&bytes).unwrap_err().to_string();
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}
