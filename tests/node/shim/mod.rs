//! The runtime by itself: shims, helpers and real processes, without a daemon around them.

mod harness;
mod lifecycle;
