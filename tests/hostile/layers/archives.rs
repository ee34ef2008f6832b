//! Archives of images that have taken the job over that lists them.
//!
//! An archive that begins with `podstead-attack:` tells the job of a test build what to try, as one would that found an error in the reader of archives or
//! in a decompressor.

use super::archive::{gzip, noise};
use super::store::Store;
use crate::slice::Slice;
use podstead::image::{ImageStoreConfig, JobSettings, Limits};
use std::time::Duration;

/// An archive, and as it is when it is compressed as a whole.
fn attacks(word: &str) -> [Vec<u8>; 2] {
    let plain = [format!("podstead-attack: {word}\n").into_bytes(), vec![b' '; 512]].concat();
    let compressed = gzip(&plain);
    [plain, compressed]
}

#[test]
fn forbidden_system_calls_end_the_job() {
    let slice = Slice::new("list-calls");
    let store = Store::with(slice.settings());
    let words = [
        "execve",
        "socket",
        "socket-inet",
        "kill",
        "kill-own",
        "mount",
        "ptrace",
        "unshare",
        "setns",
        "chroot",
        "setuid",
        "fork",
        "keyctl",
        "bpf",
        "io_uring",
        "tty",
        // No file can be opened.
        "name",
        "dotdot",
        "proc",
        "setuid-program",
    ];
    for word in words {
        for archive in attacks(word) {
            let reason = store.refused_archive(&archive);
            assert!(reason.contains("made a forbidden system call and was killed"), "{word}: {reason}");
        }
    }
    assert_eq!(store.reasons(), ["JobViolation"].repeat(2 * words.len()));
    slice.assert_empty();
}

#[test]
fn memory_and_time_end_at_their_limits() {
    let slice = Slice::new("list-limits");
    for grouped in [true, false] {
        let store = Store::with(if grouped { slice.settings() } else { ImageStoreConfig::default() });
        let [plain, compressed] = attacks("memory");
        for (archive, memory) in [(plain, "64 MiB"), (compressed, "128 MiB")] {
            let reason = store.refused_archive(&archive);
            assert!(reason.contains(&format!("used up its {memory} of memory")), "grouped: {grouped}: {reason}");
        }
        assert_eq!(store.reasons(), ["LimitExceeded"; 2]);
    }
    let jobs = JobSettings { patience: Duration::from_secs(1), ..slice.settings().jobs };
    let store = Store::with(ImageStoreConfig { jobs, ..ImageStoreConfig::default() });
    for word in ["spin", "sleep"] {
        for archive in attacks(word) {
            let reason = store.refused_archive(&archive);
            assert!(reason.contains("did nothing for 1 seconds and was killed"), "{word}: {reason}");
        }
    }
    slice.assert_empty();
}

#[test]
fn job_that_crashes_is_told() {
    let store = Store::new();
    for (word, expected) in [("segfault", "ended by signal 11"), ("panic", "panicked, which is an error of podstead: '")] {
        for archive in attacks(word) {
            let reason = store.refused_archive(&archive);
            assert!(reason.contains(expected), "{word}: {reason}");
        }
    }
    assert_eq!(store.reasons(), Vec::<String>::new());
}

#[test]
fn lies_of_a_job_are_not_believed() {
    let limits = Limits { entries: 1000, ..Limits::default() };
    let store = Store::with(ImageStoreConfig { limits, ..ImageStoreConfig::default() });
    const MIDDLE: &str = "archive ends in the middle of an entry";
    const NOTHING: &str = "neither an OCI layout";
    const FRONT: &str = "content in front of that of another entry";
    const LESS: &str = "less than it tells of";
    // Of a plain archive, and of a compressed one: there the content comes from the job.
    for (word, plain, compressed) in [
        ("outside", MIDDLE, LESS),
        ("wraps", MIDDLE, LESS),
        // Without content, the second entry is that of the first one.
        ("twice", FRONT, "a longer entry than any"),
        ("backwards", FRONT, "a longer entry than any"),
        ("cut-content", MIDDLE, LESS),
        ("dots", NOTHING, NOTHING),
        ("early", NOTHING, NOTHING),
        ("cut-entry", LESS, LESS),
        ("long-name", "a longer path than any", "a longer path than any"),
        ("long-entry", "a longer entry than any", "a longer entry than any"),
        ("no-entry", "an entry that is none", "an entry that is none"),
        ("endless", "more than 1000 files and directories", "more than 1000 files and directories"),
        ("bomb", MIDDLE, "more content than the archive may expand to"),
    ] {
        for (archive, expected) in attacks(word).into_iter().zip([plain, compressed]) {
            let reason = store.refused_archive(&archive);
            assert!(reason.contains(expected), "{word}: {reason}");
        }
    }
    let violations = store.reasons();
    // One for each rule that was broken: what is cut in a plain archive, is empty or has too many files is a matter of the archive.
    assert_eq!(violations, ["JobViolation"].repeat(16));
    for word in ["huge", "words"] {
        for archive in attacks(word) {
            let reason = store.refused_archive(&archive);
            assert!(reason.len() < 4096 && !reason.contains(char::is_control), "{} bytes: {reason:?}", reason.len());
        }
    }
}

#[test]
fn damage_of_a_compressed_archive_is_told() {
    let store = Store::new();
    let whole = gzip(&noise(100_000));
    let reason = store.refused_archive(&whole[..whole.len() / 2]);
    assert!(reason.contains("archive"), "{reason}");
    let zeros = gzip(&vec![0; 300 << 20]);
    let reason = store.refused_archive(&zeros);
    assert!(reason.contains("expands more than 200 times") || reason.contains("after its end"), "{reason}");
}
