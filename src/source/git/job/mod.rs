//! The job `objects`: libgit2 in a process without rights, which indexes packs and reads objects for the daemon.
//!
//! [`client`] is the daemon's side: it starts jobs, sends packs and questions, and takes answers apart. [`session`] asks for objects and checks that each
//! is the one that was asked for. [`child`] is the job's side, [`serve`] what it does with questions, [`index`] with packs. [`wire`] has the messages
//! between them.
//!
//! A job that indexes sees one empty directory. One that reads sees the objects of one repository, which it cannot change.

#[cfg(feature = "testing")]
mod attack;
mod child;
mod client;
mod error;
mod failure;
mod index;
mod pack;
mod serve;
mod session;
mod wire;

pub use child::run;
pub use client::ObjectJobs;
pub use error::JobError;

pub(super) use client::{Owner, open_written};
pub(super) use failure::Failure;
pub(super) use session::{Found, Session};

/// Name of the task on the command line.
pub const TASK: &str = "objects";
