//! The image store with real archives, real tools, a real file system and a real registry. Needs root.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod archives;
mod preload;
mod support;
