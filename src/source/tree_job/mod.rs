//! The job `artifact`: decompresses the archive of an artifact or of a bundle, and reads the files of a source in it, without rights and without a
//! view of anything else.
//!
//! In: the bytes of an archive, whose digest the daemon compared before. Out: [`TreeFiles`](super::tree_rules::TreeFiles), or the reason why there
//! are none. An archive that takes its job over can say what another archive of its author could say: nothing else is told with its answer.
//!
//! [`client`] is the daemon's side, [`child`] the job's; [`wire`] has what goes between them.

#[cfg(feature = "testing")]
mod attack;
mod child;
mod client;
mod wire;

pub use child::run;
pub use client::ArtifactJobs;
pub(crate) use client::ReadError;

/// Name of the task on the command line.
pub const TASK: &str = "artifact";
