//! The readers of the protocol, on anything.

#[path = "../../../../src/source/git/protocol/mod.rs"]
mod protocol;

use bytes::BytesMut;
use protocol::{Advertisement, AdvertisementReader, AnswerReader, LsRefsReader, OldCapabilities, PackScan, Part, Pkt, ProtocolError, decode};

/// Gives `bytes` to every reader, in pieces.
pub fn answer_anything(bytes: &[u8], piece: usize) {
    let whole = lines(bytes, bytes.len().max(1));
    assert_eq!(whole, lines(bytes, piece), "pieces make no difference");
    let (lines, _) = whole;

    let mut reader = AdvertisementReader::default();
    for line in &lines {
        match reader.take(line) {
            Ok(None) => {}
            Ok(Some(Advertisement::Old { references, .. })) => {
                assert!(references.len() <= lines.len());
                break;
            }
            Ok(Some(Advertisement::Current { .. })) => break,
            Err(error) => return told(&error),
        }
    }
    let mut reader = LsRefsReader::default();
    for line in &lines {
        match reader.take(line) {
            Ok(None) => {}
            Ok(Some(references)) => {
                assert!(references.len() <= lines.len());
                break;
            }
            Err(error) => {
                told(&error);
                break;
            }
        }
    }
    let shallow = AnswerReader::old(OldCapabilities::default());
    for mut reader in [AnswerReader::current(), shallow] {
        for line in lines.clone() {
            match reader.take(line) {
                Ok(Part::End) => break,
                Ok(_) => {}
                Err(error) => {
                    told(&error);
                    break;
                }
            }
        }
    }
    assert_eq!(pack(bytes, bytes.len().max(1)), pack(bytes, piece), "pieces make no difference");
}

/// All lines up to the first fault, and whether there was one.
fn lines(bytes: &[u8], piece: usize) -> (Vec<Pkt>, bool) {
    let (mut buffer, mut lines) = (BytesMut::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match decode(&mut buffer) {
                Ok(Some(line)) => lines.push(line),
                Ok(None) => break,
                Err(error) => {
                    told(&error);
                    return (lines, true);
                }
            }
        }
    }
    (lines, false)
}

fn pack(bytes: &[u8], piece: usize) -> Result<bool, ()> {
    let mut scan = PackScan::new();
    for piece in bytes.chunks(piece) {
        scan.push(piece).map_err(|error| told(&error))?;
    }
    Ok(scan.is_whole())
}

/// Checks that the text for people has nothing in it that a terminal would obey.
fn told(error: &ProtocolError) {
    assert!(!error.to_string().contains(char::is_control));
}
