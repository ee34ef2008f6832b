//! Repositories that say what a job that was taken over would try, in test builds alone.
//!
//! A file begins with a line `podstead-attack: WORD`, or has `podstead-attack-index: WORD` in it for the job that indexes packs that are not compressed.

use super::super::format::Kind;
use super::wire::{Failed, FailedKind, Item, Message};
use podstead_job::channel::Channel;

const MARK: &[u8] = b"podstead-attack: ";
const INDEX_MARK: &[u8] = b"podstead-attack-index: ";

/// Tries what a pack says, if it says so.
pub(super) fn in_pack(bytes: &[u8], channel: &Channel) {
    if let Some(word) = word_after(bytes, INDEX_MARK)
        && let Some(message) = tried(&word, channel)
    {
        let _daemon_gone = channel.send(&message);
        podstead_sys::process::exit_at_once(0);
    }
}

/// Tries what an object says, if it says so; the answer may be a lie.
pub(super) fn in_content(items: Vec<Item>, mut content: Vec<u8>, channel: &Channel) -> (Vec<Item>, Vec<u8>) {
    let Some(word) = word_after(&content, MARK) else { return (items, content) };
    match word.as_str() {
        "another" => {
            if let Some(byte) = content.last_mut() {
                *byte ^= 1;
            }
            (items, content)
        }
        "kind" => {
            let other = |item| if let Item::Object(_, size) = item { Item::Object(Kind::Tag, size) } else { item };
            (items.into_iter().map(other).collect(), content)
        }
        "more" => ([items, vec![Item::Missing; 2000]].concat(), content),
        "none" => (Vec::new(), content),
        "giant" => (vec![Item::Object(Kind::Blob, u64::MAX)], content),
        "silent" => (items, Vec::new()),
        word => {
            if let Some(message) = tried(word, channel) {
                let _daemon_gone = channel.send(&message);
            }
            (items, content)
        }
    }
}

fn tried(word: &str, channel: &Channel) -> Option<Message> {
    let said = |text: String| Some(Message::Failed(Failed { kind: FailedKind::Damaged, text }));
    match word {
        "endless" => {
            let mut steps = 0;
            while channel.send(&Message::Progress(steps)).is_ok() {
                steps += 1;
            }
            None
        }
        "huge" => said("x".repeat(200 << 10)),
        "words" => said("\x1b[31mred\n".repeat(1000)),
        "panic" => panic!("as the repository wants it"),
        "escape" => Some(Message::Indexed(Some("../../escape".to_owned()))),
        "link" => {
            let made = rustix::fs::symlink("/etc/passwd", "/pack-0123.pack")
                .and_then(|()| rustix::fs::symlink("/etc/passwd", "/pack-0123.idx"));
            made.is_ok().then(|| Message::Indexed(Some("0123".to_owned())))
        }
        "write" => said(format!("write: {:?}", std::fs::write("/pack/poison", "x").map_err(|error| error.to_string()))),
        word => said(format!("{word}: {}", podstead_sys::testing::attack(word))),
    }
}

fn word_after(bytes: &[u8], mark: &[u8]) -> Option<String> {
    let at = memchr::memmem::find(bytes, mark)? + mark.len();
    let word: Vec<u8> = bytes[at..].iter().copied().take_while(|byte| byte.is_ascii_graphic()).collect();
    String::from_utf8(word).ok()
}
