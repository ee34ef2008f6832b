//! The job `unpack`: decompresses a layer and applies it to its tree, without rights and without a view of anything else.
//!
//! [`unpacker`] is the daemon's side: it digests the bytes, passes them on, and checks the answer. [`child`] is the job's side. [`wire`] has the messages
//! between them, [`stream`] what the job does with the bytes.

#[cfg(feature = "testing")]
mod attack;
mod child;
mod error;
mod stream;
mod unpacker;
mod watch;
mod wire;

pub use child::run;
pub use error::{JobError, ProcessLimits, of_end};
pub use unpacker::Unpacker;
pub(super) use unpacker::cpu_secs;
#[cfg(feature = "testing")]
pub use watch::is_answer;

/// Name of the task on the command line.
pub const TASK: &str = "unpack";
