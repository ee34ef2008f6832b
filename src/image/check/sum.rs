//! Checksums of files.
//!
//! CRC-32 over the blocks that are not all zeros, each with its offset: a file system may make a hole of zeros and zeros of a hole. Extended attributes follow.

use flate2::Crc;
use rustix::fs::{fgetxattr, flistxattr};
use rustix::io::Errno;
use std::os::fd::AsFd;

/// Bytes of a block.
pub(super) const BLOCK: usize = 4096;
/// Names and values of extended attributes.
const XATTR_MAX: usize = 64 << 10;

/// Adds blocks of a file, of which the first one is at `at`. The last one may be shorter, at the end of the file.
pub(super) fn add_blocks(crc: &mut Crc, at: u64, blocks: &[u8]) {
    for (number, block) in blocks.chunks(BLOCK).enumerate() {
        if block.iter().any(|byte| *byte != 0) {
            crc.update(&(at + (number * BLOCK) as u64).to_le_bytes());
            crc.update(block);
        }
    }
}

/// Adds extended attributes, but labels that this host sets.
pub(super) fn add_xattrs(crc: &mut Crc, file: impl AsFd) -> rustix::io::Result<()> {
    // Most files have none, or a label.
    let mut few = [0_u8; 256];
    let mut many = Vec::new();
    let names = match flistxattr(&file, &mut few[..]) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(()),
        Ok(length) => &few[..length],
        Err(Errno::RANGE) => {
            many.resize(XATTR_MAX, 0);
            let length = flistxattr(&file, &mut many[..])?;
            &many[..length]
        }
        Err(error) => return Err(error),
    };
    let mut names: Vec<&[u8]> = names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    for name in names.into_iter().filter(|name| *name != b"security.selinux") {
        let mut value = vec![0_u8; XATTR_MAX];
        let length = fgetxattr(&file, name, &mut value[..])?;
        crc.update(name);
        crc.update(&[0]);
        crc.update(&value[..length]);
    }
    Ok(())
}

/// The checksum of a file that is being written from its beginning to its end.
pub(in super::super) struct WrittenSum {
    crc: Crc,
    /// Offset of the block that begins next, or has begun.
    at: u64,
    /// The beginning of that block.
    begun: Vec<u8>,
}

impl WrittenSum {
    /// The checksum of an empty file.
    pub(in super::super) fn new() -> Self {
        Self { crc: Crc::new(), at: 0, begun: Vec::new() }
    }

    /// Adds what was written next.
    pub(in super::super) fn add(&mut self, mut bytes: &[u8]) {
        if !self.begun.is_empty() {
            let (rest, more) = bytes.split_at(bytes.len().min(BLOCK - self.begun.len()));
            self.begun.extend_from_slice(rest);
            bytes = more;
            if self.begun.len() < BLOCK {
                return;
            }
            self.add_begun();
        }
        let (whole, begun) = bytes.split_at(bytes.len() - bytes.len() % BLOCK);
        add_blocks(&mut self.crc, self.at, whole);
        self.at += whole.len() as u64;
        self.begun.extend_from_slice(begun);
    }

    fn add_begun(&mut self) {
        add_blocks(&mut self.crc, self.at, &self.begun);
        self.at += self.begun.len() as u64;
        self.begun.clear();
    }

    /// The checksum with the extended attributes of `file`, which has what was added.
    pub(in super::super) fn finish(mut self, file: impl AsFd) -> rustix::io::Result<u32> {
        self.add_begun();
        add_xattrs(&mut self.crc, file)?;
        Ok(self.crc.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs::File;

    proptest! {
        #[test]
        fn pieces_of_writes_make_no_difference(
            blocks in proptest::collection::vec((any::<bool>(), 1..=BLOCK), 0..6),
            cuts in proptest::collection::vec(1..3 * BLOCK, 1..20),
        ) {
            let content: Vec<u8> = blocks.iter().flat_map(|(is_zero, length)| vec![u8::from(!is_zero); *length]).collect();
            let mut whole = Crc::new();
            add_blocks(&mut whole, 0, &content);
            let (mut written, mut rest) = (WrittenSum::new(), &content[..]);
            for cut in cuts.into_iter().chain([content.len()]) {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                written.add(piece);
                rest = after;
            }
            let file = tempfile::tempfile().unwrap();
            prop_assert_eq!(written.finish(&file).unwrap(), whole.sum());
        }
    }

    #[test]
    fn offsets_and_attributes_count() {
        let directory = tempfile::tempdir().unwrap();
        let sum = |content: &[u8], file: &File| {
            let mut sum = WrittenSum::new();
            sum.add(content);
            sum.finish(file).unwrap()
        };
        let file = File::create(directory.path().join("file")).unwrap();
        let (before, after) = ([vec![1; BLOCK], vec![0; BLOCK]].concat(), [vec![0; BLOCK], vec![1; BLOCK]].concat());
        assert_ne!(sum(&before, &file), sum(&after, &file));
        let plain = sum(&before, &file);
        rustix::fs::fsetxattr(&file, "trusted.x", b"1", rustix::fs::XattrFlags::empty()).unwrap();
        let with_one = sum(&before, &file);
        for number in 0..20 {
            rustix::fs::fsetxattr(&file, format!("trusted.name-of-attribute-{number}"), b"1", rustix::fs::XattrFlags::empty())
                .unwrap();
        }
        assert!(![plain, with_one].contains(&sum(&before, &file)) && plain != with_one);
    }
}
