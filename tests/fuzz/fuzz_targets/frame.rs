//! The frames between daemon and shim: any bytes, in any pieces, end in frames or in an error, and what is encoded is decoded.
#![no_main]
#![allow(dead_code, reason = "only a part of the crate is compiled")]

use podstead_container::protocol::frame::{FrameDecoder, FrameKind, MAX_PAYLOAD, encode};
use libfuzzer_sys::fuzz_target;

/// The frames of a stream that comes in `pieces`, up to its end or to what is no frame.
fn frames<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<(FrameKind, Vec<u8>)> {
    let mut decoder = FrameDecoder::default();
    let mut found = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some((kind, payload))) => found.push((kind, payload.to_vec())),
                Ok(None) => break,
                Err(_) => return found,
            }
        }
    }
    found
}

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let found = frames(bytes.chunks(usize::from(piece).max(1)));
    let mut again = Vec::new();
    for (kind, payload) in &found {
        assert!(payload.len() <= MAX_PAYLOAD);
        encode(*kind, payload, &mut again).unwrap();
    }
    // Frames of unknown kinds were skipped.
    assert!(again.len() <= bytes.len());
    assert_eq!(frames(std::iter::once(again.as_slice())), found);
});
