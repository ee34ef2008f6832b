//! As in the crate.

#[path = "git.rs"]
pub mod git;
