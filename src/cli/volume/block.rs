//! Export and import of claims with `volumeMode: Block`: the content of the device as an image, compressed with zstd.
//!
//! A device has no place for a second content beside the first: an image is read to its end before the device is opened for writing, and what stops
//! the command after that leaves a device with a part of both.

use crate::Context;
use crate::client::{Client, ClientError};
use crate::object_type::ObjectType;
use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use podstead_image::compression::Decoder;
use podstead_image::limits::Limits;
use podstead_pod::claims::{ClaimName, block_device};
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes that are read and written at once. A piece of zeros is not written, but made a hole where the device can.
const PIECE: usize = 1 << 20;
const LEVEL: i32 = 3;

/// Bytes of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Copied {
    /// Its length.
    pub(super) length: u64,
    /// The part in pieces that are not all zeros.
    pub(super) content: u64,
}

/// The device behind a claim; `None` for a claim with a directory, and where no daemon can say.
pub(super) fn device(context: &Context, claim: &ClaimName) -> anyhow::Result<Option<PathBuf>> {
    let client = context.client()?;
    let found = context.block_on(async { get(&client, claim).await });
    match found {
        Ok(found) => Ok(found.as_ref().and_then(block_device)),
        Err(error) if crate::is_unreachable(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn get(client: &Client, claim: &ClaimName) -> anyhow::Result<Option<PersistentVolumeClaim>> {
    let target = ObjectType::PersistentVolumeClaim.collection(Some(&claim.namespace));
    match client.get(target.below(&claim.name)).await {
        Err(ClientError::Refused { code: 404, .. }) => Ok(None),
        found => Ok(Some(found?)),
    }
}

/// Opens the device and measures it.
fn open(device: &Path, for_writing: bool) -> anyhow::Result<(File, u64)> {
    // For a block device, EXCL fails if this host has mounted it or made it a part of another one.
    let flags = if for_writing { OFlags::EXCL } else { OFlags::empty() };
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let opened = File::options().read(true).write(for_writing).custom_flags(flags).open(device);
    let mut file = opened.with_context(|| match for_writing {
        true => format!("open {}, which must not be mounted or in use by this host", device.display()),
        false => format!("open {}", device.display()),
    })?;
    if !file.metadata()?.file_type().is_block_device() {
        bail!("{} is not a block device", device.display());
    }
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    Ok((file, length))
}

/// Writes the content of the device as a compressed image.
pub(super) fn export(device: &Path, out: impl Write) -> anyhow::Result<Copied> {
    let (file, length) = open(device, false)?;
    let mut encoder = zstd::Encoder::new(out, LEVEL)?;
    encoder.include_checksum(true)?;
    let copied =
        copy(file.take(length), |_, piece| encoder.write_all(piece)).with_context(|| format!("read {}", device.display()))?;
    encoder.finish()?.flush()?;
    Ok(copied)
}

/// An image that was read to its end and fits the device.
#[derive(Debug)]
pub(super) struct Image {
    path: PathBuf,
    limits: Limits,
}

impl Image {
    /// Reads it, and writes nothing.
    pub(super) fn check(path: &Path, device: &Path) -> anyhow::Result<Self> {
        if path.as_os_str() == "-" {
            bail!("the image of a block device must be a file: it is read to its end before the device is written");
        }
        let (_, room) = open(device, false)?;
        let limits = Limits {
            unpacked_bytes: u64::MAX,
            compressed_bytes: u64::MAX,
            ratio: u64::MAX,
            file_bytes: u64::MAX,
            ..Limits::default()
        };
        let image = Self { path: path.to_owned(), limits };
        let mut start = Vec::new();
        image.read()?.take(1024).read_to_end(&mut start)?;
        if start.get(257..262) == Some(b"ustar") {
            bail!("{} is a tar archive, and {} is a block device, which needs an image", path.display(), device.display());
        }
        // One byte more than fits, so that a longer image is seen without its end.
        let length = copy(image.read()?.take(room + 1), |_, _| Ok(())).with_context(|| format!("read {}", path.display()))?.length;
        match length {
            0 => bail!("{} is empty", path.display()),
            length if length > room => {
                bail!("{} does not fit: {} has {room} bytes", path.display(), device.display())
            }
            _ => Ok(image),
        }
    }

    fn read(&self) -> anyhow::Result<impl Read + use<>> {
        let file = File::open(&self.path).with_context(|| format!("open {}", self.path.display()))?;
        Decoder::new(BufReader::new(file), &self.limits).with_context(|| format!("read {}", self.path.display()))
    }

    /// Writes it to the device. What the device has behind the end of the image stays.
    pub(super) fn write(&self, device: &Path) -> anyhow::Result<Copied> {
        let (mut file, _) = open(device, true)?;
        let copied = copy(self.read()?, |at, piece| {
            if !is_zero(piece) {
                file.seek(SeekFrom::Start(at))?;
                return file.write_all(piece);
            }
            let length = piece.len() as u64;
            let ways = [FallocateFlags::PUNCH_HOLE, FallocateFlags::ZERO_RANGE];
            if ways.into_iter().any(|way| fallocate(&file, way | FallocateFlags::KEEP_SIZE, at, length).is_ok()) {
                return Ok(());
            }
            file.seek(SeekFrom::Start(at))?;
            file.write_all(piece)
        });
        let written = copied.and_then(|copied| file.sync_all().map(|()| copied));
        written.with_context(|| format!("write {}, which now has a part of the image: import it again", device.display()))
    }
}

fn is_zero(piece: &[u8]) -> bool {
    piece.iter().all(|byte| *byte == 0)
}

/// Gives what is read to `write` in pieces, with their offsets.
fn copy(mut from: impl Read, mut write: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<Copied> {
    let (mut copied, mut piece) = (Copied::default(), vec![0; PIECE]);
    loop {
        let mut filled = 0;
        while filled < PIECE {
            match from.read(&mut piece[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let piece = &piece[..filled];
        if piece.is_empty() {
            return Ok(copied);
        }
        write(copied.length, piece)?;
        copied.length += filled as u64;
        copied.content += if is_zero(piece) { 0 } else { filled as u64 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_their_offsets() {
        let mut content = vec![0_u8; 2 * PIECE + 10];
        content[PIECE + 3] = 1;
        let mut seen = Vec::new();
        let copied = copy(&content[..], |at, piece| {
            seen.push((at, piece.len(), is_zero(piece)));
            Ok(())
        });
        let piece = PIECE as u64;
        assert_eq!(copied.unwrap(), Copied { length: content.len() as u64, content: piece });
        assert_eq!(seen, [(0, PIECE, true), (piece, PIECE, false), (2 * piece, 10, true)]);
    }
}
