//! A container's output becomes CRI log lines (kubelet rule D18): `<RFC3339Nano> <stdout|stderr> <F|P> <text>`.
//!
//! Owns the log file, its rotation and the compression of what was rotated. In: bytes as they come out of the pipes. Out: whole lines in the file, in order; nothing
//! blocks on a full disk, and what had to be dropped is counted and told in the log itself.

mod compress;
mod line;
mod log_file;
mod tail;
mod timestamp;

pub(super) use compress::run as compress;
pub(super) use line::{LineSplitter, StreamName};
pub(super) use log_file::LogFile;
pub(super) use tail::last_lines;
