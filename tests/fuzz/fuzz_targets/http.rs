//! Whatever a web server answers is judged without a panic: body, serial, `Retry-After`.
#![no_main]
#![allow(dead_code, unused_imports, unreachable_pub, reason = "only a part of the crate is compiled")]

#[path = "../../../src/source/http/content.rs"]
mod content;
#[path = "../../../src/source/poll.rs"]
mod poll;
#[path = "../../../src/source/http/serial.rs"]
mod serial;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, &[u8])| {
    let (header, date, body) = input;
    if content::problem(Some(header), body).is_none() {
        assert!(!body.trim_ascii_start().starts_with(b"<"), "a page is never taken for manifests");
    }
    if let Ok(Some(number)) = serial::find(body) {
        let written = number.to_string();
        assert!(body.windows(written.len()).any(|window| window == written.as_bytes()), "a serial is written somewhere");
    }
    poll::retry_after(header, Some(date));
});
