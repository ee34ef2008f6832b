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
    let mut wrote = |pieces: &[(String, &[u8])]| {
        for (json, content) in pieces {
            let length = u32::try_from(json.len()).unwrap_or(u32::MAX).to_be_bytes();
            let _full = answer.write_all(&[&length, json.as_bytes(), content].concat());
        }
        Message::Read
    };
    let head = |files: u64| (format!(r#"{{"files":{files},"beside":0,"around_path":"","around":0}}"#), &b""[..]);
    let file =
        |name: &str, size: u64, content: &'static [u8]| (format!(r#"{{"name":"{name}","content":{{"bytes":{size}}}}}"#), content);
    Tried::Attack(match word.trim() {
        "dots" => wrote(&[head(1), file("../../etc/cron.d/evil", 1, b"x")]),
        "giant" => wrote(&[head(1), file("a.yaml", u64::MAX, b"")]),
        "fewer" => wrote(&[head(1), file("a.yaml", 9, b"x")]),
        "many" => wrote(&[head(u64::from(u32::MAX))]),
        "names" => {
            let files = (0..9000).map(|number| file(&format!("{number:04000}"), 0, b""));
            wrote(&[head(9000)].into_iter().chain(files).collect::<Vec<_>>())
        }
        "long" => wrote(&[head(1), file(&"a".repeat(1 << 20), 0, b"")]),
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
