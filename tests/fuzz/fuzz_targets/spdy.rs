//! SPDY/3.1 of clients: any bytes, in any pieces, end in frames or in an error, the same wherever they are cut; headers stay within their limit.
#![no_main]
#![allow(dead_code, reason = "only a part of the crate is compiled")]

#[path = "../../../src/api/spdy.rs"]
mod spdy;
#[path = "../../../src/api/spdy_headers.rs"]
mod spdy_headers;

use libfuzzer_sys::fuzz_target;
use spdy::{Decoder, Frame};
use spdy_headers::Reader;

/// Headers that came, the data of a stream put together again, and the end in an error if there was one.
fn frames<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<String>, bool) {
    let (mut decoder, mut reader) = (Decoder::default(), Reader::new());
    let mut found: Vec<String> = Vec::new();
    let mut data: Option<(u32, usize)> = None;
    for piece in pieces {
        decoder.push(piece);
        loop {
            let frame = match decoder.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) => return (found, true),
            };
            if let Frame::Data { stream, bytes, is_last } = &frame {
                let before = data.filter(|(of, _)| of == stream).map_or(0, |(_, length)| length);
                data = Some((*stream, before + bytes.len()));
                if *is_last {
                    found.push(format!("{data:?}"));
                }
                continue;
            }
            if let Frame::Open { headers, .. } = &frame {
                if reader.read(headers).is_err() {
                    return (found, true);
                }
            }
            found.push(format!("{frame:?}"));
        }
    }
    (found, false)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let cut = frames(bytes.chunks(usize::from(piece).max(1)));
    assert_eq!(frames(std::iter::once(bytes)), cut);
});
