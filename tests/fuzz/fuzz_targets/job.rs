//! Messages of a job: any bytes, in any pieces, are an answer or refused, and it does not matter how they were cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use podstead_image::unpack_job::is_answer;

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    assert_eq!(is_answer(bytes, usize::from(piece).max(1)), is_answer(bytes, bytes.len().max(1)));
});
