//! Trees of files as a stream, for `podstead cp`: one end is the command line, the other a process in the container.
//!
//! [`pack`] reads a file or a tree and writes the stream, [`unpack`] reads the stream and makes the file or the tree. Neither end trusts the
//! other, nor the tree: what is below the root is opened by name in an open directory and never through a symbolic link, names of the
//! stream are single components, and headers are bounded. Contents are not: they are as large as the disk.
//!
//! The stream: [`frame::MAGIC`], then for each file, directory and link a header, and for a file pieces of content up to an empty one. A directory stands
//! before what is in it. A last, empty header tells a whole stream from one that was cut off.

pub mod frame;
mod pack;
#[cfg(test)]
mod tests;
mod unpack;

pub use pack::pack;
pub use unpack::{Owners, Target, Unpacked, unpack};

use frame::FrameError;
use std::io;

/// Directories inside each other; each is open while it is read or made.
pub const MAX_DEPTH: usize = 256;

/// Copy that failed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The stream.
    #[error("read the stream of files")]
    Frame(#[from] FrameError),
    /// The stream cannot be written: the other end has gone.
    #[error("write the stream of files")]
    Write(#[source] io::Error),
    /// A file.
    #[error("{operation} {path}")]
    File {
        /// Operation that was tried.
        operation: &'static str,
        /// Its path.
        path: String,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// Something that cannot be copied.
    #[error("{path}: {reason}")]
    Refused {
        /// Its path.
        path: String,
        /// Reason.
        reason: &'static str,
    },
}

impl CopyError {
    fn file(operation: &'static str, path: &[u8], source: impl Into<io::Error>) -> Self {
        Self::File { operation, path: shown(path), source: source.into() }
    }

    fn refused(path: &[u8], reason: &'static str) -> Self {
        Self::Refused { path: shown(path), reason }
    }
}

/// A path as it may be put on a terminal.
fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}
