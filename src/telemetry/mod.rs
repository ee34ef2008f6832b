//! Logging and events.

pub mod event_log;
pub mod events;
pub mod journal;
pub mod logging;

pub use event_log::EventLog;
pub use logging::error_chain;
