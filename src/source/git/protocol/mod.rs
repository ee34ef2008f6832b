//! Git's smart protocol, as bytes: requests are made, answers are taken apart. [pure]
//!
//! In: what the server sent, in pieces of any size. Out: its references, and the parts of a pack. Version 2 is spoken where the server
//! knows it, version 0 elsewhere. All of it is untrusted input: every length is bounded, and every value is checked.

mod advertisement;
mod fetch;
mod ls_refs;
mod object_id;
mod pack;
mod pkt_line;

pub(super) use advertisement::{Advertisement, AdvertisementReader, OldCapabilities};
pub(super) use fetch::{AnswerReader, Fetch, Part};
pub(super) use ls_refs::{LsRefsReader, ls_refs_request};
pub use object_id::{NotAnObjectId, ObjectId};
pub(super) use pack::PackScan;
pub(super) use pkt_line::{Pkt, decode, encode};

/// User agent that servers see.
const AGENT: &str = concat!("agent=podstead/", env!("CARGO_PKG_VERSION"));

/// The most references that one server may list.
const MAX_REFERENCES: usize = 200_000;

/// Longest message of a server that is shown, in characters.
const SAID_MAX: usize = 300;

/// A reference as the server lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// Full name: `refs/heads/main`, `HEAD`.
    pub(super) name: String,
    /// Object that it points at; for an annotated tag the tag object.
    pub(super) id: ObjectId,
    /// Object that the annotated tag finally points at.
    pub(super) peeled: Option<ObjectId>,
}

/// Errors of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProtocolError {
    /// The response is not git's smart protocol.
    #[error("{0}")]
    NotGit(String),
    /// The server said why it does not do what it was asked for.
    #[error("{0}")]
    Refused(String),
    /// The server cannot do what is needed.
    #[error("{0}")]
    Unsupported(String),
    /// More than is taken.
    #[error("{0}")]
    TooMuch(String),
}

fn not_git(what: impl Into<String>) -> ProtocolError {
    ProtocolError::NotGit(what.into())
}

/// The server's words, made fit to be shown: one line without control characters.
pub(super) fn said(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(SAID_MAX).collect()
}

/// A line's text without its line feed; an error line becomes an error.
fn text(line: &[u8]) -> Result<&str, ProtocolError> {
    if let Some(reason) = line.strip_prefix(b"ERR ") {
        return Err(ProtocolError::Refused(said(reason)));
    }
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    std::str::from_utf8(line).map_err(|_| not_git("a line is not UTF-8"))
}

fn object_id(hex: &str) -> Result<ObjectId, ProtocolError> {
    hex.parse().map_err(|_| match hex.len() {
        64 => ProtocolError::Unsupported("the repository's object format is sha256; only SHA-1 is supported".to_owned()),
        _ => not_git("an object id is not 40 hexadecimal digits"),
    })
}
