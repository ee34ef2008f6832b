//! Archives that say what a job that was taken over would try, in test builds alone.
//!
//! Such an archive begins with a line `podstead-attack: WORD`.

use super::super::compression::Decoder;
use super::super::limits::Limits;
use super::wire::{FailedKind, Form, Listed, ListedKind, Message, write};
use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};

const MARK: &str = "podstead-attack: ";
/// Offset of content in the archive that tells of the attack: behind its words.
const AT: u64 = 64;

/// Kinds of archives.
pub(super) enum Tried {
    /// An ordinary one.
    Nothing(File, File),
    /// An attack; the message may be a lie.
    Attack(Message),
}

/// Tries what the archive says, if it says so.
pub(super) fn attack(mut archive: File, form: Form, mut to: File) -> Tried {
    let Some(word) = word(&mut archive, form) else { return Tried::Nothing(archive, to) };
    let said = |text: String| Message::Failed(FailedKind::Archive, text);
    let file = |path: &str, size, at| {
        let (path, link) = (path.to_owned(), String::new());
        Listed { kind: ListedKind::File, path, link, size, at, is_sparse: false }
    };
    let mut wrote = |entries: &[Listed], content: &[u8]| {
        for entry in entries {
            let _refused = write(entry, &mut to);
        }
        let _refused = to.write_all(content);
        Message::Listed
    };
    let length = archive.metadata().map(|found| found.len()).unwrap_or_default();
    Tried::Attack(match word.as_str() {
        "outside" => wrote(&[file("index.json", 16, length)], b""),
        "wraps" => wrote(&[file("index.json", u64::MAX, u64::MAX)], b""),
        "twice" => wrote(&[file("index.json", 8, AT), file("manifest.json", 8, AT)], b""),
        "backwards" => wrote(&[file("index.json", 8, AT), file("manifest.json", 8, 0)], b""),
        // Of a plain archive the content is in the archive.
        "dots" => wrote(&[file("../../../etc/cron.d/evil", 8, AT)], if form == Form::Compressed { b"12345678" } else { b"" }),
        "long-name" => wrote(&[file(&"a".repeat(20_000), 8, AT)], b""),
        "long-entry" => wrote(&[], &u32::MAX.to_be_bytes()),
        "no-entry" => wrote(&[], b"\0\0\0\x02{}"),
        "cut-entry" => wrote(&[], b"\0\0\0\x40{"),
        "cut-content" => wrote(&[file("index.json", 1 << 20, 0)], b"{"),
        "early" => Message::Listed,
        "endless" => loop {
            if write(&file("a", 0, AT), &mut to).is_err() {
                return Tried::Attack(said("no more".to_owned()));
            }
        },
        "bomb" => {
            let _refused = write(&file("a", u64::MAX, AT), &mut to);
            loop {
                if to.write_all(&[b' '; 1 << 16]).is_err() {
                    return Tried::Attack(said("no more".to_owned()));
                }
            }
        }
        "huge" => said("x".repeat(200 << 10)),
        "words" => said("\x1b[31mred\n".repeat(1000)),
        "panic" => panic!("as the archive wants it"),
        word => said(format!("{word}: {}", podstead_sys::testing::attack(word))),
    })
}

/// The word of an archive that has one.
fn word(archive: &mut File, form: Form) -> Option<String> {
    let mut start = Vec::new();
    match form {
        Form::Plain => (&*archive).take(AT).read_to_end(&mut start).ok()?,
        Form::Compressed => {
            Decoder::new(BufReader::new(&*archive), &Limits::default()).ok()?.take(AT).read_to_end(&mut start).ok()?
        }
    };
    archive.rewind().ok()?;
    let text = String::from_utf8_lossy(&start).into_owned();
    Some(text.strip_prefix(MARK)?.lines().next()?.trim().to_owned())
}
