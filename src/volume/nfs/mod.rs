//! `nfs` volumes: exports of other hosts, mounted by the kernel below the pod's directory.
//!
//! A server that does not answer stops whoever asks for a file of it, for as long as it is silent. So the daemon never does: it reads the mount
//! table and files of its own. What needs the server or may wait for it is done by a short-lived process, this program under another name, with
//! a deadline. A process can be killed, or left behind, where a thread of the daemon could not.
//!
//! ```text
//! prepare --> NfsMounts::ensure --> mounted, as noted? --yes--> ready
//!                                        | no
//!                                 one process for each volume: resolve, try versions and addresses, mount
//!                                        | the pod waits a moment for it, then reports and asks again
//!             removal::remove  --> detach: the mount leaves the table at once; the process may outlast it, while data go to the server
//! ```
//!
//! * `place`: the mount point, its note and its lock. `message`: what daemon and process say to each other.
//! * `plan`: attempts, errors and their explanations. **Pure**.
//! * `process`: starts the process, hears it, ends it. `task`: what it does.
//! * `mounts`: mounts under way, one for each volume.
//!
//! A mount is noted before it is made, under a lock, so that what is mounted is what the note says: also when the daemon ended in between, and
//! when the process of an earlier daemon is still at work.

mod message;
mod mounts;
mod place;
mod plan;
mod process;
mod task;

pub use message::TASK;
pub(super) use mounts::NfsMounts;
pub(super) use place::{entries, is_mounted, real};
pub(super) use process::detach_below;
pub use task::run;
