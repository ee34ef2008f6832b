//! Layers that say what a job that was taken over would try, in test builds alone.
//!
//! Such a layer begins with a line `podstead-attack: WORD [ARGUMENT]`.

use super::super::limits::Used;
use super::wire::{Done, Failed, FailedKind, Message};
use podstead_container::digest::Digest;
use podstead_job::channel::Channel;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

const MARK: &[u8] = b"podstead-attack: ";

/// Kinds of layers.
pub(super) enum Begun {
    /// An ordinary one.
    Layer(BufReader<File>),
    /// An attack, which was tried; the answer may be a lie.
    Attacked(Vec<Message>),
}

/// Tries what the layer says, if it says so.
pub(super) fn begin(mut source: BufReader<File>, channel: &Channel) -> Begun {
    if !source.fill_buf().is_ok_and(|start| start.starts_with(MARK)) {
        return Begun::Layer(source);
    }
    let mut line = String::new();
    let _text = source.read_line(&mut line);
    let words: Vec<&str> = line.trim_start_matches("podstead-attack: ").split_whitespace().collect();
    let answer = match words[..] {
        ["claim", diff_id] => lie(diff_id, &mut source),
        ["early", diff_id] => lie(diff_id, &mut io::empty()),
        ["twice", diff_id] => [lie(diff_id, &mut source), lie(diff_id, &mut io::empty())].concat(),
        ["names", name] => vec![Message::Opaque(vec![name.to_owned()])],
        ["endless"] => loop {
            let used = Used { entries: 1, ..Used::default() };
            if channel.send(&Message::Progress(used)).is_err() {
                break Vec::new();
            }
        },
        ["huge"] => vec![Message::Failed(Failed { kind: FailedKind::Unpack, text: "x".repeat(200 << 10) })],
        ["words"] => vec![Message::Failed(Failed { kind: FailedKind::Unpack, text: "\x1b[31mred\n".repeat(1000) })],
        ["panic"] => panic!("as the layer wants it"),
        ["nest", depth] => nest(depth.parse().unwrap_or(0)),
        [word] => {
            let text = format!("{word}: {}", podstead_sys::testing::attack(word));
            vec![Message::Failed(Failed { kind: FailedKind::Unpack, text })]
        }
        _ => Vec::new(),
    };
    Begun::Attacked(answer)
}

/// An answer without any work.
fn lie(diff_id: &str, source: &mut impl Read) -> Vec<Message> {
    let _read = io::copy(source, &mut io::sink());
    let _made = std::fs::write("/poison", "poison");
    let diff_id = diff_id.parse().unwrap_or(Digest::of(b""));
    let used = Used::default();
    vec![Message::Done(Done { used, diff_id, entries: 0, bytes: 0, opaque_root: false, lost_xattrs: 0 })]
}

/// Directories in each other, as many as a job that was taken over likes.
fn nest(depth: u32) -> Vec<Message> {
    for _ in 0..depth {
        let made = rustix::fs::mkdirat(rustix::fs::CWD, "d", rustix::fs::Mode::RWXU);
        let entered = rustix::fs::openat(rustix::fs::CWD, "d", rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty());
        if made.and(entered).and_then(rustix::process::fchdir).is_err() {
            break;
        }
    }
    Vec::new()
}
