//! Headers of registries: ranges, times and links end in a value or in nothing.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

#[path = "../../../src/image/answers.rs"]
mod answers;

use answers::{content_range, next_page, retry_after};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(range) = content_range(text)
        && let (Some(start), Some(total)) = (range.start, range.total)
    {
        assert!(start < total);
    }
    // It becomes a part of a URL.
    assert!(next_page(text).is_none_or(|query| !query.contains(['#', ' ', '\r', '\n'])));
    let (value, date) = text.split_once('\n').unwrap_or((text, ""));
    let wait = retry_after(value, Some(date), Timestamp::UNIX_EPOCH);
    assert!(wait.is_none_or(|wait| wait <= Duration::from_secs(6 * 3600)));
});
