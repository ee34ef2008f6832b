//! The stream of files of `podstead cp` is read or refused, whatever its bytes: names stay in their directory, and pieces are bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use podstead_copy::frame::{FrameReader, MAGIC, MAX_PIECE};

fuzz_target!(|bytes: &[u8]| {
    let whole = [MAGIC.as_slice(), bytes].concat();
    let Ok(mut reader) = FrameReader::new(&whole[..]) else { return };
    while let Ok(Some(entry)) = reader.next_entry() {
        assert!(entry.path.len() <= podstead_copy::MAX_DEPTH && entry.mode <= 0o7777);
        for name in &entry.path {
            assert!(!matches!(name.as_slice(), b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0));
        }
        while let Ok(Some(piece)) = reader.piece() {
            assert!((1..=MAX_PIECE).contains(&piece.len()));
        }
    }
});
