//! Archives that say what a job that was taken over would try, in test builds alone.
//!
//! Such an archive begins with `podstead-attack: WORD`.

use super::wire::{FailedKind, Message};
use std::fs::File;
use std::io::Write;

const MARK: &[u8] = b"podstead-attack: ";

/// Kinds of archives.
pub(super) enum Tried {
    /// An ordinary one.
    Nothing(File),
    /// An attack; the message may be a lie.
    Attack(Message),
}

/// Tries what the archive says, if it says so.
pub(super) fn attack(archive: &[u8], mut answer: File) -> Tried {
    let Some(word) = archive.strip_prefix(MARK).and_then(|word| std::str::from_utf8(word).ok()) else {
        return Tried::Nothing(answer);
    };
    let said = |text: String| Message::Failed(FailedKind::Refused, text);
    let mut wrote = |head: &str, contents: &[u8]| {
        let length = u32::try_from(head.len()).unwrap_or(u32::MAX).to_be_bytes();
        let _full = answer.write_all(&[&length, head.as_bytes(), contents].concat());
        Message::Read
    };
    let head = |files: &str| format!(r#"{{"files":{{{files}}},"beside":{{}},"around_path":"","around":{{}}}}"#);
    Tried::Attack(match word.trim() {
        "dots" => wrote(&head(r#""../../etc/cron.d/evil":{"bytes":1}"#), b"x"),
        "giant" => wrote(&head(r#""a.yaml":{"bytes":18446744073709551615}"#), b""),
        "fewer" => wrote(&head(r#""a.yaml":{"bytes":9}"#), b"x"),
        "nothing" => Message::Read,
        "huge" => said("x".repeat(200 << 10)),
        "words" => said("\x1b[31mred\n".repeat(1000)),
        "panic" => panic!("as the archive wants it"),
        "fill" => loop {
            if answer.write_all(&[0; 1 << 16]).is_err() {
                return Tried::Attack(said("no space".to_owned()));
            }
        },
        word => said(format!("{word}: {}", podstead_sys::testing::attack(word))),
    })
}
