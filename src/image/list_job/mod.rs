//! The job `list`: tells which files an archive of images or a bundle has, and where, without rights and without a view of anything else. An archive that
//! is compressed as a whole is decompressed on the way, and the content of its files comes with their names.
//!
//! In: an open file. Out: a [`Listing`]. An archive that takes its job over can say what another archive of its author could say: each file is a part of
//! the archive, no byte belongs to two of them, and the daemon reads, digests and limits the content itself.
//!
//! [`client`] is the daemon's side, [`child`] the job's; [`wire`] has what goes between them, [`reader`] what the job does.

#[cfg(feature = "testing")]
mod attack;
mod child;
mod client;
mod error;
mod listing;
mod reader;
mod wire;

pub use child::run;
pub use client::Lister;
pub use error::ListError;
pub use listing::{Here, Listing, Lists};
pub use wire::{Form, Listed, ListedKind};

/// Name of the task on the command line.
pub const TASK: &str = "list";
