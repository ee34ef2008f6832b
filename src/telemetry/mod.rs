//! Logging and events.

pub mod events;
