//! The webhook answers any request without a panic, believes none that is not signed, and keeps a bounded part of any payload.
#![no_main]
#![allow(dead_code, unused_imports, unreachable_pub, reason = "only a part of the crate is compiled")]

#[path = "../../../src/source/webhook/payload.rs"]
mod payload;
#[path = "../../../src/source/webhook/repository.rs"]
mod repository;
#[path = "../../../src/source/webhook/verify.rs"]
mod verify;

use libfuzzer_sys::fuzz_target;
use payload::repository_urls;
use repository::same_repository;
use verify::{SignatureHeaders, verify};

fuzz_target!(|input: (u8, &[u8], &[u8])| {
    let (which, header, body) = input;
    let headers = match which % 4 {
        0 => SignatureHeaders { hub: Some(header), ..Default::default() },
        1 => SignatureHeaders { generic: Some(header), ..Default::default() },
        2 => SignatureHeaders { gitea: Some(header), ..Default::default() },
        _ => SignatureHeaders { gitlab: Some(header), ..Default::default() },
    };
    let secret = podstead_outbound::Secret::new("0b7c4f0e-6f0c-4d0a-a6a5-3c1f1d9c9b1e");
    assert!(verify(&headers, body, &secret).is_err(), "nobody guesses this");

    let urls = repository_urls(body);
    assert!(urls.len() <= 16);
    for url in &urls {
        assert_eq!(same_repository(url, "git@git.lan:a/b"), same_repository("git@git.lan:a/b", url));
    }
    if let (Ok(one), Ok(other)) = (std::str::from_utf8(header), std::str::from_utf8(body)) {
        assert_eq!(same_repository(one, other), same_repository(other, one));
    }
});
