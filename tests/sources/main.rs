//! The directory source on real file systems with real inotify.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its files has to fail")]

mod directory;
mod follower;
mod git;
mod mounts;
mod pipeline;
mod signatures;
mod single_file;
mod storm;
